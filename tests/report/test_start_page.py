"""The start page and ``index.json``: what was found, what changed, what is in progress."""

import json
import re
from html import unescape
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator
from loadstone import archive
from loadstone.archive import Campaign
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from loadstone.report.start_page import newest_result
from loadstone.tables import layout
from report.concluded import HOSTILE, LABEL, VARIANTS, make, write_many, write_thousand
from report.synthetic import Made, write
from support.site import build_campaign, build_index, write_assets

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "config/schemas/index.schema.json").read_text())


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


@pytest.fixture(scope="module")
def concluded(tmp_path_factory) -> tuple[Path, Path]:
    """The reports and the tables of a site with a campaign and a comparison of which something can be concluded."""
    root = tmp_path_factory.mktemp("concluded")
    page, _ = make(root)
    reports, project = page.parents[1], root
    tables = next(path.parent for path in project.rglob("effects") if path.is_dir())
    (campaign,) = archive.campaigns(next(path for path in project.rglob("archive") if path.is_dir()))
    (campaign.path / archive.COMPLETION).touch()
    compared = Comparison("layers", f"Layers {HOSTILE}", "demo", ("here",), (campaign.timestamp,))
    build_index([campaign], tables, reports, VARIANTS, {}, comparisons=[compared])
    return reports, tables


def test_a_card_says_what_was_found_with_its_interval(concluded):
    reports, tables = concluded
    html = (reports / "index.html").read_text()
    found = json.loads((reports / "index.json").read_text())
    Draft202012Validator(SCHEMA).validate(found)
    (campaign,) = found["campaigns"]
    assert campaign["state"] == "complete" and campaign["planned_runs"] == 100 and sum(campaign["runs"].values()) == 100
    # The filter is saturated at 400 requests/s: the headline is about 200.
    assert {verdict["load"] for verdict in campaign["verdicts"]} == {200}
    assert text_of(html).count(campaign["headline"]) == 1 or campaign["headline"] in text_of(html)
    assert campaign["headline"].startswith(f"{LABEL} adds ") and "at 200 requests/s." in campaign["headline"]
    rows = (
        duckdb.connect()
        .execute(
            "SELECT variant, value, baseline_value, ratio, ratio_low, verdict FROM read_parquet($files)"
            " WHERE comparison IS NULL AND statistic = 'p50' AND rate = 200 ORDER BY variant",
            {"files": [str(path) for path in (tables / "effects").rglob("*.parquet")]},
        )
        .fetchall()
    )
    names = ("variant", "value", "baseline_value", "ratio", "ratio_low", "verdict")
    assert sorted(tuple(each[name] for name in names) for each in campaign["verdicts"]) == rows and len(rows) == 4
    (comparison,) = found["comparisons"]
    assert comparison["page"] == "comparisons/layers.html" and comparison["headline"] == campaign["headline"]
    assert html.count('<table class="forest">') == 2 and "†" not in html and "<script>alert" not in html


@pytest.mark.parametrize("width", [1400, 400])
def test_cards_keep_their_width(concluded, watched, width: int):
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.open((concluded[0] / "index.html").as_uri())
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    beyond = """all => all.filter((each) => each.getBoundingClientRect().right
        > each.closest('.card').getBoundingClientRect().right).length"""
    assert watched.page.locator(".card *").evaluate_all(beyond) == 0
    heights = watched.page.locator(".forest th").evaluate_all("all => all.map((each) => each.offsetHeight)")
    assert max(heights) < 120 and watched.complaints == []


def test_headline_agrees_with_numpy(concluded):
    """The difference of the headline is that of the medians of all requests."""
    reports, tables = concluded
    (campaign,) = json.loads((reports / "index.json").read_text())["campaigns"]
    latencies = (
        duckdb.connect()
        .execute(
            "SELECT variant, latency_ns FROM read_parquet($files, hive_partitioning = true) WHERE rate = 200",
            {"files": [str(path) for path in (tables / "requests").rglob("*.parquet")]},
        )
        .fetchnumpy()
    )
    medians = {
        name: float(np.quantile(latencies["latency_ns"][latencies["variant"] == name], 0.5, method="inverted_cdf"))
        for name in ("plain", "mesh")
    }
    (mesh,) = (each for each in campaign["verdicts"] if each["variant"] == "mesh")
    assert mesh["value"] == pytest.approx(medians["mesh"], rel=2e-3)
    assert mesh["baseline_value"] == pytest.approx(medians["plain"], rel=2e-3)


