"""Caveats on the runs themselves: their number, order, steadiness and send lag."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from loadstone.analysis import Row
from loadstone.analysis.caveats.base import (
    LIMITS,
    NOTE,
    SERIOUS,
    Evidence,
    Occurrence,
    be,
    caveat,
    common,
)
from loadstone.analysis.reasons import quoted
from loadstone.analysis.run_behaviour import REMEDIES
from loadstone.analysis.scope import Series, way
from loadstone.archive import plan
from loadstone.percentiles import title
from loadstone.stats import run_shape
from loadstone.text import counted, listed, ms

# A mean over five runs, by Student's t with four degrees of freedom, has an interval of 1.24 standard deviations; over
# three runs it is twice that.
FEW_RUNS = 5
# Excluding one run in ten at random hardly changes a figure; readers must know about more.
EXCLUDED_SHARE = 0.1
# From this share of a cell's runs on, its mean is that of an unsettled system rather than of a settled one.
UNSETTLED_SHARE = 0.5
# Shapes are recognised in 95 of 100 runs (tests/stats/test_run_shape.py): so few unsettled runs may be errors.
UNSURE_SHARE = 0.05

_MORE_RUNS = f"measure at least {FEW_RUNS} runs of each variant at each rate"
_MISSING_RUNS = "collect the missing runs: the same command resumes an open sweep"
_BALANCED = "no planned run is missing: sweep again, with as many runs of every variant at every load"
_LONGER_WARMUP = "use a longer warm-up; the current one is too short"

_MAX_PARTS = 4  # of a text
_DRIFTING = tuple(shape for shape in run_shape.UNSETTLED if shape != run_shape.WARMING_UP)
# Reports of these tools include all phases of a run, also the warm-up, unless the test had a process of its own.
_REPORTS_WARMUP = ("artillery",)


@caveat(
    "One run only",
    "serious where a variant has one run at a rate: the variation between runs is then unknown",
    _MORE_RUNS,
)
def one_run(evidence: Evidence) -> Iterator[Occurrence]:
    found = [each for each in evidence.series if len(each.runs) == 1]
    if found:
        text = (
            f"Only one run of {evidence.where(found)}: the variation between runs is unknown there, so no difference "
            "can be distinguished from chance."
        )
        yield Occurrence(SERIOUS, text, **evidence.in_cells(found))


@caveat(
    "Few runs",
    f"note from 2 to {FEW_RUNS - 1} runs: with 3 an interval is twice as wide as with {FEW_RUNS}",
    _MORE_RUNS,
)
def few_runs(evidence: Evidence) -> Iterator[Occurrence]:
    found = [each for each in evidence.series if 1 < len(each.runs) < FEW_RUNS]
    if found:
        numbers = listed(map(str, sorted({len(each.runs) for each in found})), "or")
        text = f"Only {numbers} runs of {evidence.where(found)}: the variation between runs is poorly known there."
        yield Occurrence(NOTE, text, **evidence.in_cells(found))


@caveat(
    "Unbalanced runs",
    "limits where variants or rates have different numbers of valid runs",
    _MISSING_RUNS,
)
def unbalanced(evidence: Evidence) -> Iterator[Occurrence]:
    numbers = sorted({len(each.runs) for each in evidence.series}, reverse=True)
    if len(numbers) < 2:
        return
    text = f"The number of valid runs differs, from {numbers[-1]} to {numbers[0]}"
    if len(numbers) <= _MAX_PARTS:
        groups = ((number, [each for each in evidence.series if len(each.runs) == number]) for number in numbers)
        text += ": " + "; ".join(f"{counted(number, 'run')} of {evidence.where(group)}" for number, group in groups)
    text += "."
    if rates := _unbalanced_rates(evidence):
        text += f" It differs between variants {evidence.at(rates)}."
    fewer = [each for each in evidence.series if len(each.runs) < numbers[0]]
    cells = {(each.rate, each.variant) for each in fewer}
    planned = [row for row in evidence.planned if (row["rate"], row["variant"]) in cells]
    is_finished = planned and not any(row["missing"] for row in planned)
    yield Occurrence(LIMITS, text, remedy=_BALANCED if is_finished else None, **evidence.in_cells(fewer))


def _unbalanced_rates(evidence: Evidence) -> list[float]:
    """Rates at which variants have different numbers of runs."""
    found = sorted({(each.rate, len(each.runs)) for each in evidence.series})
    return [rate for rate, numbers in groupby(found, key=lambda pair: pair[0]) if len(list(numbers)) > 1]


@caveat("Planned runs are missing", "limits where a planned run has no result", _MISSING_RUNS)
def unfinished(evidence: Evidence) -> Iterator[Occurrence]:
    planned = sum(row["planned"] for row in evidence.planned)
    incomplete = [row for row in evidence.planned if row["missing"]]
    if missing := sum(row["missing"] for row in incomplete):
        where = evidence.at(row["rate"] for row in incomplete)
        text = f"{missing:,} of {counted(planned, 'planned run')} {be(missing)} missing, {where}."
        concerned = {(row["rate"], row["variant"]) for row in incomplete}
        cells = evidence.cells(each for each in evidence.series if (each.rate, each.variant) in concerned)
        rate, variant = (common(row[name] for row in incomplete) for name in ("rate", "variant"))
        yield Occurrence(LIMITS, text, missing, planned, "runs", rate=rate, variant=variant, cells=cells)


@caveat(
    "Runs not compared",
    f"limits where more than {EXCLUDED_SHARE:.0%} of all runs are excluded or not compared; serious where the share "
    f"differs by more than {EXCLUDED_SHARE:.0%} between variants: selection bias may then affect the comparison",
    "find out why they were excluded, remove the cause and measure them again",
)
def excluded(evidence: Evidence) -> Iterator[Occurrence]:
    out = Counter(run["variant"] for run in evidence.scope.excluded)
    valid = Counter(run["variant"] for run in evidence.runs)
    n, n_of = out.total(), out.total() + valid.total()
    shares = {name: out[name] / (out[name] + valid[name]) for name in (out | valid)}
    if not n:
        return
    is_unequal = max(shares.values()) - min(shares.values()) > EXCLUDED_SHARE
    if n <= EXCLUDED_SHARE * n_of and not is_unequal:
        return
    by_pattern = sum("pattern" in run for run in evidence.scope.excluded)  # of the comparison itself
    numbers = {"excluded": n - by_pattern, "not compared": by_pattern}
    left_out = [
        f"{number:,} of {counted(n_of, 'run')} {be(number)} {what}" for what, number in numbers.items() if number
    ]
    text = f"{listed(left_out)} ({100 * n / n_of:.3g} %)"
    if is_unequal:
        variants = sorted(shares, key=lambda name: -shares[name])[:_MAX_PARTS]
        parts = listed(f"{quoted(name)} {out[name]} of {out[name] + valid[name]}" for name in variants)
        text += f", unevenly across variants ({parts}), so the comparison may be affected by selection bias"
    cells = _unequally_excluded(evidence) if is_unequal else None
    yield Occurrence(SERIOUS if is_unequal else LIMITS, f"{text}.", n, n_of, "runs", cells=cells)


def _unequally_excluded(evidence: Evidence) -> list[Row] | None:
    """Cells whose share of excluded runs differs from that of their baseline measured in the same way."""
    out = Counter((run["variant"], way(run)) for run in evidence.scope.excluded)
    valid = Counter((run["variant"], way(run)) for run in evidence.runs)
    shares = {place: out[place] / (out[place] + valid[place]) for place in out | valid}

    def is_unequal(series: Series) -> bool:
        own, baseline = (
            shares.get((name, series.way), 0.0) for name in (series.variant, evidence.scope.baseline or "")
        )
        return abs(own - baseline) > EXCLUDED_SHARE

    return evidence.cells(filter(is_unequal, evidence.series)) or None


def _were(number: int) -> str:
    """``1 was``, ``2 were``."""
    return "was" if number == 1 else "were"


@caveat(
    "Fixed or unknown order",
    "limits where variants were measured in a fixed or unrecorded order: a drift of the machine then looks like a "
    "difference between variants",
    "sweep with order: blocks, which runs every variant in every block",
)
def fixed_order(evidence: Evidence) -> Iterator[Occurrence]:
    runs = evidence.runs
    found = [run for run in runs if run["plan_order"] not in plan.RANDOM]
    if not found or len({run["variant"] for run in runs}) < 2:
        return
    unknown = sum(run["plan_order"] is None for run in found)
    parts = []
    if fixed := len(found) - unknown:
        parts.append(
            f"{fixed:,} of {counted(len(runs), 'run')} {_were(fixed)} measured with the variants in a fixed order"
        )
    if unknown:
        parts.append(f"the order of {unknown:,} of {counted(len(runs), 'run')} is not recorded")
    text = f"{listed(parts)}: a drift of the machine can't be distinguished from a difference between variants."
    cells = evidence.cells(series for series, _ in evidence.with_runs(lambda run: run["plan_order"] not in plan.RANDOM))
    yield Occurrence(LIMITS, text[0].upper() + text[1:], len(found), len(runs), "runs", cells=cells)


@caveat(
    "Variants measured in groups",
    "note where the runs of a variant follow one another within each block (order: grouped): a drift within a block "
    "then widens the intervals of differences",
    "sweep with order: blocks where switching between variants is cheap",
)
def grouped_order(evidence: Evidence) -> Iterator[Occurrence]:
    runs = evidence.runs
    found = [run for run in runs if run["plan_order"] == plan.GROUPED]
    if found and len({run["variant"] for run in runs}) > 1:
        text = (
            f"{len(found):,} of {counted(len(runs), 'run')} {_were(len(found))} measured grouped by variant: within a "
            "block the runs of a variant follow one another, so a drift within a block widens the intervals of "
            "differences."
        )
        yield Occurrence(NOTE, text, len(found), len(runs), "runs")


@caveat(
    "Warm-up included",
    f"serious where more than {UNSETTLED_SHARE:.0%} of a cell's runs start slowly, or a report includes the warm-up; "
    "limits where fewer do, or no warm-up before the test is recorded; note where at most "
    f"{UNSURE_SHARE:.0%} of all runs do",
    "send a warm-up before the test and measure it separately",
)
def warmup_inside(evidence: Evidence) -> Iterator[Occurrence]:
    slow = evidence.with_runs(lambda run: run_shape.WARMING_UP in run["shapes"])
    if slow:
        cells, runs = [series for series, _ in slow], [run for _, own in slow for run in own]
        n_of = _n_with_requests(evidence)
        text = (
            f"{len(runs):,} of {counted(n_of, 'run')} {be(len(runs))} still warming up when the test begins "
            f"({evidence.where(cells)})"
        )
        if (longest := max(run["warmup_share"] or 0 for run in runs)) > 0:
            text += f": the slow start increases their mean latency by up to {100 * longest:.3g} %"
        remedy = _LONGER_WARMUP if all(run["warmup_rate"] for run in runs) else None
        yield Occurrence(_weight(slow, n_of), f"{text}.", remedy=remedy, **evidence.in_runs(slow, n_of))
    reports = [each for each in evidence.series if each.evidence == "reports"]
    included = [each for each in reports if any(_includes_warmup(run) for run in each.runs)]
    if included:
        tools = listed(sorted({str(run["generator"]) for each in included for run in each.runs}))
        text = f"The reports of {tools} for {evidence.where(included)} include the warm-up."
        yield Occurrence(SERIOUS, text, **evidence.in_cells(included))
    without = [each for each in reports if each not in included and not any(run["warmup_rate"] for run in each.runs)]
    if without:
        text = (
            f"No warm-up before the test of {evidence.where(without)} is recorded; without per-request data, a slow "
            "start cannot be detected."
        )
        yield Occurrence(LIMITS, text, **evidence.in_cells(without))


def _includes_warmup(run: Row) -> bool:
    return run["generator"] in _REPORTS_WARMUP and not run["warmup_rate"]


@caveat(
    "Unsteady runs",
    f"serious where more than {UNSETTLED_SHARE:.0%} of a cell's runs drift or change level, limits where fewer do, and "
    f"note where at most {UNSURE_SHARE:.0%} of all runs do: their mean is not that of a steady state",
    "find what changes during the attack; measure longer, or from a steady state",
)
def unsettled(evidence: Evidence) -> Iterator[Occurrence]:
    found = evidence.with_runs(lambda run: run["shape"] in _DRIFTING)
    if not found:
        return
    runs, n_of = [run for _, own in found for run in own], _n_with_requests(evidence)
    shapes = listed([f"{number:,} {name}" for name, number in Counter(run["shape"] for run in runs).most_common()])
    text = (
        f"{len(runs):,} of {counted(n_of, 'run')} {'does' if len(runs) == 1 else 'do'} not reach a steady state "
        f"({shapes}; {evidence.where([each for each, _ in found])}), so {'its' if len(runs) == 1 else 'their'} mean is "
        "not that of a steady state."
    )
    yield Occurrence(_weight(found, n_of), text, **evidence.in_runs(found, n_of))


def _n_with_requests(evidence: Evidence) -> int:
    return sum(len(each.runs) for each in evidence.series if each.evidence == "requests")


def _weight(found: Sequence[tuple[Series, Sequence[Row]]], n_of: int) -> str:
    if any(len(own) > UNSETTLED_SHARE * len(series.runs) for series, own in found):
        return SERIOUS
    return LIMITS if sum(len(own) for _, own in found) > UNSURE_SHARE * n_of else NOTE


@caveat(
    "Limited by the load generator",
    "serious where the send lag of a valid run is above the configured limit (analysis.lag_limit)",
    "give the load generator more CPU, or lower the rate",
)
def generator_limited(evidence: Evidence) -> Iterator[Occurrence]:
    n_of = sum(run.get("lag_p99_ns") is not None for run in evidence.runs)
    found = evidence.with_runs(lambda run: run.get("limited"))
    if found:
        runs = [run for _, own in found for run in own]
        worst = max(runs, key=lambda run: run["judged_lag_ns"])
        text = (
            f"The load generator fell behind in {len(runs):,} of {counted(n_of, 'run')} "
            f"({evidence.where([each for each, _ in found])}): the {title(worst['judged_by']).lower()} of the send "
            f"lag is up to {ms(worst['judged_lag_ns'])}, the limit is {ms(worst['lag_limit_ns'])}."
        )
        yield Occurrence(SERIOUS, text, **evidence.in_runs(found, n_of))


@caveat(
    "Send lag unknown",
    "note where requests were sent at a fixed rate and their send lag is unknown",
    "measure with a load generator that records when each request was sent, such as vegeta",
)
def lag_unknown(evidence: Evidence) -> Iterator[Occurrence]:
    paced = [run for run in evidence.runs if run["load_model"] == "open"]
    found = [run for run in paced if run.get("lag_p99_ns") is None]
    if found:
        why = sorted({run["refused"] for run in found if run.get("refused")})
        text = f"The send lag of {len(found):,} of {counted(len(paced), 'run')} is unknown"
        text += f": {why[0]}." if len(why) == 1 else "."
        remedy = common(REMEDIES.get(run["refused_code"]) for run in found if run.get("refused"))
        yield Occurrence(NOTE, text, len(found), len(paced), "runs", remedy=remedy)
