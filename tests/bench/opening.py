"""A site of 40 campaigns, one of them as large as real ones, opened page by page from disk in a headless Chromium."""

import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.archives import RATES, VARIANTS
from bench.measuring import Row, Took
from loadstone.analysis import history
from loadstone.archive import Campaign
from loadstone.archive.trace_dumps import Dump
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from loadstone.report import site_layout
from loadstone.report.query_page import build_query_page
from loadstone.report.trace_page import build_trace_page
from report.concluded import write_many, write_thousand
from report.synthetic import Made, write, write_compared
from report.test_every_page import traces
from support import site
from support.site import write_assets

CAMPAIGNS = 40
_COMPARED = "all"
_LIMIT_S = 2.0
_LARGEST_BYTES = 2_000_000
_NONE = Variants({})


def write_tables(folder: Path) -> list[Campaign]:
    """The tables of all campaigns. Their runs are short: what a page costs depends on their number."""
    campaigns = []
    for number in range(CAMPAIGNS):
        timestamp = f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}T10:00:00+00:00"
        campaigns.append(Campaign(folder / "archive", "bookinfo", "shiver", timestamp))
        small = Made(VARIANTS[:2], [100.0, 300.0, 1000.0], runs=3, requests=300)
        large = Made(VARIANTS, [float(rate) for rate in RATES], runs=10, requests=60, failing=VARIANTS[-1])
        write(folder / "tables", campaigns[-1], large if number == CAMPAIGNS - 1 else small)
    write_compared(folder / "tables", campaigns[-1], _COMPARED)
    write_many(folder / "tables", campaigns[-1], VARIANTS, [float(rate) for rate in RATES], _COMPARED)
    history.write(campaigns, folder / "tables", {})
    return campaigns


def build(folder: Path, campaigns: list[Campaign], dump: Dump) -> Path:
    """The site's folder, made from tables."""
    tables, reports = folder / "tables", folder / "reports"
    write_assets(reports)
    for campaign in campaigns:
        site.build_campaign(campaign, tables, reports, _NONE, {})
    build_trace_page(dump, folder / "traced/tables", reports, {})
    compared = Comparison(_COMPARED, "All of the largest", "bookinfo", ("shiver",), (campaigns[-1].timestamp,))
    site.build_comparison(compared, campaigns[-1:], tables, reports, _NONE, options={})
    names = [("bookinfo", name) for name in VARIANTS]
    site.build_variants(names, campaigns, tables, reports, _NONE, options={})
    build_query_page(campaigns, tables, reports, None, {})
    site.build_index(campaigns, tables, reports, _NONE, {}, comparisons=[compared], dumps=[dump])
    return reports


def kinds(pages: Iterable[Path], reports: Path) -> set[str]:
    """Which kinds of pages are among these: by their folder, those over all by their name."""
    return {path.relative_to(reports).parts[0].removesuffix(".html") for path in pages}


def open_all(pages: Iterable[Path]) -> dict[Path, float]:
    """Seconds from asking for a page until it is drawn, by page; the best of three."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where this benchmark runs

    found: dict[Path, float] = {}
    with sync_playwright() as playwright:
        program = next(
            filter(
                None, map(shutil.which, ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome"))
            ),
            None,
        )
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        for path in sorted(pages):
            for _ in range(3):
                page.goto("about:blank")
                started = time.perf_counter()
                page.goto(path.as_uri())
                page.locator("figure[data-chart]:not([data-state=drawn])").first.wait_for(state="detached")
                found[path] = min(found.get(path, 1e9), time.perf_counter() - started)
        browser.close()
    return found


def opening_pages(folder: Path) -> Iterator[Row]:
    """Every page; the peer of the largest is the smallest campaign's."""
    campaigns, (dump,) = write_tables(folder), traces(folder)
    started, cpu_s = time.perf_counter(), time.process_time()
    reports = build(folder, campaigns, dump)
    took = Took(time.perf_counter() - started, time.process_time() - cpu_s)
    yield Row("site of 40 campaigns made from tables", str(took), "under 20 s", took.clock_s < 20)
    found = open_all(reports.rglob("*.html"))
    told = kinds(found, reports)
    every = {Path(entry.path).stem for entry in site_layout.ENTRIES} | {
        "campaigns",
        "comparisons",
        "variants",
        "traces",
        "compare",
    }
    yield Row("kinds of pages opened", f"{len(told)}", f"all {len(every)}", told == every)
    slowest = max(found, key=lambda path: found[path])
    limit = f"under {_LIMIT_S:g} s"
    what = f"slowest of {len(found)} pages drawn ({slowest.name})"
    yield Row(what, f"{found[slowest]:.2f} s", limit, found[slowest] < _LIMIT_S)
    usual = sorted(found.values())[len(found) // 2]
    yield Row("times the median page", f"{found[slowest] / usual:.1f}")
    largest = max(found, key=lambda path: path.stat().st_size)
    size = largest.stat().st_size
    yield Row(f"largest page ({largest.name})", f"{size / 1e6:.2f} MB", "under 2 MB", size < _LARGEST_BYTES)
    start = write_thousand(folder / "thousand") / "index.html"
    (seconds,) = open_all([start]).values()
    yield Row("start page of 1,000 campaigns drawn", f"{seconds:.2f} s", "under 1 s", seconds < 1)
    size = start.stat().st_size
    yield Row("its size", f"{size / 1e3:.0f} kB", "under 300 kB", size < 300_000)
