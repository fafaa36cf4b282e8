"""Pages of variants over time, in a real browser."""

from urllib.parse import parse_qs, urlparse

import duckdb
import pytest
from analysis.test_history import TIMES, campaign, write
from loadstone import archive
from loadstone.percentiles import LATENCIES
from loadstone.report.site_layout import variant_slug
from report.conftest import ENDING, SCRIPT, TITLED, VARIANTS, Site
from report.printed import plain
from support import site
from support.site import write_assets
from tables.tabling import Project

NOTE = f"A new kernel {ENDING}"


@pytest.fixture(scope="module")
def through_time(tmp_path_factory) -> Site:
    """Seven campaigns: direct is half as slow again from the fifth on; a variant with a hostile name is in two.

    Another is in one, where requests time out.
    """
    project = Project(tmp_path_factory.mktemp("through"))
    for position, timestamp in enumerate(TIMES):
        labels = {"labels": {"kernel": f"5 {SCRIPT}" if position < 4 else "6"}}
        campaign(project, timestamp, 1.0 if position < 4 else 1.5, failing=40 if position > 4 else 0, **labels)
        if position in (1, 2):
            campaign(project, timestamp, 2.0, runs=2, variant=f"odd {SCRIPT.replace('/', '')}")
    campaign(project, TIMES[0], variant="late", timing_out=60)
    write(project, {("demo", "here", TIMES[4]): NOTE})
    campaigns = list(archive.campaigns(project.archive))
    reports = project.archive.parent / "reports"
    write_assets(reports)
    for each in campaigns:
        site.build_campaign(each, project.tables, reports, VARIANTS, TITLED)
    names = [("demo", "plain"), ("demo", f"odd {SCRIPT.replace('/', '')}"), ("demo", "late"), ("demo", "gone")]
    site.build_variants(names, campaigns, project.tables, reports, VARIANTS, options=TITLED)
    site.build_index(campaigns, project.tables, reports, VARIANTS, TITLED)
    return Site(reports, project.tables, {each.timestamp: each for each in campaigns})


def address(made: Site, variant: str = "plain") -> str:
    return (made.reports / "variants" / f"{variant_slug('demo', variant)}.html").as_uri()


def test_a_step_is_drawn_where_it_was_put_with_its_note(through_time, watched):
    watched.open(address(through_time))
    points = watched.view("history", "view.data('rows').filter((row) => row.kind === 'point')")
    assert [row["level"] for row in points] == [1, 1, 1, 1, 2, 2, 2]
    assert [row["change"] for row in points].index(True) == 4
    (change,) = watched.view("history", "view.data('rows').filter((row) => row.kind === 'change')")
    assert NOTE in change["tooltip"] and change["at"] == points[4]["at"]
    assert 1.4 < points[5]["level_value"] / points[0]["level_value"] < 1.6
    assert points[4]["differs"] == f"label kernel: 5 {SCRIPT} before, 6 here"
    words = watched.page.locator("#history .summary").text_content()
    assert "Level changes: 1 April 2026, 10:30 UTC: from" in words
    assert watched.complaints == []


def test_a_campaign_is_told_on_every_page_by_the_time_of_its_own_zone(through_time, watched):
    written = "1 March 2026, 23:30 UTC+14:00"
    watched.open(address(through_time))
    assert written in watched.view("history", "view.data('rows').map((row) => row.when)")
    for page in (
        through_time.page(TIMES[2]),
        *(through_time.reports / f"{name}.html" for name in ("index", "quality")),
    ):
        assert written in page.read_text("utf-8"), page
    variant = next((through_time.reports / "variants").glob("demo_plain*.html")).read_text("utf-8")
    assert written in variant and "1 March 2026, 09:30 UTC" not in variant


def test_figures_are_those_of_the_table(through_time, watched):
    watched.open(f"{address(through_time)}#stat=p99")
    drawn = watched.view("history", "view.data('rows').filter((row) => row.kind === 'point')")
    told = duckdb.sql(
        f"SELECT value, low, high FROM '{through_time.tables}/history/part.parquet' "
        "WHERE variant = 'plain' AND statistic = 'p99' ORDER BY started_at"
    ).fetchall()
    assert len(drawn) == len(told) == 7
    for row, figures in zip(drawn, told, strict=True):
        assert [row[name] * 1e6 for name in ("value", "low", "high")] == pytest.approx(figures, rel=1e-5)


def test_a_figure_among_timeouts_is_said_to_be_the_least(through_time, watched):
    watched.open(f"{address(through_time, 'late')}#stat=p90")
    assert "at least 2,000 ms on" in plain(watched.page.locator("#history .summary").text_content())
    watched.page.locator("#history .data > summary").click()
    cells = watched.page.locator("#history tbody td").all_text_contents()
    assert cells[1:3] == ["at least 2,000", "none: requests timed out"]
    assert watched.complaints == []


