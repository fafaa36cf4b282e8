"""Every kind of page of a large site: quiet, offline, within its width, and without fault for those who hear it."""

import re
import shutil
from pathlib import Path

import loadstone
import pytest
from loadstone.analysis import history
from loadstone.archive import Campaign
from loadstone.archive.trace_dumps import Dump
from loadstone.config.comparisons import Comparison
from loadstone.report import site_layout
from loadstone.report.query_page import build_query_page
from loadstone.report.trace_page import build_trace_page
from loadstone.tables.schema import MADE_BY, TABLES, VIEWS
from report.conftest import ENDING, SCRIPT, TITLED, VARIANTS, Site
from report.synthetic import Made, write
from report.test_annotations import ENTRY
from report.test_comparison import BAD, comparison, make
from support import site
from support.site import write_assets
from support.spans import dump as dump_of
from support.spans import span, trace
from tables.test_traces import US, Traced

HOSTILE = Made(
    ["plain", SCRIPT, ENDING],
    [10.0, 50.0],
    runs=2,
    requests=100,
    failing=SCRIPT,
    excluded=("plain", 2),
    missing=("plain", 3),
)
SMALL = Made(["plain", "envoy"], [100.0, 300.0], runs=2, requests=30)
KINDS = ("index", "campaigns", "comparisons", "compare", "variants", "quality", "methods", "progress", "ask")
KINDS += ("campaign", "comparison", "variant", "traces")
FOLDERS = {"comparison": "comparisons/mesh.html", "variant": "variants/demo_plain.html", "traces": "traces/*.html"}


def traces(root: Path) -> list[Dump]:
    """The dump of an archive with names that mean something to HTML, and its tables."""
    traced = Traced(root / "traced")
    spans = [
        span("root", US, 170_000, service="prose", operation=SCRIPT),
        span("a", US + 1000, 70_000, "root", service=f"a very long name of a service {BAD}", operation="POST"),
        span("b", US + 90_000, 9_000, "root", service="", operation=ENDING),
    ]
    traced.save(dump_of(trace("t1", spans)))
    traced.convert()
    return traced.dumps()


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Site:
    """Forty campaigns in the lists; the pages of two of them, a comparison's and a trace dump's."""
    root = tmp_path_factory.mktemp("large")
    tables, reports = root / "tables", root / "reports"
    campaigns = [
        Campaign(root / "archive", "demo", f"host-{n % 3}", f"2026-{1 + n // 28:02d}-{1 + n % 28:02d}T11:30:00+00:00")
        for n in range(40)
    ]
    for number, campaign in enumerate(campaigns):
        write(tables, campaign, HOSTILE if number == 39 else SMALL)
    write_assets(reports)
    for campaign in campaigns[-2:]:
        site.build_campaign(campaign, tables, reports, VARIANTS, TITLED, entry=ENTRY)
    (dump,) = traces(root)
    build_trace_page(dump, root / "traced/tables", reports, TITLED)
    history.write(campaigns, tables, {("demo", "host-0", campaigns[3].timestamp): f"Noted {BAD}"})
    site.build_variants(
        [("demo", name) for name in ("plain", "envoy", SCRIPT)], campaigns, tables, reports, VARIANTS, options=TITLED
    )
    build_query_page(campaigns, tables, reports, None, TITLED)
    declared = [
        Comparison(f"c{number}", f"Number {number} {SCRIPT}", "demo", ("host-0",), (campaigns[0].timestamp,))
        for number in range(12)
    ]
    purposes = {("demo", each.host, each.timestamp): f"To see {BAD}" for each in campaigns[::2]}
    site.build_index(
        campaigns,
        tables,
        reports,
        VARIANTS,
        TITLED,
        comparisons=[*declared, comparison(id="gone", title=f"Gone {BAD}")],
        purposes=purposes,
        dumps=[dump],
        outside=[f"notes {BAD} is no campaign", "another"],
    )
    compared = make(root / "compared", comparison())
    shutil.copytree(compared / "comparisons", reports / "comparisons", dirs_exist_ok=True)
    return Site(reports, tables, {"hostile": campaigns[-1], "good": campaigns[-2]})


