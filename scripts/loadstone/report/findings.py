"""Findings: each variant's difference from the baseline at a load, its interval and its verdict.

In: rows of `effects` and `knees` of one scope (a campaign or a comparison). Out: a `Finding` per row, the sentence and
the small plot that lists of campaigns show, and the matrix of verdicts at the top of a page.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loadstone import percentiles
from loadstone.analysis import reasons
from loadstone.analysis.caveats import CAVEATS
from loadstone.analysis.effects import EQUIVALENT, FASTER, FEWER, INCONCLUSIVE, MORE, SLOWER
from loadstone.config.variants import Style
from loadstone.percentiles import ERRORS, LATENCIES, SHOWN_PERCENTILES, label
from loadstone.report.numbers import (
    MULTIPLE,
    Row,
    Unit,
    change_text,
    interval,
    interval_text,
    latency_text,
    points_text,
    sentence_unit,
    share,
)
from loadstone.text import at, counted, load_unit, rate_text

# Verdict -> its mark, of the shapes that charts use too.
SYMBOLS = {SLOWER: "▲", FASTER: "▼", MORE: "▲", FEWER: "▼", EQUIVALENT: "■", INCONCLUSIVE: "○"}
_HEADLINE_STATISTICS = (
    "p50",
    *(name for name in LATENCIES if name != "p50"),
)  # a headline is about the first of them that most variants and loads have
_DIFFERENT = (SLOWER, FASTER)
# Reason -> why verdicts are inconclusive, in the key of the matrix. All others mean too little evidence.
_WHY_INCONCLUSIVE = {
    reasons.ONE_RUN: "only one run",
    reasons.FEW_RUNS: "too few runs",
    reasons.RUNS_VARY: "runs vary too much",
    reasons.IDENTICAL_RUNS: "identical runs",
    reasons.TOO_FEW_REQUESTS: "too few requests",
    reasons.BELOW_RESOLUTION: "below the clock's resolution",
    reasons.EVIDENCE_DIFFERS: "some runs have only reports",
    reasons.PROTOCOLS_DIFFER: "different protocols",
    reasons.TIMEOUTS: "timeouts",
    reasons.INTERVAL_TIMES_OUT: "timeouts",
    reasons.ZERO_LATENCY: "latencies of 0",
    reasons.ZERO_IN_OTHER_RUNS: "latencies of 0",
}
_REQUESTS = ("requests", "requests and reports")  # evidence other than reports of tools
_PLOT_WIDTH = 160  # width of a small plot, in pixels
_PLOT_EDGE = 5  # pixels left free at either end of it
_MIN_SPAN = math.log(1.1)  # of a small plot's axis on either side of the baseline, at least
_MAX_DUMBBELLS = 12  # rows of a dumbbell plot, at most


@dataclass(frozen=True)
class Finding:
    """One row of `effects`, with labels of variants; `resolution_ns` is that of the campaign's latencies.

    `as_multiple`: its ratio is given as a multiple (``1.80×``), because a ratio next to it is. `load_reason`: why the
    headline is about its load. `largest_of`: the number of differences in the same statistic at the same load, of which
    this is the largest; 0 if it is not. `n_larger`: how many of them are larger, but inconclusive.
    """

    row: Row
    variant: str
    baseline: str
    resolution_ns: float | None = None
    as_multiple: bool = False
    load_reason: str = "this load"
    largest_of: int = 0
    n_larger: int = 0

    @property
    def verdict(self) -> str:
        return self.row["verdict"] or INCONCLUSIVE

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.verdict]

    @property
    def is_of_failures(self) -> bool:
        return bool(self.row["statistic"] == ERRORS)

    @property
    def is_lower_bound(self) -> bool:
        """Whether one of the two latencies is among requests that timed out."""
        return any(each.code == reasons.TIMEOUTS for each in reasons.of_row(self.row))

    @property
    def is_reported(self) -> bool:
        """Whether the two figures are as reported by the tool."""
        return self.row["evidence"] not in _REQUESTS

    @property
    def has_caveats(self) -> bool:
        """Whether a caveat marks what is concluded (`caveats.CONFOUNDING`)."""
        return bool(self.caveats)

    @property
    def caveats(self) -> dict[str, str]:
        """Headings of the caveats that mark what is concluded, by kind."""
        concluded = self.verdict != INCONCLUSIVE
        return {kind: CAVEATS[kind].heading for kind in self.row.get("caveats") or () if concluded}

    @property
    def is_one_of_many(self) -> bool:
        """Whether the difference is significant by itself, but not among so many comparisons."""
        return any(each.code == reasons.MULTIPLE_COMPARISONS for each in reasons.of_row(self.row))

    @property
    def ratio(self) -> float | None:
        """Relative to the baseline."""
        ratio: float | None = self.row["ratio"]
        return ratio

    @property
    def shift(self) -> float | None:
        """The difference from the baseline, in ns or as a share."""
        shift: float | None = self.row["shift"]
        return shift

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds of the ratio's interval."""
        low, high = self.row["ratio_low"], self.row["ratio_high"]
        return None if low is None or high is None else (low, high)

    @property
    def change(self) -> tuple[str, str]:
        """The difference and its interval (empty without one): ``+25 %`` and ``[+20, +31]``."""
        if not self.is_of_failures:
            return change_text(self.ratio, self.bounds, as_multiple=self.as_multiple)
        low, high = self.row["shift_low"], self.row["shift_high"]
        return points_text(self.shift, None if low is None or high is None else (low, high))

    @property
    def sentence(self) -> str:
        """What was found, with number, unit and interval."""
        what = label(self.row["statistic"]).lower()
        if self.is_reported:
            what = f"reported {what}"
        where = self.at([self.row["rate"]])
        before = self._latency(self.row["baseline_value"])
        change, bounds = self.change
        if self.verdict in _DIFFERENT and self._is_shift_unsure:  # verdicts are those of ratios
            return f"{self.variant} is {self.verdict} than {self.baseline} {where}: {what} {change} {bounds}."
        if self.verdict == SLOWER and self.shift is not None:
            return f"{self.variant} adds {self._shift_text()} to the {what} of {self.baseline}, {before}, {where}."
        if self.verdict == FASTER and self.shift is not None:
            return f"{self.variant} is {self._shift_text()} faster than {self.baseline} ({what} {before}) {where}."
        if self.verdict == EQUIVALENT:
            within = f"within {share(self.row['margin'])}"
            return f"{self.variant} is equivalent to {self.baseline} {where}: {what} {change} {bounds}, {within}."
        size = f"{change} {bounds}".strip() if self.ratio is not None else "unknown"
        relative = f"{self.variant} relative to {self.baseline} {where}: {what} {size}"
        return f"{relative}{self._why_inconclusive()}: inconclusive."

    @property
    def rank_text(self) -> str:
        """``The largest of 4 differences at this load.``, or how many are larger; empty for the only one."""
        if self.n_larger:
            are = "is" if self.n_larger == 1 else "are"
            return f"{counted(self.n_larger, 'larger difference')} at {self.load_reason} {are} inconclusive."
        return f"The largest of {self.largest_of} differences at {self.load_reason}." if self.largest_of > 1 else ""

    @property
    def is_certain(self) -> bool:
        """Whether the title of a chart may state it: a verdict with an interval, and no caveat that marks it."""
        has_interval = self.verdict != INCONCLUSIVE and bool(self.change[1])
        return has_interval and not (self.is_reported or self.is_lower_bound or self.has_caveats)

    @property
    def title(self) -> str:
        """What was found at this load in a few words."""
        where, change = self.at([self.row["rate"]]), self.change[0]
        if self.is_of_failures:
            more = f"{self.verdict.capitalize()} requests fail with {self.variant} than with {self.baseline}"
            return f"{more} {where}: {change}"
        if self.verdict in _DIFFERENT and self.shift and not self._is_shift_unsure:
            what, size = label(self.row["statistic"]).lower(), self._latency(abs(self.shift))
            does = f"adds {size} to the {what}" if self.verdict == SLOWER else f"lowers the {what} by {size}"
            return f"{self.variant} {does} {where}"
        return f"{self.relation} {where}"

    @property
    def relation(self) -> str:
        """``Envoy is slower than Direct``."""
        return f"{self.variant} is {self.verdict} {'to' if self.verdict == EQUIVALENT else 'than'} {self.baseline}"

    def at(self, rates: Sequence[float], of: Iterable[float] = ()) -> str:
        """``at 100 and 300 requests/s``; `of` are the loads of this variant."""
        return at(rates, [*rates, *of], load_unit([self.row["load_model"]]))

    @property
    def _is_shift_unsure(self) -> bool:
        """Whether the interval of the absolute difference includes zero."""
        low, high = self.row["shift_low"], self.row["shift_high"]
        return low is not None and high is not None and bool(low <= 0 <= high)

    def _latency(self, latency_ns: float) -> str:
        unit = sentence_unit(latency_ns)
        return f"{latency_text(latency_ns, unit, self.resolution_ns)} {unit.symbol}"

    def _shift_text(self) -> str:
        """The absolute difference with its interval."""
        unit = sentence_unit(self.shift or 0.0)
        ends = [self.row[name] for name in ("shift_low", "shift_high")]
        text = self._latency(abs(self.shift or 0.0))
        if None in ends:
            return text
        low, high = sorted(-end for end in ends) if self.verdict == FASTER else ends
        return f"{text} {interval(low, high, lambda end: latency_text(end, unit, self.resolution_ns))}"

    def _why_inconclusive(self) -> str:
        """``, one run each`` or ``, too few runs`` where that is why, or that there is no spread."""
        codes = {each.code for each in reasons.of_row(self.row)}
        if reasons.ONE_RUN in codes and self.row["n_runs"] == 1:
            return ", one run each"
        if reasons.IDENTICAL_RUNS in codes:
            return ", but the runs are identical, so there is no interval"
        return ", too few runs" if reasons.FEW_RUNS in codes else ""


