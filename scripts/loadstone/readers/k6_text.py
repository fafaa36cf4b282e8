"""k6's end-of-test text as a terminal shows it: with the progress lines around it, in colours or not.

Two layouts are read: that of k6 before 1.0 (and ``--summary-mode=legacy``), one list of metrics below the checks by
group, and that since 1.0, in which titles (``TOTAL RESULTS``, ``SCENARIO: x``, ``GROUP: y``) part several lists.
A figure's section is then such a title followed by the groups (``SCENARIO: x::y``); of the whole run it is empty.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from loadstone.readers.base import Figure, Format, Phase, Problems, Report, bounded, duration_ns, number
from loadstone.readers.k6_summary import CHECK, THRESHOLDS, check_metric, outcome, summary
from loadstone.readers.stream import read_lines

# --- figures as k6 prints them: 1m3.5s, 624.15µs, 1.1 MB/s, 99.52% ----------------------------------------------------

_KEY = r"(?:avg|min|med|max|count|p\([0-9.]{1,20}\))"

_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?"
# At most what `duration_ns` knows: 292 years.
_TIME = (
    r"(?:[0-9]{1,6}h)?(?:[0-9]{1,6}m)?[0-9]{1,9}(?:[0-9]{0,3}(?:\.[0-9]{1,18})?(?:ms|µs|μs|us|ns)|(?:\.[0-9]{1,18})?s)"
)
_BYTES = _NUMBER + r" [kMGTPEZY]?B"

_SHARE = rf"{_NUMBER}%"

# One printed figure, without the /s of a rate.
_VALUE = rf"(?:{_BYTES}|{_TIME}|{_SHARE}|-?{_NUMBER}(?:e[+-]?[0-9]{{1,2}})?)"


def value_of(text: str) -> tuple[float, str]:
    """The value of a text that matches `_VALUE`, with ``/s`` or without, and its unit as `Figure` has them."""
    figure = text.removesuffix("/s")
    if figure.endswith("%"):
        value, unit = Fraction(figure[:-1]) / 100, "share"
    elif figure.endswith("B"):
        amount, _, prefix = figure.partition(" ")
        value, unit = Fraction(amount) * 1000 ** "BkMGTPEZY".index(prefix[0]), "bytes"
    elif (nanoseconds := duration_ns(figure)) is not None:
        value, unit = nanoseconds, "ns"
    else:
        value, unit = Fraction(figure), ""
    return float(value), unit if figure == text else f"{unit or 1}/s"


# --- the lines around them: scenarios before, their progress meanwhile ------------------------------------------------

_RUNNING = re.compile(
    r"running \(([0-9dhms.]{2,40})\), [0-9]{1,9}/[0-9]{1,9} VUs, "
    r"[0-9]{1,18} complete and [0-9]{1,18} interrupted iterations"
)

_SCENARIO_LINE = re.compile(r" +\* (\S.*?): ([0-9U].*) \(.*\)")
_AMOUNT = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_DECLARED = (
    ("open", re.compile(rf"(?P<rate>{_AMOUNT}) iterations/s for (?P<time>\S+)")),
    ("open", re.compile(rf"Up to {_AMOUNT} iterations/s for (?P<time>\S+) over [0-9]+ stages")),
    ("closed", re.compile(r"[0-9]+ iterations (?:for each of|shared among) (?P<users>[0-9]{1,9}) VUs")),
    ("closed", re.compile(r"(?P<users>[0-9]{1,9}) looping VUs for (?P<time>\S+)")),
    ("closed", re.compile(r"Up to [0-9]{1,9} looping VUs for (?P<time>\S+) over [0-9]+ stages")),
)

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
class _Execution:
    """What the lines around the figures say, read one by one."""

    _scenarios: dict[str, _Scenario] = field(default_factory=dict)
    _duration_s: float | None = None

    def read(self, line: str) -> None:
        """Read one line; most say nothing."""
        if match := _RUNNING.fullmatch(line):
            self._duration_s = _seconds(match[1]) or self._duration_s
        elif match := _SCENARIO_LINE.fullmatch(line):
            self._read_declaration(match[1], match[2])
        elif match := _PROGRESS.fullmatch(line):
            self._read_progress(match)

    def _scenario(self, name: str) -> _Scenario:
        if len(self._scenarios) >= _MOST_SCENARIOS:
            return self._scenarios.get(name) or _Scenario()
        return self._scenarios.setdefault(name, _Scenario())

    def _read_declaration(self, name: str, text: str) -> None:
        scenario = self._scenario(name)
        scenario.model, scenario.users, scenario.phase = "unknown", None, None
        for model, form in _DECLARED:
            if match := form.fullmatch(text):
                declared = match.groupdict("")
                amount = declared.get("rate") or declared.get("users")
                scenario.model = model
                scenario.users = int(declared["users"]) if "users" in declared else None
                scenario.phase = Phase(name, _seconds(declared.get("time", "")), float(amount) if amount else None)

    def _read_progress(self, match: re.Match[str]) -> None:
        name, now, most, rest = match.groups()
        if _PROGRESS_OPEN.fullmatch(rest):
            self._scenario(name).model = "open"
        elif _PROGRESS_CLOSED.fullmatch(rest):
            scenario = self._scenario(name)
            scenario.model = "closed"
            if most is None:
                scenario.users = int(now)

    def phases(self) -> list[Phase]:
        """A phase per scenario. k6 may run them at once or one after the other: the lines do not say which."""
        return [scenario.phase or Phase(name) for name, scenario in self._scenarios.items()]

    def facts(self) -> dict[str, str]:
        """What `report` says of it."""
        found: dict[str, str] = {}
        models = {scenario.model for scenario in self._scenarios.values()}
        if len(models) == 1 and models <= {"open", "closed"}:
            found["load_model"] = models.pop()
        if len(self._scenarios) == 1 and (users := next(iter(self._scenarios.values())).users) is not None:
            found["users"] = str(users)
        if self._duration_s is not None:
            found["duration_s"] = f"{self._duration_s:g}"
        return found


def _seconds(text: str) -> float | None:
    """A duration as k6 prints it around its progress (``0d00h02m57.6s``, ``1m30s``)."""
    days, _, rest = text.rpartition("d")
    nanoseconds, whole_days = duration_ns(rest), number(days or "0")
    return None if nanoseconds is None or whole_days is None else float(whole_days * 86400 + nanoseconds / 10**9)


# --- the text ---------------------------------------------------------------------------------------------------------

_COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_LONGEST_LINE = 10_000
_MOST_FIGURES = 100_000

_METRIC = re.compile(r" *(?:([✓✗]) )? *(\S.*?) ?\.{3,}: (.*)")
_TITLE = re.compile(r"( *)(?:█|↳ GROUP:) (\S.*?) *")
_CHECK = re.compile(r" *([✓✗]) (\S.*?)")
_CHECK_COUNTS = re.compile(r" *↳ +([0-9]{1,3}%) — ✓ ([0-9]{1,18}) / ✗ ([0-9]{1,18})")
_THRESHOLD = re.compile(rf" *([✓✗]) '(.+)' ({_KEY}|rate|value)=(.*)")

_TREND = re.compile(rf"(?:{_KEY}={_VALUE}(?: +|$))+")
_TREND_PART = re.compile(rf"({_KEY})=({_VALUE})(?= |$)")
_COUNT = "([0-9]{1,18})"
_FORMS = (
    (("value", "min", "max"), re.compile(rf"({_VALUE}) +min=({_VALUE}) +max=({_VALUE})")),
    (("rate", "passes", "fails"), re.compile(rf"({_SHARE}) +✓ {_COUNT} +✗ {_COUNT}")),
    (("rate", "passes", "total"), re.compile(rf"({_SHARE}) +{_COUNT} out of {_COUNT}")),
    (("count", "rate"), re.compile(rf"({_VALUE}) +({_VALUE}/s)")),
)

_TOTAL = "TOTAL RESULTS"
# The metrics that every run has and that stand near the end of each layout.
_NEAR_END = {False: "iterations", True: "data_sent"}


@dataclass
class _Text:
    """What has been found up to some line."""

    figures: list[Figure] = field(default_factory=list)
    execution: _Execution = field(default_factory=_Execution)
    titles: list[tuple[int, str]] = field(default_factory=list)  # that we are below, with their indents
    sectioned: bool = False
    metric: str = ""  # that submetrics and thresholds belong to
    check: str = ""
    trend: tuple[str, ...] = ()
    known: dict[tuple[str, str, str], Figure] = field(default_factory=dict)
    totalled: bool = False
    repeated: bool = False  # another run begins: it is not read

    def section(self) -> str:
        """Where a metric or check belongs."""
        names = [name for _, name in self.titles]
        if names and names[0] == _TOTAL:
            return ""
        return "::".join(names) if self.sectioned else "".join(f"::{name}" for name in names)

    def add(self, section: str, metric: str, statistic: str, text: str) -> None:
        value, unit = value_of(text)
        if unit == "1/s" and metric.partition("{")[0] == "http_reqs":
            unit = "requests/s"
        self.put(Figure(section, metric, statistic, value, unit, text))

    def put(self, figure: Figure) -> None:
        key = figure.section, figure.metric, figure.statistic
        known = self.known.get(key)
        # Groups may have checks of the same name, which k6 lists without them.
        self.repeated = self.repeated or (known not in (None, figure) and not figure.metric.startswith(CHECK))
        if not self.repeated and known != figure and len(self.figures) <= _MOST_FIGURES:
            self.known[key] = figure
            self.figures.append(figure)


def report(path: Path, problems: Problems) -> Report | None:
    """Every figure of the text with its printed form; ``facts`` is what the lines around it say.

    `facts` may hold ``load_model`` (when all scenarios have the same), ``users`` (of a closed run of one scenario)
    and ``duration_s``. Of a text without its end the figures are kept.
    """
    found = _Text()
    for position, line in _lines(path, problems):
        if not (_read_metric(found, line) or _read_title(found, line) or _read_result(found, line)):
            if _METRIC.fullmatch(line):
                problems.corrupt(position)
            else:
                found.execution.read(line)
        if found.repeated:
            break
    metrics = {figure.metric for figure in found.figures if not figure.section}
    phases, facts = found.execution.phases(), found.execution.facts()
    if not (found.figures or phases or facts):
        if not problems.truncated:
            problems.damaged = problems.damaged or "it is not k6's end-of-test text"
        return None
    if not metrics:
        problems.truncated = problems.truncated or "it ends before the figures of the whole run"
    elif _NEAR_END[found.sectioned] not in metrics:
        problems.truncated = problems.truncated or "it ends within the figures of the whole run"
    if found.repeated:
        problems.damaged = problems.damaged or "it holds figures of more than one run"
    return Report(
        summary=summary(found.figures),
        figures=bounded(found.figures, _MOST_FIGURES, problems),
        phases=phases,
        facts=facts,
    )


def _lines(path: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, as they look: without colours, and without what a carriage return wrote over."""
    position = 0
    for buffer, end in read_lines(path, problems):
        for raw in bytes(buffer[: end - 1]).split(b"\n"):
            position += 1
            line = _COLOURS.sub("", raw[:_LONGEST_LINE].decode("utf-8", "replace").rstrip())
            yield position, line.rpartition("\r")[2].replace("\ufeff", "").rstrip()


