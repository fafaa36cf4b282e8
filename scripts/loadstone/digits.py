"""Figures as the texts in tables have them: three significant digits, never as a power of ten."""


def three(value: float) -> str:
    """Three digits, or all that stand before the point: ``0.462``, ``47.1``, ``4,009``."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def ms(time_ns: float) -> str:
    """A time (ns) in milliseconds: ``0.462 ms``, ``4,009 ms``."""
    return f"{three(time_ns / 1e6)} ms"
