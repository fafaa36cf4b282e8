"""The shape of every run that has single requests: table `run_shapes`. Runs that are left out are judged as well."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone import digits, sql, stats
from loadstone.analysis import run_requests
from loadstone.analysis.run_requests import Source
from loadstone.stats import run_shape
from loadstone.tables import layout
from loadstone.text import listed

_Row = dict[str, Any]
_Integers = NDArray[np.int64]


def shapes(source: Source, facts: Sequence[_Row]) -> list[_Row | None]:
    """The row of `run_shapes` of each of `facts`; None for a run without single requests."""
    found: dict[tuple[str, int], _Row] = {}
    for file, runs in run_requests.by_file(facts):
        found |= {(file, row["run"]): row for row in _of_cell(source, file, runs)}
    rows = [found.get((fact["requests_file"] or "", fact["run"])) for fact in facts]
    return [row and run_requests.key(fact) | row for fact, row in zip(facts, rows, strict=True)]


def _of_cell(source: Source, file: str, runs: Sequence[_Row]) -> list[_Row]:
    """Rows with the run's number and without the rest of the key."""
    query = sql.load("run_latencies")
    resolutions_ns = {fact["run"]: fact["resolution_ns"] for fact in runs}
    set_back = {fact["run"] for fact in runs if fact["clock_set_back_s"]}  # only their numbers tell the order
    identity = tuple(runs[0][name] for name in ("app", "host", "timestamp", "rate", "variant_dir"))

    def compute() -> Iterator[_Row]:
        files = [layout.pattern(source.tables / file)]
        run_requests.select(source.connection, runs)
        columns: dict[str, Any] = source.connection.execute(query, {"files": files}).fetchnumpy()
        run, seq, latency_ns, sent_ns = columns.values()
        undated = np.ma.getmaskarray(sent_ns)
        starts = [0, *(np.flatnonzero(np.diff(run)) + 1).tolist(), run.size] if run.size else [0]
        for low, high in pairwise(starts):
            number = int(run[low])
            part = np.arange(low, high)
            if number in set_back:
                part = part[np.argsort(seq[part], kind="stable")]
            seed = stats.seed(*identity, number)
            found = run_shape.classify(latency_ns[part], resolutions_ns.get(number), seed)
            times_ns = None if undated[part].any() or number in set_back else np.asarray(sent_ns[part])
            yield {"run": number} | _row(found, seq[part], times_ns)

    question = (run_shape.CODE, query, run_requests.identity(runs), identity, sorted(resolutions_ns.items()))
    return source.answers.rows(question, [file], compute)


def told(row: _Row) -> str | None:
    """Why the mean over a run is none of a steady state, in words; None where it is."""
    if row["shape"] not in run_shape.UNSETTLED:
        return None
    if row["shape"] == run_shape.CHANGING_LEVEL:
        levels = ", ".join(digits.three(level_ns / 1e6) for level_ns in row["levels_ns"])
        text = f"level changes at request {listed(f'{seq:,}' for seq in row['change_seqs'])} ({levels} ms)"
    elif row["shape"] == run_shape.WARMING_UP:
        text = f"slow start lengthens its mean latency by {_percent(row['warmup_share'])}"
    elif row["shape"] == run_shape.UNEVEN:
        return f"is {row['shape']}: {halves(row['half_ratio'])}"
    else:
        text = f"latency changes by {_percent(row['change_share'], '+')} over the run"
    return f"is {row['shape']}: its {text}; {halves(row['half_ratio'])}"


def halves(ratio: float) -> str:
    """What the mean latency of a run's first half is to that of its second, the longer one named first."""
    longer, shorter, times = ("first", "second", ratio) if ratio >= 1 else ("second", "first", 1 / max(ratio, 1e-9))
    return f"its {longer} half took {digits.three(times)} times as long as its {shorter} (mean latency)"


def _percent(share: float, sign: str = "") -> str:
    """Three digits, or as many as there are before the point."""
    return f"{100 * share:{sign}{',.0f' if abs(share) >= 10 else '.3g'}} %"


def _row(found: run_shape.RunShape, seq: _Integers, sent_ns: _Integers | None) -> _Row:
    """With requests by their number, and times where they are known."""
    row = asdict(found) | {
        "requests": seq.size,
        "shapes": list(found.shapes),
        "change_seqs": [int(seq[change]) for change in found.change_seqs],
        "levels_ns": list(found.levels_ns),
        "warmup_s": None,
        "period_s": None,
    }
    if sent_ns is not None:
        if found.warmup_requests is not None:
            row["warmup_s"] = float(sent_ns[found.warmup_requests] - sent_ns[0]) / 1e9
        if found.period_requests is not None:
            row["period_s"] = found.period_requests * float(sent_ns[-1] - sent_ns[0]) / 1e9 / (seq.size - 1)
    return row