def _read_metric(found: _Text, line: str) -> bool:
    match = _METRIC.fullmatch(line)
    if match is None:
        return False
    mark, name, rest = match.groups()
    figures = _figures(rest)
    if not figures:
        return False
    if name.startswith("{ ") and name.endswith(" }"):
        name = f"{found.metric.partition('{')[0]}{{{name[2:-2]}}}"
    else:
        found.metric = name
    # Before 1.0 all metrics are of the whole run, also after a group's checks.
    section = found.section() if found.sectioned else ""
    for statistic, text in figures:
        found.add(section, name, statistic, text)
    if mark:
        found.put(outcome(THRESHOLDS, name, "thresholds", mark))
    if _TREND.fullmatch(rest):
        statistics = tuple(statistic for statistic, _ in figures)
        found.trend = found.trend or statistics
        return statistics == found.trend  # a line that was cut has fewer
    return True


def _figures(rest: str) -> list[tuple[str, str]]:
    """What follows a metric's colon: each statistic with its text; nothing when its form is unknown."""
    rest = rest.strip()
    if _TREND.fullmatch(rest):
        return [(part[1], part[2]) for part in _TREND_PART.finditer(rest)]
    known = ((names, form.fullmatch(rest)) for names, form in _FORMS)
    return next((list(zip(names, match.groups(), strict=True)) for names, match in known if match), [])


