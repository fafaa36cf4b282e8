"""The pages in a headless Chromium: drawn, driven by their controls, quiet, and asking nobody for anything."""

import re
from itertools import pairwise

import pytest
from loadstone.archive import Campaign
from loadstone.percentiles import LATENCIES, label
from loadstone.report import figures
from report.conftest import ENDING, SCRIPT, VARIANTS
from report.printed import plain
from report.synthetic import Made, write
from support import site
from support.site import write_assets

CONSTANT = ["latency", "success", "time-p50", "time-p90", "sequence", "cdf", "histogram"]


def marks(page, figure):
    """Number of drawn marks (paths and rectangles that are no axis, grid or background) of a figure."""
    return page.page.locator(f"#{figure} .plot svg g[class*='mark-'][class*='role-mark'] > *").count()


def choose(page, name):
    """Choose a radio button by its name."""
    return page.get_by_role("radio", name=name, exact=True).first.check


@pytest.mark.parametrize("name", ["good", "hostile", "empty"])
def test_a_page_from_a_file_draws_everything_and_asks_nobody(made_site, watched, name):
    watched.open(made_site.page(name).as_uri())
    folder = made_site.reports.as_uri()
    assert watched.complaints == []
    assert all(address.startswith(folder) or address == "data:," for address in watched.requests)
    figures = [figure.get_attribute("id") for figure in watched.page.locator("figure[data-chart]").all()]
    if name == "empty":
        assert figures == []
        return
    for figure in figures:
        if figure == "failed" and name == "good":
            assert watched.page.locator("#failed .empty-note").inner_text() == "No request failed at any load."
        else:
            assert marks(watched, figure) > 3, figure
    assert set(CONSTANT) <= set(figures)
    assert any(figure.startswith("errors-") for figure in figures) == (name == "hostile")


def test_the_same_from_a_static_server_with_a_strict_policy(made_site, watched, server):
    watched.open(f"{server}/index.html")
    assert watched.complaints == []
    watched.follow(watched.page.get_by_role("link", name="demo on myhost").first)
    assert "/campaigns/" in watched.page.url and marks(watched, "latency") > 3
    assert watched.complaints == []
    assert all(address.startswith((server, "data:,")) for address in watched.requests)


def test_the_statistic_changes_what_is_drawn(made_site, watched):
    watched.open(made_site.page("good").as_uri())
    page, found = figures.read(made_site.page("good")), {}
    for choice, name in ((label(name), name) for name in LATENCIES):
        watched.do(choose(watched.page, choice))
        rows = watched.view("latency", "view.data('rows')")
        told = page.rows(page.charts["latency"], name)
        fields = ("variant", "load", "value", "low", "high", "estimable", "runs", "requests")
        assert [[row[each] for each in fields] for row in rows] == [[row[each] for each in fields] for row in told]
        found[name] = [row["value"] for row in rows]
    assert len({tuple(values) for values in found.values()}) == len(LATENCIES)
    assert watched.complaints == []


def test_the_axes_change_their_type(made_site, watched):
    watched.open(made_site.page("hostile").as_uri())
    types = {}
    for choice in ("Linear", "Log", "Lin-log"):
        watched.do(choose(watched.page, choice))
        for figure in ("latency", "success", "failed", "time-p50", "errors-1"):
            types[choice, figure] = watched.view(figure, "[view.scale('x').type, view.scale('y').type]")
    assert types["Linear", "latency"] == ["linear", "linear"]
    assert types["Log", "latency"] == types["Log", "success"] == ["log", "log"]
    assert types["Lin-log", "latency"] == ["linear", "log"]
    assert types["Log", "time-p50"] == ["linear", "log"]
    # A share may be zero.
    assert types["Log", "failed"] == types["Log", "errors-1"] == ["log", "linear"]
    assert watched.complaints == []


def test_latency_is_logarithmic_by_itself_where_one_variant_saturates(tmp_path, watched):
    campaign = Campaign(tmp_path / "archive", "demo", "full", "2026-11-21T11:30:00+00:00")
    write(
        tmp_path / "tables", campaign, Made(["plain", "envoy"], [10.0, 40.0], runs=2, requests=200, saturated="envoy")
    )
    write_assets(tmp_path / "reports")
    page = site.build_campaign(campaign, tmp_path / "tables", tmp_path / "reports", VARIANTS, {})
    watched.open(page.as_uri())
    scales = "[view.scale('x').type, view.scale('y').type]"
    assert watched.page.locator("input[name=axes][value=lin-log]").is_checked()
    assert watched.view("latency", scales) == ["linear", "log"]
    assert "#" not in watched.page.url
    # What the reader chooses stays, in the address too.
    watched.do(choose(watched.page, "Linear"))
    assert watched.view("latency", scales) == ["linear", "linear"] and "axes=linear" in watched.page.url
    watched.do(choose(watched.page, "p99"))
    assert watched.view("latency", scales) == ["linear", "linear"]
    watched.open("about:blank")
    watched.open(f"{page.as_uri()}#axes=linear")
    assert watched.view("latency", scales) == ["linear", "linear"]
    assert watched.complaints == []