def page(large: Site, kind: str) -> Path:
    """One page of a kind."""
    if kind == "campaign":
        return large.page("hostile")
    found = {
        "comparison": "comparisons/mesh.html",
        "variant": "variants/demo_plain.html",
        "traces": "traces/*.html",
    }.get(kind, f"{kind}.html")
    return next(large.reports.glob(found))


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_quiet_asks_nobody_and_keeps_its_width(large, watched, kind):
    for width in (1400, 400):
        watched.page.set_viewport_size({"width": width, "height": 900})
        watched.open(page(large, kind).as_uri())
        watched.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
        # What is wider than the window scrolls in a box of its own.
        wider = """width => [...document.querySelectorAll('table, pre, svg')].filter((each) => {
            const box = each.closest('.scroll, pre, .plot'), right = box ? box.getBoundingClientRect().right : Infinity;
            return each.getBoundingClientRect().width > width && right > width + 1;
        }).map((each) => each.outerHTML.slice(0, 80))"""
        assert watched.page.evaluate(wider, width) == []
        assert watched.cut_texts() == []
    # Lines end neither between a number and its unit nor within an interval.
    texts = """() => [...document.querySelectorAll('main :is(h2, h3, p, li, dd, td, figcaption)')]
        .filter((each) => !each.closest('pre, code') && !each.querySelector('pre, code'))
        .map((each) => each.textContent)"""
    parted = re.compile(r"\d (%|ms|µs|s|requests/s|users|MiB)(?![\w/])|\[[−\d.,]+, ")
    assert [text for text in watched.page.evaluate(texts) if parted.search(text)] == []
    assert watched.complaints == []
    folder = large.reports.as_uri()
    assert all(address.startswith((folder, "data:,")) for address in watched.requests)


@pytest.mark.parametrize(
    "looks",
    [((1400, "light"), (400, "dark")), pytest.param(((1400, "dark"), (400, "light")), marks=pytest.mark.long)],
    ids=["diagonal", "rest"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(large, watched, kind, looks):
    found = {}
    for width, scheme in looks:
        watched.page.set_viewport_size({"width": width, "height": 900})
        watched.page.emulate_media(color_scheme=scheme)
        watched.open(page(large, kind).as_uri())
        found |= {(width, scheme, rule): nodes for rule, nodes in watched.violations().items()}
    assert found == {}


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_has_the_same_way_around(large, watched, kind):
    watched.open(page(large, kind).as_uri())
    links = watched.page.locator("header nav a")
    assert links.all_inner_texts() == [entry.title for entry in site_layout.ENTRIES]
    current = watched.page.locator("header nav a[aria-current]").all_inner_texts()
    assert len(current) == 1
    for address in links.evaluate_all("all => all.map((link) => link.href)"):
        assert Path(address.removeprefix("file://")).is_file()


FIGURES = """() => [...document.querySelectorAll('main section')].filter((each) =>
    each.querySelector('td.n, figure[data-chart], dl.figures') && !each.querySelector('.source a')
).map((each) => each.getAttribute('aria-labelledby') || each.getAttribute('aria-label'))"""


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("methods", "progress", "comparisons", "ask")])
def test_figures_lead_to_their_table_and_that_to_what_makes_it(large, watched, kind):
    watched.open(page(large, kind).as_uri())
    assert watched.page.evaluate(FIGURES) == []
    links = watched.page.locator(".source a")
    found = links.evaluate_all("all => all.map((link) => [link.textContent, link.href])")
    assert found
    methods = watched.page
    for table, address in dict(map(tuple, found)).items():
        watched.open(address)
        row = methods.locator(f"tr[id='table-{table}']")
        assert address.partition("#")[2] == f"table-{table}" and row.count() == 1
        for name in row.locator("td code").all_inner_texts():
            assert (Path(loadstone.__file__).parent / name).exists(), name


def test_every_table_is_among_them():
    assert MADE_BY.keys() == TABLES.keys() | VIEWS.keys()


