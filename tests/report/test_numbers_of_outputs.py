"""Numbers of everything that people and programs take along, recomputed with numpy from the raw files alone.

Tables, charts and differences of any two series come from the pages' own scripts, in a browser.
"""

import csv
import functools
import io
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import duckdb
import numpy as np
import pytest
import zstandard
from loadstone import archive, config
from loadstone.analysis.comparison import compare
from loadstone.analysis.scope import Settings
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from loadstone.report.figures import build_summary
from loadstone.report.site_layout import slug
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from report.conftest import Watched
from report.followed import EARLY, LABELS, LATE, MS, Reader, Run, of_cell, read, run_lines, write_archive
from report.printed import Table, agrees, number
from support import rawfiles, site
from tables.tabling import Project

LEAST = 2  # numbers of each output
USERS, ONCE = "users", "once"  # hosts: closed load by k6; one run each
STATISTICS = {"mean": "Mean", "p50": "Median", "p90": "p90", "p99": "p99", "error_fraction": "Error fraction"}
NAMES = {"mean": "mean", "median": "p50", "p90": "p90", "p99": "p99", "error fraction": "error_fraction"}
VARIANTS = Variants({"demo": {name: {"label": label} for label, name in LABELS.items()}})
SETTINGS = Settings(order=tuple(LABELS.values()))
BOTH = Comparison("both", "Both", "demo", ("here",), (EARLY, LATE))
ROOT = Path(__file__).resolve().parents[2]
UNITS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
OUTPUTS = {
    "index.json",
    "gate.json",
    "JUnit",
    "github-action-benchmark",
    "Bencher",
    "OpenMetrics",
    "Markdown comment",
    "job summary",
    "annotations",
    "terminal",
    "table as CSV",
    "table as Markdown",
    "table as LaTeX",
    "chart as Vega-Lite",
    "chart as CSV",
    "dumbbell plot",
    "compare.html",
    "link preview",
    "PDF summary",
}


# --- the archive and its outputs -------------------------------------------------------------------------------------


def write_others(root: Path, seed: int) -> None:
    """A campaign of closed load in k6's raw format, and one with a single run of each variant."""
    generator = np.random.default_rng(seed + 1)
    about = {"testMode": "k6", "generator": {"name": "k6"}, "loadModel": "closed", "testOptions": {}, "runs": 3}
    for slower, variant in enumerate(("plain", "istio"), 1):
        files = {f"{run}.k6.json.zst": rawfiles.compress(k6_lines(generator, slower)) for run in (1, 2, 3)}
        rawfiles.write_cell(root, files, host=USERS, at=EARLY, rate="20", variant=variant, **about)
        lines = run_lines(generator, 100, slower, failing=0.15)
        report = rawfiles.vegeta("report", "-type=json", stdin=lines)
        files = {"1.results.json.zst": rawfiles.compress(lines), "1.summary.json": report}
        options = {"rate": "100", "duration": "5s", "timeout": "30s"}
        rawfiles.write_cell(root, files, host=ONCE, at=EARLY, variant=variant, testOptions=options, runs=1)


def k6_lines(generator: np.random.Generator, slower: float) -> bytes:
    """Raw lines of 100 requests of 20 users, some of which are answered with 503."""
    found = []
    for request, latency_ms in enumerate(4 * slower * generator.lognormal(0, 0.5, 100)):
        failed = generator.random() < 0.05
        tags = {"status": "503", "error_code": "1503"} if failed else {"status": "200"}
        tags |= {"method": "GET", "name": "http://127.0.0.1:1/", "scenario": "default", "group": ""}
        for metric, value in (("http_reqs", 1), ("http_req_duration", round(latency_ms, 6))):
            data = {"time": f"2026-11-21T11:00:{request // 20:02d}.{request % 20:02d}Z", "value": value, "tags": tags}
            found.append(json.dumps({"metric": metric, "type": "Point", "data": data}).encode() + b"\n")
    return b"".join(found)


def read_k6(campaign: Path) -> list[Run]:
    """Every run of a campaign of k6, from its raw lines."""
    found = []
    for file in sorted(campaign.glob("*/*/*.k6.json.zst")):
        with zstandard.open(file, "rt", encoding="utf-8") as lines:
            points = [json.loads(line) for line in lines.read().splitlines()]
        points = [each["data"] for each in points if each["metric"] == "http_req_duration"]
        latencies = np.array([round(each["value"] * MS) for each in points])
        codes = np.array([int(each["tags"]["status"]) for each in points])
        place = campaign.name, file.parent.name, int(file.parent.parent.name), int(file.name.partition(".")[0])
        found.append(Run(*place, latencies, codes, np.zeros(len(codes), bool), np.zeros(len(codes)), {}))
    return found


