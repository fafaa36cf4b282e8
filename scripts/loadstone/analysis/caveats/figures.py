"""Caveats on the figures themselves: coarse clocks, few requests, timeouts, failures and overload."""

from collections.abc import Iterator, Sequence

from loadstone import stats
from loadstone.analysis import saturation
from loadstone.analysis.caveats.base import (
    LIMITS,
    SERIOUS,
    Evidence,
    Occurrence,
    caveat,
    common,
)
from loadstone.analysis.reasons import quoted
from loadstone.analysis.scope import Series, figure, step_ns
from loadstone.percentiles import ERRORS, LATENCIES, PERCENTILES, SHOWN_PERCENTILES, label
from loadstone.text import counted, listed, ms, rounded

# A value of ten steps is known to a twentieth, which is the default margin of equivalence.
RESOLUTION_STEPS = 10
# Finer steps are far below latencies over a network.
COARSE_NS = 1e5
# From one failure in a hundred on, p99 may be that of failures, which are often faster or slower than successes.
FAILURES_SHARE = 0.01
# This share of requests that fail at once makes a mean shorter by the default margin of equivalence.
DECIDING_SHARE = 0.05

_FINER_CLOCK = "measure with a load generator whose clock is finer, such as vegeta"


@caveat(
    "Coarse clock",
    f"limits where a median is within {RESOLUTION_STEPS} steps of a clock of 0.1 ms or coarser: it is known to one "
    f"part in {2 * RESOLUTION_STEPS} at best",
    _FINER_CLOCK,
)
def coarse_clock(evidence: Evidence) -> Iterator[Occurrence]:
    medians = [(each, figure(each, "p50")[0]) for each in evidence.series]
    found = [
        (each, round(median / each.resolution_ns))
        for each, median in medians
        if median is not None and each.resolution_ns >= COARSE_NS and median < RESOLUTION_STEPS * each.resolution_ns
    ]
    if found:
        cells, steps = [each for each, _ in found], sorted({step for _, step in found})
        size = f"only {counted(steps[0], 'step')}" if len(steps) == 1 else f"only {steps[0]} to {steps[-1]} steps"
        if steps[0] == 0:
            size = f"at most {counted(steps[-1], 'step')}" if steps[-1] else "less than one step"
        coarsest = ms(max(each.resolution_ns for each in cells))
        text = (
            f"Latencies come in whole steps of {coarsest}, and the median of {evidence.where(cells)} is {size}: finer "
            "differences can't be seen."
        )
        yield Occurrence(LIMITS, text, statistic="p50", **evidence.in_cells(cells))


@caveat(
    "Latencies of 0",
    "serious where a median is 0 by a clock finer than 0.1 ms: it was not measured",
    "check the program that wrote the results, and tag such runs as INVALID",
)
def zeros(evidence: Evidence) -> Iterator[Occurrence]:
    found = [each for each in evidence.series if figure(each, "p50")[0] == 0 and each.resolution_ns < COARSE_NS]
    if found:
        text = f"The median latency of {evidence.where(found)} is 0, which is impossible: it was not measured."
        yield Occurrence(SERIOUS, text, statistic="p50", **evidence.in_cells(found))


@caveat(
    "Differences below the clock's step",
    "serious where variant and baseline differ by less than one step of a clock of 0.1 ms or coarser",
    _FINER_CLOCK,
)
def below_a_step(evidence: Evidence) -> Iterator[Occurrence]:
    """One per variant."""
    scope = evidence.scope
    for variant in scope.variants:
        pairs = [pair for pair in evidence.pairs(variant) if step_ns(pair) >= COARSE_NS]
        close = [(pair, names) for pair in pairs if (names := _within_a_step(pair))]
        if not close:
            continue
        all_names = [name for name in LATENCIES if any(name in names for _, names in close)]
        rates = [other.rate for (_, other), _ in close]
        n_of = sum(
            figure(one, name)[0] is not None is not figure(other, name)[0] for one, other in pairs for name in LATENCIES
        )
        text = (
            f"{quoted(variant)} and {quoted(scope.baseline or '')} differ by less than the clock's step of "
            f"{ms(max(step_ns(pair) for pair, _ in close))} in {listed(label(name).lower() for name in all_names)} "
            f"{evidence.at(rates)}: such a clock can't distinguish them."
        )
        yield Occurrence(
            SERIOUS,
            text,
            sum(len(names) for _, names in close),
            n_of,
            "figures",
            rate=common(rates),
            variant=variant,
            statistic=common(all_names),
            cells=evidence.cells(each for pair, _ in close for each in pair),
        )


def _within_a_step(pair: Sequence[Series]) -> list[str]:
    step, found = step_ns(pair), []
    for name in LATENCIES:
        one, other = (figure(each, name)[0] for each in pair)
        if one is not None and other is not None and abs(one - other) < step:
            found.append(name)
    return found