def test_what_is_chosen_is_kept_in_the_address(through_time, watched):
    watched.open(address(through_time))
    watched.do(lambda: watched.page.get_by_role("radio", name="Error fraction").check())
    assert parse_qs(urlparse(watched.page.url).fragment) == {"stat": ["error_fraction"]}
    values = watched.view("history", "view.data('rows').filter((row) => row.kind === 'point').map((row) => row.value)")
    assert values[:5] == [0] * 5 and values[6] == pytest.approx(10)
    watched.open(f"{address(through_time)}#host=nowhere&rate=7&stat=mean")
    assert watched.page.locator("input[name=stat]:checked").input_value() == "mean"
    assert watched.page.locator("select[name=host]").input_value() == "here"
    assert watched.page.locator("select[name=rate]").input_value() == "100"
    watched.page.locator("#changes ~ .scroll a[href^='#']").first.click()
    watched.settle()
    assert "stat=" in watched.page.url and watched.complaints == []


def test_the_list_keeps_its_headings_on_a_phone(through_time, watched):
    watched.page.set_viewport_size({"width": 400, "height": 800})
    watched.open((through_time.reports / "variants.html").as_uri())
    heads = (
        watched.page.locator("tbody tr")
        .first.locator("td")
        .evaluate_all("cells => cells.map((cell) => getComputedStyle(cell, '::before').content)")
    )
    assert heads == [f'"{name}: "' for name in ("Measured in", "Hosts", "Load", "Level changes")]


def test_the_table_of_changes_leads_to_the_campaign(through_time, watched):
    watched.open(address(through_time))
    rows = watched.page.locator("#changes ~ .scroll tbody tr")
    texts = list(map(plain, rows.all_inner_texts()))
    assert any("1 April 2026" in text and "kernel" in text and NOTE in text for text in texts)
    assert any("Error fraction" in text and "0 to 10.0 %" in text for text in texts)
    page = through_time.page(TIMES[4]).as_uri()
    assert page in rows.locator("th a").evaluate_all("all => all.map((link) => link.href)")
    watched.open(page)
    links = watched.page.locator("main .variants a").evaluate_all("all => all.map((link) => link.href)")
    assert links == [address(through_time)]


def test_a_variant_without_figures_says_so_and_one_that_is_gone_has_no_page(through_time, watched):
    watched.open(address(through_time, "gone"))
    assert "No campaign of demo has a figure" in watched.page.locator("main").inner_text()
    assert watched.complaints == []
    names = [("demo", "plain"), ("demo", f"odd {SCRIPT.replace('/', '')}")]
    campaigns = list(through_time.campaigns.values())
    site.build_variants(names, campaigns, through_time.tables, through_time.reports, VARIANTS, options=TITLED)
    left = {path.stem for path in (through_time.reports / "variants").iterdir()}
    assert left == {variant_slug(*name) for name in names}


def test_the_list_says_what_changed_and_shows_text_as_text(through_time, watched):
    watched.open((through_time.reports / "variants.html").as_uri())
    texts = watched.page.locator("tbody tr").all_inner_texts()
    assert "7 campaigns" in texts[0] and "last on" in texts[0]
    assert f"odd {SCRIPT.replace('/', '')}" in texts[1] and "2 campaigns" in texts[1] and "none" in texts[1]
    watched.follow(watched.page.locator("tbody a").nth(1))
    assert watched.page.locator("h1").inner_text().startswith(f"odd {SCRIPT.replace('/', '')} over time")
    n = len(LATENCIES)
    said = (
        f"No change of level in any of {n} series (one per load and statistic). Small changes are not detected in {n}"
    )
    assert said in watched.page.locator("main").inner_text()
    assert watched.complaints == []


def test_the_data_of_the_chart_are_saved_whole(through_time, watched):
    watched.open(address(through_time))
    watched.page.locator("#history .data > summary").click()
    with watched.page.expect_download() as saved:
        watched.page.locator("#history button[data-save=csv]").click()
    lines = saved.value.path().read_text("utf-8").splitlines()
    assert len(lines) == 8 and lines[0].startswith("Campaign,Latency (ms),Interval,Runs,Level")


@pytest.mark.parametrize("name", ["app/x", "a_b", "Cap", "", "..", "é" * 90, "x" * 300, "a+b"])
def test_no_two_variants_share_a_page(name):
    slugs = {variant_slug("demo", name), variant_slug("demo", f"{name}-"), variant_slug("Demo", name)}
    assert len(slugs) == 3
    assert all(len(slug) < 200 and "/" not in slug for slug in slugs)
