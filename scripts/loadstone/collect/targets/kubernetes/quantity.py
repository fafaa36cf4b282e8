"""Kubernetes quantities such as ``250m``, ``128Mi`` and ``1e3``, exactly."""

import re
from fractions import Fraction

_NUMBER = r"[+-]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})"
_QUANTITY = re.compile(rf"({_NUMBER})(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{{1,2}}))?", re.ASCII)
_THOUSANDS = {"n": -3, "u": -2, "m": -1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def parse_quantity(text: object) -> Fraction | None:
    """The number that a quantity stands for (cores, bytes); None when it is none.

    As in Kubernetes' ``resource.Quantity``: a decimal or binary suffix, or a decimal exponent. ``E`` alone is 10^18.
    """
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    number, suffix, exponent = Fraction(match[1]), match[2] or "", int(match[3] or 0)
    if suffix in _BINARY:
        return number * Fraction(1024) ** _BINARY[suffix]
    return number * Fraction(10) ** (3 * _THOUSANDS.get(suffix, 0) + exponent)
