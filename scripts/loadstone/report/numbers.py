"""Numbers, latencies and times as pages show them. Loads nothing heavy: every job of the site imports it.

A page has one unit of latency. Values have three significant digits, but latencies of a coarse clock (Artillery:
whole milliseconds) have none below its step. All are rounded once, from the exact figure, to the nearest number, and
halves to the even one; `loadstone.text` and `assets/dom.js` do the same.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_05UP, Context
from itertools import chain, combinations
from typing import Any

from loadstone.archive import Campaign, parse_timestamp, plan
from loadstone.config.variants import Style, Variants
from loadstone.percentiles import PERCENTILES
from loadstone.text import rate_text

Row = dict[str, Any]  # of a table, by the names of columns


@dataclass(frozen=True)
class Unit:
    """A unit of latency: its symbol, its name in words and its length."""

    symbol: str
    name: str
    length_ns: int

    def of(self, latency_ns: float | None) -> float | None:
        """A latency in this unit, to six significant digits (`rounded`); None stays None."""
        return None if latency_ns is None or math.isnan(latency_ns) else rounded(latency_ns / self.length_ns, 6)


def rounded(value: float | None, digits: int) -> float | None:
    """A number to so many significant digits, as a page's data holds it; None stays None.

    Whole numbers are never cut. `significant` shows it as it would show `value`: 1.2349996 is held as 1.23499, not as
    1.235, which a browser would round again, to 1.24.
    """
    if value is None:
        return None
    if 10 ** (digits - 1) <= abs(value) < math.inf:
        digits = len(str(int(abs(value)))) + 1
    text = f"{value:.{digits}g}"
    found = float(text)
    if (text[-1] == "5" or "e" in text) and text.partition("e")[0][-1] == "5" and _shown(found) != _shown(value):
        return float(Context(prec=digits, rounding=ROUND_05UP).create_decimal_from_float(value))
    return found


SECONDS = Unit("s", "seconds", 1_000_000_000)
MILLISECONDS = Unit("ms", "milliseconds", 1_000_000)
MICROSECONDS = Unit("µs", "microseconds", 1_000)


def page_unit(medians_ns: Iterable[float | None]) -> Unit:
    """One unit for all latencies of a page: microseconds when most of its medians are below 0.1 ms."""
    known = sorted(median for median in medians_ns if median is not None)
    return MICROSECONDS if known and known[len(known) // 2] < 100_000 else MILLISECONDS


def sentence_unit(latency_ns: float) -> Unit:
    """The unit of one latency in a sentence."""
    length = abs(latency_ns)
    return SECONDS if length >= 1e9 else MILLISECONDS if length >= 1e5 or not length else MICROSECONDS


def significant(value: float | None, digits: int = 3) -> str:
    """Three significant digits, thousands separated, whole numbers never cut: ``0.462``, ``1,234``, ``−5.10``."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    value = _shown(value, digits)
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}".replace("-", "−")


def _shown(value: float, digits: int = 3) -> float:
    """The number that `significant` shows."""
    return float(f"{value:.{digits}g}") if abs(value) < 10**digits else round(value)


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


MULTIPLE = 2  # ratios from here on are given as multiples


def interval(low: float, high: float, text: Callable[[float], str]) -> str:
    """An interval as pages write it: ``[0.14, 0.16]``."""
    return f"[{text(low)}, {text(high)}]"


def change_text(
    ratio: float | None, bounds: tuple[float, float] | None, *, as_multiple: bool = False
) -> tuple[str, str]:
    """A ratio as a change, and its interval in the same unit, empty without bounds.

    ``+25 %`` and ``[+20, +31]``; from `MULTIPLE` on, and with `as_multiple`, ``2.51×`` and ``[2.40, 2.62]``.
    """
    if ratio is None or math.isnan(ratio):
        return "–", ""
    if as_multiple or ratio >= MULTIPLE:
        return f"{significant(ratio)}×", interval(*bounds, significant) if bounds else ""
    ends = [100 * (each - 1) for each in (ratio, *(bounds or ()))]
    decimals = 0 if max(map(abs, ends)) >= 10 else 1

    def text(percent: float) -> str:
        return signed(f"{percent:,.{decimals}f}")

    return f"{text(ends[0])} %", interval(ends[1], ends[2], text) if bounds else ""


