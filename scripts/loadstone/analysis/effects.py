"""Table `effects`: every variant relative to the baseline, per rate and statistic, with a verdict. Reads no request.

Standard errors are pooled over the cells of one statistic (`analysis/scope.py`). Verdicts are corrected for all figures
of the scope that have one: p values are adjusted by Hommel's method, those of differences and those of equivalence
separately. Intervals are not adjusted.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loadstone.analysis import Row, reasons
from loadstone.analysis.caveats.figures import COARSE_NS
from loadstone.analysis.reasons import Reason
from loadstone.analysis.scope import Scope, Series, figure, incomparable, joined, step_ns, unlike
from loadstone.percentiles import ERRORS, STATISTICS
from loadstone.stats import contrasts
from loadstone.stats.contrasts import Contrast

SLOWER, FASTER, EQUIVALENT, INCONCLUSIVE = "slower", "faster", "equivalent", "inconclusive"
MORE, FEWER = "more", "fewer"  # of failures

# The share by which runs are assumed to differ, for planning, where no cell says how much they do.
_ASSUMED_SPREAD = 0.05


@dataclass(frozen=True)
class _Pair:
    """One figure of a variant relative to the baseline's; `why` says what is missing. P values are adjusted."""

    rate: float
    statistic: str
    baseline: Series
    other: Series
    values: tuple[float | None, float | None]
    contrast: Contrast | None = None
    why: Reason | None = None
    p_different: float | None = None
    p_equivalent: float | None = None

    @property
    def tested(self) -> Contrast | None:
        """The contrast, where there may be a verdict."""
        return self.contrast if self.contrast and self.contrast.has_enough_runs else None

    @property
    def least_runs(self) -> int:
        """The number of runs of the variant with fewer."""
        return min(len(each.runs) for each in (self.baseline, self.other))

    @property
    def one_run(self) -> list[str]:
        """The variants that have only one run."""
        return [each.variant for each in (self.baseline, self.other) if len(each.runs) == 1]


@dataclass(frozen=True)
class _Thresholds:
    """The margin and levels for the verdicts of a scope.

    `alpha_different` and `alpha_equivalent` are the levels at which one more test would give a verdict if all others
    stay as they are. `spreads` says by how much pairs of single runs typically differ, by statistic, as logarithms.
    """

    margin: float
    alpha: float
    alpha_different: float
    alpha_equivalent: float
    spreads: dict[str, float]


def effects(scope: Scope) -> Iterator[Row]:
    """Rows of the table; none where the baseline has no runs."""
    compared = _with_p_values(list(_compare(scope)), scope.margin)
    thresholds = _thresholds(compared, scope)
    n_compared = sum(each.p_different is not None for each in compared)
    in_common = {"n_compared": n_compared, "margin": scope.margin, "confidence": scope.confidence}
    for each in compared:
        yield scope.key | _description(each) | _conclusion(each, thresholds) | in_common


# --- figures ---------------------------------------------------------------------------------------------------------


def _compare(scope: Scope) -> Iterator[_Pair]:
    known = scope.contrasts
    for place in scope.places:
        if (baseline := place.series.get(scope.baseline or "")) is None:
            continue
        for name, other in place.series.items():
            if other is not baseline:
                for statistic in STATISTICS:
                    contrast = known.get(place.key(baseline.variant, name, statistic))
                    (before, missing), (after, other_missing) = (figure(each, statistic) for each in (baseline, other))
                    found = _Pair(place.rate, statistic, baseline, other, (before, after), contrast)
                    yield replace(found, why=missing or other_missing or _why_not_compared(found))


def _why_not_compared(compared: _Pair) -> Reason | None:
    """Why two figures that are known can't be compared."""
    baseline, other, statistic = compared.baseline, compared.other, compared.statistic
    if reason := unlike((baseline, other)):
        return reason
    if statistic == ERRORS and compared.values in ((0, 0), (1, 1)):
        return Reason(reasons.ONLY_FAILURES if compared.values[0] else reasons.NO_FAILURES)
    if compared.contrast or compared.one_run:
        return None
    return (
        _resolution_reason(compared) if _is_below_resolution(compared) else incomparable(statistic, (baseline, other))
    )


# --- verdicts --------------------------------------------------------------------------------------------------------