def test_every_text_of_the_archive_is_shown_as_text(large, watched):
    seen = ""
    for kind in KINDS:
        watched.open(page(large, kind).as_uri())
        watched.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        seen += watched.page.locator("body").inner_text()
        assert watched.page.locator("body script:not([src]):not([type='application/json'])").count() == 0
        assert watched.page.locator("main :is(b, i):not([class])").count() == 0
    assert watched.complaints == []
    for text in (
        f"To see {BAD}",
        f"notes {BAD} is no campaign",
        f"Gone {BAD}",
        f"Noted {BAD}",
        f"Number 3 {SCRIPT}",
        "incomplete: 3 of <b>9</b> requests",
        "x/<b>notes</b>.txt: is not a file of a <i>run</i>",
        "The <b>switch</b> was rebooted",
        f"a very long name of a service {BAD}",
        TITLED["title"],
    ):
        assert text in seen, text


def test_forty_campaigns_are_found_by_words_and_by_what_is_amiss(large, watched):
    watched.open((large.reports / "index.html").as_uri())
    page = watched.page
    shown = "all => all.filter((each) => each.offsetParent).length"
    found = "section[aria-labelledby=campaigns] li[data-entry]"
    cards, comparisons = page.locator(found), page.locator("section[aria-labelledby=comparisons] li")
    assert (cards.count(), cards.evaluate_all(shown), comparisons.evaluate_all(shown)) == (40, 3, 12)
    page.get_by_role("searchbox").fill("host-1 january to see")
    # Every other campaign has a purpose, every third is on that host: numbers 4, 10, 16 and 22 of January's 28.
    assert cards.evaluate_all(shown) == 4 and not page.get_by_role("heading", name="Comparisons").is_visible()
    assert page.get_by_role("status").inner_text() == "4 found"
    page.get_by_role("searchbox").fill("number 3")
    assert comparisons.evaluate_all(shown) == 1 and cards.evaluate_all(shown) == 0
    address = page.url
    assert "find=number+3" in address
    watched.open("about:blank")
    watched.open(address)
    assert page.get_by_role("searchbox").input_value() == "number 3" and comparisons.evaluate_all(shown) == 1
    watched.open((large.reports / "campaigns.html").as_uri())
    rows = page.locator("tbody tr")
    assert rows.evaluate_all(shown) == 40
    page.get_by_label("Host").select_option("host-2")
    assert rows.evaluate_all(shown) == 13
    page.get_by_label("Host").select_option("")
    page.get_by_label("With excluded, failed or missing runs").check()
    assert rows.evaluate_all(shown) == 1
    page.go_back()
    page.go_back()
    assert page.get_by_label("Host").input_value() == "host-2" and rows.evaluate_all(shown) == 13
    assert watched.complaints == []


def test_the_map_of_runs_says_what_became_of_each(large, watched):
    watched.open((large.reports / "quality.html").as_uri())
    section = watched.page.locator("section.quality").first
    cells = section.locator("table.map .runs")
    words = cells.evaluate_all("all => all.map((each) => each.ariaLabel)")
    assert words[0] == "run 1 collected, run 2 excluded"
    assert set(words[1:3]) == {"runs 1–2 collected"}
    assert cells.first.inner_text() == "■◇"
    assert re.search(r"322 valid.*2 excluded", watched.page.locator(".states").inner_text().replace("\n", " "))


def test_a_newcomer_with_one_campaign_sees_no_clutter(tmp_path, watched):
    campaign = Campaign(tmp_path / "archive", "demo", "here", "2026-11-21T11:30:00+00:00")
    write(tmp_path / "tables", campaign, SMALL)
    write_assets(tmp_path)
    declared = [comparison(id=f"of-others-{number}") for number in range(31)]
    site.build_index([campaign], tmp_path / "tables", tmp_path, VARIANTS, {}, comparisons=declared)
    watched.open((tmp_path / "index.html").as_uri())
    assert watched.page.locator("h2, h3").all_inner_texts() == [
        "Newest results",
        "demo on here 21 November 2026, 11:30 UTC",
        "The archive",
        "How to rebuild this site",
    ]
    assert watched.page.get_by_role("searchbox").count() == 0
    assert "Data quality lists every run and names 1 problem." in watched.page.locator("main").inner_text()
    watched.open((tmp_path / "comparisons.html").as_uri())
    assert "31 declared comparisons with no campaign in this archive" in watched.page.locator("main").inner_text()
    assert watched.complaints == []
