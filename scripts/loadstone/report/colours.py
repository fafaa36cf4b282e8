"""The variants' colours on a light and on a dark page: the same hue, light enough to be visible."""

import re

_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_FALLBACK = "#767676"
_DARK_PAPER = "#14171a"
_CONTRAST = 4.0  # WCAG 2.2 asks 3:1 of graphics; a thin line needs somewhat more


def on_light(colour: str) -> str:
    """The colour itself; a grey if it is not ``#rrggbb``."""
    return colour if _HEX.fullmatch(colour) else _FALLBACK


def on_dark(colour: str) -> str:
    """The colour, mixed with white until it stands out from a dark page (black becomes a light grey)."""
    red, green, blue = _channels(on_light(colour))
    for step in range(21):
        mixed = [round(channel + (255 - channel) * step / 20) for channel in (red, green, blue)]
        candidate = "#{:02x}{:02x}{:02x}".format(*mixed)
        if contrast(candidate, _DARK_PAPER) >= _CONTRAST:
            return candidate
    return "#ffffff"


def light_dark(colour: str) -> str:
    """Both as one CSS value: ``light-dark(...)``."""
    return f"light-dark({on_light(colour)},{on_dark(colour)})"


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2, "contrast ratio" and "relative luminance")."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    linear = [
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
        for share in (channel / 255 for channel in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
