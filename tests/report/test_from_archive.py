"""From raw files to pages, through the real conversion and analysis."""

import json
import re
from typing import Any

import numpy as np
import pytest
from loadstone import archive
from loadstone.config.variants import Variants
from loadstone.percentiles import SHOWN_PERCENTILES
from loadstone.report import figures
from loadstone.report.site_layout import slug
from report.test_site import Page, received
from support import rawfiles, site
from support.site import write_assets
from tables.tabling import Project

VARIANTS = Variants({"demo": {"plain": {}, "istio": {"label": "Istio", "aliases": ["envoy"]}}})
HOSTILE = 'it\'s "<img src=x onerror=alert(1)>" 100% {b}'


def latencies_ms(seed, requests):
    return np.random.default_rng(seed).lognormal(0.5, 0.4, requests)


def content(seed, rate, **fields):
    return rawfiles.compress(rawfiles.lines(latencies_ms(seed, rate) * 1e6, rate=rate, **fields))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An archive with all that goes wrong, and its site: (project, campaign, reports)."""
    folder = tmp_path_factory.mktemp("project")
    project = Project(folder)
    runs = {f"{run}.results.json.zst": content(run, 100) for run in (1, 2, 3)}
    warm = {"1.warmups.json.zst": content(9, 50)}
    rawfiles.write_cell(
        project.archive, runs | warm, variant="plain", seed=7, order={"kind": "blocks", "positions": [1, 4, 9]}
    )
    cut = rawfiles.lines(latencies_ms(12, 100) * 1e6)[:-20]
    truncated = {"2.results.json": cut, "1.results.json.zst": content(11, 100)}
    rawfiles.write_cell(project.archive, truncated, variant="envoy")
    # A second folder that means the same variant, with the same run number.
    rawfiles.write_cell(project.archive, {"1.results.json.zst": content(13, 100)}, variant="istio")
    rawfiles.write_cell(
        project.archive, {"1.results.json.zst": content(14, 200, code=503)}, rate="200", variant=HOSTILE
    )
    rawfiles.write_cell(project.archive, {"1.results.json.zst": b"garbage"}, rate="0.5", variant="plain")
    rawfiles.write_cell(project.archive, {"notes <b>.txt": b"?"}, rate="400", variant="plain")
    project.make()
    (campaign,) = archive.campaigns(project.archive)
    reports = folder / "reports"
    write_assets(reports)
    site.build_campaign(campaign, project.tables, reports, VARIANTS, {})
    site.build_index([campaign], project.tables, reports, VARIANTS, {})
    return project, campaign, reports


@pytest.fixture(scope="module")
def path(made):
    _, campaign, reports = made
    return reports / "campaigns" / f"{slug(campaign)}.html"


def test_percentiles_on_the_page_are_those_of_the_raw_files(path):
    page = figures.read(path)

    def shown(chart: str, statistic: str) -> dict[tuple[float, str], dict[str, Any]]:
        return {(row["load"], row["variant"]): row for row in page.rows(page.charts[chart], statistic)}

    plain = shown("latency", "p50")[100.0, "plain"]
    pooled = np.concatenate([latencies_ms(seed, 100) for seed in (1, 2, 3)])
    assert (plain["runs"], plain["requests"]) == (3, 300)
    for name, share in SHOWN_PERCENTILES.items():
        assert shown("latency", name)[100.0, "plain"]["value"] == pytest.approx(np.quantile(pooled, share), rel=1e-4)
    assert plain["estimable"] is True and shown("latency", "p99")[100.0, "plain"]["estimable"] is False
    means = [latencies_ms(seed, 100).mean() for seed in (1, 2, 3)]
    mean = shown("latency", "mean")[100.0, "plain"]
    assert [mean["value"], mean["low"], mean["high"]] == pytest.approx(
        [np.mean(means), np.mean(means) - np.std(means), np.mean(means) + np.std(means)], rel=1e-4
    )
    failed = {(row["load"], row["variant"]): row["share"] for row in page.rows(page.charts["failed"])}
    assert failed[200.0, HOSTILE] == 100 and (200.0, HOSTILE) not in shown("success", "p50")


def test_the_page_names_plan_gaps_exclusions_and_problems(path):
    page = Page(path)
    assert re.search(
        r"\d+ of \d+ planned runs collected; [1-9]\d* excluded, so the figures are based on \d+ runs\.", page.text
    )
    assert "complete blocks" in page.text and "seed 7" in page.text and "pods: 10" in page.text
    assert "Missing runs" in page.text
    assert "notes <b>.txt" in page.text
    assert HOSTILE in page.text and not [tag for tag, _ in page.elements if tag == "img"]


def test_the_page_counts_as_the_tables_do(made, path):
    project, _, reports = made
    counts = project.row(
        "SELECT count(*) AS runs, count(*) FILTER (WHERE excluded) AS excluded, sum(requests) AS requests FROM runs"
    )
    planned = project.row("SELECT count(*) AS planned, count(*) FILTER (WHERE collected) AS collected FROM planned")
    text = Page(path).text
    assert (
        f"{planned['collected']} of {planned['planned']} planned runs collected; {counts['excluded']} excluded" in text
    )
    index = Page(reports / "index.html").text
    assert f"{planned['collected']} of {planned['planned']} planned" in index
    assert f"{counts['excluded']} excluded" in index and f"{counts['requests']:,}" in index


def test_two_folders_of_one_variant_keep_their_runs_apart(made):
    _, campaign, reports = made
    _, data = received(reports / "campaigns" / slug(campaign) / "100.js")
    runs = {(run["variant"], run["folder"], run["run"]): run for run in data["runs"]}
    assert runs["istio", "envoy", 1]["figures"]["p50"] == pytest.approx(np.median(latencies_ms(11, 100)), rel=1e-4)
    assert runs["istio", "istio", 1]["figures"]["p50"] == pytest.approx(np.median(latencies_ms(13, 100)), rel=1e-4)
    assert runs["istio", "envoy", 2]["exclusion_reason"]
    page = figures.read(reports / "campaigns" / f"{slug(campaign)}.html")
    over_time = page.rows(data["charts"]["time"], "p50")
    assert {(row["variant"], row["phase"]) for row in over_time} >= {
        ("plain", "warmup"),
        ("plain", "test"),
        ("istio", "test"),
    }


def test_the_broken_archive_s_page_works_in_a_browser(made, path, watched):
    for rate in ("100", "200", "0.5"):
        watched.open(f"{path.as_uri()}#rate={rate}&variant=istio&axes=log")
        watched.page.reload()
        watched.settle()
        assert watched.complaints == []
    watched.open(f"{path.as_uri()}#rate=100&variant=istio")
    runs = watched.page.locator("select[name=run] option")
    assert sorted(runs.all_inner_texts()) == ["Run 1@envoy", "Run 1@istio", "Run 2 (excluded)"]
    drawn = json.dumps(watched.page.locator("svg text").all_text_contents())
    assert "<img src=x" in drawn


def test_an_interval_that_is_too_wide_to_draw_is_in_the_table_alone(tmp_path, watched):
    project = Project(tmp_path)
    slow = rawfiles.compress(rawfiles.lines(latencies_ms(2, 100) * 1e9))
    runs = {f"{run}.results.json.zst": content(run, 100) for run in (1, 3)}
    rawfiles.write_cell(project.archive, runs | {"2.results.json.zst": slow})
    rawfiles.write_cell(project.archive, runs | {"2.results.json.zst": content(2, 100)}, variant="envoy")
    project.make()
    (campaign,) = archive.campaigns(project.archive)
    write_assets(tmp_path / "reports")
    page = site.build_campaign(campaign, project.tables, tmp_path / "reports", VARIANTS, {})
    watched.open(page.as_uri())
    row = watched.page.locator("#cells-table tbody tr").first
    low, high = re.search(r"\[([\d.,]+),\s([\d.,]+)\]", row.inner_text()).groups()
    assert float(high.replace(",", "")) > 100 * float(low)
    drawn = {row["variant"]: row for row in watched.view("latency", "view.data('rows')")}
    assert (drawn["plain"]["low"], drawn["plain"]["high"]) == (None, None)
    assert drawn["plain"]["interval"] == "none, or too wide to draw: see the table"
    assert drawn["istio"]["low"] < drawn["istio"]["value"] < drawn["istio"]["high"] < 100
    top = watched.view("latency", "view.scale('y').domain()[1]")
    assert top < 3 * max(row["value"] for row in drawn.values())
    watched.do(watched.page.locator("label", has_text="Mean").first.click)
    assert all(row["low"] is not None for row in watched.view("latency", "view.data('rows')"))
    assert watched.complaints == []
