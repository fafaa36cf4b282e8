"""k6's end-of-test text, as it stands in a terminal: with the progress lines around it, in colours or not.

Two layouts are read: that of k6 before 1.0 (and ``--summary-mode=legacy``), one list of metrics below the checks by
group, and that since 1.0, in which titles (``TOTAL RESULTS``, ``SCENARIO: x``, ``GROUP: y``) part several lists.
A figure's section is then such a title with the groups behind it (``SCENARIO: x::y``); of the whole run it is empty.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.readers.base import Figure, Problems, Report
from loadstone.readers.k6_execution import Execution
from loadstone.readers.k6_figures import CHECK, THRESHOLDS, check_metric, summary
from loadstone.readers.k6_printed import KEY, SHARE, VALUE, value_of
from loadstone.readers.stream import read_lines

_COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_LONGEST_LINE = 10_000
_MOST_FIGURES = 100_000

_METRIC = re.compile(r" *(?:([✓✗]) )? *(\S.*?) ?\.{3,}: (.*)")
_TITLE = re.compile(r"( *)(?:█|↳ GROUP:) (\S.*?) *")
_CHECK = re.compile(r" *([✓✗]) (\S.*?)")
_CHECK_COUNTS = re.compile(r" *↳ +([0-9]{1,3}%) — ✓ ([0-9]{1,18}) / ✗ ([0-9]{1,18})")
_THRESHOLD = re.compile(rf" *([✓✗]) '(.+)' ({KEY}|rate|value)=(.*)")

_TREND = re.compile(rf"(?:{KEY}={VALUE}(?: +|$))+")
_TREND_PART = re.compile(rf"({KEY})=({VALUE})(?= |$)")
_GAUGE = re.compile(rf"({VALUE}) +min=({VALUE}) +max=({VALUE})")
_RATE = re.compile(rf"({SHARE}) +(?:✓ ([0-9]{{1,18}}) +✗ ([0-9]{{1,18}})|([0-9]{{1,18}}) out of ([0-9]{{1,18}}))")
_COUNTER = re.compile(rf"({VALUE}) +({VALUE}/s)")

_TOTAL = "TOTAL RESULTS"
# The metrics that every run has and that stand near the end of each layout.
_NEAR_END = {False: "iterations", True: "data_sent"}


@dataclass
class _Text:
    """What has been found up to some line."""

    figures: list[Figure] = field(default_factory=list)
    execution: Execution = field(default_factory=Execution)
    titles: list[tuple[int, str]] = field(default_factory=list)  # that we are below, with their indents
    sectioned: bool = False
    metric: str = ""  # that submetrics and thresholds belong to
    check: str = ""
    trend: tuple[str, ...] = ()
    seen: dict[tuple[str, str, str], Figure] = field(default_factory=dict)
    totalled: bool = False
    repeated: bool = False  # another run begins: nothing of it is taken

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
        known = self.seen.get(key)
        # Groups may have checks of the same name, which k6 lists without them.
        self.repeated = self.repeated or (known not in (None, figure) and not figure.metric.startswith(CHECK))
        if not self.repeated and known != figure and len(self.figures) < _MOST_FIGURES:
            self.seen[key] = figure
            self.figures.append(figure)


def report(path: Path, problems: Problems) -> Report | None:
    """Every figure of the text with its printed form; ``said`` is what the lines around it tell.

    `said` may hold ``load_model`` (when all scenarios have the same), ``users`` (of a closed run of one scenario),
    ``iterations``, ``interrupted_iterations`` and ``duration_s``. Of a text without its end the figures are kept.
    """
    found = _Text()
    for number, line in _lines(path, problems):
        if not (_read_metric(found, line) or _read_title(found, line) or _read_result(found, line)):
            if _METRIC.fullmatch(line):
                problems.corrupt(number)
            else:
                found.execution.read(line)
        if found.repeated:
            break
    metrics = {figure.metric for figure in found.figures if not figure.section}
    if not found.figures and not found.execution.seen:
        if not problems.truncated:
            problems.damaged = problems.damaged or "it is no end-of-test text of k6"
        return None
    if not metrics:
        problems.truncated = problems.truncated or "it ends before the figures of the whole run"
    elif _NEAR_END[found.sectioned] not in metrics:
        problems.truncated = problems.truncated or "it ends within the figures of the whole run"
    if found.repeated:
        problems.damaged = problems.damaged or "it holds figures of more than one run"
    return Report(
        summary=summary(found.figures),
        figures=found.figures,
        phases=found.execution.phases(),
        said=found.execution.said(),
    )


def _lines(path: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, as they look: without colours, and without what a carriage return wrote over."""
    number = 0
    for buffer, end in read_lines(path, problems):
        for raw in bytes(buffer[: end - 1]).split(b"\n"):
            number += 1
            line = _COLOURS.sub("", raw[:_LONGEST_LINE].decode("utf-8", "replace").rstrip())
            yield number, line.rpartition("\r")[2].replace("\ufeff", "").rstrip()


def _read_metric(found: _Text, line: str) -> bool:
    match = _METRIC.fullmatch(line)
    if match is None:
        return False
    mark, name, rest = match.groups()
    figures = list(_figures(rest))
    if not figures:
        return False
    if name.startswith("{ ") and name.endswith(" }"):
        name = f"{found.metric.partition('{')[0]}{{{name[2:-2]}}}"
    else:
        found.metric = name
    # Before 1.0 all metrics are of the whole run, also behind a group's checks.
    section = found.section() if found.sectioned else ""
    for statistic, text in figures:
        found.add(section, name, statistic, text)
    if mark:
        found.put(Figure(THRESHOLDS, name, "thresholds", float(mark == "✓"), "", mark))
    if _TREND.fullmatch(rest):
        statistics = tuple(statistic for statistic, _ in figures)
        found.trend = found.trend or statistics
        return statistics == found.trend  # a line that was cut has fewer
    return True


def _figures(rest: str) -> Iterator[tuple[str, str]]:
    """What stands behind a metric's colon: each statistic with its text; nothing when it is in no known form."""
    rest = rest.strip()
    if _TREND.fullmatch(rest):
        for part in _TREND_PART.finditer(rest):
            yield part[1], part[2]
    elif match := _GAUGE.fullmatch(rest):
        yield from zip(("value", "min", "max"), match.groups(), strict=True)
    elif match := _RATE.fullmatch(rest):
        names = ("rate", "passes", "fails", "passes", "total")
        yield from ((name, text) for name, text in zip(names, match.groups(), strict=True) if text)
    elif match := _COUNTER.fullmatch(rest):
        yield from zip(("count", "rate"), match.groups(), strict=True)


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
    found.put(Figure(found.section(), found.check, "passed", float(match[1] == "✓"), "", match[1]))
    return True


def _read_threshold(found: _Text, line: str) -> bool:
    if match := _THRESHOLD.fullmatch(line):
        mark, expression, statistic, text = match.groups()
        found.put(Figure(THRESHOLDS, found.metric, expression, float(mark == "✓"), "", mark))
        if re.fullmatch(f"{VALUE}(?:/s)?", text):
            found.add(THRESHOLDS, found.metric, statistic, text)
        return True
    name = line.strip()
    if not name or line[:2] != "  ":
        return False
    found.metric = f"{found.metric.partition('{')[0]}{name}" if name.startswith("{") else name
    return True
