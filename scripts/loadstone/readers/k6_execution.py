"""What k6 prints around its end-of-test text: the scenarios before, their progress meanwhile."""

import re
from dataclasses import dataclass, field

from loadstone.readers.base import Phase

_TIME = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?([0-9]{1,9}(?:\.[0-9]{1,9})?)s")
_SECONDS = (86400, 3600, 60, 1)

_RUNNING = re.compile(
    r"running \(([0-9dhms.]{2,40})\), [0-9]{1,9}/[0-9]{1,9} VUs, "
    r"([0-9]{1,18}) complete and ([0-9]{1,18}) interrupted iterations"
)

_SCENARIO = re.compile(r" +\* (\S.*?): ([0-9U].*) \(.*\)")
_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_OPEN = re.compile(rf"{_NUMBER} iterations/s for (\S+)")
_OPEN_RAMP = re.compile(rf"Up to {_NUMBER} iterations/s for (\S+) over [0-9]+ stages")
_CLOSED = re.compile(
    r"[0-9]+ iterations (?:for each of|shared among) ([0-9]{1,9}) VUs|([0-9]{1,9}) looping VUs for (\S+)"
)
_CLOSED_RAMP = re.compile(r"Up to ([0-9]{1,9}) looping VUs for (\S+) over [0-9]+ stages")

_PROGRESS = re.compile(r"(\S.{0,200}?) +(?:[✓✗•↓] )?\[[^\]]{0,100}\] +([0-9]{1,9})(?:/([0-9]{1,9}))? VUs +(\S.*)")
_PROGRESS_OPEN = re.compile(r"\S+ +[0-9.]+ iters/s")
_PROGRESS_CLOSED = re.compile(r"\S+(?: +[0-9]+/[0-9]+ (?:iters, [0-9]+ per VU|shared iters))?")

_MOST_SCENARIOS = 1000


@dataclass
class _Scenario:
    model: str = ""
    users: int | None = None
    phase: Phase | None = None


@dataclass
class Execution:
    """Fed with lines by `read`; `seen` tells whether any of them was k6's."""

    _scenarios: dict[str, _Scenario] = field(default_factory=dict)
    _running: tuple[float, str, str] | None = None

    @property
    def seen(self) -> bool:
        return bool(self._scenarios) or self._running is not None

    def read(self, line: str) -> None:
        """Take from a line what it tells; most tell nothing."""
        if match := _RUNNING.fullmatch(line):
            duration_s = _seconds(match[1])
            if duration_s is not None:
                self._running = duration_s, match[2], match[3]
        elif match := _SCENARIO.fullmatch(line):
            self._declared(match[1], match[2])
        elif match := _PROGRESS.fullmatch(line):
            self._progress(match)

    def _of(self, name: str) -> _Scenario:
        if len(self._scenarios) >= _MOST_SCENARIOS:
            return self._scenarios.get(name) or _Scenario()
        return self._scenarios.setdefault(name, _Scenario())

    def _declared(self, name: str, text: str) -> None:
        if match := _OPEN.fullmatch(text):
            self._set(name, "open", None, Phase(name, _seconds(match[2]), float(match[1])))
        elif match := _OPEN_RAMP.fullmatch(text):
            self._set(name, "open", None, Phase(name, _seconds(match[2])))
        elif match := _CLOSED.fullmatch(text):
            users = int(match[1] or match[2])
            self._set(name, "closed", users, Phase(name, _seconds(match[3] or ""), float(users)))
        elif match := _CLOSED_RAMP.fullmatch(text):
            self._set(name, "closed", None, Phase(name, _seconds(match[2])))
        else:
            self._set(name, "unknown", None, None)

    def _set(self, name: str, model: str, users: int | None, phase: Phase | None) -> None:
        scenario = self._of(name)
        scenario.model, scenario.users, scenario.phase = model, users, phase

    def _progress(self, match: re.Match[str]) -> None:
        name, now, most, rest = match.groups()
        if _PROGRESS_OPEN.fullmatch(rest):
            self._of(name).model = "open"
        elif _PROGRESS_CLOSED.fullmatch(rest):
            scenario = self._of(name)
            scenario.model = "closed"
            if most is None:
                scenario.users = int(now)

    def phases(self) -> list[Phase]:
        """A phase per scenario. k6 may run them at once or one after the other: this does not tell which."""
        return [scenario.phase or Phase(name) for name, scenario in self._scenarios.items()]

    def said(self) -> dict[str, str]:
        """What `loadstone.readers.k6_text.report` says of it."""
        found: dict[str, str] = {}
        models = {scenario.model for scenario in self._scenarios.values()}
        if len(models) == 1 and models <= {"open", "closed"}:
            found["load_model"] = models.pop()
        if len(self._scenarios) == 1 and (users := next(iter(self._scenarios.values())).users) is not None:
            found["users"] = str(users)
        if self._running is not None:
            duration_s, complete, interrupted = self._running
            found |= {"duration_s": f"{duration_s:g}", "iterations": complete, "interrupted_iterations": interrupted}
        return found


def _seconds(text: str) -> float | None:
    """A duration as k6 prints it around its progress (``0d00h02m57.6s``, ``1m30s``)."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    return round(sum(float(part or 0) * seconds for part, seconds in zip(match.groups(), _SECONDS, strict=True)), 9)