def test_the_rate_loads_its_own_data_once(made_site, watched):
    watched.open(made_site.page("good").as_uri())
    assert [address[-6:] for address in watched.requests if address.endswith("0.js")] == ["300.js"[-6:]]
    before = watched.view("time-p50", "view.data('rows').map((row) => row.value)")
    rate = watched.page.locator("select[name=rate]").first
    watched.do(lambda: rate.select_option("1000"))
    assert watched.view("time-p50", "view.data('rows').map((row) => row.value)") != before
    assert [select.input_value() for select in watched.page.locator("select[name=rate]").all()] == ["1000"] * 3
    watched.do(lambda: rate.select_option("300"))
    assert watched.view("time-p50", "view.data('rows').map((row) => row.value)") == before
    assert sum(address.endswith("/300.js") for address in watched.requests) == 1
    assert watched.complaints == []


def test_the_inspector_shows_the_chosen_run(made_site, watched):
    watched.open(made_site.page("hostile").as_uri())
    page = watched.page
    seen = []
    for variant, run in (("plain", "1"), (SCRIPT, "3"), ("plain", "2")):
        watched.do(lambda variant=variant: page.locator("select[name=variant]").select_option(variant))
        watched.do(lambda run=run: page.locator("select[name=run]").select_option(run))
        seen.append(
            (
                page.locator("#run-figures").inner_text(),
                watched.view("sequence", "view.data('rows').length"),
                watched.view("cdf", "view.data('rows').map((row) => row.latency)")[50],
            )
        )
    assert len({text for text, _, _ in seen}) == len({median for _, _, median in seen}) == 3
    assert {length for _, length, _ in seen} == {300}
    # Of 300 requests; what is known is in words, too.
    figures = page.locator("#run-figures").inner_text()
    assert "p99\nnot estimable: needs 1,000 requests" in figures and "p99.9\nnot estimable: needs 10,000" in figures
    assert "percentile" not in page.locator("#sequence .summary").text_content()
    note = page.locator("#excluded-run")
    assert note.is_visible() and "incomplete: 3 of <b>9</b> requests" in note.inner_text()
    watched.do(lambda: page.locator("input[name=scale][value=log]").check())
    assert watched.view("cdf", "view.scale('x').type") == "log"
    assert watched.view("sequence", "view.scale('y').type") == "log"
    assert watched.view("histogram", "view.scale('x').type") == "log"
    assert watched.view("histogram", "view.data('rows').reduce((sum, row) => sum + row.count, 0)") == 300
    assert watched.complaints == []


def test_what_is_chosen_is_in_the_address_and_comes_back(made_site, watched, browser):
    watched.open(made_site.page("hostile").as_uri())
    page = watched.page
    watched.do(choose(page, "p99"))
    watched.do(lambda: page.locator("input[name=axes][value=lin-log]").check())
    watched.do(lambda: page.locator("select[name=rate]").first.select_option("200"))
    watched.do(lambda: page.locator("select[name=variant]").select_option(SCRIPT))
    watched.do(lambda: page.locator("select[name=run]").select_option("2"))
    watched.do(lambda: page.get_by_label("plain", exact=True).uncheck())
    address = page.url
    assert "#" in address
    again = type(watched)(browser.new_page())
    again.open(address)
    assert again.page.locator("input[name=stat][value=p99]").is_checked()
    assert again.view("latency", "[view.scale('x').type, view.scale('y').type]") == ["linear", "log"]
    assert again.page.locator("select[name=rate]").first.input_value() == "200"
    assert again.page.locator("select[name=variant]").input_value() == SCRIPT
    assert again.page.locator("select[name=run]").input_value() == "2"
    assert not again.page.get_by_label("plain", exact=True).is_checked()
    assert {row["variant"] for row in again.view("latency", "view.data('rows')")} == {SCRIPT, ENDING}
    assert again.view("latency", "view.data('rows')") == watched.view("latency", "view.data('rows')")
    assert again.complaints == watched.complaints == []
    # What makes no sense in an address is ignored; another address in the same page is followed.
    again.do(lambda: again.page.evaluate("location.hash = '#stat=<b>&rate=12345&axes=log&variant=nobody&hide=x'"))
    again.page.wait_for_function("document.querySelector('input[name=axes][value=log]').checked")
    again.settle()
    assert again.page.locator("input[name=stat][value=p50]").is_checked()
    assert again.complaints == []
    again.page.close()


