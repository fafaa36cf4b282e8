"""What a comparison's page says of single runs besides latency, of lines fitted over them, of what tools mean."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from loadstone.analysis.fits import Fitted
from loadstone.readers import load_generators
from loadstone.report import clock_resolution
from loadstone.report.numbers import Unit, counted, joined, share, significant
from loadstone.report.queries import Questions, Row
from loadstone.text import rate_text

_BAND_POINTS = 25
_STAMPS = {
    "start": "the start of a request",
    "end": "its end",
    "offset": "the time since the run's start",
    "none": "none of a single request",
}
_NOTED = {"cpu_millicores": "millicores", "memory_mib": "MiB", "cpu_percent": "% of the CPU"}
_ALIKE = {
    "all_raw_data_mean_ns": "mean",
    "p50_ns": "median",
    "p90_ns": "p90",
    "p95_ns": "p95",
    "p99_ns": "p99",
}


def use(questions: Questions, takes: Callable[[Row], bool], shown: int) -> dict[str, Any]:
    """CPU and memory per run; nothing where there are more runs than a reader would look at one by one."""
    runs: dict[tuple[Any, ...], dict[str, Any]] = {}
    parts: dict[str, None] = {}
    for row in questions.rows("page_run_use"):
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
            for row in questions.rows("page_noted_figures", shown=shown)
            if takes(row)
        ],
    }


# --- lines ------------------------------------------------------------------------------------------------------------


def fits(fitted: Sequence[Fitted], load_unit: str) -> list[dict[str, Any]]:
    """What is said of each line."""
    return [
        {
            "title": _title(each, load_unit),
            "says": _said(each, load_unit) if each.line else "",
            "problem": each.problem,
            "rests": _rests(each, load_unit),
        }
        for each in fitted
    ]


def axes(each: Fitted, load_unit: str) -> tuple[str, str]:
    """What the axes of a line's chart show."""
    return _first(_across(each, load_unit)), f"{_first(_what(each))} ({each.fit.unit})"


def fit_data(fitted: Sequence[Fitted], names: Callable[[str], str], load_unit: str) -> list[dict[str, Any]]:
    """What the page's script draws of each line. `names` gives the series of a variant."""
    return [
        {
            "runs": [
                {
                    "variant": names(point.variant),
                    "x": point.x,
                    "value": float(f"{point.y:.6g}"),
                    "run": point.run,
                    "load": rate_text(point.rate),
                    "rate": point.rate,
                }
                for point in each.points
            ],
            "line": list(_band(each)),
            "says": _said(each, load_unit) if each.line else "",
            "axes": axes(each, load_unit),
        }
        for each in fitted
    ]


def _band(each: Fitted) -> Iterator[dict[str, float]]:
    if each.line is None:
        return
    xs = [point.x for point in each.points]
    low, high = min(xs), max(xs)
    for step in range(_BAND_POINTS + 1):
        x = low + (high - low) * step / _BAND_POINTS
        value, least, most = each.line.at(x)
        names = ("x", "line", "low", "high")
        yield {name: float(f"{number:.6g}") for name, number in zip(names, (x, value, least, most), strict=True)}


def _what(each: Fitted) -> str:
    of = {"cpu": "CPU", "memory": "memory", "p50": "median latency", "min": "least latency", "max": "greatest latency"}
    what = of.get(each.fit.of, f"{each.fit.of} latency")
    part = "all of the target" if each.fit.name == "TOTAL" else each.fit.name
    return f"{what} of {part}" if part else what


def _title(each: Fitted, load_unit: str) -> str:
    return _first(f"{_what(each)} by {_across(each, load_unit)}")


def _first(text: str) -> str:
    """The text with a capital letter in front."""
    return text[:1].upper() + text[1:]


def _across(each: Fitted, load_unit: str) -> str:
    return f"load ({load_unit})" if each.fit.x == "rate" else f"number of {each.fit.x}"


