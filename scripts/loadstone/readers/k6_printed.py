"""Figures as k6 prints them (lib: k6-summary): ``1m3.5s``, ``624.15µs``, ``1.1 MB/s``, ``99.52%``."""

import re
from decimal import Decimal

KEY = r"(?:avg|min|med|max|count|p\([0-9.]{1,20}\))"

_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?"
_UNITS_NS = {"h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "µs": 1000, "μs": 1000, "us": 1000, "ns": 1}
_TIME = r"(?:[0-9]{1,9}h)?(?:[0-9]{1,9}m)?" + _NUMBER + r"(?:ms|µs|μs|us|ns|s)"
_BYTES = _NUMBER + r" [kMGTPEZY]?B"

SHARE = rf"{_NUMBER}%"

# One printed figure, without the /s of a rate.
VALUE = rf"(?:{_BYTES}|{_TIME}|{SHARE}|-?{_NUMBER}(?:e[+-]?[0-9]{{1,2}})?)"

_PART = re.compile(rf"({_NUMBER})(h|ms|µs|μs|us|ns|m|s)")


def value_of(text: str) -> tuple[float, str]:
    """The value of a text that matches `VALUE`, with ``/s`` or without, and its unit as `Figure` has them."""
    figure, per_second = text.removesuffix("/s"), text.endswith("/s")
    value, unit = _value(figure)
    return float(value), (f"{unit or 1}/s" if per_second else unit)


def _value(figure: str) -> tuple[Decimal, str]:
    if figure.endswith("%"):
        return Decimal(figure[:-1]) / 100, "share"
    if figure.endswith("B"):
        number, _, unit = figure.partition(" ")
        return Decimal(number) * 1000 ** "BkMGTPEZY".index(unit[0]), "bytes"
    if figure.endswith("s"):
        return Decimal(sum(Decimal(part[1]) * _UNITS_NS[part[2]] for part in _PART.finditer(figure))), "ns"
    return Decimal(figure), ""
