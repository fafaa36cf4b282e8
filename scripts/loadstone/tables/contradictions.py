"""Checks of a tool's report against itself, the run's requests, and what was declared."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from loadstone.archive.metadata import Metadata
from loadstone.archive.stages import planned_requests
from loadstone.percentiles import RUN_PERCENTILES
from loadstone.readers import Format, Report
from loadstone.tables.exclusion import TOLERANCE

_PERCENTILES = {f"{name}_ns": share for name, share in RUN_PERCENTILES.items()}
_RISING = ("min_ns", *_PERCENTILES, "max_ns")
_NAMES = {"mean_ns": "mean", "min_ns": "minimum", "max_ns": "maximum"}
_SLACK = 0.02  # of estimated percentiles, and of how long an attack took
_SHARE = 0.0001  # vegeta prints hundredths of a per cent
_ESTIMATE, _ESTIMATE_NS = 0.05, 1e6
_BIN = math.log(1.01)
_NUMBER = re.compile(r"[0-9]+(?:\.([0-9]+))?")


class Tally:
    """Statistics of all requests of a run, in memory that does not grow with them; latencies are in bins of 1 %."""

    def __init__(self) -> None:
        self.count, self.sum_ns, self.min_ns, self.max_ns = 0, 0, math.inf, 0
        self.codes: Counter[int | None] = Counter()
        self._bins = np.zeros(0, np.int64)

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows of table `requests`."""
        latency_ns = batch.column("latency_ns").drop_null().to_numpy(zero_copy_only=False)
        if not len(latency_ns):
            return
        self.count += len(latency_ns)
        self.sum_ns += int(latency_ns.sum(dtype=object)) if latency_ns.max() > 1 << 40 else int(latency_ns.sum())
        self.min_ns, self.max_ns = min(self.min_ns, int(latency_ns.min())), max(self.max_ns, int(latency_ns.max()))
        bins = np.bincount((np.log1p(np.maximum(latency_ns, 0)) / _BIN).astype(np.int64), minlength=len(self._bins))
        bins[: len(self._bins)] += self._bins
        self._bins = bins
        for each in pc.value_counts(batch.column("code")).to_pylist():
            self.codes[each["values"]] += each["counts"]

    def around(self, share: float) -> tuple[float, float, float]:
        """The quantile's approximate latency (ns), and its bounds for any definition or estimate from clusters.

        Where latencies have a gap, as before those that timed out, vegeta's estimate lies in it even though the
        quantile is as much as a quarter of the requests beyond it away (`test_an_estimate_within_a_gap`).
        """
        beyond = min(share, 1 - share)
        spread = min(0.25 * beyond, 0.1 * beyond + 0.0025) * self.count + 1.5
        rank = share * self.count
        ranks = min(self.count - 1, rank), max(0.0, rank - spread), min(self.count - 1, rank + spread)
        near, low, high = np.searchsorted(np.cumsum(self._bins), ranks, side="right")
        return math.expm1((near + 0.5) * _BIN), math.expm1(low * _BIN), math.expm1((high + 1) * _BIN)


def impossible(summary: Mapping[str, Any], resolution_ns: float | None) -> Iterator[str]:
    """Impossible figures: a percentile above a higher one, a mean below the minimum or above the maximum."""
    given = [name for name in _RISING if summary.get(name) is not None]
    pairs = list(pairwise(given))
    if summary.get("mean_ns") is not None:
        pairs += [("min_ns", "mean_ns")] * ("min_ns" in given) + [("mean_ns", "max_ns")] * ("max_ns" in given)
    for lower, higher in pairs:
        low, high = summary[lower], summary[higher]
        if low - high > max(_SLACK * abs(high), resolution_ns or 0):
            yield f"can't be right: its {_name(lower)} is {_ms(low)}, its {_name(higher)} {_ms(high)}"


