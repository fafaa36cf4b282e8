"""Weaknesses of the figures themselves: what the clock, the sample, timeouts, failures or overload make of them."""

from collections.abc import Iterator

from loadstone import stats
from loadstone.analysis import saturation
from loadstone.analysis.caveats.definitions import (
    COARSE_NS,
    DECIDING_SHARE,
    FAILURES_SHARE,
    LIMITS,
    RESOLUTION_STEPS,
    SERIOUS,
    Weakness,
)
from loadstone.analysis.caveats.evidence import STATISTICS, Evidence, counted, only, value
from loadstone.analysis.scope import Series, quoted
from loadstone.digits import ms
from loadstone.stats.bootstrap import ERRORS
from loadstone.tables.schema import PERCENTILES
from loadstone.text import listed, rate_text


def coarse_clock(evidence: Evidence) -> Iterator[Weakness]:
    """Medians of few steps of the clock."""
    medians = [(each, value(each, "p50")) for each in evidence.series]
    found = [
        (each, round(median / each.resolution_ns))
        for each, median in medians
        if median is not None and each.resolution_ns >= COARSE_NS and median < RESOLUTION_STEPS * each.resolution_ns
    ]
    if found:
        cells, steps = [each for each, _ in found], sorted({step for _, step in found})
        many = f"of {counted(steps[0], 'step')} only" if len(steps) == 1 else f"of {steps[0]} to {steps[-1]} steps only"
        if steps[0] == 0:
            many = f"of {counted(steps[-1], 'step')} at most" if steps[-1] else "less than one step"
        coarsest = ms(max(each.resolution_ns for each in cells))
        text = (
            f"Latencies come in whole steps of {coarsest}, and the median of {evidence.where(cells)} is {many}: no "
            "finer difference is to be seen."
        )
        yield Weakness("coarse_clock", LIMITS, text, statistic="p50", **evidence.about(cells))


def zeros(evidence: Evidence) -> Iterator[Weakness]:
    """Medians of 0 by a clock that is fine enough."""
    found = [each for each in evidence.series if value(each, "p50") == 0 and each.resolution_ns < COARSE_NS]
    if found:
        text = (
            f"The median latency of {evidence.where(found)} is 0, which no request can take: what wrote these results "
            "did not measure it."
        )
        yield Weakness("zeros", SERIOUS, text, statistic="p50", **evidence.about(found))


def below_a_step(evidence: Evidence) -> Iterator[Weakness]:
    """A weakness per variant."""
    scope = evidence.scope
    for variant in scope.variants:
        pairs = [pair for pair in evidence.beside_baseline(variant) if _step_ns(pair) >= COARSE_NS]
        close = [(pair, names) for pair in pairs if (names := _within_a_step(pair))]
        if not close:
            continue
        n = sum(len(names) for _, names in close)
        all_names = [name for name in STATISTICS if any(name in names for _, names in close)]
        rates = [other.rate for (_, other), _ in close]
        n_of = sum(
            value(one, name) is not None is not value(other, name) for one, other in pairs for name in STATISTICS
        )
        text = (
            f"{quoted(variant)} and {quoted(scope.baseline or '')} differ by less than the clock's step of "
            f"{ms(max(_step_ns(pair) for pair, _ in close))} in {listed(STATISTICS[name] for name in all_names)} "
            f"{evidence.at(rates)}: such a clock can't tell them apart."
        )
        yield Weakness(
            "below_a_step",
            SERIOUS,
            text,
            n,
            n_of,
            "figures",
            rate=only(rates),
            variant=variant,
            statistic=only(all_names),
            cells=evidence.cells(each for pair, _ in close for each in pair),
        )


def _step_ns(pair: tuple[Series, Series]) -> float:
    return max(each.resolution_ns for each in pair)


def _within_a_step(pair: tuple[Series, Series]) -> list[str]:
    step_ns, found = _step_ns(pair), []
    for name in STATISTICS:
        one, other = (value(each, name) for each in pair)
        if one is not None and other is not None and abs(one - other) < step_ns:
            found.append(name)
    return found