def findings(
    rows: Iterable[Row], labels: Mapping[str, str], resolution_ns: float | None = None
) -> dict[tuple[str, str, float], Finding]:
    """By variant, statistic and load; of several ways of measuring the first with a verdict.

    Ratios of one statistic are given in one notation: all as multiples if one of them is.
    """
    shown = [row for row in rows if row["variant"] in labels]
    multiples = {row["statistic"] for row in shown if (row["ratio"] or 0) >= MULTIPLE}
    found: dict[tuple[str, str, float], Finding] = {}
    for row in shown:
        key = row["variant"], row["statistic"], row["rate"]
        if key not in found or not found[key].row["verdict"]:
            baseline = labels.get(row["baseline"], row["baseline"])
            as_multiple = row["statistic"] in multiples
            found[key] = Finding(row, labels[row["variant"]], baseline, resolution_ns, as_multiple)
    return found


# --- headline: one load ----------------------------------------------------------------------------------------------


def at_one_load(
    rows: Sequence[Row],
    knees: Iterable[Row],
    labels: Mapping[str, str],
    resolution_ns: float | None = None,
    statistic: str | None = None,
) -> list[Finding]:
    """Each variant's difference in a statistic, by default the leading one, at the load that the headline is about.

    That is the greatest load with figures of most variants at which none is saturated or may be, because there latency
    describes the variant and not how long the attack took; before others, that with the most verdicts that no caveat
    marks.
    """
    known = [row for row in rows if row["value"] is not None and row["baseline_value"] is not None]
    known = [row for row in known if row["statistic"] != ERRORS and row["variant"] in labels]
    statistic = statistic or _leading(known)
    found = findings((row for row in known if row["statistic"] == statistic), labels, resolution_ns)
    if not found:
        return []
    saturated, near = ({rate for row in knees for rate in row.get(name) or ()} for name in ("beyond", "near"))
    variants = Counter(rate for _, _, rate in found)
    clear = Counter(
        rate for (_, _, rate), each in found.items() if each.verdict != INCONCLUSIVE and not each.has_caveats
    )
    best = max(variants, key=lambda rate: (rate not in saturated, rate not in near, variants[rate], clear[rate], rate))
    higher = {row["rate"] for row in rows if row["rate"] > best}
    load_reason = "this load"
    if higher and best not in saturated | near and higher <= saturated | near:
        load_reason = "the highest load clearly below saturation"
    elif all(clear[best] > clear[rate] for rate in variants if rate != best) and len(variants) > 1:
        load_reason = "the load with the most verdicts without caveats"
    own = {variant: finding for (variant, _, rate), finding in found.items() if rate == best}
    return [replace(own[name], load_reason=load_reason) for name in labels if name in own]


