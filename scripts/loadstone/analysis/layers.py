"""Tables `layers` and `interactions`: what variants add to what they are built upon, and where that does not add up.

As in `effects.py`, cells of one statistic tell together by how much runs differ, and warnings are corrected for all
rows of a table of the scope by Hommel's method. The intervals are each for itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loadstone.analysis import reasons
from loadstone.analysis.reasons import Reason
from loadstone.analysis.saturation import described, swept
from loadstone.analysis.scope import (
    Place,
    Scope,
    Series,
    alike,
    contrasted,
    incomparable,
    paired,
    places,
    reported,
    step_ns,
)
from loadstone.config.variants import Diamond, Layer, VariantGraph
from loadstone.percentiles import LATENCIES
from loadstone.stats import contrasts
from loadstone.stats.contrasts import Contrast
from loadstone.stats.interaction import Interaction, interaction, interaction_of_runs, pool_errors

_Row = dict[str, Any]


@dataclass(frozen=True)
class _Stepped:
    """One layer in one statistic: what it adds, or what is missing to tell it."""

    place: Place
    layer: Layer
    pair: tuple[Series, Series]
    statistic: str
    added: Contrast | None
    missing: Reason | None


@dataclass(frozen=True)
class _Crossed:
    """One diamond in one statistic; `p` is adjusted."""

    place: Place
    diamond: Diamond
    statistic: str
    interaction: Interaction | None
    missing: Reason | None
    p: float | None = None


def layers(scope: Scope) -> Iterator[_Row]:
    """A row per rate, layer between measured variants, and statistic."""
    beyond = {key: each.knee.beyond for key, each in swept(scope).items()}
    found = _stepped(scope)
    sure = contrasts.hommel([each.added.p_different() if each.added else 1.0 for each in found])
    key, crossed = scope.key, _crossed(scope)
    for each, p in zip(found, sure, strict=True):
        place, layer, added = each.place, each.layer, each.added
        warnings = [each.missing] if each.missing else []
        if added and added.shift < 0 and p < 1 - scope.confidence:
            warnings.append(Reason(reasons.NEGATIVE, layer.variant, layer.below))
        warnings += [
            _not_additive(one, layer) for one in crossed if _concerns(one, place, layer, each.statistic, scope)
        ]
        for name in (layer.below, layer.variant):
            if place.rate in beyond[name, place.way]:
                warnings.append(Reason(reasons.BEYOND_KNEE, name))
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


def _stepped(scope: Scope) -> list[_Stepped]:
    known, found = contrasted(scope), []
    for place in places(scope):
        for layer in VariantGraph(scope.over, place.found).layers():
            pair = place.found[layer.below], place.found[layer.variant]
            for statistic in LATENCIES:
                added = known.get(place.key(layer.below, layer.variant, statistic))
                added = None if added and added.open_side else added
                missing = None if added else _missing(pair, statistic) or incomparable(statistic, pair)
                found.append(_Stepped(place, layer, pair, statistic, added, missing))
    return found


def interactions(scope: Scope) -> Iterator[_Row]:
    """A row per rate, diamond of measured variants, and statistic."""
    key = scope.key
    for each in _crossed(scope):
        diamond, found = each.diamond, each.interaction
        low, high = found.interval(scope.confidence) if found else (None, None)
        yield (
            key
            | described(_four(each.place, diamond))
            | {
                "rate": each.place.rate,
                "bottom": diamond.bottom,
                "left": diamond.left,
                "right": diamond.right,
                "top": diamond.top,
                "statistic": each.statistic,
                "interaction_ns": found and found.value,
                "interaction_low_ns": low,
                "interaction_high_ns": high,
                "p_adjusted": each.p,
                "confidence": scope.confidence,
            }
            | reasons.columns(_warnings(each, scope), "warning")
        )


def _crossed(scope: Scope) -> list[_Crossed]:
    found = []
    for place in places(scope):
        for diamond in VariantGraph(scope.over, place.found).diamonds():
            four = _four(place, diamond)
            for statistic in LATENCIES:
                missing = _missing(four, statistic)
                value = None if missing else _interaction(four, statistic)
                if value is None and missing is None:
                    missing = incomparable(statistic, four)
                found.append(_Crossed(place, diamond, statistic, value, missing))
    kinds = {
        number: (each.statistic, each.place.way, each.interaction.n_pairs is None)
        for number, each in enumerate(found)
        if each.interaction
    }
    for numbers in alike(kinds):
        known = [known for number in numbers if (known := found[number].interaction)]
        diamonds = [found[number].diamond for number in numbers]
        for number, value in zip(numbers, pool_errors(known, diamonds), strict=True):
            found[number] = replace(found[number], interaction=value)
    tested = [number for number, each in enumerate(found) if each.interaction]
    adjusted = contrasts.hommel([each.interaction.p_different() for each in found if each.interaction])
    for number, p in zip(tested, adjusted, strict=True):
        found[number] = replace(found[number], p=p)
    return found


def _four(place: Place, diamond: Diamond) -> tuple[Series, ...]:
    return tuple(place.found[name] for name in (diamond.bottom, diamond.left, diamond.right, diamond.top))


def _is_sure(each: _Crossed, scope: Scope) -> bool:
    return each.p is not None and each.p < 1 - scope.confidence


def _concerns(each: _Crossed, place: Place, layer: Layer, statistic: str, scope: Scope) -> bool:
    sides = (each.diamond.left, each.diamond.right)
    same = (each.place, each.diamond.top, each.statistic) == (place, layer.variant, statistic)
    return same and layer.below in sides and _is_sure(each, scope)


def _warnings(each: _Crossed, scope: Scope) -> list[Reason]:
    if each.missing:
        return [each.missing]
    return [Reason(reasons.NOT_ADDITIVE)] if _is_sure(each, scope) else []


def _not_additive(each: _Crossed, layer: Layer) -> Reason:
    """What a layer at the top of a diamond adds more or less than the same layer at its bottom."""
    diamond, value_ns = each.diamond, each.interaction.value if each.interaction else 0.0
    other = diamond.right if layer.below == diamond.left else diamond.left
    return Reason(reasons.NOT_ADDITIVE, diamond.bottom, other, value=value_ns)


# --- figures ---------------------------------------------------------------------------------------------------------


def _missing(series: Sequence[Series], statistic: str) -> Reason | None:
    """Why a figure of several series can't be had."""
    if len({each.evidence for each in series}) > 1:
        return Reason(reasons.EVIDENCE_DIFFERS)
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