def _one(each: Fitted, load_unit: str) -> str:
    """One of x: ``pod`` of ``pods``."""
    name = load_unit if each.fit.x == "rate" else each.fit.x
    if name == "requests/s":
        return "request/s"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def _said(each: Fitted, load_unit: str) -> str:
    line, unit, one = each.line, each.fit.unit, _one(each, load_unit)
    assert line is not None
    sure, span = share(line.confidence), _span(line.slope_low, line.slope_high)
    slope = f"{_number(line.slope)} {unit} per {one}, {sure} interval {span}"
    base = f"{_number(line.intercept)} {unit} besides ({_span(line.intercept_low, line.intercept_high)})"
    told = " The interval holds zero: whether it grows or falls at all, these runs do not tell."
    return f"{slope}; {base}.{told if line.slope_low <= 0 <= line.slope_high else ''}"


def _number(value: float) -> str:
    return f"−{significant(-value)}" if value < 0 else significant(value)


def _span(low: float, high: float) -> str:
    return f"{_number(low)} to {_number(high)}"


def _rests(each: Fitted, load_unit: str) -> str:
    xs = sorted({point.x for point in each.points})
    if not xs:
        return ""
    loads = _listed([rate_text(rate) for rate in sorted({point.rate for point in each.points})])
    evidence = joined({"reported": "the tools' reports"}.get(point.evidence, point.evidence) for point in each.points)
    at = f"at {loads} {load_unit}"
    where = at if each.fit.x == "rate" else f"with {_listed([f'{x:g}' for x in xs])} {each.fit.x}, {at}"
    student = f"(Student's t, {len(each.points) - 2} degrees of freedom)"
    band = f" The band is the {share(each.line.confidence)} interval of the line {student}." if each.line else ""
    left = f"; {counted(each.n_left_out, 'run')} without {_lacked(each)} left out" if each.n_left_out else ""
    return (
        f"Least squares over {counted(len(each.points), 'run')} {where}, each one point, from {evidence}{left}.{band}"
    )


def _lacked(each: Fitted) -> str:
    """What a run that is left out has not."""
    used = each.fit.of in ("cpu", "memory")
    figure = "such a figure" if used else "such a figure in a report of its tool"
    return figure if each.fit.x == "rate" else f"a number of {each.fit.x} or {figure}"


# --- what tools mean, and what their steps hide ----------------------------------------------------------------------


def meanings(questions: Questions, runs: Sequence[Row]) -> list[dict[str, Any]]:
    """The table of tools that a comparison across tools carries; empty where all latencies mean the same."""
    tools = sorted({str(run["generator"]) for run in runs})
    if len(set(map(load_generators.meaning, tools))) < 2:
        return []
    known = {row["generator"]: row for row in questions.rows("page_generators")}
    return [_meaning(tool, known.get(tool), runs) for tool in tools]


def _meaning(tool: str, known: Row | None, runs: Sequence[Row]) -> dict[str, Any]:
    models = joined(sorted({str(run["load_model"]) for run in runs if str(run["generator"]) == tool}))
    if known is None:
        unknown = "not known"
        return {"tool": tool, "models": models} | dict.fromkeys(_MEANT, unknown)
    return {
        "tool": tool,
        "models": models,
        "starts_at": known["starts_at"],
        "ends_at": known["ends_at"],
        "connecting": known["connecting"],
        "stamp": _STAMPS.get(known["stamp"], known["stamp"]),
        "resolution": clock_resolution.resolution_text(known["resolution_ns"]),
        "source": known["source"],
    }


_MEANT = ("starts_at", "ends_at", "connecting", "stamp", "resolution", "source")


def below_resolution(rows: Sequence[Row], labels: Mapping[str, str], load_unit: str) -> list[str]:
    """A sentence for each two variants whose latencies differ by no more than a step of their tool's clock."""
    found = []
    for one, other, names in clock_resolution.alike(rows, list(_ALIKE)):
        step = clock_resolution.resolution_text(max(one["resolution_ns"] or 0, other["resolution_ns"] or 0))
        listed = _listed([_ALIKE[name] for name in names])
        found.append(
            f"At {rate_text(one['rate'])} {load_unit}, {labels[one['variant']]} and {labels[other['variant']]} differ "
            f"in {listed} by no more than {step}, the resolution of these latencies: such a difference says nothing."
        )
    return found


def _listed(texts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else "".join(texts)


def unit_of(rows: Sequence[Row], reported: Sequence[Row], choose: Callable[[Any], Unit]) -> Unit:
    """The page's unit of latency, by its medians or else by what tools reported."""
    return choose(
        [row["p50_ns"] or row["vegeta_summaries_mean_ns"] for row in rows] or [row["p50_ns"] for row in reported]
    )