def _leading(rows: Iterable[Row]) -> str | None:
    """The statistic that the headline is about: the first of which most variants and their baselines have figures."""
    known = Counter(row["statistic"] for row in rows if row["value"] is not None and row["baseline_value"] is not None)
    of_most = max((known[name] for name in _HEADLINE_STATISTICS), default=0) / 2
    return next((name for name in _HEADLINE_STATISTICS if known[name] > of_most), None)


def headline(found: Sequence[Finding]) -> Finding | None:
    """The largest difference that is certain, else what is equivalent, else the largest of all."""

    def weight(finding: Finding) -> tuple[bool, bool, float]:
        size = abs(math.log(finding.ratio)) if finding.ratio else 0.0
        return finding.verdict in _DIFFERENT, finding.verdict == EQUIVALENT, size

    if (largest := max(found, key=weight, default=None)) is None:
        return None
    if largest.verdict not in _DIFFERENT:
        return largest
    same = [each for each in found if each.baseline == largest.baseline]
    larger = [each for each in same if abs(each.shift or 0.0) > abs(largest.shift or 0.0)]
    if all(each.verdict == INCONCLUSIVE for each in larger):
        return replace(largest, largest_of=0 if larger else len(same), n_larger=len(larger))
    return largest


def titles(
    rows: Sequence[Row], knees: Sequence[Row], labels: Mapping[str, str], resolution_ns: float | None
) -> dict[str, dict[str, str]]:
    """Titles of charts that state what was found, by chart and statistic; none where nothing is certain."""
    latency, effects = {}, {}
    for statistic in LATENCIES:
        largest = headline(at_one_load(rows, knees, labels, resolution_ns, statistic))
        if largest and largest.is_certain:
            own = [row for row in rows if row["variant"] == largest.row["variant"] and row["statistic"] == statistic]
            same = [each for each in findings(own, labels).values() if each.verdict == largest.verdict]
            latency[statistic] = largest.title
            where = largest.at([each.row["rate"] for each in same if each.is_certain], (row["rate"] for row in own))
            effects[statistic] = f"{largest.relation} {where}"
    of_failures = findings((row for row in rows if row["statistic"] == ERRORS), labels).values()
    failures = [each for each in of_failures if each.is_certain and each.verdict in (MORE, FEWER)]
    worst = max(failures, key=lambda each: abs(each.shift or 0.0), default=None)
    of_all = dict.fromkeys(LATENCIES, worst.title) if worst else {}
    return {"latency": latency, "effects": effects, "failed": of_all, "effects-errors": of_all}


