"""One figure of the judged campaign against the same one of earlier campaigns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.analysis import history
from loadstone.analysis.cell_figures import Figure, change, failed, figure, lacks, unsure
from loadstone.analysis.gate_finding import INCONCLUSIVE, NO_WORSE, REFERENCE, WORSE, Finding, failures, percent
from loadstone.analysis.gate_options import Options
from loadstone.archive import parse_timestamp
from loadstone.stats import history as levelling
from loadstone.stats import shares
from loadstone.stats.multiple_tests import holm
from loadstone.stats.slower import Difference, difference

_Cell = Mapping[str, Any]
_Told = tuple[_Cell, Figure]


@dataclass(frozen=True)
class Tested:
    """A figure with those of earlier campaigns, and how far it may be from them, on the scale of comparison."""

    cell: _Cell
    later: Figure
    earlier: Sequence[_Told]
    differences: Sequence[Difference | shares.Difference]
    allowed: float
    days_unknown: bool = False

    @property
    def known(self) -> int:
        """How many references are known. The least that one may be tells nothing of being worse than it."""
        return sum(not before.at_least for _, before in self.earlier)

    @property
    def p_worse(self) -> float:
        """Of being worse than any of the references."""
        pairs = zip(self.differences, self.earlier, strict=True)
        known = [each.p_above(self.allowed) for each, (_, before) in pairs if not before.at_least]
        return min(1.0, len(known) * min(known)) if known else 1.0

    def finding(self, adjusted: float, level: float, options: Options) -> Finding:
        """`adjusted`: the p value of being worse, over all figures; `level`: what that of one alone has to be below.

        The interval is what tests do not refuse: a figure is worse where all of it is above what is allowed, no worse
        where all of it is below.
        """
        alpha = 1 - options.confidence
        verdict = INCONCLUSIVE
        if adjusted < alpha:
            verdict = WORSE
        elif not self.later.at_least and all(each.p_below(self.allowed) < alpha for each in self.differences):
            verdict = NO_WORSE
        levels = level / max(1, self.known), alpha
        shown, (reference, before) = self._deciding(verdict, *levels)
        bounds = (shown.shift, *shown.bounds(*levels), self.allowed)
        shift, low, high, allowed = (change(each, is_share=self.later.is_share) for each in bounds)
        why = "the interval holds what is allowed" if verdict == INCONCLUSIVE else None
        if self.later.at_least or before.at_least:
            why = f"{'it' if self.later.at_least else 'the reference'} falls among requests that timed out"
        return Finding(
            *campaign_of(self.cell),
            self.cell["variant"],
            self.cell["rate"],
            self.later.statistic,
            verdict,
            why=why,
            reference=reference["timestamp"],
            value=self.later.value,
            reference_value=before.value,
            change=shift,
            low=None if before.at_least else low,
            high=None if self.later.at_least else high,
            allowed=allowed,
            p_worse=adjusted,
            at_least=self.later.at_least,
            reference_at_least=before.at_least,
            days_unknown=self.days_unknown,
        )

    def _deciding(self, verdict: str, above: float, below: float) -> tuple[Difference | shares.Difference, _Told]:
        """The reference that is shown: which the figure is worse than, may be worse than, or is nearest to being so."""

        def order(pair: tuple[Difference | shares.Difference, _Told]) -> tuple[bool, bool, float]:
            found, (_, before) = pair
            low, high = found.bounds(above, below)
            if verdict == WORSE:
                return not before.at_least, True, low
            return high >= self.allowed, not before.at_least, high

        return max(zip(self.differences, self.earlier, strict=True), key=order)


def findings(tested: Sequence[Tested], options: Options) -> list[Finding]:
    """Of all figures of a gate. Holm's method comes to one level: what it refuses is below it, all else is not."""
    if not tested:
        return []
    alpha = 1 - options.confidence
    adjusted = holm([each.p_worse for each in tested])
    level = alpha / max(1, sum(p >= alpha for p in adjusted))
    return [each.finding(p, level, options) for each, p in zip(tested, adjusted, strict=True)]


def campaign_of(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """The key of a row's campaign."""
    return row["app"], row["host"], row["timestamp"]


def _unmatched(options: Options) -> str:
    """Why a figure is compared with nothing at all."""
    if parse_timestamp(options.reference) is not None:
        return f"the reference, {options.reference}, is no earlier campaign that measured it in the same way"
    return "no earlier campaign measured it in the same way"


def compared(before: Sequence[_Cell], cell: _Cell, statistic: str, options: Options) -> Tested | Finding:
    """One figure with those of earlier campaigns (`before`, of the same series), or why that can't be."""

    def refused(why: str, missing: str | None = None) -> Finding:
        return Finding(*campaign_of(cell), cell["variant"], cell["rate"], statistic, INCONCLUSIVE, why, missing)

    is_named = parse_timestamp(options.reference) is not None
    eligible = [each for each in before if not is_named or each["timestamp"] == options.reference]
    if not eligible:
        return refused(_unmatched(options), REFERENCE)
    later = figure(cell, statistic, options.confidence)
    if later is None:
        return refused(lacks(cell, statistic))
    told, references = (
        [(each, found) for each in of if (found := figure(each, statistic, options.confidence)) is not None]
        for of in (before, eligible)
    )
    references = references[-options.last :]
    if not references:
        return refused(_of_reference(eligible[-1], lacks(eligible[-1], statistic)))
    if why := _unfit(cell, later, references, options):
        return refused(why)
    if later.at_least:
        references = [(each, found) for each, found in references if not found.at_least]
        if not references:
            return refused("too many of its requests timed out, as they did before")
    fit = [found for each, found in told if not found.at_least and (found.is_share or failed(each) is None)]
    between = _between(fit, history.least_step(statistic, options.margin))
    differences = [_difference(found, later, between) for _, found in references]
    return Tested(cell, later, references, differences, options.allowed(cell, statistic), not between[1])


def _unfit(cell: _Cell, later: Figure, references: Sequence[_Told], options: Options) -> str | None:
    """Why a figure can't be compared with one of its references, or with any."""
    for of, found in ((cell, later), *references):
        why = None
        share = None if found.is_share else failed(of)
        if share is not None:
            why = f"{percent(share)} of its requests failed, so that latencies are of {failures(share)}"
        elif found.n_runs < options.runs:
            why = f"it rests on {found.n_runs} of the {options.runs} runs that are needed"
        elif math.isnan(found.error):
            why = unsure(of, found.statistic)
        if why:
            return why if of is cell else _of_reference(of, why)
    return None


def _of_reference(cell: _Cell, why: str) -> str:
    return f"in the reference, {cell['timestamp']}, {why}"


def _difference(earlier: Figure, later: Figure, between: tuple[float, float]) -> Difference | shares.Difference:
    if earlier.share and later.share:
        return shares.Difference(earlier.share, later.share, between)
    before, after = ((each.scaled, each.error, each.freedom) for each in (earlier, later))
    return difference(before, after, between)


def _between(earlier: Sequence[Figure], least: float) -> tuple[float, float]:
    """By how much campaigns of one level differ beyond their runs: those of the last level, or of all if these are few.

    As ratios of latencies they differ alike on all levels; shares of failures differ the more, the larger they are.
    """
    if not earlier:
        return 0.0, 0.0
    series = history.as_series(earlier)
    numbers = levelling.levels(series, least)
    start = int((numbers != numbers[-1]).sum())
    if len(earlier) - start >= levelling.LEAST_TO_ESTIMATE or earlier[-1].is_share:
        return levelling.between_variance(series.part(start, len(earlier)))
    return levelling.between_variance(series, numbers)
