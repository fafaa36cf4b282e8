"""Section on resource usage: CPU and memory of the target and the load generator, across load and over time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from loadstone.report.numbers import rounded, significant
from loadstone.report.queries import Queries, Row
from loadstone.text import counted, rate_text

# A load generator that used this share of its CPUs or more: latencies may include waiting for it.
NEARLY = 0.9
TIME_BINS = 60

_TOTAL = ("total", "TOTAL")
_GENERATOR = ("process", "generator")
_MACHINE = ("node", "generator")
_NAMES = {_TOTAL: "All of the target", _GENERATOR: "Load generator", _MACHINE: "The load generator's machine"}
_DIGITS = 5  # more than samples are accurate to
_NOTED = {"cpu_millicores": "millicores", "memory_mib": "MiB", "cpu_percent": "% of the CPU"}


def gather(queries: Queries) -> list[Row]:
    """Resource usage per rate, variant and part; empty where no valid run has samples."""
    return queries.rows("page_resources", nearly=NEARLY)


def context(rows: Sequence[Row], labels: Mapping[str, str]) -> dict[str, Any]:
    """The variables of ``resources.html``. `labels` are the variants' labels, in the order of charts and tables."""
    order = list(labels)
    known = [row for row in rows if row["variant"] in labels]
    places = {part: position for position, part in enumerate(_parts(known))}
    known.sort(key=lambda row: (row["rate"], order.index(row["variant"]), places[_key(row)]))
    return {
        "used": [row | {"part": _label(_key(row), places)} for row in known],
        "used_parts": [(_id(part), _label(part, places)) for part in places],
        "used_warnings": list(_warnings(known, labels)),
        "generator_cpus": max((row["generator_cpus"] or 0 for row in known), default=0),
        "used_sum": any(row["scope"] == "namespace" for row in known),
    }


def choices(rows: Sequence[Row]) -> dict[str, Any] | None:
    """The parts to choose from, with their names, and the one shown first."""
    parts = _parts(rows)
    return {"parts": {_id(part): _label(part, parts) for part in parts}, "part": _id(parts[0])} if parts else None


def chart_rows(rows: Sequence[Row]) -> list[Row]:
    """Mean and standard deviation over runs of CPU (millicores) and memory (MiB) across load."""
    figures = {"cpu": "cpu_mean", "cpu_std": "cpu_std", "memory": "memory_mean", "memory_std": "memory_std"}
    return [
        {"variant": row["variant"], "load": row["rate"], "part": _id(_key(row)), "runs": row["n_runs"]}
        | {name: rounded(row[column], _DIGITS) for name, column in figures.items()}
        for row in rows
    ]


def over_time(queries: Queries, rates: Sequence[float]) -> list[Row]:
    """The same over time at some rates."""
    return [
        {
            "rate": row["rate"],
            "variant": row["variant"],
            "time": rounded(row["at_s"], _DIGITS),
            "part": _id(_key(row)),
            "runs": row["n_runs"],
        }
        | {name: rounded(row[name], _DIGITS) for name in ("cpu", "cpu_std", "memory", "memory_std")}
        for row in queries.rows("page_resources_over_time", rates=rates, bins=TIME_BINS)
    ]


def per_run(queries: Queries, takes: Callable[[Row], bool], shown: int) -> dict[str, Any]:
    """CPU and memory per run; no runs are listed when there are more than `shown`."""
    runs: dict[tuple[Any, ...], dict[str, Any]] = {}
    parts: dict[str, None] = {}
    for row in queries.rows("page_run_use"):
        if takes(row):
            key = tuple(row[name] for name in ("rate", "variant", "host", "timestamp", "variant_dir", "run"))
            runs.setdefault(key, row | {"parts": {}})["parts"][row["part"]] = row
            parts[row["part"]] = None
    ordered = sorted(parts, key=lambda part: (part == "TOTAL", part))
    listed = list(runs.values()) if len(runs) <= shown else []
    return {
        "run_use": listed,
        "run_use_parts": ordered,
        "run_use_labels": sorted({name for run in listed for name in dict(run["labels"] or {})}),
        "noted": [
            row | {"unit": _NOTED.get(row["metric"], row["metric"])}
            for row in queries.rows("page_noted_figures", shown=shown)
            if takes(row)
        ],
    }


def _key(row: Row) -> tuple[str, str]:
    return row["scope"], row["name"]


def _parts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """All parts that appear: the sum, those of the target by name, the load generator, its machine, other machines."""

    def place(part: tuple[str, str]) -> tuple[int, str, str]:
        ranks = {_TOTAL: 0, _GENERATOR: 2, _MACHINE: 3}
        return (ranks.get(part, 4 if part[0] == "node" else 1), *part)

    return sorted({_key(row) for row in rows}, key=place)


def _id(part: tuple[str, str]) -> str:
    return "/".join(part)


def _label(part: tuple[str, str], parts: Any) -> str:
    """The part's name, with its scope where another part has the same name."""
    if part in _NAMES:
        return _NAMES[part]
    scope, name = part
    same_name = [other for other in parts if other[1] == name]
    return f"{name} ({scope})" if len(same_name) > 1 or not name else name


def _warnings(rows: Sequence[Row], labels: Mapping[str, str]) -> Iterator[str]:
    own = [row for row in rows if _key(row) == _GENERATOR]
    if full := sum(row["n_nearly_full"] for row in own):
        worst = max(own, key=lambda row: row["fullest_share"] or 0)
        where = f"{labels[worst['variant']]} at {rate_text(worst['rate'])} requests/s, run {worst['fullest_run']}"
        share = f"{significant(100 * worst['fullest_share'])} % of them on average"
        yield (
            f"The load generator used nearly all its CPUs in {full:,} of "
            f"{counted(sum(row['n_runs'] for row in own), 'run')} (at most {share}: {where}). Latencies measured there "
            "include waiting for the generator itself."
        )
