"""In Chromium: latency against time and load, percentile curves, runs behind figures, errors beside the baseline."""

import pytest
from loadstone.archive import Campaign
from report.conftest import VARIANTS
from report.synthetic import Made, write
from support import site
from support.site import write_assets


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A campaign whose bins have requests enough for p90; one run does not count."""
    root = tmp_path_factory.mktemp("pictured")
    campaign = Campaign(root / "archive", "demo", "here", "2026-11-21T11:30:00+00:00")
    made = Made(["plain", "envoy"], [100.0, 400.0], runs=3, requests=2000, excluded=("plain", 2))
    write(root / "tables", campaign, made)
    write_assets(root / "reports")
    return site.build_campaign(campaign, root / "tables", root / "reports", VARIANTS, {})


def rows(watched, figure, name="rows"):
    return watched.view(figure, f"view.data('{name}')")


def test_all_panels_have_one_scale_of_colours_from_least_to_most(large, watched) -> None:
    watched.open(large.as_uri())
    drawn = rows(watched, "heat")
    assert {row["label"] for row in drawn} == {"Direct", "Envoy"} and {row["load"] for row in drawn} == {100, 400}
    values = [row["value"] for row in drawn]
    assert watched.view("heat", "view.scale('color').domain()") == [min(values), max(values)]
    assert watched.view("heat", "view.scale('color').type") == "sequential-log"
    assert "Direct: lowest" in watched.page.locator("#heat .summary").text_content()
    watched.do(lambda: watched.page.locator("input[name=stat][value=p90]").check(force=True))
    assert watched.view("heat", "view.scale('color').domain()")[1] > max(values)
    assert "the 90th percentile of the requests that all valid runs" in watched.page.locator("#heat .note").inner_text()
    assert watched.complaints == []


def test_what_is_not_estimable_has_no_colour_and_says_so(large, watched) -> None:
    watched.open(f"{large.as_uri()}#stat=p90")
    drawn = rows(watched, "heat")
    few = [row for row in drawn if row["value"] is None]
    assert few == [row for row in drawn if row["requests"] < 100]
    watched.do(lambda: watched.page.locator("input[name=stat][value=p99]").check(force=True))
    note = watched.page.locator("#heat .empty-note")
    assert note.inner_text() == "No time bin has enough requests for this statistic."
    assert watched.page.locator("#heat svg").count() == 0 and watched.complaints == []


def test_a_hidden_variant_has_no_panel_and_can_be_put_back(large, watched) -> None:
    watched.open(f"{large.as_uri()}#hide=plain")
    assert {row["variant"] for row in rows(watched, "heat")} == {"envoy"}
    watched.do(lambda: watched.page.locator("#heat .legend button").click())
    assert {row["variant"] for row in rows(watched, "heat")} == {"plain", "envoy"}


def test_panels_stand_below_each_other_on_a_phone(large, watched) -> None:
    watched.page.set_viewport_size({"width": 400, "height": 800})
    watched.open(large.as_uri())
    width = watched.page.evaluate("document.querySelector('#heat .plot svg').getBoundingClientRect().width")
    assert width <= 370
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 400


def test_curves_are_of_the_chosen_load_and_end_where_requests_end(large, watched) -> None:
    watched.open(f"{large.as_uri()}#rate=100")
    pooled, runs = rows(watched, "curves"), rows(watched, "curves", "runs")
    assert {row["load"] for row in [*pooled, *runs]} == {100}
    last = {row["variant"]: row for row in pooled}
    assert last["envoy"]["requests"] == 6000 and last["plain"]["requests"] == 4000, "a run of it does not count"
    for row in last.values():
        assert row["requests"] * (1 - row["share"] / 100) >= 10 - 1e-6
    assert {(row["variant"], row["run"]) for row in runs} == {
        *(("plain", run) for run in "13"),
        *(("envoy", run) for run in "123"),
    }
    assert watched.view("curves", "view.scale('x').type") == "log"
    watched.do(lambda: watched.page.locator("select[name=rate]").first.select_option("400"))
    assert {row["load"] for row in rows(watched, "curves")} == {400} and "rate" not in watched.page.url


def test_every_run_that_counts_is_a_point_with_its_number(large, watched) -> None:
    watched.open(large.as_uri())
    runs = rows(watched, "latency", "runs")
    assert len(runs) == 10 and {"run", "text", "label"} <= set(runs[0])
    pooled = {(row["variant"], row["load"]): row["value"] for row in rows(watched, "latency")}
    for run in runs:
        assert run["value"] == pytest.approx(pooled[run["variant"], run["load"]], rel=0.2)
    watched.page.locator("#latency .data > summary").click()
    watched.page.locator("#latency tbody tr").nth(4 + 10 - 1).wait_for()
    assert watched.page.locator("#latency tbody tr").count() == 4 + 10