def _with_p_values(compared: Sequence[_Pair], margin: float) -> list[_Pair]:
    """The same figures with p values, adjusted over all that have one."""
    known = {number: each.tested for number, each in enumerate(compared) if each.tested}
    ratios = {number: each for number, each in known.items() if _may_be_equivalent(compared[number], each)}
    different = contrasts.hommel([each.p_different() for each in known.values()])
    equivalent = contrasts.hommel([each.p_equivalent(margin) for each in ratios.values()])
    by_number = dict(zip(known, different, strict=True)), dict(zip(ratios, equivalent, strict=True))
    return [
        replace(each, p_different=by_number[0].get(number), p_equivalent=by_number[1].get(number))
        for number, each in enumerate(compared)
    ]


def _thresholds(compared: Sequence[_Pair], scope: Scope) -> _Thresholds:
    alpha = 1 - scope.confidence
    found = [(each, each.tested) for each in compared if each.tested]
    known = [(each.statistic, each.contrast) for each in compared if each.contrast and not each.contrast.open_side]
    # Figures of too few runs would be tested too if there were more runs.
    planned = sum(None not in each.values and not each.why for each in compared if not each.tested)
    different = contrasts.max_true_nulls([contrast.p_different() for _, contrast in found], alpha)
    ratios = [contrast.p_equivalent(scope.margin) for each, contrast in found if _may_be_equivalent(each, contrast)]
    equivalent = contrasts.max_true_nulls(ratios, alpha)
    spreads = defaultdict(list)
    for name, contrast in known:
        spreads[name].append(contrast.scaled.one_run)
    medians = {name: float(np.median(values)) for name, values in spreads.items()}
    return _Thresholds(scope.margin, alpha, alpha / (different + planned), alpha / (equivalent + planned), medians)


def _may_be_equivalent(compared: _Pair, contrast: Contrast) -> bool:
    return compared.statistic != ERRORS and not contrast.open_side


def _conclusion(compared: _Pair, thresholds: _Thresholds) -> Row:
    """Verdict, reasons, p values and, where it is inconclusive, the runs needed."""
    p_values = {"p_adjusted": compared.p_different, "p_equivalent_adjusted": compared.p_equivalent}
    if compared.contrast and not compared.tested:
        return _verdict_of_few_runs(compared, compared.contrast, thresholds)
    if compared.contrast and compared.contrast.open_side:
        return p_values | _verdict_of_timeouts(compared, compared.contrast, thresholds)
    if None in compared.values or compared.why:
        nothing = compared.values == (0, 0)
        return _verdict(None if nothing else INCONCLUSIVE, compared.why)
    if compared.contrast is None:
        return _verdict_of_one_run(compared, thresholds)
    return p_values | _verdict_of_runs(compared, compared.contrast, thresholds)


def _verdict(verdict: str | None, *why: Reason | None, runs_needed: int | None = None) -> Row:
    found = [reason for reason in why if reason]
    return {"verdict": verdict, "runs_needed": runs_needed} | reasons.columns(found)


def _verdict_of_runs(compared: _Pair, contrast: Contrast, thresholds: _Thresholds) -> Row:
    """The verdict where both figures are known."""
    if compared.p_equivalent is not None and compared.p_equivalent <= thresholds.alpha:
        return _verdict(EQUIVALENT)
    if _is_below_resolution(compared):
        return _verdict(INCONCLUSIVE, _resolution_reason(compared))
    if (compared.p_different or 0) <= thresholds.alpha:
        words = (MORE, FEWER) if compared.statistic == ERRORS else (SLOWER, FASTER)
        return _verdict(words[contrast.effect < 0])
    needed = _runs_needed(compared, thresholds, contrast.effect, contrast.scaled.one_run)
    alone = contrast.p_different() <= thresholds.alpha
    code = reasons.MULTIPLE_COMPARISONS if alone else reasons.RUNS_VARY
    return _verdict(INCONCLUSIVE, Reason(code), runs_needed=needed)


def _verdict_of_timeouts(compared: _Pair, contrast: Contrast, thresholds: _Thresholds) -> Row:
    """The verdict where one figure falls among requests that timed out: the only one possible is that it is longer."""
    why, longer = compared.why, contrast.effect * contrast.open_side > 0
    if not longer or (compared.p_different or 0) > thresholds.alpha:
        return _verdict(INCONCLUSIVE, why)
    if contrast.open_side > 0:
        return _verdict(SLOWER, Reason(reasons.AT_LEAST, value=contrast.ratio_low), why)
    return _verdict(FASTER, Reason(reasons.AT_MOST, value=contrast.ratio_high), why)