def plots(found: Sequence[Finding], styles: Sequence[Style]) -> list[dict[str, Any]]:
    """Rows of a small plot: each variant's ratio and interval on one logarithmic axis, which has the baseline on it.

    Positions are in pixels of a drawing as wide as `_PLOT_WIDTH`, that of the baseline as `zero`; None without a ratio.
    """
    ends = [end for each in found for end in (each.ratio, *(each.bounds or ())) if end and math.isfinite(end)]
    logarithms = list(map(math.log, ends))
    low, high = min([-_MIN_SPAN, *logarithms]), max([_MIN_SPAN, *logarithms])
    places = {style.label: place for place, style in enumerate(styles)}

    def pixel(ratio: float) -> float:
        at = min(high, math.log(ratio)) if ratio > 0 else low
        return round(_PLOT_EDGE + (_PLOT_WIDTH - 2 * _PLOT_EDGE) * (at - low) / (high - low), 1)

    return [
        {
            "finding": each,
            "place": places[each.variant],
            "style": styles[places[each.variant]],
            "zero": pixel(1),
            "at": pixel(each.ratio) if each.ratio else None,
            "from": pixel(each.bounds[0]) if each.bounds else None,
            "to": pixel(each.bounds[1]) if each.bounds else None,
        }
        for each in found
    ]