def points_text(shift: float | None, bounds: tuple[float, float] | None) -> tuple[str, str]:
    """A difference of shares in percentage points, and its interval: ``+1.5 pp`` and ``[+1.1, +1.9]``."""
    if shift is None:
        return "–", ""

    def text(fraction: float) -> str:
        return signed(significant(100 * fraction))

    return f"{text(shift)} pp", interval(*bounds, text) if bounds else ""


def signed(number: str) -> str:
    """A number with its sign: ``+5``, ``−5``; zero has none."""
    if not number.strip("-−0.,"):
        return number.lstrip("-−")
    return number.replace("-", "−") if number[0] in "-−" else f"+{number}"


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


def rate_name(rate: float) -> str:
    """A rate in requests/s as text and as file name: the shortest plain decimal (``"100"``, ``"0.5"``)."""
    return f"{rate:.9f}".rstrip("0").rstrip(".") or "0"


def joined(texts: Iterable[str | None]) -> str:
    """Texts as a list in one line, each once, in their order; without empty ones."""
    return ", ".join(dict.fromkeys(filter(None, texts)))


def span(values: Iterable[float | None], text: Callable[[float], str] = rate_text) -> str:
    """From the least to the greatest of some numbers: ``20 to 400``, ``3``, or nothing."""
    known = sorted({value for value in values if value is not None})
    return " to ".join(dict.fromkeys(map(text, (*known[:1], *known[-1:]))))


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


# --- latencies of a coarse clock --------------------------------------------------------------------------------------


COARSE_NS = 100_000  # steps from here on limit what may be concluded
_MEANS = ("mean_ns", "run_mean_ns", "ok_run_mean_ns", "all_raw_data_mean_ns", "all_raw_data_ok_mean_ns")


def resolution_text(resolution_ns: float | None) -> str:
    """``1 ms``, ``0.1 ms``, ``1 ns``; ``unknown`` where it is not known."""
    if not resolution_ns:
        return "unknown"
    return f"{resolution_ns:g} ns" if resolution_ns < 1000 else f"{resolution_ns / 1e6:g} ms"


def rounded_to_steps(rows: Iterable[Row]) -> list[Row]:
    """The same rows (of `cells` or `comparisons`); latencies in coarse steps are whole steps in them.

    An interval reaches to the steps around it, and to half a step at least on either side of its value's step.
    """
    return [_rounded_to_steps(row) if (row["resolution_ns"] or 0) >= COARSE_NS else row for row in rows]


def _rounded_to_steps(row: Row) -> Row:
    step = row["resolution_ns"]
    found = dict(row)
    for name in (*_MEANS, *(f"{part}{each}_ns" for each in PERCENTILES for part in ("", "ok_"))):
        if found.get(name) is not None:
            found[name] = round(found[name] / step) * step
    for name in PERCENTILES:
        value, low, high = (found.get(f"{name}{part}_ns") for part in ("", "_low", "_high"))
        if value is not None and low is not None and high is not None:
            found[f"{name}_low_ns"] = max(0.0, min(math.floor(low / step) * step, value - step / 2))
            found[f"{name}_high_ns"] = max(math.ceil(high / step) * step, value + step / 2)
    return found


def latency_text(latency_ns: float | None, unit: Unit, resolution_ns: float | None) -> str:
    """A latency in the page's unit for a table: whole steps where these are coarse, else three digits."""
    if latency_ns is not None and resolution_ns is not None and resolution_ns >= COARSE_NS:
        return in_steps(latency_ns, unit, resolution_ns)
    return significant(unit.of(latency_ns))


def spread_text(std_ns: float | None, unit: Unit, resolution_ns: float | None) -> str:
    """A standard deviation for a table; one of less than a coarse step may be none."""
    if std_ns is not None and resolution_ns and std_ns < resolution_ns and resolution_ns >= COARSE_NS:
        return f"less than {in_steps(resolution_ns, unit, resolution_ns)}"
    return f"± {latency_text(std_ns, unit, resolution_ns)}"


