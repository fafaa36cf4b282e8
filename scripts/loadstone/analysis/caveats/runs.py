"""Weaknesses of the runs that figures rest on: how many, in which order, how settled, how punctually sent."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from loadstone.analysis import send_lag
from loadstone.analysis.caveats.definitions import (
    EXCLUDED_SHARE,
    FEW_RUNS,
    LIMITS,
    NOTE,
    SERIOUS,
    UNSETTLED_SHARE,
    UNSURE_SHARE,
    Weakness,
)
from loadstone.analysis.caveats.evidence import Evidence, counted, only
from loadstone.analysis.scope import BLOCKS, Series, quoted, way
from loadstone.digits import ms
from loadstone.stats import run_shape
from loadstone.text import listed

_DRIFTING = tuple(shape for shape in run_shape.UNSETTLED if shape != run_shape.WARMING_UP)
# Reports of these sum up all phases of a run, the warm-up too, unless the test had a process of its own.
_SUMS_UP = ("artillery",)


def one_run(evidence: Evidence) -> Iterator[Weakness]:
    """Cells with one run."""
    found = [each for each in evidence.series if len(each.runs) == 1]
    if found:
        text = f"There is one run only of {evidence.where(found)}: how much runs differ is not known there, so no "
        text += "difference can be told from chance."
        yield Weakness("one_run", SERIOUS, text, **evidence.about(found))


def few_runs(evidence: Evidence) -> Iterator[Weakness]:
    """Cells with so few runs that their spread is poorly known."""
    found = [each for each in evidence.series if 1 < len(each.runs) < FEW_RUNS]
    if found:
        numbers = sorted({len(each.runs) for each in found})
        text = f"There are {listed(map(str, numbers))} runs of {evidence.where(found)}: how much runs differ is poorly "
        text += "known there."
        yield Weakness("few_runs", NOTE, text, **evidence.about(found))


def unbalanced(evidence: Evidence) -> Iterator[Weakness]:
    """Unlike numbers of runs."""
    numbers = Counter(len(each.runs) for each in evidence.series)
    if len(numbers) < 2:
        return
    most = max(numbers)
    parts = []
    for number in sorted(numbers, reverse=True):
        own = [each for each in evidence.series if len(each.runs) == number]
        parts.append(f"{counted(number, 'run')} of {evidence.where(own)}")
    fewer = [each for each in evidence.series if len(each.runs) < most]
    text = f"The numbers of runs that count differ, from {min(numbers)} to {most}: {'; '.join(parts)}."
    if len(numbers) > _PARTS:
        text = f"The numbers of runs that count differ: from {min(numbers)} to {most} in a cell."
    if rates := _differing(evidence):
        text += f" Variants differ in it {evidence.at(rates)}."
    concerned = {(each.rate, each.variant) for each in fewer}
    planned = [row for row in evidence.missing if (row["rate"], row["variant"]) in concerned]
    is_finished = planned and not any(row["missing"] for row in planned)
    remedy = _ALIKE if is_finished else None
    yield Weakness("unbalanced", LIMITS, text, remedy=remedy, **evidence.about(fewer))


_PARTS = 4
_ALIKE = "no planned run is missing: sweep again, with as many runs of every variant at every load"


def _differing(evidence: Evidence) -> list[float]:
    """Rates at which variants have unlike numbers of runs."""
    found = sorted({(each.rate, len(each.runs)) for each in evidence.series})
    return [rate for rate, numbers in groupby(found, key=lambda pair: pair[0]) if len(list(numbers)) > 1]


def unfinished(evidence: Evidence) -> Iterator[Weakness]:
    """Planned runs without a result."""
    planned = sum(row["planned"] for row in evidence.missing)
    lacking = [row for row in evidence.missing if row["missing"]]
    if missing := sum(row["missing"] for row in lacking):
        where = evidence.at(row["rate"] for row in lacking)
        text = f"{missing:,} of {counted(planned, 'planned run')} {_have(missing)} no result, {where}."
        concerned = {(row["rate"], row["variant"]) for row in lacking}
        cells = evidence.cells(each for each in evidence.series if (each.rate, each.variant) in concerned)
        rate, variant = (only(row[name] for row in lacking) for name in ("rate", "variant"))
        yield Weakness("unfinished", LIMITS, text, missing, planned, "runs", rate=rate, variant=variant, cells=cells)


def excluded(evidence: Evidence) -> Iterator[Weakness]:
    """Runs left out, if they are many or of one variant."""
    out = Counter(run["variant"] for run in evidence.scope.left_out)
    kept = Counter(run["variant"] for run in evidence.runs)
    n, n_of = out.total(), out.total() + kept.total()
    shares = {name: out[name] / (out[name] + kept[name]) for name in (out | kept)}
    if not n:
        return
    unequal = max(shares.values()) - min(shares.values()) > EXCLUDED_SHARE
    if n <= EXCLUDED_SHARE * n_of and not unequal:
        return
    text = f"{n:,} of {counted(n_of, 'run')} {_are(n)} left out ({100 * n / n_of:.3g} %)"
    if unequal:
        of_variants = sorted(shares, key=lambda name: -shares[name])[:_PARTS]
        parts = [f"{quoted(name)} {out[name]} of {out[name] + kept[name]}" for name in of_variants]
        text += f", not alike for all variants: {listed(parts)}; what is left of them was chosen unlike"
    cells = _chosen_unlike(evidence) if unequal else None
    yield Weakness("excluded", SERIOUS if unequal else LIMITS, f"{text}.", n, n_of, "runs", cells=cells)


def _chosen_unlike(evidence: Evidence) -> list[dict[str, Any]] | None:
    """Cells of which clearly more or fewer runs are left out than of their baseline in that way; None if none is."""
    out = Counter((run["variant"], way(run)) for run in evidence.scope.left_out)
    kept = Counter((run["variant"], way(run)) for run in evidence.runs)
    shares = {place: out[place] / (out[place] + kept[place]) for place in out | kept}

    def is_unlike(series: Series) -> bool:
        own, beside = (shares.get((name, series.way), 0.0) for name in (series.variant, evidence.scope.baseline or ""))
        return abs(own - beside) > EXCLUDED_SHARE

    return evidence.cells(filter(is_unlike, evidence.series)) or None


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def fixed_order(evidence: Evidence) -> Iterator[Weakness]:
    """Runs that were not made in blocks."""
    runs = evidence.runs
    found = [run for run in runs if run["plan_order"] != BLOCKS]
    if not found or len({run["variant"] for run in runs}) < 2:
        return
    unknown = sum(run["plan_order"] is None for run in found)
    said = []
    if fixed := len(found) - unknown:
        said.append(f"{fixed:,} of {counted(len(runs), 'run')} {_was(fixed)} made in a fixed order of variants")
    if unknown:
        said.append(f"of {unknown:,} of {counted(len(runs), 'run')} nobody recorded the order")
    text = f"{listed(said)}: a drift of the machine and a difference of variants can't be told apart."
    cells = evidence.cells(series for series, _ in evidence.where_runs(lambda run: run["plan_order"] != BLOCKS))
    yield Weakness("fixed_order", LIMITS, text[0].upper() + text[1:], len(found), len(runs), "runs", cells=cells)


def warmup_inside(evidence: Evidence) -> Iterator[Weakness]:
    """Runs that start slowly, or may."""
    raw = sum(len(each.runs) for each in evidence.series if each.evidence == "requests")
    slow = list(evidence.where_runs(lambda run: run_shape.WARMING_UP in run["shapes"]))
    if slow:
        cells, runs = [series for series, _ in slow], [run for _, own in slow for run in own]
        longest = max(run["warmup_share"] or 0 for run in runs)
        text = f"{len(runs):,} of {counted(raw, 'run')} {_are(len(runs))} still warming up when the test begins"
        text += f" ({evidence.where(cells)})"
        if longest > 0:
            text += f": the slow start lengthens their mean latency by up to {100 * longest:.3g} %"
        remedy = _LONGER if all(run["warmup_rate"] for run in runs) else None
        about = _of_runs(evidence, slow, raw)
        yield Weakness("warmup_inside", _weight(slow, len(runs), raw), f"{text}.", remedy=remedy, **about)
    reports = [each for each in evidence.series if each.evidence == "reports"]
    summed = [each for each in reports if any(_sums_up(run) for run in each.runs)]
    if summed:
        tools = listed(sorted({str(run["generator"]) for each in summed for run in each.runs}))
        text = f"What {tools} reported of {evidence.where(summed)} sums up all phases of a run, the warm-up too."
        yield Weakness("warmup_inside", SERIOUS, text, **evidence.about(summed))
    without = [each for each in reports if each not in summed and not any(run["warmup_rate"] for run in each.runs)]
    if without:
        text = f"Nothing tells of a warm-up before the test of {evidence.where(without)}, and no single request shows "
        text += "whether it starts slowly."
        yield Weakness("warmup_inside", LIMITS, text, **evidence.about(without))


_LONGER = "send a longer warm-up before the test: the one that was sent did not do"


def _sums_up(run: dict[str, object]) -> bool:
    return run["generator"] in _SUMS_UP and not run["warmup_rate"]


def unsettled(evidence: Evidence) -> Iterator[Weakness]:
    """Runs that drift or change level."""
    raw = sum(len(each.runs) for each in evidence.series if each.evidence == "requests")
    found = list(evidence.where_runs(lambda run: run["shape"] in _DRIFTING))
    if not found:
        return
    runs = [run for _, own in found for run in own]
    shapes = listed([f"{number:,} {name}" for name, number in Counter(run["shape"] for run in runs).most_common()])
    text = (
        f"{len(runs):,} of {counted(raw, 'run')} never {'settles' if len(runs) == 1 else 'settle'} ({shapes}; "
        f"{evidence.where([each for each, _ in found])})"
    )
    text += ": a mean over them is of no steady state."
    yield Weakness("unsettled", _weight(found, len(runs), raw), text, **_of_runs(evidence, found, raw))


def _weight(found: list[tuple[Series, list[dict[str, object]]]], n: int, n_of: int) -> str:
    if any(len(own) > UNSETTLED_SHARE * len(series.runs) for series, own in found):
        return SERIOUS
    return LIMITS if n > UNSURE_SHARE * n_of else NOTE


def _of_runs(evidence: Evidence, found: list[tuple[Series, list[dict[str, object]]]], n_of: int) -> dict[str, Any]:
    """Columns of a weakness that holds for some of `n_of` runs."""
    n = sum(len(own) for _, own in found)
    return evidence.about([each for each, _ in found]) | {"n": n, "n_of": n_of, "counted": "runs"}


def generator_limited(evidence: Evidence) -> Iterator[Weakness]:
    """Runs whose requests were sent late."""
    known = [run for run in evidence.runs if run.get("lag_p99_ns") is not None]
    found = list(evidence.where_runs(lambda run: run.get("limited")))
    if found:
        runs = [run for _, own in found for run in own]
        worst = max(runs, key=lambda run: run["judged_lag_ns"])
        text = (
            f"The load generator fell behind in {len(runs):,} of {counted(len(known), 'run')} "
            f"({evidence.where([each for each, _ in found])}): {send_lag.NAMES[worst['judged_by']]} of the send lag is "
            f"up to {ms(worst['judged_lag_ns'])} where the limit is {ms(worst['lag_limit_ns'])}."
        )
        yield Weakness("generator_limited", SERIOUS, text, **_of_runs(evidence, found, len(known)))


def lag_unknown(evidence: Evidence) -> Iterator[Weakness]:
    """Runs of which that can not be told."""
    due = [run for run in evidence.runs if run["load_model"] == "open"]
    found = [run for run in due if run.get("lag_p99_ns") is None]
    if found:
        why = sorted({run["refused"] for run in found if run.get("refused")})
        text = f"How punctually the requests of {len(found):,} of {counted(len(due), 'run')} were sent can't be told"
        text += f": {why[0]}." if len(why) == 1 else "."
        known = {
            next((send_lag.REMEDIES[part] for part in send_lag.REMEDIES if each.startswith(part)), None) for each in why
        }
        yield Weakness("lag_unknown", NOTE, text, len(found), len(due), "runs", remedy=only(known))