def _runs_needed(compared: _Pair, thresholds: _Thresholds, effect: float, spread: float) -> int | None:
    """For the verdict that needs fewer runs."""
    options: dict[str, Any] = {"paired": False}
    if contrast := compared.contrast:
        options = {
            "paired": contrast.n_pairs is not None,
            "pooled_freedom": contrast.pooled_freedom,
            "rounding": contrast.rounding[1],
        }
    found = [contrasts.runs_needed(effect, spread, thresholds.alpha_different, **options)]
    if compared.statistic != ERRORS:
        found.append(contrasts.runs_needed(effect, spread, thresholds.alpha_equivalent, thresholds.margin, **options))
    fewest = min((runs for runs in found if runs is not None), default=None)
    # The present runs were not enough, whatever the theory for equal spreads and fine clocks says.
    return fewest and max(fewest, compared.least_runs + 1, contrasts.LEAST_RUNS)


def _verdict_of_one_run(compared: _Pair, thresholds: _Thresholds) -> Row:
    """Inconclusive, since with one run the variation between runs is unknown; with the runs needed."""
    statistic, (before, after) = compared.statistic, compared.values
    variant = None if len(compared.one_run) == 2 else compared.one_run[0]
    if statistic == ERRORS or not before or not after:
        least = contrasts.LEAST_RUNS
        return _verdict(INCONCLUSIVE, Reason(reasons.ONE_RUN, variant, needed=least), runs_needed=least)
    if _is_below_resolution(compared):
        return _verdict(INCONCLUSIVE, Reason(reasons.ONE_RUN, variant), _resolution_reason(compared))
    spread = thresholds.spreads.get(statistic, _ASSUMED_SPREAD * np.sqrt(2))
    needed = _runs_needed(compared, thresholds, float(np.log(after / before)), spread)
    assumed = 0.0 if statistic in thresholds.spreads else _ASSUMED_SPREAD
    return _verdict(INCONCLUSIVE, Reason(reasons.ONE_RUN, variant, value=assumed, needed=needed), runs_needed=needed)


def _verdict_of_few_runs(compared: _Pair, contrast: Contrast, thresholds: _Thresholds) -> Row:
    """Inconclusive, since too few runs may be alike by chance; with the runs needed."""
    few = Reason(reasons.FEW_RUNS, value=contrast.n_both, needed=contrasts.LEAST_RUNS)
    if contrast.open_side:
        return _verdict(INCONCLUSIVE, few, compared.why)
    if _is_below_resolution(compared):
        return _verdict(INCONCLUSIVE, _resolution_reason(compared))
    needed = _runs_needed(compared, thresholds, contrast.effect, contrast.scaled.one_run)
    return _verdict(INCONCLUSIVE, few, runs_needed=needed)


def _is_below_resolution(compared: _Pair) -> bool:
    """Whether the figures differ by less than a step of the tool's clock, which more runs don't change."""
    before, after = compared.values
    if before is None or after is None or compared.statistic == ERRORS or _step(compared) < COARSE_NS:
        return False
    return abs(compared.contrast.shift if compared.contrast else after - before) < _step(compared)


def _resolution_reason(compared: _Pair) -> Reason:
    return Reason(reasons.BELOW_RESOLUTION, value=_step(compared))


def _step(compared: _Pair) -> float:
    return step_ns((compared.baseline, compared.other))


# --- rows ------------------------------------------------------------------------------------------------------------


def _description(compared: _Pair) -> Row:
    """The columns that identify a row, and the difference."""
    baseline, other = compared.baseline, compared.other
    before, after = compared.values
    row: Row = {
        "rate": compared.rate,
        "load_model": other.runs[0]["load_model"],
        "generator": joined(other.runs, "generator"),
        "evidence": baseline.evidence if baseline.evidence == other.evidence else "requests and reports",
        "baseline": baseline.variant,
        "variant": other.variant,
        "statistic": compared.statistic,
        "baseline_value": before,
        "value": after,
        "n_runs": len(other.runs),
        "baseline_n_runs": len(baseline.runs),
    }
    if before is not None and after is not None:
        row |= {"shift": after - before, "ratio": after / before if before else None}
    if compared.contrast and not compared.contrast.open_side:
        names = ("shift_low", "shift_high", "ratio_low", "ratio_high", "n_pairs")
        row |= {name: getattr(compared.contrast, name) for name in names}
        row |= {"freedom": compared.contrast.scaled.freedom, "borrowed": compared.contrast.pooled_freedom}
    return row
