"""The progress page: made from real archives and journals, looked at in a browser."""

import html
import json
import re
import time
from pathlib import Path

import pytest
from loadstone.archive import Campaign, Cell
from loadstone.archive.progress import REWRITTEN_S, Journal, Progress, current_progress
from loadstone.archive.run_records import record_failure
from loadstone.collect import sweep
from loadstone.report import progress_page
from loadstone.report.progress_page import ProgressPage
from report.conftest import SCRIPT, VARIANTS
from report.printed import plain
from support import site

HOSTILE = f"{SCRIPT.replace('/', '')} \udcff"


class Sweep:
    """An open sweep of three variants, one with a hostile name, of which some runs have results and some failed."""

    def __init__(self, folder: Path, rates: tuple[float, ...] = (100, 300, 1000), runs: int = 5) -> None:
        names = ["plain", "envoy", HOSTILE]
        expect = {"status": 200, "body_contains": "x"}
        variants = {name: {"url": "http://127.0.0.1:9/", "expect": expect} for name in names}
        planned = {"app": "demo", "variants": names, "rates": list(rates), "runs": runs, "duration": "10s", "seed": 1}
        target = {"kind": "local", "variants": variants}
        config = {"archive": str(folder / "archive"), "host": "myhost", "sweep": planned, "target": target}
        self.folder, self.reports = folder, folder / "reports"
        self.campaign: Campaign = sweep.open_sweep(config, {}, lambda _: None)
        self.journal = Journal(folder / "journal")
        other = Campaign(self.campaign.root, "demo", "myhost", "2026-11-19T11:30:00+00:00")
        self.journal.begin(self.campaign.root, self.reports, {self.campaign: 45, other: 7})
        self.said: list[str] = []

    def cell(self, rate: str = "100", variant: str = "plain") -> Cell:
        return Cell(self.campaign, rate, variant)

    def collect(self, run: int, cell: Cell) -> None:
        self.journal.tried(cell, run, 1)
        cell.results(run).write_bytes(b"x")

    def fail(self, run: int, cell: Cell, error: str = f"never ready: {SCRIPT}") -> None:
        self.journal.tried(cell, run, 1)
        record_failure(cell, run, error, ["<b>BackOff</b>"], about={"phase": "target"}, logs=self.folder / "none")
        self.journal.log(f"run {run} failed: {error}")

    def page(self) -> ProgressPage:
        log = self.said.append
        return ProgressPage(self.reports, variants=VARIANTS.declared, options={"title": "A & B"}, log=log)

    def under_way(self, phase: str = "test", run: int = 4) -> Progress:
        """As a job shows it while it collects."""
        seen = current_progress(self.campaign, self.journal, retries=1)
        seen.start(self.journal.tried(self.cell("300", "envoy"), run, 1))
        seen.phase = phase
        return seen

    @property
    def file(self) -> Path:
        return self.reports / progress_page.NAME


@pytest.fixture
def swept(tmp_path: Path) -> Sweep:
    it = Sweep(tmp_path)
    for run in (1, 2, 3):
        for rate in ("100", "300"):
            it.collect(run, it.cell(rate))
            it.collect(run, it.cell(rate, HOSTILE))
    it.fail(3, it.cell("300", "envoy"))
    it.fail(1, it.cell("1000", HOSTILE))
    it.fail(1, it.cell("1000", HOSTILE), "again")
    return it