def test_a_hostile_name_is_text_in_charts_tooltips_tables_and_controls(made_site, watched):
    watched.open(made_site.page("hostile").as_uri())
    page = watched.page
    drawn = page.locator("#latency .plot svg text").all_text_contents()
    assert SCRIPT in drawn and "plain" in drawn
    points = page.locator("#latency .plot svg g.mark-symbol.role-mark path")
    texts = set()
    for index in range(points.count()):
        points.nth(index).hover(force=True)
        tooltip = page.locator("#vg-tooltip-element")
        if tooltip.is_visible():
            texts.add(tooltip.inner_text())
    shown = "\n".join(texts)
    assert SCRIPT in shown and "requests/s" in shown and "(ms)" in shown
    page.locator("#latency .data > summary").click()
    assert SCRIPT in page.locator("#latency .scroll table").inner_text()
    assert SCRIPT in page.locator("select[name=variant]").inner_text()
    assert SCRIPT in page.locator("#latency .plot").get_attribute("aria-label")
    assert page.locator("main b, main i").count() == 0
    assert page.locator("body script:not([src]):not([type='application/json'])").count() == 0
    assert watched.complaints == []


def test_hollow_points_are_those_without_an_interval(made_site, watched):
    hollow = watched.page.locator("#latency .plot svg path[fill='var(--paper)']")
    watched.open(made_site.page("hostile").as_uri() + "#stat=p99")
    rows = watched.view("latency", "view.data('rows')")
    assert rows and not any(row["estimable"] for row in rows), "of too few requests"
    assert hollow.count() == len(rows)
    watched.do(choose(watched.page, "Median"))
    rows = watched.view("latency", "view.data('rows')")
    alone = [row for row in rows if row["low"] is None]
    assert 0 < len(alone) < len(rows) and all(row["estimable"] and row["runs"] == 1 for row in alone)
    assert hollow.count() == len(alone)


def test_the_p99_of_successful_requests_is_hollow_too_where_too_few_support_it(made_site, watched):
    watched.open(made_site.page("hostile").as_uri() + "#stat=p99")
    rows = watched.view("success", "view.data('rows')")
    assert rows and not any(row["estimable"] for row in rows)
    assert watched.page.locator("#success .plot svg path[fill='var(--paper)']").count() == len(rows)
    watched.open("about:blank")
    watched.open(made_site.page("good").as_uri() + "#stat=p99")
    assert all(row["estimable"] for row in watched.view("success", "view.data('rows')"))


def test_names_beside_the_lines_do_not_cover_each_other(made_site, watched):
    watched.open(made_site.page("hostile").as_uri())
    for figure in ("latency", "failed"):
        heights = sorted(row["y"] for row in watched.view(figure, "view.data('labels')"))
        assert len(heights) == 3
        assert all(upper - lower > 14 for lower, upper in pairwise(heights))


@pytest.mark.parametrize("name", ["good", "hostile", "empty", "index"])
@pytest.mark.parametrize("width", [1400, 400, 320])
def test_no_page_scrolls_sideways(made_site, watched, name, width):
    watched.page.set_viewport_size({"width": width, "height": 800})
    path = made_site.reports / "index.html" if name == "index" else made_site.page(name)
    watched.open(path.as_uri())
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    for plot in watched.page.locator(".plot svg").all():
        box = plot.bounding_box()
        assert box["width"] > 200 and box["x"] >= 0 and box["x"] + box["width"] <= width + 1


@pytest.mark.parametrize(
    "width", [1400, pytest.param(760, marks=pytest.mark.long), 400, pytest.param(320, marks=pytest.mark.long)]
)
def test_no_text_of_a_chart_is_cut(made_site, wide_site, watched, width):
    watched.page.set_viewport_size({"width": width, "height": 800})
    for path in (made_site.page("good"), made_site.page("hostile"), wide_site.reports / "comparisons/wide.html"):
        watched.open("about:blank")
        watched.open(path.as_uri())
        assert watched.page.locator(".plot svg text").count() > 20
        assert watched.cut_texts() == []


@pytest.mark.parametrize("name", ["good", "hostile"])
@pytest.mark.parametrize("width", [1400, 400, 320])
def test_no_chart_stands_between_gaps(made_site, watched, name, width):
    """A picture that is made narrower is lower too, and those of panels are no wider than their place at all."""
    watched.page.set_viewport_size({"width": width, "height": 800})
    watched.open(made_site.page(name).as_uri())
    for plot in watched.page.locator(".plot svg").all():
        box, (drawn, high) = (
            plot.bounding_box(),
            plot.evaluate("svg => [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height]"),
        )
        assert box["height"] / box["width"] == pytest.approx(high / drawn, rel=0.02)
        assert box["width"] > 0.97 * drawn, plot.evaluate("svg => svg.closest('figure').id")


