"""Reasons for a verdict, a missing figure or a warning: codes with values. Their texts are written only here.

Functions of `analysis` return a `Reason`. Tables have it as a struct in `reasons` and as text in another column; pages
read the struct and write the text with the labels of variants.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from loadstone.text import ms

EVIDENCE_DIFFERS = "evidence_differs"
PROTOCOLS_DIFFER = "protocols_differ"
NO_FIGURE = "no_figure"
NOT_REPORTED = "not_reported"
REPORTS_NOT_AVERAGED = "reports_not_averaged"
TOO_FEW_REQUESTS = "too_few_requests"  # value: number of requests, needed: the number needed
TIMEOUTS = "timeouts"  # value: number of requests that timed out
INTERVAL_TIMES_OUT = "interval_times_out"
SAMPLE_SIZE_UNKNOWN = "sample_size_unknown"
ZERO_LATENCY = "zero_latency"
ZERO_IN_OTHER_RUNS = "zero_in_other_runs"
IDENTICAL_RUNS = "identical_runs"
NO_FAILURES = "no_failures"
ONLY_FAILURES = "only_failures"
ONE_RUN = "one_run"  # value: the share by which runs are assumed to differ (0: as in other cells), needed: runs needed
FEW_RUNS = "few_runs"  # value: number of runs of both variants, needed: the number needed of each
RUNS_VARY = "runs_vary"
MULTIPLE_COMPARISONS = "multiple_comparisons"
BELOW_RESOLUTION = "below_resolution"  # value: the step of the clock, in ns
AT_LEAST = "at_least"  # value: the least ratio
AT_MOST = "at_most"  # value: the greatest ratio
NEGATIVE = "negative"  # variant: the one above, other: the one below
NOT_ADDITIVE = "not_additive"  # value: ns more (or less) than other adds to variant
BEYOND_KNEE = "beyond_knee"

_QUOTED = re.compile("“((?:[^”]|””)*)”")

Naming = Callable[[str], str]


def quoted(name: str) -> str:
    """A variant's canonical name as texts of tables have it, so that pages can replace it by the label.

    A closing quotation mark within the name is doubled.
    """
    return f"“{name.replace('”', '””')}”"


def renamed(text: str, name: Naming) -> str:
    """A text of tables in which each `quoted` name is replaced by the label of the variant."""
    return _QUOTED.sub(lambda found: name(found[1].replace("””", "”")), text)


@dataclass(frozen=True)
class Reason:
    """A code and its values: variants by canonical name, numbers as described above."""

    code: str
    variant: str | None = None
    other: str | None = None
    statistic: str | None = None
    value: float | None = None
    needed: float | None = None

    def text(self, name: Naming = quoted) -> str:
        """As a part of a sentence; `name` returns the label of a variant."""
        return _TEXTS[self.code](self, lambda variant: name(variant or ""))


def columns(reasons: Sequence[Reason], column: str = "why") -> dict[str, Any]:
    """The columns `reasons` and `column`, which has the same as text."""
    return {"reasons": [asdict(each) for each in reasons], column: text(reasons)}


def of_row(row: Mapping[str, Any]) -> list[Reason]:
    """The reasons in a row of a table."""
    return [Reason(**each) for each in row["reasons"] or ()]


def text(reasons: Iterable[Reason], name: Naming = quoted) -> str | None:
    """All reasons in one line; None without any."""
    return "; ".join(each.text(name) for each in reasons) or None


def _one_run(reason: Reason, name: Callable[[str | None], str]) -> str:
    whose = f" of {name(reason.variant)}" if reason.variant else ""
    found = f"one run{whose}: the spread between runs is unknown"
    if reason.value is None:
        return f"{found}; at least {reason.needed or 2:,.0f} runs are needed"
    needed = f"about {reason.needed:,.0f}" if reason.needed else "more than 1,000"
    return f"{found}; {needed} runs are needed if they differ {assumed_spread(reason)}"


def assumed_spread(reason: Reason) -> str:
    """Says by how much runs are assumed to differ if there is only one."""
    if not reason.value:
        return "as those of other cells here do"
    return f"by {100 * reason.value:g} % (one standard deviation)"


def _not_additive(reason: Reason, name: Callable[[str | None], str]) -> str:
    if reason.value is None:
        return "not additive"
    more = "more" if reason.value > 0 else "less"
    return f"not additive: {ms(abs(reason.value))} {more} than {name(reason.other)} adds to {name(reason.variant)}"


def _times(ratio: float | None) -> str:
    """Three digits, thousands separated: ``13,100 times``."""
    return f"{float(f'{ratio:.3g}'):,.15g} times"


_TEXTS: Mapping[str, Callable[[Reason, Callable[[str | None], str]], str]] = {
    EVIDENCE_DIFFERS: lambda _, __: "some runs have every request, others only the tool's report",
    PROTOCOLS_DIFFER: lambda _, __: (
        "requests were sent over different protocols, which only a comparison with allow: [protocols] compares"
    ),
    NO_FIGURE: lambda reason, name: f"{name(reason.variant)} has no such figure",
    NOT_REPORTED: lambda reason, name: f"the reports of {name(reason.variant)} do not have this figure",
    REPORTS_NOT_AVERAGED: lambda _, __: "percentiles of several reports are never averaged",
    TOO_FEW_REQUESTS: lambda reason, name: (
        f"too few requests: {reason.statistic} needs {reason.needed:,.0f}, {name(reason.variant)} has "
        f"{reason.value:,.0f}"
    ),
    TIMEOUTS: lambda reason, name: (
        f"{reason.value:,.0f} requests of {name(reason.variant)} timed out, so only a lower bound is known"
    ),
    INTERVAL_TIMES_OUT: lambda reason, name: (
        f"in other runs like those of {name(reason.variant)} {reason.statistic} may reach the timeout, so it has no "
        "interval"
    ),
    SAMPLE_SIZE_UNKNOWN: lambda _, __: "the reports do not say how many requests the error fractions are based on",
    ZERO_LATENCY: lambda _, __: "a latency of 0 has no ratio",
    ZERO_IN_OTHER_RUNS: lambda reason, _: f"in other runs like these {reason.statistic} may be 0, which has no ratio",
    IDENTICAL_RUNS: lambda _, __: "the runs agree to the last reported digit, so the spread between runs is unknown",
    NO_FAILURES: lambda _, __: "no request failed on either side",
    ONLY_FAILURES: lambda _, __: "every request failed on both sides",
    ONE_RUN: _one_run,
    FEW_RUNS: lambda reason, _: (
        f"{reason.value:,.0f} runs of both variants are too few for a verdict, since so few may be alike by chance; "
        f"at least {reason.needed:,.0f} of each are needed"
    ),
    RUNS_VARY: lambda _, __: "the runs vary too much",
    MULTIPLE_COMPARISONS: lambda _, __: "significant by itself, but not after correction for multiple comparisons",
    BELOW_RESOLUTION: lambda reason, _: (
        f"the shift is below the clock's resolution of {(reason.value or 0) / 1e6:g} ms"
    ),
    AT_LEAST: lambda reason, _: f"at least {_times(reason.value)} as long",
    AT_MOST: lambda reason, _: f"at most {_times(reason.value)} as long",
    NEGATIVE: lambda reason, name: (
        f"negative overhead: {name(reason.variant)} is faster than {name(reason.other)}, on which it is built"
    ),
    NOT_ADDITIVE: _not_additive,
    BEYOND_KNEE: lambda reason, name: (
        f"{name(reason.variant)} is beyond its saturation point: its latency grows for as long as the attack lasts"
    ),
}