@dataclass(frozen=True)
class Made:
    """The folder with all outputs, what commands said, and every run as its raw file has it, by host."""

    folder: Path
    terminal: str
    gate: str
    runs: Mapping[str, list[Run]]

    @property
    def reports(self) -> Path:
        return self.folder / "reports"

    def page(self, host: str, at: str) -> Path:
        found = archive.campaigns(self.folder / "archive")
        (own,) = (each for each in found if (each.host, each.timestamp) == (host, at))
        return self.reports / f"campaigns/{slug(own)}.html"

    def rows(self, table: str) -> list[dict]:
        """Of a Parquet table."""
        files = [str(path) for path in (self.folder / "tables" / table).rglob("*.parquet")]
        how = "hive_partitioning = false" if table == "effects" else "hive_types_autocast = false"
        return duckdb.connect().sql(f"FROM read_parquet({files!r}, {how})").to_arrow_table().to_pylist()

    def place(self, host: str, at: str | None, variant: str, load: float) -> "Place":
        own = [each for each in self.runs[host] if (each.variant, each.rate) == (variant, load)]
        return Place([each for each in own if each.counts and each.codes.size and at in (None, each.at)])


@dataclass(frozen=True)
class Place:
    """The runs behind a series that count."""

    runs: list[Run]

    def __getitem__(self, statistic: str) -> float:
        """A latency in ns, or the share of failed requests."""
        return of_cell(self.runs, STATISTICS[statistic]) * (1 if statistic == "error_fraction" else MS)


@pytest.fixture(scope="module")
def seed() -> int:
    return random.SystemRandom().randrange(2**32)


@pytest.fixture(scope="module")
def made(tmp_path_factory, seed) -> Made:
    project = Project(folder := tmp_path_factory.mktemp("outputs"))
    write_archive(project.archive, seed, later=1.6, failing=0.15)
    write_others(project.archive, seed)
    project.convert()
    project.analyse(settings=SETTINGS)
    campaigns, reports = list(archive.campaigns(project.archive)), folder / "reports"
    site.write_assets(reports)
    for campaign in campaigns:
        (campaign.path / archive.COMPLETION).touch()
        site.build_campaign(campaign, project.tables, reports, VARIANTS, {})
    of_host = [each for each in campaigns if each.host == "here"]
    compare(BOTH, of_host, project.tables, SETTINGS)
    site.build_comparison(BOTH, of_host, project.tables, reports, VARIANTS, options={})
    site.build_index(campaigns, project.tables, reports, VARIANTS, {}, comparisons=[BOTH])
    for page in (f"campaigns/{slug(of_host[1])}", "comparisons/both"):
        build_summary(reports / f"{page}.html", folder / f"{page}.pdf")
    folders = {name: str(folder / name) for name in ("archive", "tables", "reports")}
    terminal = _run(_TERMINAL, {**folders, "host": "here", "sweep": {"app": "demo"}}, VARIANTS.declared)
    keys = [[archive.encode(part) for part in (each.app, each.host, each.timestamp)] for each in campaigns]
    gate = config.check({**folders, "gate": {"statistics": [*STATISTICS], "runs": 2, "cannot_tell": "fail"}})["gate"]
    params = {"folders": folders, "campaigns": keys, "candidates": keys, "gate": gate, "settings": {}}
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(folder / "job-summary.md")}
    said = _run(_GATE, str(ROOT / "scripts/gate.py"), str(folder / "log"), params, expect=1, **github)
    raw = project.archive / "demo"
    runs = {"here": [*read(raw / "here" / EARLY), *read(raw / "here" / LATE)]}
    runs |= {ONCE: read(raw / ONCE / EARLY), USERS: read_k6(raw / USERS / EARLY)}
    return Made(folder, terminal, said, runs)


# The end of a command, and the entry point of a rule, as Snakemake runs them.
_TERMINAL = """
import json, sys
from loadstone.config.variants import Variants
from loadstone.workflow import summary
config, declared = json.loads(sys.argv[1])
summary.show(config, Variants(declared))
"""
_GATE = """
import json, runpy, sys
from types import SimpleNamespace
script, log, params = json.loads(sys.argv[1])
snakemake = SimpleNamespace(log=[log], params=SimpleNamespace(**params))
runpy.run_path(script, {"snakemake": snakemake})
"""