def _read_title(found: _Text, line: str) -> bool:
    match = _TITLE.fullmatch(line)
    if match is None:
        return False
    indent, name = len(match[1]), match[2]
    while found.titles and found.titles[-1][0] >= indent:
        found.titles.pop()
    if name in (THRESHOLDS, _TOTAL):
        found.sectioned = True
        found.repeated = found.repeated or found.totalled
        found.totalled = name == _TOTAL or found.totalled
    found.titles.append((indent, name.removeprefix("GROUP: ")))
    found.metric = found.check = ""
    found.trend = ()
    return True


def _read_result(found: _Text, line: str) -> bool:
    """Checks and thresholds."""
    if found.titles and found.titles[0][1] == THRESHOLDS:
        return _read_threshold(found, line)
    if match := _CHECK_COUNTS.fullmatch(line):
        if found.check:
            for statistic, text in zip(("rate", "passes", "fails"), match.groups(), strict=True):
                found.add(found.section(), found.check, statistic, text)
        return True
    if (match := _CHECK.fullmatch(line)) is None or _METRIC.fullmatch(line):
        return False
    found.check = check_metric(match[2])
    found.put(outcome(found.section(), found.check, "passed", match[1]))
    return True


def _read_threshold(found: _Text, line: str) -> bool:
    if match := _THRESHOLD.fullmatch(line):
        mark, expression, statistic, text = match.groups()
        found.put(outcome(THRESHOLDS, found.metric, expression, mark))
        if re.fullmatch(f"{_VALUE}(?:/s)?", text):
            found.add(THRESHOLDS, found.metric, statistic, text)
        return True
    name = line.strip()
    if not name or line[:2] != "  ":
        return False
    found.metric = f"{found.metric.partition('{')[0]}{name}" if name.startswith("{") else name
    return True


FORMATS = {
    "k6.txt": Format(
        "k6",
        report=report,
        resolution_ns=1,
        rounding=0.01,  # two decimals whatever the unit: 1.23 s may be 1.2349 s
        contains=rb"(?:http_req_duration|iteration_duration)\.*\s*:",
        phases=True,
    ),
}