@pytest.mark.parametrize("name", ["good", "hostile"])
def test_load_variant_median_and_p99_need_no_scrolling_on_a_phone(made_site, watched, name):
    watched.page.set_viewport_size({"width": 400, "height": 800})
    watched.open(made_site.page(name).as_uri())
    heads = watched.page.locator("#cells-table thead th").all()
    shown = [
        head.inner_text().split()[0]
        for head in heads
        if (box := head.bounding_box()) and box["x"] + box["width"] <= 400
    ]
    assert {"Load", "Variant", "Median", "p99"} <= set(shown)
    # p90 would push p99 out of sight: a phone has it in the charts alone.
    assert "p90" not in shown


def test_charts_follow_the_window(made_site, watched):
    watched.open(made_site.page("good").as_uri())
    assert len(watched.view("latency", "view.data('labels')")) == 2
    legend = watched.page.locator("#latency .legend li")
    assert legend.count() == 0
    watched.page.set_viewport_size({"width": 400, "height": 800})
    watched.page.wait_for_function("loadstone.view('latency').data('labels').length === 0")
    watched.settle()
    assert watched.page.locator("#latency .plot svg").bounding_box()["width"] <= 400
    assert legend.all_inner_texts() == ["Direct", "Envoy"]
    assert watched.complaints == []


def test_dark_mode_changes_paper_ink_and_variants(made_site, browser):
    colours = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(made_site.page("good").as_uri())
        page.wait_for_selector("figure#latency[data-state=drawn]")
        colours[scheme] = page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
            getComputedStyle(document.querySelector('#latency .role-axis-title text')).fill,
            getComputedStyle(document.querySelector('#latency .mark-line path')).stroke]"""
        )
        context.close()
    assert colours["light"][0] == "rgb(255, 255, 255)"
    assert all(light != dark for light, dark in zip(colours["light"], colours["dark"], strict=True))


def test_the_keyboard_reaches_and_drives_the_controls(made_site, watched):
    watched.open(made_site.page("good").as_uri())
    page = watched.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "stat":
            break
    watched.do(lambda: page.keyboard.press("ArrowRight"))
    assert page.locator("input[name=stat][value=p90]").is_checked()
    assert "stat=p90" in page.url


def test_headings_landmarks_and_names(made_site, watched):
    for path in (made_site.page("hostile"), made_site.reports / "index.html"):
        watched.open(path.as_uri())
        page = watched.page
        assert page.locator("h1").count() == page.locator("main").count() == page.locator("footer").count() == 1
        levels = [int(name[1]) for name in page.locator("h1,h2,h3,h4").evaluate_all("all => all.map(e => e.tagName)")]
        assert all(after - before <= 1 for before, after in pairwise(levels))
        unnamed = page.locator("input, select").evaluate_all("all => all.filter(e => !e.labels.length).length")
        assert unnamed == 0
        for plot in page.locator(".plot").all():
            assert plot.get_attribute("role") == "img" and len(plot.get_attribute("aria-label")) > 20
        identifiers = page.locator("[id]").evaluate_all("all => all.map(e => e.id).filter(id => !id.startsWith('vg-'))")
        assert len(identifiers) == len(set(identifiers))


def test_the_table_under_a_chart_holds_what_is_drawn(made_site, watched):
    watched.open(made_site.page("good").as_uri())
    page = watched.page
    page.locator("#latency .data > summary").click()
    table = page.locator("#latency .scroll table")
    table.wait_for()
    drawn, runs = (watched.view("latency", f"view.data('{name}')") for name in ("rows", "runs"))
    assert table.locator("tbody tr").count() == len(drawn) + len(runs) == 6 + 18
    assert "Latency (ms)" in table.inner_text() and "95 %:" in plain(table.inner_text())
    before = table.inner_text()
    watched.do(choose(page, "p90"))
    assert page.locator("#latency .scroll table").inner_text() != before
    assert re.search(
        r"Direct: [\d.]+ ms at 100 requests/s, [\d.]+ ms at 1,000",
        plain(page.locator("#latency .summary").inner_text()),
    )


def test_data_that_is_not_there_is_said(made_site, watched, tmp_path):
    path = made_site.page("good")
    (tmp_path / "campaigns").mkdir()
    (tmp_path / "assets").symlink_to(made_site.reports / "assets")
    (tmp_path / "campaigns" / path.name).write_bytes(path.read_bytes())
    watched.page.goto((tmp_path / "campaigns" / path.name).as_uri())
    note = watched.page.locator("#load-problem")
    note.wait_for(state="visible")
    assert "could not be loaded" in note.inner_text()
    assert marks(watched, "latency") > 3


def test_a_wide_page_is_drawn_in_full(wide_site, watched):
    watched.open(wide_site.page("wide").as_uri())
    assert watched.complaints == []
    assert len(watched.view("latency", "view.data('rows')")) == 27 * 5
    assert watched.page.locator("#cells-table tbody tr").count() == 27 * 5