def in_steps(latency_ns: float, unit: Unit, resolution_ns: float) -> str:
    """A latency as a whole number of steps, with as many decimals as these need."""
    steps = round(latency_ns / resolution_ns)
    return f"{steps * resolution_ns / unit.length_ns:,.{_decimals(unit, resolution_ns)}f}".replace("-", "−")


def _decimals(unit: Unit, resolution_ns: float) -> int:
    return max(0, math.ceil(math.log10(unit.length_ns / resolution_ns)))


def coarse_step(runs: Iterable[Row], unit: Unit) -> list[float] | None:
    """The least step of these runs' latencies in the page's unit and its decimals, if all of them are coarse."""
    least_ns = min((run["resolution_ns"] or 0 for run in runs if run["evidence"] == "raw"), default=0)
    return [least_ns / unit.length_ns, _decimals(unit, least_ns)] if least_ns >= COARSE_NS else None


def indistinguishable(rows: Sequence[Row], columns: Sequence[str]) -> list[tuple[Row, Row, list[str]]]:
    """Pairs of rows of one load whose latencies come in coarse steps, and the columns that differ by at most a step."""
    found = []
    for one, other in combinations(rows, 2):
        step = max(one["resolution_ns"] or 0, other["resolution_ns"] or 0)
        if one["rate"] == other["rate"] and step >= COARSE_NS:
            known = [name for name in columns if one[name] is not None and other[name] is not None]
            names = [name for name in known if abs(one[name] - other[name]) <= step]
            found += [(one, other, names)] if names else []
    return found


# --- cells of tables --------------------------------------------------------------------------------------------------


SHOWN = 200  # problems and excluded runs listed one by one; beyond that their number is given


def incomplete(held: Row, *, has_failed: bool) -> str:
    """The state of an open campaign, from its row of ``page_campaigns.sql``.

    No command of this checkout collects it while its pages are made.
    """
    if held.get("planned") is None:
        return "incomplete: no completion time was recorded"
    if has_failed:
        return "incomplete: runs failed"
    return "interrupted" if held["planned_collected"] else "no run collected yet"


# What an interval on a chart is, where it is none of confidence; `of_runs`: it needs several runs.
RUN_MEANS = {"name": "± one standard deviation of run means", "of_runs": True}

LOAD_MODELS = {
    "open": "open: requests sent on a schedule",
    "closed": "closed: each user waits for each response",
    "serial": "serial: one request after another",
}


def distinct(styles: list[Style]) -> list[Style]:
    """The same styles; variants that share a label get their name too."""
    labels = [style.label for style in styles]
    return [
        replace(style, label=f"{style.label} ({style.name})") if labels.count(style.label) > 1 else style
        for style in styles
    ]


def styles_of(variants: Variants, campaigns: Iterable[Campaign], app: str, names: Collection[str]) -> list[Style]:
    """Styles of the variants `names`: in declared order, then as the newest campaigns planned them, then by name."""
    newest_first = sorted(campaigns, key=lambda campaign: (campaign.instant, campaign), reverse=True)
    all_declared = variants.declared.get(app, {}).keys() >= set(names)
    planned = [] if all_declared else chain.from_iterable(map(plan.declared_variants, newest_first))
    return distinct(variants.styles(app, names, planned))


def interval_text(cell: Row, name: str, unit: Unit) -> str:
    """The interval of one percentile as text, or why there is none."""
    if not cell["n_requests"]:
        return ""
    if not cell[f"{name}_estimable"]:
        return "too few requests"
    if cell[f"{name}_low_ns"] is None:
        return "one run" if cell["n_runs"] < 2 else _why_no_interval(cell, name)
    low, high = (cell[f"{name}_{end}_ns"] for end in ("low", "high"))
    return interval(low, high, lambda latency_ns: latency_text(latency_ns, unit, cell["resolution_ns"]))


def _why_no_interval(cell: Row, name: str) -> str:
    """Why several runs give no interval: it would reach the timeout, or the clock shows nothing but zeros."""
    if cell[f"{name}_ns"]:
        return "may time out" if cell["n_timeouts"] else "runs differ too much"
    return "latencies of 0" if 0 < (cell["resolution_ns"] or 0) < COARSE_NS else "too fast for the clock"