def test_a_dagger_says_why_an_interval_without_0_is_inconclusive(tmp_path):
    campaign = Campaign(tmp_path / "archive", "demo", "here", "2026-11-20T00:00:00+00:00")
    write(tmp_path / "tables", campaign, Made(["plain", "mesh"], [100.0], runs=2, requests=20))
    write_many(tmp_path / "tables", campaign, ["plain", "mesh"], [100.0])
    campaign.path.mkdir(parents=True)
    write_assets(tmp_path / "reports")
    html = build_index([campaign], tmp_path / "tables", tmp_path / "reports", VARIANTS, {}).read_text()
    (row,) = re.findall(r"<tr>.*?</tr>", html.partition('class="forest"')[2].partition("</table>")[0], re.DOTALL)
    assert text_of(row).endswith("○ inconclusive †")
    assert html.count("† significant on its own, but not after correction for multiple comparisons") == 1


def with_caveats(root: Path, *kinds: str, verdict: str) -> tuple[str, str]:
    """The start page and the campaign's page; all differences have this verdict and these serious caveats."""
    tables, reports = root / "tables", root / "reports"
    campaign = Campaign(root / "archive", "demo", "here", "2026-11-20T00:00:00+00:00")
    write(tables, campaign, Made(["plain", "mesh"], [100.0], runs=3, requests=20))
    write_many(tables, campaign, ["plain", "mesh"], [100.0])
    path = layout.scope_file(tables, "effects", campaign)
    effects = [row | {"verdict": verdict, "reasons": []} for row in pq.read_table(path).to_pylist()]
    layout.write_rows(tables, path, effects, "effects")
    scope = {"app": campaign.app, "host": campaign.host, "timestamps": [campaign.timestamp], "weight": "serious"}
    tool = {"load_model": "open", "generator": "vegeta"}
    cells = [tool | {"rate": 100.0, "variant": name} for name in ("plain", "mesh")]
    about = {"n": 4, "n_of": 6, "counted": "runs", "text": "Some.", "remedy": "Do.", "cells": cells}
    claims = [scope | about | {"claim": claim} for claim in kinds or ("unsettled", "generator_limited")]
    layout.write_rows(tables, layout.scope_file(tables, "claims", campaign), claims, "claims")
    campaign.path.mkdir(parents=True)
    write_assets(reports)
    page = build_campaign(campaign, tables, reports, VARIANTS, {})
    start = build_index([campaign], tables, reports, VARIANTS, {})
    return start.read_text(), page.read_text()


BADGE = "2 serious caveats: unsteady runs{} (4 of 6 runs), limited by the load generator{} (4 of 6 runs)"


def test_a_caveat_has_the_same_letter_on_the_start_page_and_on_the_campaign_s(tmp_path):
    start, page = with_caveats(tmp_path, verdict="slower")
    pages = [text_of(html) for html in (start, page)]
    headlines = [
        re.search(f"{before}(.*?)</", html, re.DOTALL)[1]
        for before, html in (('class="found">', start), ('id="verdict">', page))
    ]
    assert headlines[0] == headlines[1] and headlines[0].endswith(".<sup>a,b")
    assert all(BADGE.format(" a", " b") in page for page in pages)
    assert "▲ slower a,b" in pages[0]


def test_a_card_explains_every_letter(tmp_path):
    html, _ = with_caveats(tmp_path, "one_run", "below_a_step", "timeouts", verdict="slower")
    card = text_of(html.partition('<li class="card"')[2].partition("</li>")[0])
    assert "▲ slower a" in card and "requests that timed out a (4 of 6 runs)" in card.lower(), card