def marks(page, row: int, column: int) -> str:
    return page.locator("tbody tr").nth(row).locator("td").nth(column).inner_text().replace(" ", "")


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark"), (320, "light")])
def test_under_way(swept, browser, width, scheme) -> None:
    swept.page().show(swept.under_way())
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    page.goto(swept.file.as_uri())
    assert complaints == []
    assert all(address.startswith(swept.reports.as_uri()) or address == "data:," for address in asked)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title() == "12 of 45: demo on myhost – A & B"
    assert page.locator("meta[http-equiv=refresh]").get_attribute("content") == "5"
    assert page.locator("thead th").all_inner_texts()[1:3] == ["Direct", "Envoy"]
    assert [marks(page, 1, 0), marks(page, 1, 1), marks(page, 2, 2)] == ["■■■□□", "□□✕◉□", "✕□□□□"]
    said = page.locator("tbody tr").nth(1).locator("td").nth(1).get_by_role("img")
    assert said.get_attribute("aria-label") == "run 3 failed, run 4 now, runs 1–2, 5 planned"
    text = plain(page.locator("main").inner_text())
    assert "Under way: attack." in text and "Envoy at 300 requests/s, run 4" in text
    assert "12 of 45 planned runs" in text and "2 runs" in text
    assert (
        re.search(r"failed once, last at \d\d:\d\d:\d\d; starting the target: never ready: ", text) and SCRIPT in text
    )
    assert "<b>BackOff</b>" in text  # the evidence, as text
    assert "failed twice" in text and "starting the target: again" in text
    assert "until" in text and str(swept.campaign.path) in text
    assert "demo / myhost / 2026-11-19T11:30:00+00:00 (7 runs missing" in text
    assert not page.locator("#stale").is_visible()
    assert page.locator("main b").count() == 0 and page.locator("script:not([src])").count() == 0
    colours = [
        page.locator(f"td i.{state}").first.evaluate("e => getComputedStyle(e).color")
        for state in ("collected", "failed", "planned")
    ]
    assert len(set(colours)) == 3
    context.close()


def test_a_page_that_nobody_writes_any_more_says_so(swept, watched) -> None:
    swept.page().show(swept.under_way())
    text = swept.file.read_text()
    due = int(text.partition('data-due="')[2].partition('"')[0])
    assert due / 1000 > time.time() + 60
    swept.file.write_text(text.replace(str(due), "1000"))
    watched.open(swept.file.as_uri())
    assert watched.page.locator("#stale").is_visible()
    written = re.search(r"<dd>(\d\d:\d\d:\d\d on .*?)</dd>", text)[1]
    said = watched.page.locator("#stale").inner_text()
    assert "The sweep seems to have stopped" in said and f"since {written}" in said
    shown = plain(watched.page.locator("main").inner_text())
    assert "Under way" not in shown and "Time left" not in shown and "Envoy at 300 requests/s, run 4" in shown
    assert watched.page.title().startswith("Stopped? 12 of 45")
    assert re.search(
        r"If this page is not updated by \d\d:\d\d:\d\d( on .*)?, the sweep has stopped", text
    )  # without script
    assert watched.complaints == []


def test_whom_it_waits_for_is_said_once(swept) -> None:
    seen = swept.under_way("waiting")
    seen.now = None
    seen.wait = f"run 1 of it by ada (process 7 in {SCRIPT}, since noon) holds this machine"
    swept.page().show(seen)
    text = html.unescape(swept.file.read_text())
    assert text.count("by ada") == 1 and f"Under way, but waiting: {seen.wait}." in text
    due = int(text.partition('data-due="')[2].partition('"')[0]) / 1000
    assert time.time() + REWRITTEN_S + 60 < due < time.time() + 600  # whoever waits writes the page again and again


def test_there_is_a_way_to_the_start_page_only_when_there_is_one(swept) -> None:
    swept.page().show(swept.under_way())
    assert "index.html" not in swept.file.read_text() and "A &amp; B</p>" in swept.file.read_text()
    (swept.reports / "index.html").touch()
    swept.page().show(swept.under_way())
    assert '<a href="index.html">Start</a>' in swept.file.read_text()
    assert "campaigns.html" not in swept.file.read_text()


def test_a_reason_in_full_can_be_opened_and_stays_open(swept, watched) -> None:
    lines = "\n".join(f"line {number} {SCRIPT}" for number in range(1000))
    swept.fail(2, swept.cell("300", "envoy"), f"no pod became ready\n{lines}")
    swept.page().show(swept.under_way())
    assert len(swept.file.read_text()) < 100_000
    watched.open(swept.file.as_uri())
    failed = watched.page.locator("section[aria-labelledby=failed]")
    whole = failed.locator("details")
    assert whole.count() == 1  # what one line says needs none
    assert not whole.locator("pre").is_visible()
    whole.locator("summary").click()
    said = whole.locator("pre").inner_text()
    assert said.startswith("no pod became ready\nline 0 <script>") and "line 50 " in said
    assert re.search(r"… and [\d,]+ more characters$", said)
    watched.page.reload()
    watched.page.locator("details[data-key='300/envoy/2'][open]").wait_for()
    assert watched.complaints == []


