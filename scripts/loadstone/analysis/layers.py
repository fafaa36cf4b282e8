"""Tables `layers` and `interactions`: the overhead of each variant over those that it is built upon, and interactions.

As in `effects.py`, standard errors are pooled over the cells of one statistic. P values of warnings are adjusted over
all rows of a table of the scope by Hommel's method; intervals are not adjusted.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loadstone.analysis import Row, reasons
from loadstone.analysis.reasons import Reason
from loadstone.analysis.saturation import described, swept
from loadstone.analysis.scope import Place, Scope, Series, incomparable, paired, reported, step_ns, unlike
from loadstone.config.variants import Diamond, Layer, VariantGraph
from loadstone.percentiles import LATENCIES
from loadstone.stats import contrasts
from loadstone.stats.contrasts import Contrast
from loadstone.stats.interaction import Interaction, interaction, interaction_of_runs, pool_errors


@dataclass(frozen=True)
class _Overhead:
    """The overhead of one layer in one statistic, or why it is `missing`."""

    place: Place
    layer: Layer
    pair: tuple[Series, Series]
    statistic: str
    added: Contrast | None
    missing: Reason | None


@dataclass(frozen=True)
class _Interaction:
    """The interaction of one diamond in one statistic, or why it is `missing`; `p` is adjusted."""

    place: Place
    diamond: Diamond
    four: tuple[Series, ...]
    statistic: str
    found: Interaction | None
    missing: Reason | None
    p: float | None = None

    def is_significant(self, confidence: float) -> bool:
        return self.p is not None and self.p < 1 - confidence

    def affects(self, overhead: _Overhead) -> bool:
        """Whether the overhead is that of a layer at the top of the diamond."""
        layer = overhead.layer
        same = (self.place, self.statistic, self.diamond.top) == (overhead.place, overhead.statistic, layer.variant)
        return same and layer.below in (self.diamond.left, self.diamond.right)

    def reason(self, layer: Layer) -> Reason:
        """By how much the overhead of a layer at the top of the diamond differs from that at its bottom."""
        other = self.diamond.right if layer.below == self.diamond.left else self.diamond.left
        value_ns = self.found.value if self.found else 0.0
        return Reason(reasons.NOT_ADDITIVE, self.diamond.bottom, other, value=value_ns)


def layers(scope: Scope) -> Iterator[Row]:
    """A row per rate, layer between measured variants, and statistic."""
    beyond = {key: each.knee.beyond for key, each in swept(scope).items()}
    found = _overheads(scope)
    adjusted = contrasts.hommel([each.added.p_different() if each.added else 1.0 for each in found])
    key, significant = scope.key, [each for each in _interactions(scope) if each.is_significant(scope.confidence)]
    for each, p in zip(found, adjusted, strict=True):
        place, layer, added = each.place, each.layer, each.added
        warnings = [each.missing] if each.missing else []
        if added and added.has_enough_runs and added.shift < 0 and p < 1 - scope.confidence:
            warnings.append(Reason(reasons.NEGATIVE, layer.variant, layer.below))
        warnings += [interaction.reason(layer) for interaction in significant if interaction.affects(each)]
        warnings += [
            Reason(reasons.BEYOND_KNEE, name)
            for name in (layer.below, layer.variant)
            if place.rate in beyond[name, place.way]
        ]
        yield (
            key
            | described(each.pair)
            | {
                "rate": place.rate,
                "below": layer.below,
                "variant": layer.variant,
                "statistic": each.statistic,
                "added_ns": added and added.shift,
                "added_low_ns": added and added.shift_low,
                "added_high_ns": added and added.shift_high,
                "n_runs": len(each.pair[1].runs),
                "below_n_runs": len(each.pair[0].runs),
                "n_pairs": added and added.n_pairs,
                "confidence": scope.confidence,
            }
            | reasons.columns(warnings, "warning")
        )


def _overheads(scope: Scope) -> list[_Overhead]:
    known, found = scope.contrasts, []
    for place in scope.places:
        for layer in VariantGraph(scope.over, place.series).layers():
            pair = place.series[layer.below], place.series[layer.variant]
            for statistic in LATENCIES:
                added = known.get(place.key(layer.below, layer.variant, statistic))
                if added and added.open_side:
                    added = None
                missing = None if added else _missing(pair, statistic) or incomparable(statistic, pair)
                found.append(_Overhead(place, layer, pair, statistic, added, missing))
    return found


def interactions(scope: Scope) -> Iterator[Row]:
    """A row per rate, diamond of measured variants, and statistic."""
    key = scope.key
    for each in _interactions(scope):
        low, high = each.found.interval(scope.confidence) if each.found else (None, None)
        warnings = [each.missing] if each.missing else []
        if each.is_significant(scope.confidence):
            warnings.append(Reason(reasons.NOT_ADDITIVE))
        yield (
            key
            | described(each.four)
            | vars(each.diamond)
            | {
                "rate": each.place.rate,
                "statistic": each.statistic,
                "interaction_ns": each.found and each.found.value,
                "interaction_low_ns": low,
                "interaction_high_ns": high,
                "p_adjusted": each.p,
                "confidence": scope.confidence,
            }
            | reasons.columns(warnings, "warning")
        )


def _interactions(scope: Scope) -> list[_Interaction]:
    found = []
    for place in scope.places:
        for diamond in VariantGraph(scope.over, place.series).diamonds():
            four = tuple(place.series[name] for name in (diamond.bottom, diamond.left, diamond.right, diamond.top))
            for statistic in LATENCIES:
                missing = _missing(four, statistic)
                value = None if missing else _interaction(four, statistic)
                if value is None and missing is None:
                    missing = incomparable(statistic, four)
                found.append(_Interaction(place, diamond, four, statistic, value, missing))
    pooled = defaultdict(list)
    for number, each in enumerate(found):
        if each.found:
            pooled[each.statistic, each.place.way, each.found.n_pairs is None].append((number, each.found))
    for group in pooled.values():
        diamonds = [found[number].diamond for number, _ in group]
        for (number, _), value in zip(group, pool_errors([value for _, value in group], diamonds), strict=True):
            found[number] = replace(found[number], found=value)
    adjusted = iter(contrasts.hommel([each.found.p_different() for each in found if each.found]))
    return [replace(each, p=next(adjusted)) if each.found else each for each in found]


# --- figures ---------------------------------------------------------------------------------------------------------


def _missing(series: Sequence[Series], statistic: str) -> Reason | None:
    """Why a figure is missing of one of these series."""
    if reason := unlike(series):
        return reason
    for each in series:
        if each.evidence == "requests":
            if reason := each.missing(statistic):
                return reason
        elif statistic != "mean":
            return Reason(reasons.REPORTS_NOT_AVERAGED)
        elif any(row["mean_ns"] is None for row in each.reported):
            return Reason(reasons.NOT_REPORTED, each.variant)
        if len(each.runs) < 2:
            return Reason(reasons.ONE_RUN, each.variant)
    return None


def _interaction(four: Sequence[Series], statistic: str) -> Interaction | None:
    options: dict[str, Any] = {"paired": paired(four), "step": step_ns(four)}
    if four[0].evidence == "requests":
        return interaction([each.replicates for each in four], statistic, **options)
    return interaction_of_runs([reported(each, "mean") for each in four], **options)
