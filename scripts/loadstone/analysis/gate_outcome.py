"""Options of the gate, a finding per figure, and the outcome as text and as JSON."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loadstone import config
from loadstone.analysis import by_key
from loadstone.archive.durable import replace
from loadstone.config import GATE_FILE
from loadstone.errors import LoadstoneError
from loadstone.percentiles import ERRORS
from loadstone.text import counted, listed, percent, rate_text, rounded

CampaignKey = tuple[str, str, str]

WORSE, NO_WORSE, INCONCLUSIVE = "worse", "no worse", "inconclusive"
MISSING_RUNS, MISSING_REFERENCE = "runs", "reference"

_MAX_LINES = 20  # per verdict


@dataclass(frozen=True)
class Options:
    """Section `gate` of the configuration: the allowed `ratio` and `error_fraction`, the `runs` required, and so on.

    `reference` is ``previous``, ``best of last N`` or a timestamp, `candidate` ``newest`` or a timestamp. `margin` is
    the smallest step between two levels of earlier campaigns.
    """

    reference: str
    candidate: str
    statistics: tuple[str, ...]
    ratio: float
    error_fraction: float
    runs: int
    cannot_tell: str
    overrides: tuple[Mapping[str, Any], ...]
    margin: float
    confidence: float

    @classmethod
    def from_config(cls, declared: Mapping[str, Any], margin: float = 0.05, confidence: float = 0.95) -> "Options":
        """From the checked configuration: its `gate`, and two of its `analysis`."""
        options = dict(declared)
        options["error_fraction"] = config.share(options["error_fraction"])
        options |= {name: tuple(options[name]) for name in ("statistics", "overrides")}
        return cls(**options, margin=margin, confidence=confidence)

    @property
    def n_references(self) -> int:
        """The number of earlier campaigns that a cell is compared with."""
        return int(self.reference.rpartition(" ")[2]) if self.reference.startswith("best of last ") else 1

    def allowed(self, cell: Mapping[str, Any], statistic: str) -> float:
        """The allowed change of a figure, on the scale of comparison; the last override that matches applies."""
        limits = {"ratio": self.ratio, ERRORS: self.error_fraction}
        for override in self.overrides:
            if all(cell[name] == override.get(name, cell[name]) for name in ("app", "variant")):
                limits |= {name: config.share(override[name]) for name in limits if name in override}
        return limits[ERRORS] if statistic == ERRORS else math.log(limits["ratio"])


@dataclass(frozen=True)
class Difference:
    """A setting in which an earlier campaign differs from the candidate."""

    setting: str
    before: str
    here: str

    def text(self) -> str:
        """``replicas: 1 before, 4 here``."""
        return f"{self.setting}: {self.before} before, {self.here} here"


@dataclass(frozen=True)
class Nearest:
    """An earlier campaign that is no reference for a figure, and why: all settings in which it differs."""

    host: str
    timestamp: str
    differs: tuple[Difference, ...]

    def text(self) -> str:
        """The timestamp, with the differences."""
        return f"{self.timestamp} ({', '.join(each.text() for each in self.differs)})"


@dataclass(frozen=True)
class Finding:
    """The verdict on one figure of the candidate; `why` says why it is inconclusive.

    Latencies are in ns; `change`, its interval and `allowed` are ratios. Of ``error_fraction`` all are shares. `low`
    and `high` are one-sided bounds: a figure is worse if `low` is above `allowed`, no worse if `high` is below it.
    `missing` is ``runs`` if the candidate has no valid ones, ``reference`` if no earlier campaign has the figure; then
    `nearest` are the earlier campaigns that differ least. With
    `at_least` the percentile falls among requests that timed out: `value`, `change` and `low` are lower limits, and
    there is no `high`. With `reference_at_least` that of the reference does: `change` and `high` are upper limits.
    `unit` is that of `rate`, requests/s or users. `days_unknown`: there are too few earlier campaigns to estimate the
    variance between campaigns, so only the allowed change accounts for it.
    """

    app: str
    host: str
    candidate: str
    variant: str
    rate: float
    statistic: str
    verdict: str
    why: str | None = None
    missing: str | None = None
    reference: str | None = None
    value: float | None = None
    reference_value: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    allowed: float | None = None
    p_worse: float | None = None
    at_least: bool = False
    reference_at_least: bool = False
    unit: str = "requests/s"
    days_unknown: bool = False
    nearest: tuple[Nearest, ...] = ()

    @property
    def reason(self) -> str:
        """`why`, with what differs in the nearest earlier campaigns."""
        nearest = f"; nearest: {listed(each.text() for each in self.nearest)}" if self.nearest else ""
        return f"{self.why}{nearest}"

    @property
    def campaign(self) -> CampaignKey:
        """The candidate's key."""
        return self.app, self.host, self.candidate

    def text(self) -> str:
        """One line: the figure, its reference, the change with its interval, and what is allowed."""
        what = f"{self.app}/{self.host}: {self.variant} at {rate_text(self.rate)} {self.unit}, {self.statistic}"
        if self.value is None or self.reference_value is None or self.change is None or self.allowed is None:
            return f"{what}: {self.reason}"
        if self.statistic == ERRORS:
            points = rounded(100 * abs(self.change))
            change = f"{points} percentage points"
            if points != "0":
                change += " less" if self.change < 0 else " more"
            values = f"{percent(self.value)} instead of {percent(self.reference_value)}"
            return f"{what}: {values} in {self.reference}, {change} ({self._interval(100)})"
        sides = (self.at_least, self.value), (self.reference_at_least, self.reference_value)
        value, reference_value = (
            f"{'at least ' if is_limit else ''}{rounded(latency_ns / 1e6, 4)} ms" for is_limit, latency_ns in sides
        )
        limit = "at least " if self.at_least else "at most " if self.reference_at_least else ""
        change = f"{limit}{rounded(self.change)} times ({self._interval()})"
        if limit:
            change += f": {self.why}"
        return f"{what}: {value} instead of {reference_value} in {self.reference}, {change}"

    def _interval(self, scale: float = 1) -> str:
        """The interval, and what is allowed."""
        allowed = scale * (self.allowed or 0)
        low, high = (None if bound is None else _unlike(scale * bound, allowed) for bound in (self.low, self.high))
        interval = f"[{low}, {high}]" if low and high else f"at least {low}" if low else f"at most {high}"
        return f"{interval}; allowed {rounded(allowed)}"