def against_rows(report: Report, rows: Tally, file_format: Format, resolution_ns: float | None) -> Iterator[str]:
    """Where a report of as many requests as `rows` differs from them, beyond the digits that it prints."""
    summary, rounding, printed = report.summary, file_format.rounding, file_format.is_printed
    counted = summary.get("requests", None if file_format.counts_requests else rows.count)
    if not rows.count or counted != rows.count:
        return
    found = {"mean_ns": rows.sum_ns / rows.count, "min_ns": rows.min_ns, "max_ns": rows.max_ns}
    for name, computed in found.items():
        reported = summary.get(name)
        step_ns = max(resolution_ns or 0, _last_digit_ns(report, reported) if printed and reported is not None else 0)
        if reported is not None and abs(reported - computed) > max(rounding * computed, step_ns):
            yield f"says that the {_name(name)} is {_ms(reported)}; by the results it is {_ms(computed)}"
    for name, share in _PERCENTILES.items():
        reported, (near, low, high) = summary.get(name), rows.around(share)
        slack = max(
            _ESTIMATE * high, _ESTIMATE_NS, _last_digit_ns(report, reported) if printed and reported is not None else 0
        )
        if reported is not None and not low - slack <= reported <= high + slack:
            about = _ms(float(f"{near:.2g}"))
            yield f"says that the {_name(name)} is {_ms(reported)}; by the results it is about {about}"
    yield from _codes(summary, rows)


def _last_digit_ns(report: Report, value_ns: float) -> float:
    """What one more in the last digit of a printed latency would mean; 0 where it has no such text."""
    texts = (each.text for each in report.figures if each.unit == "ns" and each.value == value_ns)
    printed = [found for text in texts if (found := _NUMBER.match(text)) and float(found[0])]
    return max((value_ns / float(found[0]) / 10 ** len(found[1] or "") for found in printed), default=0.0)


def _codes(summary: Mapping[str, Any], rows: Tally) -> Iterator[str]:
    codes, success = summary.get("status_codes"), summary.get("success")
    if not codes or None in rows.codes:  # k6 counts no codes, and what it calls a success is up to the script
        return
    found = {str(code): count for code, count in rows.codes.items() if code is not None}
    for code in sorted(codes.keys() | found.keys()):
        if (reported := codes.get(code, 0)) != (computed := found.get(code, 0)):
            yield f"counts {reported} responses of code {code}; the results contain {computed}"
    good = sum(count for code, count in rows.codes.items() if code is not None and 200 <= code < 400)
    if success is not None and abs(success - good / rows.count) > _SHARE:
        yield f"says that {success:.2%} succeeded; by the results {good / rows.count:.2%}"


# --- what was declared ------------------------------------------------------------------------------------------------


def lasted(described: Metadata, said_s: float) -> Iterator[str]:
    """Vegeta's duration of the attack, first request to last, against the declared one, which is an interval longer."""
    if described.duration_s is None:
        return
    interval_s = 1 / described.rate if described.rate else 0.0
    if abs(said_s + interval_s - described.duration_s) > max(_SLACK * described.duration_s, interval_s):
        yield f"says that the attack took {said_s:g} s; by the metadata, {described.duration_s:g} s"


def expected_by(described: Metadata, said_s: float) -> int | None:
    """How many requests an attack of vegeta has that took `said_s` from its first request to its last."""
    return None if described.rate is None else planned_requests(described.rate, said_s) + 1


def of_phase(described: Metadata, report: Report, measured: str | None, certain: int, possible: int) -> Iterator[str]:
    """The declared load against Artillery's measured phase, in users per second or in their requests.

    `certain` requests are of that phase; up to `possible` with those that may be of the one next to it.
    """
    phase = next((each for each in report.phases if each.name == measured), None)
    if described.rate is not None and phase is not None and phase.rate is not None and phase.to_rate is None:
        rates = phase.rate, phase.rate * _requests_per_user(report)
        if not any(abs(rate - described.rate) <= TOLERANCE * described.rate for rate in rates):
            came = f"says that {phase.rate:g} users arrived per second in {phase.name!r}"
            yield f"{came}; by the metadata, the rate is {described.rate:g}"
    expected = described.expected_requests
    if report.facts.get("across_phases", "0") == "0" or expected is None:  # else its requests are simply counted
        return
    if not certain - TOLERANCE * expected - 1 <= expected <= possible + TOLERANCE * expected + 1:
        yield f"holds {certain:,} to {possible:,} requests of the measured phase instead of {expected:,}"


def _requests_per_user(report: Report) -> float:
    users = [each.value for each in report.figures if (each.section, each.metric) == ("", "scenariosCreated")]
    requests = report.summary.get("requests")
    return requests / users[0] if requests and users and users[0] else 1.0


def number(text: str | None) -> float | None:
    """A positive number that a tool reported; None for anything else."""
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if 0 < found < math.inf else None


def _name(column: str) -> str:
    return _NAMES.get(column) or column.removesuffix("_ns")


def _ms(latency_ns: float) -> str:
    return f"{latency_ns / 1e6:,.7g} ms"
