"""All findings of one gate: the outcome, what people are told, and the file for machines."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loadstone.analysis.gate_finding import INCONCLUSIVE, NO_WORSE, RUNS, WORSE, Finding
from loadstone.analysis.gate_finding import REFERENCE as MISSING_REFERENCE
from loadstone.analysis.gate_options import Options
from loadstone.archive.durable import replace
from loadstone.errors import LoadstoneError
from loadstone.report.navigation import GATE as FILE
from loadstone.text import listed, rate_text

_Key = tuple[str, str, str]
_SHOWN = 20


@dataclass(frozen=True)
class Judged:
    """`warnings` are texts."""

    findings: Sequence[Finding]
    options: Options
    campaigns: Sequence[_Key] = ()  # that were judged
    newer: Sequence[_Key] = ()  # that were not, for they are not complete
    warnings: Sequence[str] = ()

    @property
    def outcome(self) -> str:
        verdicts = {finding.verdict for finding in self.findings}
        if WORSE in verdicts:
            return WORSE
        return NO_WORSE if verdicts == {NO_WORSE} else INCONCLUSIVE

    @property
    def fails(self) -> bool:
        """Whether the command is to end with an error."""
        return self.outcome == WORSE or (self.outcome == INCONCLUSIVE and self.options.cannot_tell == "fail")

    def lines(self) -> Iterator[str]:
        """What people are told: what stands behind it, what got worse, what can't be told, the number of the rest."""
        counts = Counter(finding.verdict for finding in self.findings)
        named = ", ".join(f"{counts[verdict]} {verdict}" for verdict in (WORSE, NO_WORSE, INCONCLUSIVE))
        yield f"gate: {self.outcome}. {_figures(len(self.findings))} against {self.options.reference}: {named}"
        for text, keys in (("judged", self.campaigns), ("newer, and not judged since it is not complete", self.newer)):
            yield from (f"  {text}: {'/'.join(key)}" for key in keys)
        yield from (f"  warning: {text}" for text in self.warnings)
        if alone := sum(each.days_unknown and each.verdict != INCONCLUSIVE for each in self.findings):
            yield f"  note: of {_figures(alone)}, too few earlier campaigns tell how much days differ; see methods.html"
        untold = [each for each in self.findings if each.verdict == INCONCLUSIVE]
        yield from _shown(INCONCLUSIVE, self._unmatched([each for each in untold if each.missing == MISSING_REFERENCE]))
        yield from _shown(WORSE, [each.text() for each in self.findings if each.verdict == WORSE])
        absent = self._grouped([each for each in untold if each.missing == RUNS])
        apart = [each for each in untold if each.value is not None]
        other = self._grouped([each for each in untold if each.value is None and each.missing is None])
        yield from _shown(INCONCLUSIVE, [*absent, *(each.text() for each in apart), *other])
        if counts[NO_WORSE]:
            yield f"  {NO_WORSE}: {_figures(counts[NO_WORSE])}, see {FILE}"
        if self.outcome == INCONCLUSIVE:
            how = "fails" if self.fails else "passes"
            yield f"  Nothing got worse for certain, but not every figure is known to be no worse; that {how} here"
            yield "  (gate.cannot_tell in config/config.yaml)."
            if any(not (each.at_least or each.reference_at_least) for each in apart):
                yield "  With more runs of each campaign, intervals are narrower."

    def _unmatched(self, untold: Sequence[Finding]) -> Iterator[str]:
        """What is compared with nothing: a line per campaign."""
        for key, group in _by(untold, lambda each: (each.campaign, each.why)):
            campaign, why = key
            told = {each.missing for each in self.findings if each.campaign == campaign}
            if told <= {MISSING_REFERENCE, RUNS}:
                yield f"{'/'.join(campaign)}, {_figures(len(group))}: {why}"
            else:
                cells = _by(group, lambda each: each.variant)
                yield f"{'/'.join(campaign)}: {'; '.join(f'{name} {_at(of)}' for name, of in cells)}: {why}"

    def _grouped(self, untold: Sequence[Finding]) -> Iterator[str]:
        """A line for what can't be told of a variant for one reason."""
        for key, group in _by(untold, lambda each: (each.campaign, each.variant, each.why)):
            (app, host, _), variant, why = key
            names = [name for name in self.options.statistics if name in {each.statistic for each in group}]
            of = f", {listed(names)}" if 0 < len(names) < len(self.options.statistics) else ""
            where = f"{variant} {_at(group)}" if group[0].rate else variant  # of a campaign without any run
            yield f"{app}/{host}: {where}{of}: {why}"

    def write(self, reports: Path) -> None:
        """Leave all of it for machines. Raises LoadstoneError."""
        options = asdict(self.options) | {"overrides": [dict(each) for each in self.options.overrides]}
        content = {"outcome": self.outcome, "fails": self.fails, "options": options}
        content["campaigns"] = ["/".join(key) for key in self.campaigns]
        content["warnings"] = list(self.warnings)
        content["figures"] = [asdict(finding) for finding in self.findings]
        try:
            reports.mkdir(parents=True, exist_ok=True)
            replace(reports / FILE, json.dumps(content, indent=1, allow_nan=False).encode())
        except OSError as error:
            raise LoadstoneError(f"{reports / FILE} cannot be written: {error.strerror or error}") from None


def _by(findings: Iterable[Finding], key: Callable[[Finding], Any]) -> list[tuple[Any, list[Finding]]]:
    """Findings that have something in common, in the order of the first of each."""
    found: dict[Any, list[Finding]] = {}
    for each in findings:
        found.setdefault(key(each), []).append(each)
    return list(found.items())


def _at(findings: Iterable[Finding]) -> str:
    of = _by(sorted(findings, key=lambda each: (each.unit, each.rate)), lambda each: each.unit)
    named = [f"{listed(dict.fromkeys(rate_text(each.rate) for each in own))} {unit}" for unit, own in of]
    return f"at {listed(named)}"


def _figures(count: int) -> str:
    return f"{count:,} figure{'' if count == 1 else 's'}"


def _shown(verdict: str, texts: Iterable[str]) -> Iterator[str]:
    found = list(texts)
    yield from (f"  {verdict}: {text}" for text in found[:_SHOWN])
    if len(found) > _SHOWN:
        yield f"  {verdict}: {len(found) - _SHOWN} more, see {FILE}"
