"""Numbers and times as people read them: a unit of latency for a page, three significant digits, shares in percent."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from loadstone.archive import Campaign, parse_timestamp
from loadstone.text import rate_text


@dataclass(frozen=True)
class Unit:
    """A unit of latency: its symbol, its name in words and its length."""

    symbol: str
    name: str
    length_ns: int

    def of(self, latency_ns: float | None) -> float | None:
        """A latency in this unit, to six significant digits (what a page's data holds); None stays None."""
        return None if latency_ns is None or math.isnan(latency_ns) else float(f"{latency_ns / self.length_ns:.6g}")


MILLISECONDS = Unit("ms", "milliseconds", 1_000_000)
MICROSECONDS = Unit("µs", "microseconds", 1_000)


def page_unit(medians_ns: Iterable[float | None]) -> Unit:
    """One unit for all latencies of a page: microseconds when most of its medians are below 0.1 ms."""
    known = sorted(median for median in medians_ns if median is not None)
    return MICROSECONDS if known and known[len(known) // 2] < 100_000 else MILLISECONDS


def significant(value: float | None, digits: int = 3) -> str:
    """Three significant digits, thousands separated, whole numbers never cut: ``0.462``, ``1,234``."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    value = float(f"{value:.{digits}g}") if abs(value) < 10**digits else round(value)
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def share(fraction: float | None) -> str:
    """A fraction in percent: ``0 %``, ``0.012 %``, ``100 %``. A share below one in a million is not called zero."""
    if fraction is None or math.isnan(fraction):
        return "–"
    if 0 < fraction < 1e-6:
        return "< 0.0001 %"
    if 0.9995 <= fraction < 1:
        # Rounding must not make it look complete.
        return f"{math.floor(fraction * 1e6) / 1e4:.4f}".rstrip("0") + " %"
    text = significant(fraction * 100)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def duration(seconds: float | None) -> str:
    """``90 s``, ``10 min``, ``1.5 h``."""
    if seconds is None:
        return "–"
    if seconds >= 3600:
        return f"{seconds / 3600:g} h"
    if seconds >= 120 and seconds % 60 == 0:
        return f"{seconds / 60:g} min"
    return f"{float(f'{seconds:.3g}'):g} s"


def listed(numbers: Iterable[int]) -> str:
    """Whole numbers with runs of neighbours joined: ``1–3, 7``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in spans)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 run``, ``1,350 runs``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def rate_name(rate: float) -> str:
    """A rate in requests/s as text and as file name: the shortest plain decimal (``"100"``, ``"0.5"``)."""
    return f"{rate:.9f}".rstrip("0").rstrip(".") or "0"


def joined(texts: Iterable[str | None]) -> str:
    """Texts as a list in one line, each once, in their order; empty ones are left out."""
    return ", ".join(dict.fromkeys(filter(None, texts)))


def span(values: Iterable[float | None]) -> str:
    """From the least to the greatest of some numbers: ``20 to 400``, ``3``, or nothing."""
    known = sorted({value for value in values if value is not None})
    return " to ".join(dict.fromkeys(map(rate_text, (*known[:1], *known[-1:]))))


def when(campaign: Campaign) -> str:
    """When a campaign was opened, as `moment` writes it."""
    return moment(campaign.timestamp)


def moment(timestamp: str) -> str:
    """``21 November 2026, 11:30 UTC+02:00``: as it was written; what is no time with an offset stays as it is."""
    instant = parse_timestamp(timestamp)
    return f"{instant.day} {instant:%B %Y, %H:%M} {_offset(instant)}" if instant else timestamp


def minute(timestamp: str) -> str:
    """The same in short, for tables: ``2026-11-21 11:30 UTC+02:00``."""
    instant = parse_timestamp(timestamp)
    return f"{instant:%Y-%m-%d %H:%M} {_offset(instant)}" if instant else timestamp


def _offset(instant: datetime) -> str:
    text = instant.isoformat()[-6:]
    return "UTC" if text == "+00:00" else f"UTC{text}"