def unsupported(evidence: Evidence) -> Iterator[Weakness]:
    """A weakness per percentile."""
    raw = [each for each in evidence.series if each.evidence == "requests"]
    for name in STATISTICS:
        probability = PERCENTILES.get(name)
        if probability is None:
            continue
        found = [each for each in raw if not stats.estimable(each.replicates.n_requests, probability)]
        if found:
            fewest = min(each.replicates.n_requests for each in found)
            text = (
                f"{name} takes {stats.requests_needed(probability):,} requests, and of {evidence.where(found)} there "
                f"are as few as {fewest:,}."
            )
            yield Weakness("unsupported", LIMITS, text, statistic=name, **evidence.about(found))


def timeouts(evidence: Evidence) -> Iterator[Weakness]:
    """Figures that requests which timed out leave open."""
    found = [each for each in evidence.series if each.evidence == "requests" and _censored(each)]
    if found:
        number = sum(each.replicates.n_timeouts for each in found)
        names = [name for name in STATISTICS if any(name in _censored(each) for each in found)]
        text = (
            f"{counted(number, 'request')} of {evidence.where(found)} timed out: "
            f"{listed(STATISTICS[name] for name in names)} there is what is shown or more."
        )
        yield Weakness("timeouts", LIMITS, text, statistic=only(names), **evidence.about(found))


def _censored(series: Series) -> list[str]:
    """Figures that requests which timed out leave open."""
    found = series.replicates
    if not found.n_timeouts:
        return []
    supported = [name for name in STATISTICS if name == "mean" or stats.estimable(found.n_requests, PERCENTILES[name])]
    return [name for name in supported if name not in found.values]


def failures(evidence: Evidence) -> Iterator[Weakness]:
    """Latencies that are of failures too."""
    shares = [(each, _failed(each)) for each in evidence.series]
    many = [(each, share) for each, share in shares if share is not None and share > FAILURES_SHARE]
    for weight in (SERIOUS, LIMITS):
        deciding = weight == SERIOUS
        found = [(each, share) for each, share in many if (share - _timed_out(each) > DECIDING_SHARE) == deciding]
        if found:
            cells = [each for each, _ in found]
            text = (
                f"Up to {100 * max(share for _, share in found):.3g} % of the requests of {evidence.where(cells)} "
                "failed: latencies there are of failures too"
            )
            text += ", and what fails at once seems fast." if deciding else "."
            yield Weakness("failures", weight, text, **evidence.about(cells))


def _timed_out(series: Series) -> float:
    """The share of requests that are known to have timed out: their latencies are taken for at least what is known."""
    found = series.replicates
    return found.n_timeouts / found.n_requests if series.evidence == "requests" and found.n_requests else 0.0


def _failed(series: Series) -> float | None:
    """The share of requests that failed."""
    if series.evidence == "requests":
        return series.replicates.values.get(ERRORS)
    told = [row["success"] for row in series.reported if row["success"] is not None]
    return 1 - sum(told) / len(told) if told else None


def beyond_knee(evidence: Evidence) -> Iterator[Weakness]:
    """A weakness per variant and way of measuring."""
    for row in saturation.knees(evidence.scope):
        if beyond := row["beyond"]:
            measured = len(row["carried"]) + len(row["near"]) + len(beyond)
            carries = f" of about {_carried(row['knee_rate'])}" if row["knee_rate"] else ""
            text = (
                f"{quoted(row['variant'])} was measured beyond its knee{carries} {evidence.at(beyond)}: fewer requests "
                "per second were answered well there than were sent, so latency tells how long the attack lasted, or "
                "how fast requests were refused."
            )
            yield Weakness(
                "beyond_knee",
                LIMITS,
                text,
                len(beyond),
                measured,
                "rates",
                rate=only(beyond),
                variant=row["variant"],
                cells=evidence.cells(
                    each for each in evidence.series if each.variant == row["variant"] and each.rate in beyond
                ),
            )


def _carried(knee_rate: float) -> str:
    return f"{rate_text(float(f'{knee_rate:.3g}'))} requests/s"


def reports_only(evidence: Evidence) -> Iterator[Weakness]:
    """Runs of which no request is known."""
    found = [each for each in evidence.series if each.evidence == "reports"]
    if found:
        text = (
            f"Of {evidence.where(found)} there is only what the tool reported: no request can be looked at, and "
            "percentiles of several runs can't be joined."
        )
        yield Weakness("reports_only", LIMITS, text, **evidence.about(found))