def _run(program: str, *given: object, expect: int = 0, **environment: str) -> str:
    """What a Python program writes to its standard output; it gets `given` as JSON."""
    ran = subprocess.run(
        [sys.executable, "-c", program, json.dumps(given)],
        env={**os.environ, **environment, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=False,
    )
    assert ran.returncode == expect, ran.stderr.decode()
    return ran.stdout.decode()


# --- what an output claims -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A number of an output: what is shown, how numpy has it, and what its digits allow."""

    output: str
    where: str
    shown: object
    value: Callable[[], float]
    fits: Callable[[object, float], bool]

    @property
    def holds(self) -> bool:
        return self.fits(self.shown, self.value())


def exactly(shown: object, value: float) -> bool:
    """A number of JSON, to all digits but for the order of sums."""
    return shown is not None and math.isclose(float(shown), value, rel_tol=1e-9, abs_tol=1e-12)


def as_page_data(digits: int) -> Callable[[object, float], bool]:
    """A number of a page's data (`numbers.rounded`): where rounding would change what is shown of it, its neighbour."""
    fits = to_digits(digits)

    def as_held(shown: object, value: float) -> bool:
        rounded = float(f"{value:.{digits}g}")
        if f"{rounded:.3g}" == f"{value:.3g}":
            return fits(shown, value)
        step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
        held = float(str(shown))
        return abs(value - held) < step and f"{held:.3g}" == f"{value:.3g}"

    return as_held


def to_digits(digits: int) -> Callable[[object, float], bool]:
    """A number, or the text of one, with so many significant digits."""

    def fits(shown: object, value: float) -> bool:
        found = leading(shown) if isinstance(shown, str) else float(shown)
        if value == 0 or found == 0:
            return abs(found - value) < 1e-12  # what is left of subtracting equal binary fractions
        step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
        return abs(found - value) <= 0.5 * step * (1 + 1e-6)

    return fits


def leading(text: str) -> float:
    """The number that a text begins with, as it stands there."""
    found = re.match(r"([+−-]?)([\d,]*\.?\d+)", text)
    assert found, text
    return float(found[2].replace(",", "")) * (-1 if found[1] in ("−", "-") else 1)


def unbroken(text: str) -> str:
    """A text with plain spaces where its lines must not end."""
    return text.replace("\u00a0", " ")


def as_change(shown: str, ratio: float) -> bool:
    """``+25 %`` or ``2.51×``."""
    if shown.endswith("×"):
        return to_digits(3)(shown, ratio)  # also below 2, where a ratio next to it is above
    decimals = len(shown.partition(".")[2].removesuffix("%").strip())
    return decimals <= 1 and ratio < 2 and abs(leading(shown) - 100 * (ratio - 1)) <= 0.5 * 10**-decimals * (1 + 1e-6)


# --- files for programs ----------------------------------------------------------------------------------------------


def of_index(made: Made) -> Iterator[Number]:
    content = json.loads((made.reports / "index.json").read_text())
    for entry in content["campaigns"] + content["comparisons"]:
        host, at = (entry["host"], entry["timestamp"]) if "host" in entry else ("here", None)
        name = f"{host} {at}"
        for verdict in entry["verdicts"]:
            yield from _of_verdict(made, name, host, at, verdict)
        if "host" in entry:
            own = [run for run in made.runs[host] if run.at == at]
            requests = sum(len(run.codes) or run.report["requests"] for run in own)
            yield Number("index.json", f"{name} requests", entry["requests"], lambda n=requests: n, exactly)
            valid = entry["runs"].get("collected", 0) + entry["runs"].get("suggested", 0)
            yield Number("index.json", f"{name} valid", valid, lambda own=own: sum(run.counts for run in own), exactly)


def _of_verdict(made: Made, name: str, host: str, at: str | None, verdict: dict) -> Iterator[Number]:
    statistic = verdict["statistic"]
    after, before = (made.place(host, at, verdict[side], verdict["load"]) for side in ("variant", "baseline"))
    if not after.runs:
        return
    values: dict[str, Callable[[], float]] = {
        "value": lambda: after[statistic],
        "baseline_value": lambda: before[statistic],
        "ratio": lambda: after[statistic] / before[statistic],
        "shift": lambda: after[statistic] - before[statistic],
        "n_runs": lambda: len(after.runs),
        "baseline_n_runs": lambda: len(before.runs),
    }
    for field, value in values.items():
        where = f"{name} {verdict['variant']} {verdict['load']} {statistic} {field}"
        yield Number("index.json", where, verdict[field], value, exactly)


def of_gate(made: Made) -> Iterator[Number]:
    for found in json.loads((made.reports / "gate.json").read_text())["figures"]:
        if found["value"] is None or found["variant"] == "reported":
            continue
        after, before, statistic = *_sides(made, found["variant"], found["rate"]), found["statistic"]
        where = f"{found['variant']} {found['rate']} {statistic}"
        yield Number("gate.json", f"{where} value", found["value"], _of(after, statistic), exactly)
        yield Number("gate.json", f"{where} before", found["reference_value"], _of(before, statistic), exactly)
        yield Number("gate.json", f"{where} change", found["change"], _change(after, before, statistic), exactly)


def _sides(made: Made, variant: str, load: float) -> tuple[Place, Place]:
    return made.place("here", LATE, variant, load), made.place("here", EARLY, variant, load)


def _of(place: Place, statistic: str, scale: float = 1.0) -> Callable[[], float]:
    return lambda: place[statistic] * scale


def _change(after: Place, before: Place, statistic: str) -> Callable[[], float]:
    if statistic == "error_fraction":
        return lambda: after[statistic] - before[statistic]
    return lambda: after[statistic] / before[statistic]


def of_benchmarks(made: Made) -> Iterator[Number]:
    for entry in json.loads((made.reports / "gate.benchmark.json").read_text()):
        variant, load, name = re.fullmatch(r"demo/\w+: (\w+) at (\d+) requests/s, (.+)", entry["name"]).groups()
        statistic, scale = NAMES[name], {"ms": 1 / MS, "%": 100}[entry["unit"]]
        if variant != "reported":
            value = _of(_sides(made, variant, int(load))[0], statistic, scale)
            yield Number("github-action-benchmark", entry["name"], entry["value"], value, exactly)
    for name, measures in json.loads((made.reports / "gate.bencher.json").read_text()).items():
        variant, load = re.fullmatch(r"demo/\w+/(\w+) at (\d+) requests/s", name).groups()
        for measure, found in measures.items():
            statistic = measure.removeprefix("latency-").replace("-", "_")
            if variant != "reported":
                value = _of(_sides(made, variant, int(load))[0], statistic)
                yield Number("Bencher", f"{name} {measure}", found["value"], value, exactly)


def of_openmetrics(made: Made) -> Iterator[Number]:
    text = (made.reports / "gate.openmetrics.txt").read_text()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            statistic, variant = sample.labels["statistic"], sample.labels["variant"]
            after, before = _sides(made, variant, float(sample.labels["load"]))
            value = {
                "loadstone_latency_seconds": _of(after, statistic, 1e-9),
                "loadstone_error_ratio": _of(after, statistic),
                "loadstone_gate_change_ratio": _change(after, before, statistic),
            }.get(sample.name)
            if value and variant != "reported":
                yield Number("OpenMetrics", f"{sample.name} {sample.labels}", sample.value, value, exactly)


# --- texts of the gate -----------------------------------------------------------------------------------------------


def of_messages(made: Made) -> Iterator[Number]:
    cases = ET.parse(made.reports / "gate.junit.xml").iter("testcase")
    junit = [child.get("message") for case in cases for child in case]
    annotations = [
        line.rpartition("::")[2] for line in made.gate.splitlines() if line.startswith(("::error", "::warn"))
    ]
    for output, texts in (("JUnit", junit), ("annotations", annotations)):
        for text in texts:
            yield from _of_message(made, output, text.replace("%25", "%"))


def _of_message(made: Made, output: str, text: str) -> Iterator[Number]:
    """Numbers of the line on one figure (`Finding.text`), unless it says only why there is none."""
    place = r"demo/\w+: (\w+) at ([\d,]+) requests/s, (\w+)"
    found = re.match(rf"{place}: (\S+) (ms|%) instead of (\S+) (?:ms|%) in \S+, (\S+) (times|percentage)", text)
    if not found:
        return
    variant, load, statistic, value, unit, reference, change, what = found.groups()
    after, before = _sides(made, variant, float(load.replace(",", "")))
    scale, digits = (1 / MS, 4) if unit == "ms" else (100, 3)
    yield Number(output, f"{text} [value]", value, _of(after, statistic, scale), to_digits(digits))
    yield Number(output, f"{text} [reference]", reference, _of(before, statistic, scale), to_digits(digits))
    changed = _change(after, before, statistic)
    size = changed if what == "times" else lambda: 100 * abs(changed())
    yield Number(output, f"{text} [change]", change, size, to_digits(3))


def of_comments(made: Made) -> Iterator[Number]:
    for output, file in (
        ("Markdown comment", made.reports / "gate.md"),
        ("job summary", made.folder / "job-summary.md"),
    ):
        for line in file.read_text().splitlines():
            cells = [re.sub(r"\\(.)", r"\1", cell).strip() for cell in line.split(" | ")]
            name = re.fullmatch(r"demo/\w+: (\w+) at ([\d,]+) requests/s, (.+)", cells[1]) if len(cells) > 5 else None
            if not name or cells[2] == "–":
                continue
            statistic = NAMES[name[3]]
            after, before = _sides(made, name[1], float(name[2].replace(",", "")))
            scale, digits = (100, 3) if statistic == "error_fraction" else (1 / MS, 4)
            changed = _change(after, before, statistic)
            yield Number(output, line, cells[2], _of(before, statistic, scale), to_digits(digits))
            yield Number(output, line, cells[3], _of(after, statistic, scale), to_digits(digits))
            size = (lambda each=changed: 100 * each()) if statistic == "error_fraction" else changed
            yield Number(output, line, cells[4], size, to_digits(3))


# --- sentences, the terminal and the sheet ---------------------------------------------------------------------------

_LOAD = r"at (?P<load>[\d,]+) (?:requests/s|users)"
_VARIANT, _BASELINE, _NAME = r"(?P<variant>\w+)", r"(?P<baseline>\w+)", r"(?P<name>\w+)"
_AMOUNT = r"[\d.,]+ (?:ms|µs|s)"
_SIZE, _BEFORE = rf"(?P<size>{_AMOUNT})(?: \[.*?\])?", rf"(?P<before>{_AMOUNT})"
_SENTENCES = (
    rf"{_VARIANT} adds {_SIZE} to the {_NAME} of {_BASELINE}, {_BEFORE}, {_LOAD}\.",
    rf"{_VARIANT} is {_SIZE} faster than {_BASELINE} \({_NAME} {_BEFORE}\) {_LOAD}\.",
    rf"{_VARIANT} (?:is \w+ (?:than|to)|relative to) {_BASELINE} {_LOAD}: {_NAME} (?P<change>\S+(?: %)?)",
)


def of_sentence(made: Made, output: str, host: str, at: str | None, text: str) -> Iterator[Number]:
    """Numbers of a headline."""
    said = next((found for each in _SENTENCES if (found := re.match(each, text))), None)
    assert said, text
    found, statistic, load = said.groupdict(), NAMES[said["name"]], float(said["load"].replace(",", ""))
    after, before = (made.place(host, at, LABELS[said[side]], load) for side in ("variant", "baseline"))
    if "change" in found:
        change = found["change"].rstrip(",:")
        yield Number(output, text, change, lambda: after[statistic] / before[statistic], as_change)
        return
    size, was = (found[name].split() for name in ("size", "before"))
    yield Number(
        output, text, size[0], lambda: abs(after[statistic] - before[statistic]) / UNITS[size[1]], to_digits(3)
    )
    yield Number(output, text, was[0], _of(before, statistic, 1 / UNITS[was[1]]), to_digits(3))


def of_previews(made: Made) -> Iterator[Number]:
    pages = [
        (made.page(host, at), host, at) for host, at in (("here", EARLY), ("here", LATE), (USERS, EARLY), (ONCE, EARLY))
    ]
    pages += [(made.reports / "comparisons/both.html", "here", None), (made.reports / "index.html", "here", LATE)]
    for page, host, at in pages:
        text = unescape(re.search(r'<meta property="og:description" content="([^"]*)">', page.read_text())[1])
        yield from of_sentence(made, "link preview", host, at, unbroken(text))


def of_terminal(made: Made) -> Iterator[Number]:
    lines = made.terminal.splitlines()
    title = next(place for place, line in enumerate(lines) if line.rstrip() == f"demo/here/{LATE}")
    headline = unbroken(next(line for line in reversed(lines[:title]) if line.strip()))
    yield from of_sentence(made, "terminal", "here", LATE, headline)
    for line in lines[title:]:
        cells = [cell.strip() for cell in line.strip().strip("│").split("│")]
        if len(cells) == 7 and cells[1] in LABELS and cells[2] not in ("", "–"):
            load = float(cells[0].replace(",", ""))
            after, before = (made.place("here", LATE, name, load) for name in (LABELS[cells[1]], "plain"))
            yield Number("terminal", line, cells[2], _of(after, "p50", 1 / MS), to_digits(3))
            if cells[4]:
                yield Number("terminal", line, cells[4], _change(after, before, "p50"), as_change)


def of_sheets(made: Made) -> Iterator[Number]:
    """Headline and matrix of the PDF's text."""
    for page, at, loads in (
        (made.page("here", LATE), LATE, (100, 300)),
        (made.reports / "comparisons/both.html", None, (100, 300)),
    ):
        pdf = made.folder / page.relative_to(made.reports).with_suffix(".pdf")
        command = ["pdftotext", "-layout", "-enc", "UTF-8", str(pdf), "-"]
        text = unbroken(subprocess.run(command, capture_output=True, check=True).stdout.decode())
        headlines = [line for line in text.splitlines() if any(re.match(each, line) for each in _SENTENCES)]
        yield from of_sentence(made, "PDF summary", "here", at, headlines[0])
        change = r"(\S+(?: %)?)(?: [a-z,†]+)?"
        rows = re.findall(rf"^ +{change} +{change} *\n *(Mesh|Filter)\b", text, re.MULTILINE)
        assert len(rows) == 2, text
        for *changes, label in rows:
            for load, change in zip(loads, changes, strict=True):
                after, before = (made.place("here", at, name, load) for name in (LABELS[label], "plain"))
                where = f"{pdf.name} {label} {load}"
                yield Number("PDF summary", where, change, _change(after, before, "p50"), as_change)


# --- what pages give by their scripts --------------------------------------------------------------------------------


class Browsed:
    """Pages in a browser, and the files that their buttons give."""

    def __init__(self, made: Made, browser) -> None:
        self.made = made
        self.context = browser.new_context(viewport={"width": 1400, "height": 900})
        self.watched = Watched(self.context.new_page())
        self.tables: dict[tuple[str | None, str], Table] = {}  # as CSV, by campaign and name

    def numbers(self) -> Iterator[Number]:
        both = self.made.reports / "comparisons/both.html"
        for page, at, main in ((self.made.page("here", LATE), LATE, "All cells"), (both, None, "All figures")):
            self.watched.open(page.as_uri())
            self.watched.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            runs = [run for run in self.made.runs["here"] if at in (None, run.at)]
            for button, rows_of in (("CSV", _of_csv), ("Markdown", _of_markdown), ("LaTeX", _of_latex)):
                tables = {}
                for name in (main, "All verdicts"):
                    text = self._saved(f"[aria-label='Table: {name}'] + .files button", button)
                    tables[name] = _as_shown(name, rows_of(text))
                    self.tables.setdefault((at, name), tables[name])
                for claim in Reader(page, runs, tables).claims():
                    fits = functools.partial(agrees, whole=claim.whole)
                    yield Number(f"table as {button}", claim.where, claim.text, claim.value, fits)
            yield from self._charts("here", at)
        self.watched.open(self.made.page(ONCE, EARLY).as_uri())
        yield from self._dumbbells()
        yield from self._compared()

    def _saved(self, buttons: str, title: str) -> str:
        with self.watched.page.expect_download() as download:
            self.watched.page.locator(buttons).get_by_text(title, exact=True).click()
        return unbroken(Path(download.value.path()).read_bytes().decode())

    def _chart(self, figure: str, title: str) -> str:
        details = self.watched.page.locator(f"#{figure} .data")
        if details.get_attribute("open") is None:
            details.locator("summary").click()
        return self._saved(f"#{figure} .data button", title)

    def _charts(self, host: str, at: str | None) -> Iterator[Number]:
        for row in json.loads(self._chart("latency", "Vega-Lite"))["datasets"]["rows"]:
            value = _of(self.made.place(host, at, row["variant"], row["load"]), "p50", 1 / MS)
            where = f"latency {row['variant']} {row['load']}"
            yield Number("chart as Vega-Lite", where, row["value"], value, as_page_data(6))
        for row in json.loads(self._chart("effects", "Vega-Lite"))["datasets"]["rows"]:
            after, before = (self.made.place(host, at, name, row["load"]) for name in (row["variant"], "plain"))
            if after.runs:
                where = f"effects {row['variant']} {row['load']}"
                yield Number("chart as Vega-Lite", where, row["value"], _change(after, before, "p50"), as_page_data(5))
        for row in csv.DictReader(io.StringIO(self._chart("latency", "CSV"))):
            if row["Run"] == "all":
                variant, load = LABELS[row["Variant"]], float(row["Load (requests/s)"])
                value = _of(self.made.place(host, at, variant, load), "p50", 1 / MS)
                yield Number("chart as CSV", f"{variant} {load}", float(row["Latency (ms)"]), value, to_digits(6))

    def _dumbbells(self) -> Iterator[Number]:
        for row in json.loads(self._chart("dumbbell", "Vega-Lite"))["datasets"]["rows"]:
            after, before = (self.made.place(ONCE, EARLY, name, row["load"]) for name in (row["variant"], "plain"))
            where = f"{row['variant']} {row['load']}"
            yield Number("dumbbell plot", f"{where} value", row["value"], _of(after, "p50", 1 / MS), to_digits(6))
            yield Number("dumbbell plot", f"{where} before", row["before"], _of(before, "p50", 1 / MS), to_digits(6))
            yield Number("dumbbell plot", f"{where} shown", row["shown"], _change(after, before, "p50"), as_change)

    def _compared(self) -> Iterator[Number]:
        """Any two series of this host, in both orders and across loads and campaigns."""
        page, folders = self.watched.page, {at: f"campaigns/{self.made.page('here', at).stem}" for at in (EARLY, LATE)}
        page.goto((self.made.reports / "compare.html").as_uri())
        pairs = (
            ("p50", (LATE, "plain", 100), (LATE, "istio", 100)),
            ("p99", (LATE, "istio", 300), (EARLY, "filter", 300)),
            ("mean", (EARLY, "istio", 100), (LATE, "filter", 100)),
            ("error_fraction", (LATE, "plain", 300), (LATE, "filter", 300)),
        )
        for statistic, *series in pairs:
            chosen = {"stat": statistic}
            for side, (at, variant, load) in zip("ab", series, strict=True):
                chosen |= {side: folders[at], f"{side}v": variant, f"{side}l": str(load)}
            # It is busy from now on: the page learns of its new address a moment later.
            busy = "document.getElementById('result').setAttribute('aria-busy', 'true');"
            page.evaluate(f"(chosen) => {{ {busy} location.hash = new URLSearchParams(chosen); }}", chosen)
            page.locator("#result:not([aria-busy])").wait_for(state="attached")
            rows = "[...document.querySelectorAll('#figures tbody tr')]"
            assert page.locator("#figures").is_visible(), page.locator("#sentence").inner_text()
            cells = page.evaluate(f"{rows}.map((row) => [...row.cells].map((cell) => cell.innerText))")
            shown = {head[:1]: unbroken(text) for head, text, *_ in cells}
            first, second = (self.made.place("here", *each) for each in series)
            is_share = statistic == "error_fraction"
            scale = 1 if is_share else 1 / MS
            values = {"A": _of(first, statistic, scale), "B": _of(second, statistic, scale)}
            values["D"] = lambda a=values["A"], b=values["B"]: b() - a()
            values["R"] = lambda a=values["A"], b=values["B"]: b() / a()
            for name, value in values.items():
                yield Number("compare.html", f"{statistic} {series} {name}", shown[name], value, agrees)


def _of_csv(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def _of_markdown(text: str) -> list[list[str]]:
    lines = [re.split(r" \| ", line[2:-2]) for line in text.splitlines()]
    return [[re.sub(r"\\(.)", r"\1", cell) for cell in line] for line in (lines[0], *lines[2:])]


def _of_latex(text: str) -> list[list[str]]:
    signs = {r"$\pm$": "±", r"\textmu{}": "µ", "--": "–", "$-$": "-", r"$\times$": "×", r"\%": "%"}
    lines = [line.removesuffix(r" \\") for line in text.splitlines() if line.endswith(r" \\")]
    for sign, character in signs.items():
        lines = [line.replace(sign, character) for line in lines]
    return [line.split(" & ") for line in lines]


def _as_shown(name: str, rows: list[list[str]]) -> Table:
    """A table as on the page, where intervals and spreads stand below the main text of a cell."""
    parts = re.compile(r"(.*?(?: %| points)?) ((?:\[|± ).*)")
    cells = [[[*found.groups()] if (found := parts.fullmatch(cell)) else [cell] for cell in row] for row in rows[1:]]
    return Table(name, rows[0], cells)


# --- intervals: those of the tables, as they come from replicates ----------------------------------------------------


class Concluded:
    """Rows of `effects` by host, campaign (None: the comparison), variant, load and statistic; of `cells` likewise."""

    def __init__(self, made: Made) -> None:
        self.effects = {}
        for row in made.rows("effects"):
            at = None if row["comparison"] else row["timestamps"][0]
            self.effects[row["host"], at, row["variant"], row["rate"], row["statistic"]] = row
        self.cells = {(*map(row.get, ("host", "timestamp", "variant", "rate")),): row for row in made.rows("cells")}

    def of_index(self, made: Made) -> Iterator[Number]:
        content = json.loads((made.reports / "index.json").read_text())
        for entry in content["campaigns"] + content["comparisons"]:
            place = entry.get("host", "here"), entry.get("timestamp")
            for verdict in entry["verdicts"]:
                row = self.effects[*place, verdict["variant"], verdict["load"], verdict["statistic"]]
                for name in ("ratio_low", "ratio_high", "shift_low", "shift_high"):
                    if row[name] is not None or verdict[name] is not None:
                        yield Number("index.json", f"{place} {name}", verdict[name], _field(row, name), exactly)
            if entry["headline"] and (said := re.match(_SENTENCES[0], unbroken(entry["headline"]))):
                load = float(said["load"].replace(",", ""))
                row = self.effects[*place, LABELS[said["variant"]], load, NAMES[said["name"]]]
                yield from _ends("headline", said[0], row, "shift", UNITS[said["size"].split()[1]])

    def of_verdicts(self, table: Table, at: str | None) -> Iterator[Number]:
        for shown in table.records():
            statistic = NAMES[shown["Figure"][0].lower()]
            row = self.effects["here", at, *_place(shown), statistic]
            scale = 0.01 if statistic == "error_fraction" else MS
            yield from _ends("table", " ".join(shown["Ratio"][1:]), row, "ratio", 1)
            yield from _ends("table", " ".join(shown["Shift (ms)"][1:]), row, "shift", scale)

    def of_cells(self, table: Table, at: str) -> Iterator[Number]:
        for shown in table.records():
            for column, statistic in (("Median (ms)", "p50"), ("p90 (ms)", "p90"), ("p99 (ms)", "p99")):
                row = self.cells["here", at, *_place(shown)]
                yield from _ends("table", " ".join(shown[column][1:]), row, statistic, MS)

    def of_terminal(self, made: Made) -> Iterator[Number]:
        for line in made.terminal.splitlines():
            texts = [cell.strip() for cell in line.strip().strip("│").split("│")]
            if len(texts) != 7 or texts[1] not in LABELS:
                continue
            place = "here", LATE, LABELS[texts[1]], float(texts[0].replace(",", ""))
            yield from _ends("terminal", texts[3], self.cells[place], "p50", MS)
            fits = to_digits(3) if texts[4].endswith("×") else _as_percent
            for end, text in zip(("low", "high"), texts[5].strip("[]").split(", "), strict=False):
                if text:
                    yield Number("terminal", line, text, _field(self.effects[*place, "p50"], f"ratio_{end}"), fits)


def _place(shown: Mapping[str, list[str]]) -> tuple[str, float]:
    return LABELS[shown["Variant"][0]], number(shown["Load (requests/s)"][0])


def _field(row: Mapping[str, float], name: str, scale: float = 1) -> Callable[[], float]:
    return lambda: row[name] / scale


def _as_percent(shown: str, ratio: float) -> bool:
    """An end of the interval of a change in percent, which may be more than twice."""
    decimals = len(shown.partition(".")[2])
    return decimals <= 1 and abs(leading(shown) - 100 * (ratio - 1)) <= 0.5 * 10**-decimals * (1 + 1e-6)


def _ends(output: str, text: str, row: Mapping[str, float], name: str, scale: float) -> Iterator[Number]:
    """Low and high of the interval in a text."""
    found = re.search(r"\[([^, ]+), ([^ ]+)\]", text)
    for end, shown in zip(("low", "high"), found.groups() if found else (), strict=False):
        (column,) = {f"{name}_{end}", f"{name}_{end}_ns"} & row.keys()
        yield Number(output, f"{text} {end}", shown, _field(row, column, scale), to_digits(3))


# --- the tests -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browsed(made, browser) -> Iterator[Browsed]:
    found = Browsed(made, browser)
    yield found
    found.context.close()


@pytest.fixture(scope="module")
def numbers(made, browsed) -> list[Number]:
    of_files = (of_index, of_gate, of_benchmarks, of_openmetrics, of_messages, of_comments, of_previews, of_terminal)
    found = [each for output in of_files for each in output(made)]
    found += of_sheets(made) if shutil.which("pdftotext") else []
    return [*found, *browsed.numbers()]


def test_numbers_are_those_of_the_raw_files(numbers, seed):
    wrong = [
        f"{each.output}, {each.where}: {each.shown}, numpy has {each.value():.9g}" for each in numbers if not each.holds
    ]
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong)


def test_every_output_has_some(numbers):
    found = Counter(each.output for each in numbers)
    missing = {name for name in OUTPUTS if found[name] < LEAST}
    if missing == {"PDF summary"} and not shutil.which("pdftotext"):
        pytest.skip("pdftotext is not installed: the text of PDFs was not read")
    assert not missing, found
    assert len(numbers) > 400


def test_intervals_are_those_of_the_tables(made, numbers, browsed, seed):
    tables, known = browsed.tables, Concluded(made)
    found = [*known.of_index(made), *known.of_terminal(made), *known.of_cells(tables[LATE, "All cells"], LATE)]
    found += [each for at in (LATE, None) for each in known.of_verdicts(tables[at, "All verdicts"], at)]
    assert {each.output for each in found} == {"index.json", "headline", "table", "terminal"} and len(found) > 150
    wrong = [f"{each.output}, {each.where}: {each.shown} of {each.value():.9g}" for each in found if not each.holds]
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong)