def test_variants_go_as_the_sweep_declared_them(tmp_path: Path) -> None:
    it = Sweep(tmp_path)
    page = ProgressPage(it.reports, variants={}, options={}, log=it.said.append)
    page.show(it.under_way())
    assert re.findall(r'<th scope="col">(\w+)', it.file.read_text())[:2] == ["plain", "envoy"]


def test_at_the_end_it_is_not_loaded_again(swept, watched) -> None:
    seen = swept.under_way()
    seen.succeed()
    swept.page().show(seen)
    progress_page.ended(swept.journal, swept.page(), "the command ended with an error")
    watched.open(swept.file.as_uri())
    assert watched.page.locator("meta[http-equiv=refresh]").count() == 0
    text = watched.page.locator("main").inner_text()
    assert "Stopped: the command ended with an error. 33 planned runs missing." in text  # its result is not there
    assert "◉" not in watched.page.locator("tbody").inner_text()
    assert watched.complaints == []
    assert swept.journal.now() is None


def test_a_killed_command_s_page_is_stopped_by_the_next(swept) -> None:
    swept.page().show(swept.under_way())
    elsewhere = swept.folder / "elsewhere"
    page = ProgressPage(elsewhere, variants={}, options={}, log=swept.said.append)
    progress_page.ended(swept.journal, page)
    assert not elsewhere.exists()  # the page lies where that command wrote it
    text = swept.file.read_text()
    assert "Stopped: the command was killed after" in text and "refresh" not in text
    progress_page.ended(swept.journal, page)
    assert swept.file.read_text() == text
    assert swept.said == []


def test_complete(tmp_path: Path) -> None:
    it = Sweep(tmp_path, rates=(100,), runs=1)
    for variant in ("plain", "envoy", HOSTILE):
        it.collect(1, it.cell(variant=variant))
    it.page().show(current_progress(it.campaign, it.journal))
    assert "refresh" in it.file.read_text()  # the command goes on with another campaign
    progress_page.ended(it.journal, it.page(), "the command has ended")
    text = it.file.read_text()
    assert "All 3 planned runs collected." in text and "refresh" not in text


def test_as_many_runs_as_anybody_plans_are_numbers(tmp_path: Path) -> None:
    it = Sweep(tmp_path, runs=1400)
    it.collect(1, it.cell())
    it.page().show(it.under_way())
    text = it.file.read_text()
    assert "run 1 collected, runs 2–1400 planned" in text
    assert len(text) < 20_000


@pytest.mark.parametrize("obstacle", ["folder", "file"])
def test_a_page_that_cannot_be_written_is_said_once(swept, obstacle: str) -> None:
    if obstacle == "folder":
        swept.file.mkdir(parents=True)
    else:
        swept.reports.write_text("not a folder")
    page = swept.page()
    for phase in ("target", "test"):
        page.show(swept.under_way(phase))
    (said,) = swept.said
    assert "cannot be written" in said and "the sweep continues without it" in said


def test_the_start_page_links_to_it_while_a_campaign_is_open(swept) -> None:
    tables = swept.folder / "tables"

    def linked() -> bool:
        path = site.build_index([swept.campaign], tables, swept.reports, VARIANTS, {})
        return '<a href="progress.html">Progress of the last sweep</a>' in path.read_text()

    assert not linked()
    swept.page().show(swept.under_way())
    assert linked()
    (swept.campaign.path / "completion_time.txt").touch()
    assert not linked()


def test_records_that_say_nothing_are_named(swept) -> None:
    swept.cell("300", "envoy").failure(3, 2).write_text(json.dumps({"error": 1}))
    swept.page().show(swept.under_way())
    assert "see 3.failure.2.json" in swept.file.read_text()


def test_credentials_in_urls_of_earlier_failures_are_not_shown(swept) -> None:
    swept.fail(1, swept.cell("1000", "envoy"), "http://127.0.0.1/?n=1&token=open-sesame does not answer")
    swept.page().show(swept.under_way())
    assert "open-sesame" not in swept.file.read_text() and "token=redacted" in swept.file.read_text()