def failed_text(share: float) -> str:
    """Says that latencies are not those of successful requests, since such a share failed."""
    return f"failed, so latencies {'are those of failures' if share == 1 else 'include failures'}"


def _unlike(value: float, allowed: float) -> str:
    """A bound with enough digits to distinguish it from the allowed change."""
    texts = [rounded(value, digits) for digits in range(3, 10)]
    return next((text for text in texts if text != rounded(allowed)), texts[0])


@dataclass(frozen=True)
class GateOutcome:
    """All findings on the judged `campaigns`; `incomplete` ones are newer and were not judged. `warnings` are texts."""

    findings: Sequence[Finding]
    options: Options
    campaigns: Sequence[CampaignKey] = ()
    incomplete: Sequence[CampaignKey] = ()
    warnings: Sequence[str] = ()

    @property
    def outcome(self) -> str:
        verdicts = {finding.verdict for finding in self.findings}
        if WORSE in verdicts:
            return WORSE
        return NO_WORSE if verdicts == {NO_WORSE} else INCONCLUSIVE

    @property
    def fails(self) -> bool:
        """Whether the command fails."""
        return self.outcome == WORSE or (self.outcome == INCONCLUSIVE and self.options.cannot_tell == "fail")

    def lines(self) -> Iterator[str]:
        """For the log: campaigns, warnings, worse and inconclusive figures, and the number of other figures."""
        counts = Counter(finding.verdict for finding in self.findings)
        by_verdict = ", ".join(f"{counts[verdict]} {verdict}" for verdict in (WORSE, NO_WORSE, INCONCLUSIVE))
        figures = counted(len(self.findings), "figure")
        yield f"gate: {self.outcome}. {figures} against {self.options.reference}: {by_verdict}"
        yield from (f"  judged: {'/'.join(key)}" for key in self.campaigns)
        yield from (f"  newer, but not judged since it is not complete: {'/'.join(key)}" for key in self.incomplete)
        yield from (f"  warning: {text}" for text in self.warnings)
        if unknown := sum(each.days_unknown and each.verdict != INCONCLUSIVE for each in self.findings):
            yield (
                f"  note: {counted(unknown, 'figure')} with too few earlier campaigns to estimate how much campaigns "
                "vary; see methods.html"
            )
        inconclusive = [each for each in self.findings if each.verdict == INCONCLUSIVE]
        yield from _limited(INCONCLUSIVE, self.without_reference())
        yield from _limited(WORSE, [each.text() for each in self.findings if each.verdict == WORSE])
        absent = self._grouped([each for each in inconclusive if each.missing == MISSING_RUNS])
        compared = [each for each in inconclusive if each.value is not None]
        other = self._grouped([each for each in inconclusive if each.value is None and each.missing is None])
        yield from _limited(INCONCLUSIVE, [*absent, *(each.text() for each in compared), *other])
        if counts[NO_WORSE]:
            yield f"  {NO_WORSE}: {counted(counts[NO_WORSE], 'figure')}, see {GATE_FILE}"
        if self.outcome == INCONCLUSIVE:
            how = "fails" if self.fails else "passes"
            yield f"  No figure is worse, but not every figure is shown to be no worse; that {how} here"
            yield "  (gate.cannot_tell in config/config.yaml)."
            if any(not (each.at_least or each.reference_at_least) for each in compared):
                yield "  More runs per campaign would give narrower intervals."

    def without_reference(self) -> Iterator[str]:
        """A line per campaign on figures that no earlier one has; it names their variants where others have one."""
        unmatched = [each for each in self.findings if each.missing == MISSING_REFERENCE]
        for (campaign, why), group in by_key(unmatched, lambda each: (each.campaign, each.reason)).items():
            missing = {each.missing for each in self.findings if each.campaign == campaign}
            if missing <= {MISSING_REFERENCE, MISSING_RUNS}:
                yield f"{'/'.join(campaign)}, {counted(len(group), 'figure')}: {why}"
            else:
                variants = by_key(group, lambda each: each.variant)
                named = "; ".join(f"{variant} {_at_rates(own)}" for variant, own in variants.items())
                yield f"{'/'.join(campaign)}: {named}: {why}"

    def _grouped(self, findings: Sequence[Finding]) -> Iterator[str]:
        """A line per variant and reason."""
        groups = by_key(findings, lambda each: (each.campaign, each.variant, each.why))
        for ((app, host, _), variant, why), group in groups.items():
            names = [name for name in self.options.statistics if name in {each.statistic for each in group}]
            statistics = f", {listed(names)}" if 0 < len(names) < len(self.options.statistics) else ""
            where = f"{variant} {_at_rates(group)}" if group[0].rate else variant  # rate 0: a campaign without any run
            yield f"{app}/{host}: {where}{statistics}: {why}"

    def write(self, reports: Path) -> None:
        """Write all of it to `GATE_FILE`. Raises LoadstoneError."""
        options = asdict(self.options) | {"overrides": [dict(each) for each in self.options.overrides]}
        content = {
            "outcome": self.outcome,
            "fails": self.fails,
            "options": options,
            "campaigns": ["/".join(key) for key in self.campaigns],
            "warnings": list(self.warnings),
            "figures": [asdict(finding) for finding in self.findings],
        }
        try:
            reports.mkdir(parents=True, exist_ok=True)
            replace(reports / GATE_FILE, json.dumps(content, indent=1, allow_nan=False).encode())
        except OSError as error:
            raise LoadstoneError(f"{reports / GATE_FILE} cannot be written: {error.strerror or error}") from None


def _at_rates(findings: Iterable[Finding]) -> str:
    by_unit = by_key(sorted(findings, key=lambda each: (each.unit, each.rate)), lambda each: each.unit)
    texts = [f"{listed(dict.fromkeys(rate_text(each.rate) for each in own))} {unit}" for unit, own in by_unit.items()]
    return f"at {listed(texts)}"


def _limited(verdict: str, texts: Iterable[str]) -> Iterator[str]:
    """The first of these lines, and the number of the others."""
    lines = list(texts)
    yield from (f"  {verdict}: {text}" for text in lines[:_MAX_LINES])
    if len(lines) > _MAX_LINES:
        yield f"  {verdict}: {len(lines) - _MAX_LINES} more, see {GATE_FILE}"