def test_the_card_of_a_comparison_has_labels_also_of_variants_without_a_difference(tmp_path):
    campaign, tables = Campaign(tmp_path / "archive", "demo", "here", "2026-11-20T00:00:00+00:00"), tmp_path / "tables"
    write(tables, campaign, Made(["plain", "mesh"], [100.0], runs=3, requests=20))
    claim = {"comparison": "layers", "app": "demo", "host": "here", "timestamps": [campaign.timestamp]}
    claim |= {"claim": "unsettled", "weight": "serious", "rate": 100.0, "variant": "mesh", "n": 2, "n_of": 3}
    claim |= {"counted": "runs", "text": "Some.", "remedy": "Do."}
    claim["cells"] = [{"rate": 100.0, "variant": "mesh", "load_model": "open", "generator": "vegeta"}]
    layout.write_rows(tables, layout.scope_file(tables, "claims", "layers"), [claim], "claims")
    campaign.path.mkdir(parents=True)
    write_assets(tmp_path / "reports")
    variants = Variants({"demo": {"mesh": {"label": "Service mesh"}}})
    compared = [Comparison("layers", "Layers", "demo", ("here",), (campaign.timestamp,))]
    html = build_index([campaign], tables, tmp_path / "reports", variants, {}, comparisons=compared)
    assert "unsteady runs (2 of 3 runs, Service mesh at 100 requests/s)" in text_of(html.read_text())


def test_a_card_without_any_verdict_names_serious_caveats(tmp_path):
    html, _ = with_caveats(tmp_path, verdict="inconclusive")
    assert BADGE.format("", "") in text_of(html)
    assert '<a class="badge serious" href="campaigns/demo_here_2026-11-20T000000p0000.html#caveats">' in html


def test_an_open_campaign_is_in_progress_beside_the_newest_complete_one(tmp_path):
    root, tables, reports = tmp_path / "archive", tmp_path / "tables", tmp_path / "reports"
    campaigns = [Campaign(root, "demo", "myhost", f"2026-11-2{day}T11:30:00+00:00") for day in (1, 2)]
    write(tables, campaigns[0], Made(["plain", "mesh"], [100.0], runs=3, requests=60))
    write(tables, campaigns[1], Made(["plain", "mesh"], [100.0], runs=3, requests=60, missing=("mesh", 3)))
    campaigns[0].path.mkdir(parents=True)
    (campaigns[0].path / archive.COMPLETION).touch()
    write_assets(reports)
    build_index(campaigns, tables, reports, VARIANTS, {})
    html = (reports / "index.html").read_text()
    assert html.count('<li class="card"') == 1
    assert "The first complete campaign: nothing to compare it with." in html
    assert "21 November 2026, 11:30 UTC" in html and re.search(r'<progress max="6" value="5"', html)
    assert re.search(r"5 of 6 runs, about [0-9.]+ (s|min) of load left", text_of(html))


def test_a_link_shows_the_newest_complete_campaign_with_a_headline(tmp_path):
    def entry(day: int, headline: str | None) -> dict:
        campaign = Campaign(tmp_path, "demo", "myhost", f"2026-11-2{day}T11:30:00+00:00")
        return {"campaign": campaign, "held": {"n_runs": 3}, "headline": headline, "plots": []}

    entries = [entry(4, None), entry(3, "interrupted"), entry(2, "complete"), entry(1, "old")]
    for complete in (entries[0], entries[2], entries[3]):
        complete["campaign"].path.mkdir(parents=True)
        (complete["campaign"].path / archive.COMPLETION).touch()
    assert newest_result(entries, "title")["headline"] == "complete"
    assert newest_result(entries[:2], "title")["headline"] == "interrupted"
    assert newest_result(entries[:1], "title")["lead"] == "1 campaign of load tests"


def test_an_empty_archive_says_what_to_do(tmp_path):
    write_assets(tmp_path / "reports")
    build_index([], tmp_path / "tables", tmp_path / "reports", VARIANTS, {})
    assert "No campaign yet" in (tmp_path / "reports/index.html").read_text()
    assert json.loads((tmp_path / "reports/index.json").read_text())["campaigns"] == []


@pytest.mark.long
def test_a_thousand_campaigns(tmp_path, watched):
    """Less than 300 kB, and campaigns can be found."""
    reports = write_thousand(tmp_path)
    assert (reports / "index.html").stat().st_size < 300_000
    watched.open((reports / "index.html").as_uri())
    watched.page.fill("input[name=find]", "app-3 host-3 2026-03")
    assert watched.page.locator("[data-entry]:visible").count() >= 1
    assert not watched.complaints
