"""Which values a logarithmic axis names, in figures as in pages (`logTicks` of assets/dom.js).

Vega names the digits of a decade that are lowest, so an axis from 0.8 to 3 would have nothing above 1.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

_ROOM = 0.3  # an axis goes on beyond what is drawn, by at most this share; what lies outside it is not named
_FINE, _ROUND, _DECADES = (1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1,)


def of(low: float, high: float) -> list[float]:
    """Round values around a range above zero: at even steps below a factor of 2, then ever fewer digits of a decade."""
    if high < 1.04 * low:
        low, high = low / 1.02, high * 1.02
    ratio = high / low
    first, last = low / ratio**_ROOM, high * ratio**_ROOM
    if ratio < 2:
        step = _step((high - low) / 5)
        return [_plain(number * step) for number in range(math.ceil(first / step), math.floor(last / step) + 1)]
    digits = _FINE if ratio < 10 else _ROUND if ratio < 300 else _DECADES
    powers = range(math.floor(math.log10(first)) - 1, math.ceil(math.log10(last)) + 1)
    return [value for power in powers for digit in digits if first <= (value := _plain(digit * 10.0**power)) <= last]


def _step(least: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * (1 - 1e-9))


def _plain(value: float) -> float:
    return float(f"{value:.12g}")


def name(spec: dict[str, Any]) -> None:
    """Give every logarithmic axis of a layered specification, whose data sets it holds, the values that it names."""
    for channel in ("x", "y"):
        axes = [one for one in _encodings(spec, channel) if one.get("axis", {}) is not None and "field" in one]
        if not any(_is_log(axis) for axis in axes) or any("values" in axis.get("axis", {}) for axis in axes):
            continue
        fields = {one["field"] for end in ("", "2") for one in _encodings(spec, channel + end) if "field" in one}
        rows = [row for data in spec["datasets"].values() for row in data]
        known = [value for row in rows for field in fields if (value := row.get(field)) is not None and value > 0]
        if known:
            values = of(min(known), max(known))
            for axis in axes:
                axis["axis"] = {**axis.get("axis", {}), "values": values, "tickCount": len(values)}


def _encodings(spec: Mapping[str, Any], channel: str) -> Iterator[dict[str, Any]]:
    for layer in (spec, *spec.get("layer", ())):
        found = layer.get("encoding", {}).get(channel)
        if found is not None and found.get("scale", {}) is not None:
            yield found


def _is_log(axis: Mapping[str, Any]) -> bool:
    return bool(axis.get("scale", {}).get("type") == "log")
