"""Tables `knees` and `knee_shares`: the saturation point of each variant, and its latency at shares of that."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loadstone import stats
from loadstone.analysis import Row
from loadstone.analysis.reasons import quoted
from loadstone.analysis.scope import Scope, Series, joined, protocols
from loadstone.percentiles import LATENCIES, THROUGHPUT
from loadstone.stats.saturation import CARRIED, SHORTFALL, AtShare, Estimate, Knee, Load, at_share, knee, ratio_of

SHARES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Swept:
    """One variant at all rates at which it was measured in one way, ascending; its latency is that of `statistic`."""

    variant: str
    way: tuple[Any, ...]
    series: tuple[Series, ...]
    statistic: str
    knee: Knee

    @property
    def described(self) -> Row:
        """The columns that both tables have."""
        return described(self.series) | {"variant": self.variant}


def described(series: tuple[Series, ...]) -> Row:
    """How the runs of some series were measured."""
    runs = [run for each in series for run in each.runs]
    found = {name: joined(runs, name) for name in ("load_model", "generator")}
    return found | {"evidence": ", ".join(sorted({each.evidence for each in series}))}


def swept(scope: Scope) -> dict[tuple[str, tuple[Any, ...]], Swept]:
    """Every variant by its name and way of measuring, with its saturation point."""
    found = {}
    for way in scope.ways:
        at = [place.series for place in scope.places if place.way == way]
        for variant in scope.variants:
            if series := tuple(variants[variant] for variants in at if variant in variants):
                statistic = "p50" if any(estimate(each, "p50", scope.confidence) for each in series) else "mean"
                found[variant, way] = Swept(variant, way, series, statistic, _knee(series, statistic, scope.confidence))
    return found


def _knee(series: tuple[Series, ...], statistic: str, confidence: float) -> Knee:
    models = sorted({str(run["load_model"]) for each in series for run in each.runs})
    if models != ["open"]:
        states = tuple((each.rate, "near") for each in series)
        return Knee(
            None,
            None,
            None,
            None,
            states,
            f"{', '.join(models)} load waits for responses, so it has no saturation point",
        )
    late = [each.rate for each in series if _is_late(each)]
    found = knee([_load(each, statistic, confidence) for each in series if each.rate not in late])
    if not late:
        return found
    skipped = f"not judged, since the load generator fell behind: {', '.join(f'{rate:g}' for rate in late)}"
    return replace(found, problem="; ".join(filter(None, (found.problem, skipped))))


def _is_late(series: Series) -> bool:
    """Whether the load generator, not the target, kept requests from being answered in time."""
    lags = [
        run["send_lag_p99_ns"] / 1e9 / run["duration_s"]
        for run in series.runs
        if run["send_lag_p99_ns"] and run["duration_s"]
    ]
    return bool(lags) and float(np.median(lags)) > SHORTFALL


def _load(series: Series, statistic: str, confidence: float) -> Load:
    durations = {run["duration_s"] for run in series.runs}
    return Load(
        series.rate,
        float(np.mean([run["requests"] or 0 for run in series.runs])),
        estimate(series, statistic, confidence),
        _share(series, confidence),
        durations.pop() if len(durations) == 1 else None,
    )


def estimate(series: Series, statistic: str, confidence: float) -> Estimate | None:
    """A latency (ns) or the throughput of one series; no percentile of several reports, which are never averaged."""
    if series.evidence == "requests":
        if statistic not in series.replicates.values:
            return None
        bounds = stats.interval(series.replicates, statistic, confidence) or (None, None)
        return Estimate(series.replicates.values[statistic], *bounds)
    if statistic not in ("mean", THROUGHPUT) and len(series.runs) > 1:
        return None
    column = statistic if statistic == THROUGHPUT else f"{statistic}_ns"
    return _of_runs([row[column] for row in series.reported], confidence)


def _share(series: Series, confidence: float) -> Estimate | None:
    """Throughput as a share of the planned rate."""
    found, rate = estimate(series, THROUGHPUT, confidence), series.rate
    if found is None or found.low is None or found.high is None:
        return found and Estimate(found.value / rate)
    return Estimate(found.value / rate, found.low / rate, found.high / rate)


def _of_runs(values: list[float | None], confidence: float) -> Estimate | None:
    """The mean over runs with Student's interval; None unless every run has the figure."""
    known = np.array([value for value in values if value is not None], np.float64)
    if known.size < len(values) or not known.size:
        return None
    mean = float(known.mean())
    if known.size < 2:
        return Estimate(mean)
    reach = stats.t_factor(confidence, known.size - 1) * float(known.std(ddof=1)) / known.size**0.5
    return Estimate(mean, mean - reach, mean + reach)


def knees(scope: Scope) -> Iterator[Row]:
    """A row per variant and way of measuring."""
    key = scope.key
    for each in swept(scope).values():
        found = each.knee
        carried = [rate for rate, state in found.states if state == CARRIED]
        yield (
            key
            | each.described
            | {
                "knee_rate": found.rate,
                "low": found.low,
                "high": found.high,
                "by": found.by,
                "statistic": each.statistic,
                "carried": carried,
                "near": [series.rate for series in each.series if series.rate not in (*carried, *found.beyond)],
                "beyond": list(found.beyond),
                "n_runs": min(len(series.runs) for series in each.series),
                "confidence": scope.confidence,
                "problem": found.problem,
            }
        )


def shares(scope: Scope) -> Iterator[Row]:
    """A row per variant, way of measuring, share of the knee and statistic."""
    key, found = scope.key, swept(scope)
    for (_, way), each in found.items():
        baseline = found.get((scope.baseline or "", way))
        for share in SHARES:
            for statistic in LATENCIES:
                row = _shared(each, baseline, share, statistic, scope.confidence)
                yield key | each.described | {"confidence": scope.confidence} | row


def _shared(each: Swept, baseline: Swept | None, share: float, statistic: str, confidence: float) -> Row:
    own = _at_share(each, share, statistic, confidence)
    row = {"share": share, "statistic": statistic, "load": own.load, "problem": own.problem}
    if own.value:
        row |= {"value_ns": own.value.value, "low_ns": own.value.low, "high_ns": own.value.high}
    if baseline is None or baseline is each or len(protocols([*each.series, *baseline.series])) > 1:
        return row
    theirs = _at_share(baseline, share, statistic, confidence)
    row |= {"baseline": baseline.variant, "baseline_load": theirs.load}
    if theirs.problem:
        row["baseline_problem"] = theirs.problem
        row["problem"] = "; ".join(filter(None, (own.problem, f"{quoted(baseline.variant)}: {theirs.problem}")))
    if own.value and theirs.value:
        ratio = ratio_of(own.value, theirs.value)
        row |= {"baseline_value_ns": theirs.value.value, "ratio": ratio.value}
        row |= {"ratio_low": ratio.low, "ratio_high": ratio.high}
    return row


def _at_share(each: Swept, share: float, statistic: str, confidence: float) -> AtShare:
    estimates = [(series.rate, estimate(series, statistic, confidence)) for series in each.series]
    known = [(rate, value) for rate, value in estimates if value and (value.low or 0) > 0]
    return at_share(each.knee, share, [rate for rate, _ in known], [value for _, value in known])