@caveat(
    "Percentiles that the sample can't support",
    "limits where fewer than ten requests are expected beyond a percentile",
    "measure longer, or more runs",
)
def unsupported(evidence: Evidence) -> Iterator[Occurrence]:
    """One per percentile."""
    with_requests = [each for each in evidence.series if each.evidence == "requests"]
    for name, probability in SHOWN_PERCENTILES.items():
        found = [each for each in with_requests if not stats.estimable(each.replicates.n_requests, probability)]
        if found:
            fewest = min(each.replicates.n_requests for each in found)
            text = (
                f"{name} needs {stats.requests_needed(probability):,} requests, but there are as few as {fewest:,} of "
                f"{evidence.where(found)}."
            )
            yield Occurrence(LIMITS, text, statistic=name, **evidence.in_cells(found))


@caveat(
    "Requests that timed out",
    "limits where a figure falls among requests that timed out: what is shown is a lower bound",
    "lower the rate, or raise the timeout",
)
def timeouts(evidence: Evidence) -> Iterator[Occurrence]:
    found = [each for each in evidence.series if each.evidence == "requests" and _censored(each)]
    if found:
        number = sum(each.replicates.n_timeouts for each in found)
        names = [name for name in LATENCIES if any(name in _censored(each) for each in found)]
        are = "is a lower bound" if len(names) == 1 else "are lower bounds"
        text = (
            f"{counted(number, 'request')} of {evidence.where(found)} timed out, so "
            f"{listed(label(name).lower() for name in names)} {are}."
        )
        yield Occurrence(LIMITS, text, statistic=common(names), **evidence.in_cells(found))


def _censored(series: Series) -> list[str]:
    """Figures of which only a lower limit is known, because requests timed out."""
    found = series.replicates
    if not found.n_timeouts:
        return []
    supported = [name for name in LATENCIES if name == "mean" or stats.estimable(found.n_requests, PERCENTILES[name])]
    return [name for name in supported if name not in found.values]


@caveat(
    "Latencies include failed requests",
    f"limits where more than {FAILURES_SHARE:.0%} of a cell's requests failed: latencies include failures; serious "
    f"where more than {DECIDING_SHARE:.0%} failed other than by a timeout: a variant that refuses requests at once may "
    "seem fast",
    "find the cause of the failures; compare latencies at rates without them",
)
def failures(evidence: Evidence) -> Iterator[Occurrence]:
    shares = [(each, _failure_share(each)) for each in evidence.series]
    many = [(each, share) for each, share in shares if share is not None and share > FAILURES_SHARE]
    for weight in (SERIOUS, LIMITS):
        found = [
            (each, share)
            for each, share in many
            if (share - _timeout_share(each) > DECIDING_SHARE) == (weight == SERIOUS)
        ]
        if found:
            cells = [each for each, _ in found]
            text = (
                f"Up to {100 * max(share for _, share in found):.3g} % of the requests of {evidence.where(cells)} "
                "failed: latencies there include failures"
            )
            text += ", and requests that fail at once seem fast." if weight == SERIOUS else "."
            yield Occurrence(weight, text, **evidence.in_cells(cells))


def _timeout_share(series: Series) -> float:
    """The share of requests that timed out, whose latency is at least the timeout: they make no variant seem fast."""
    found = series.replicates
    return found.n_timeouts / found.n_requests if series.evidence == "requests" and found.n_requests else 0.0


def _failure_share(series: Series) -> float | None:
    if series.evidence == "requests":
        return series.replicates.values.get(ERRORS)
    reported = [row["success"] for row in series.reported if row["success"] is not None]
    return 1 - sum(reported) / len(reported) if reported else None


@caveat(
    "Beyond the saturation point",
    "limits where a variant was measured above its saturation point: latency there grows for as long as the attack "
    "lasts",
    "compare variants at rates below the saturation point of each, or at equal shares of these",
)
def beyond_knee(evidence: Evidence) -> Iterator[Occurrence]:
    """One per variant and way of measuring."""
    for each in saturation.swept(evidence.scope).values():
        if beyond := each.knee.beyond:
            knee = f" of about {rounded(each.knee.rate)} requests/s" if each.knee.rate else ""
            text = (
                f"{quoted(each.variant)} was measured beyond its saturation point{knee} {evidence.at(beyond)}: fewer "
                "requests per second succeeded than were sent, so latency depends on the duration of the attack, or on "
                "how fast requests are refused."
            )
            found = [series for series in each.series if series.rate in beyond]
            concerned = evidence.in_cells(found) | {"n_of": len(each.series), "counted": "rates"}
            yield Occurrence(LIMITS, text, **concerned)


@caveat(
    "Only figures reported by tools",
    "limits where only a tool's report of a run is available: single requests and percentiles over several runs are "
    "unknown",
    "keep the raw results of every run",
)
def reports_only(evidence: Evidence) -> Iterator[Occurrence]:
    found = [each for each in evidence.series if each.evidence == "reports"]
    if found:
        text = (
            f"Only the tool's reports are available for {evidence.where(found)}: there are no single requests, and "
            "percentiles of several runs can't be combined."
        )
        yield Occurrence(LIMITS, text, **evidence.in_cells(found))