def caveats(found: Iterable[Finding]) -> dict[str, str]:
    """Headings of the caveats that mark these differences, by kind."""
    return {kind: heading for each in found for kind, heading in each.caveats.items()}


def lettered_caveats(found: Iterable[Finding], letters: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The same with the letter that marks the differences (`conclusions.letters`), in the order of letters."""
    headings = caveats(found)
    return {kind: {"letter": letters[kind], "heading": headings[kind]} for kind in letters if kind in headings}


def letters_of_caveats(found: Finding | None, letters: Mapping[str, str]) -> str:
    """``a,c``: the letters (`conclusions.letters`) of its caveats; empty for None."""
    return ",".join(sorted(letters[kind] for kind in found.caveats)) if found else ""


def mark(found: Finding, letters: Mapping[str, str]) -> str:
    """The letters of its caveats, or a † if it is only significant by itself."""
    return letters_of_caveats(found, letters) or ("†" if found.is_one_of_many else "")


def dumbbells(rows: Sequence[Row], knees: Iterable[Row], labels: Mapping[str, str]) -> list[Finding]:
    """Differences to show as two dots each: those of latencies if none of them has an interval or a verdict, else none.

    That is so with one run each, or with figures as reported by the tool alone. Of more than `_MAX_DUMBBELLS` variants
    and loads, only those at the headline's load.
    """
    known = [each for each in findings(rows, labels).values() if not each.is_of_failures and each.ratio is not None]
    if any(each.bounds or each.verdict != INCONCLUSIVE for each in known):
        return []
    known = [each for each in known if not each.is_lower_bound]
    if max(Counter(each.row["statistic"] for each in known).values(), default=0) <= _MAX_DUMBBELLS:
        return known
    at = {each.row["rate"] for each in at_one_load(rows, knees, labels)}
    return [each for each in known if each.row["rate"] in at]


# --- matrix of verdicts ----------------------------------------------------------------------------------------------


def matrix(
    rows: Sequence[Row],
    styles: Sequence[Style],
    unit: Unit,
    resolution_ns: float | None = None,
    *,
    cells: Iterable[Row] = (),
    letters: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Verdicts by variant (rows) and load (columns): of the leading statistic, and of all others for the page's script.

    ``caveats`` has by kind the letter that marks the cells that the caveat concerns (of `conclusions.letters`), and its
    heading.

    ``cells`` has by statistic a list per variant with a cell per load: verdict, size, interval, marks, value; failures
    without a verdict have only their share, as size;
    None where there is neither a value nor a difference.
    ``baseline_cells`` has a list per baseline: value, interval (of the page's `cells`). Empty without effects.
    """
    labels = {style.name: style.label for style in styles}
    found = findings(rows, labels, resolution_ns)
    if not found:
        return {}
    rates = sorted({rate for _, _, rate in found})
    variants = [name for name in labels if any(variant == name for variant, _, _ in found)]
    failed = any(each.row["value"] or each.row["baseline_value"] for each in found.values() if each.is_of_failures)
    statistics = [name for name in percentiles.STATISTICS if any(each == name for _, each, _ in found)]
    statistics = [name for name in statistics if name != ERRORS or failed]
    baselines = dict.fromkeys(each.row["baseline"] for each in found.values())
    own = {(row["variant"], row["rate"]): row for row in cells}
    at = {(each.row["baseline"], statistic, rate): each for (_, statistic, rate), each in found.items()}
    letters = letters or {}

    def value(variant: str, statistic: str, rate: float) -> str:
        each = found.get((variant, statistic, rate))
        text = _value_text(each.row["value"], each, unit) if each else ""
        tail = value(variant, "p99", rate) if statistic == "p50" else ""
        return f"{text}, p99\u00a0{tail}" if text and tail else text

    def cell(variant: str, statistic: str, rate: float) -> list[Any] | None:
        each = found.get((variant, statistic, rate))
        text = value(variant, statistic, rate)
        if each and each.is_of_failures and each.row["verdict"] is None:
            return ["", text, "", "", ""] if text else None
        shown = each and (text or each.ratio is not None)
        return [each.verdict, *each.change, mark(each, letters), text] if each and shown else None

    def baseline_cell(baseline: str, statistic: str, rate: float) -> list[str]:
        each, row = at.get((baseline, statistic, rate)), own.get((baseline, rate))
        text = _value_text(each.row["baseline_value"], each, unit) if each else ""
        return [text or "–", interval_text(row, statistic, unit) if row and statistic in SHOWN_PERCENTILES else ""]

    return {
        "rates": [rate_text(rate) for rate in rates],
        "variants": variants,
        "baselines": [labels.get(name, name) for name in baselines],
        "shown": _leading(each.row for each in found.values()) or statistics[0],
        "cells": {name: [[cell(each, name, rate) for rate in rates] for each in variants] for name in statistics},
        "baseline_names": list(baselines),
        "baseline_cells": {
            name: [[baseline_cell(each, name, rate) for rate in rates] for each in baselines] for name in statistics
        },
        "has_intervals": any(each.bounds for each in found.values() if not each.is_of_failures),
        "failures_have_intervals": any(each.change[1] for each in found.values() if each.is_of_failures),
        "failures_differ": any(each.verdict in (MORE, FEWER) for each in found.values()),
        "caveats": lettered_caveats(found.values(), letters),
        "why_inconclusive": {name: _inconclusive_reasons(found.values(), name) for name in statistics},
        "one_of_many": max((each.row["n_compared"] or 0 for each in found.values() if each.is_one_of_many), default=0),
    }


def _inconclusive_reasons(found: Iterable[Finding], statistic: str) -> str:
    """Why figures of a statistic are inconclusive, the most frequent reason first; not those that have a †."""
    counts: Counter[str] = Counter()
    for each in found:
        is_shown = each.row["statistic"] == statistic and each.ratio is not None and not each.is_one_of_many
        is_shown = is_shown and not (each.is_of_failures and each.row["verdict"] is None)
        if is_shown and each.verdict == INCONCLUSIVE:
            texts = (_WHY_INCONCLUSIVE.get(reason.code) for reason in reasons.of_row(each.row))
            counts[next(filter(None, texts), "too little evidence")] += 1
    return ", ".join(text for text, _ in counts.most_common())


def _value_text(value: float | None, found: Finding, unit: Unit) -> str:
    """A latency in the page's unit or a share; empty without a figure."""
    if value is None:
        return ""
    return share(value) if found.is_of_failures else f"{latency_text(value, unit, found.resolution_ns)} {unit.symbol}"
