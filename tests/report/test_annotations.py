"""What people know of a campaign, on its page: escaped, capped, and with the excluded put back when asked for."""

import pyarrow.parquet as pq
import pytest
from loadstone.archive import Campaign
from loadstone.config.variants import Variants
from loadstone.report.site_layout import slug
from loadstone.tables import layout
from report.conftest import SCRIPT, Site
from report.synthetic import Made, write
from support import site
from support.site import write_assets

VARIANTS = Variants(
    {
        "demo": {
            "plain": {
                "label": "Direct",
                "colour": "#0072B2",
                "history": [{"until": "2027-01-01T00:00:00Z", "label": "Envoy"}],
            },
            "envoy": {"label": "Envoy", "colour": "#E69F00"},
        }
    }
)
ENTRY = {
    "purpose": f"To see {SCRIPT}",
    "measured": {"mode": "vegeta", "rates": [100, 300], "variants": ["plain", "envoy"]},
    "notes": ["The <b>switch</b> was rebooted"],
    "corrections": [{"about": "mode", "says": "<i>serial</i>", "taken": "vegeta", "because": "its grain"}],
    "trace_dumps": [{"file": "_trace_dumps/<x>.json.zst", "of": "main"}],
}


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> Site:
    """A campaign with one run left out per rate, a catalogue entry and 250 suggested tags."""
    root = tmp_path_factory.mktemp("known")
    tables, reports = root / "tables", root / "reports"
    campaign = Campaign(root / "archive", "demo", "myhost", "2026-11-21T11:30:00+00:00")
    write(tables, campaign, Made(["plain", "envoy"], [100.0, 300.0], runs=3, requests=600, excluded=("plain", 2)))
    cells = pq.ParquetFile(layout.partition(tables, "cells", campaign) / layout.PART).read().to_pylist()
    for cell in cells:
        if cell["n_excluded"]:
            cell.update(n_runs=3, run_mean_ns=9e9, p50_ns=8e9, error_fractions=[("timeout", 0.5)], error_fraction=0.5)
            cell.update(error_fraction_stds=[("timeout", 0.1)])
    rows = [{**cell, "error_fractions": dict(cell["error_fractions"] or ())} for cell in cells]
    rows = [{**cell, "error_fraction_stds": dict(cell["error_fraction_stds"] or ())} for cell in rows]
    suggestion = layout.campaign_key(campaign) | {"kind": "outlying run", "tag": "outlier", "tagged": False}
    suggestions = [
        suggestion
        | {
            "variant": "plain",
            "rate": 100.0,
            "run": run,
            "evidence": "9 > 8 <b>",
            "lines": f"  - {{tag: outlier, {run}}}",
        }
        for run in range(1, 251)
    ]
    suggestions.append(suggestion | {"evidence": "followed already", "lines": "", "tagged": True})
    for table, content in (("cells_all", rows), ("suggestions", suggestions)):
        layout.write_rows(tables, layout.partition(tables, table, campaign) / layout.PART, content, table)
    write_assets(reports)
    site.build_campaign(campaign, tables, reports, VARIANTS, {}, entry=ENTRY)
    outside = [f"file {number} <b>" for number in range(10_000)]
    purposes = {("demo", "myhost", campaign.timestamp): ENTRY["purpose"]}
    site.build_index([campaign], tables, reports, VARIANTS, {}, purposes=purposes, outside=outside)
    return Site(reports, tables, {"known": campaign})


def test_what_the_catalogue_says_is_on_the_page_as_text(known):
    page = known.page("known").read_text()
    for text in (
        "To see &lt;script&gt;",
        "The &lt;b&gt;switch&lt;/b&gt; was rebooted",
        "&lt;i&gt;serial&lt;/i&gt;",
        "its grain",
        "_trace_dumps/&lt;x&gt;.json.zst",
        "100, 300",
        "“Direct” was called “Envoy” when this was measured;",
        "that label now belongs to another variant, <code>envoy</code>",
    ):
        assert text in page, text
    assert SCRIPT not in page


def test_suggested_tags_are_shown_with_their_line_and_capped(known):
    page = known.page("known").read_text()
    assert "250 suggested tags" in page
    assert page.count("9 &gt; 8 &lt;b&gt;") == 200
    assert "… and 50 more" in page
    assert "  - {tag: outlier, 7}" in page
    assert "followed already" not in page


def test_the_start_page_names_purposes_and_ten_thousand_strays_are_listed_shortly(known):
    index, quality = ((known.reports / f"{name}.html").read_text() for name in ("index", "quality"))
    assert "To see &lt;script&gt;" in index
    assert "10,000 items in the archive or the catalogue that belong to no campaign" in quality
    assert quality.count("file ") < 200
    assert "… and 9,950 more" in quality
    assert "suggests 250 tags" in index
    assert quality.count("  - {tag: outlier, ") == 50 and "… and 200 more" in quality


def test_cells_with_excluded_runs_are_next_to_valid_cells(known):
    page = known.page("known").read_text()
    section = page.partition("The same with excluded runs: 2 cells")[2]
    assert section.count("valid</td>") == 2
    assert "8,000" in section


def test_charts_include_excluded_runs_by_choice(known, watched):
    watched.open(known.page("known").as_uri())
    highest = "Math.max(...view.data('rows').map((row) => row.value))"
    before = watched.view("latency", highest)
    assert watched.page.locator("#with-excluded").is_hidden()
    watched.do(lambda: watched.page.locator("label:has(input[name=of][value=all])").click())
    assert watched.page.locator("#with-excluded").is_visible()
    assert watched.view("latency", highest) > 1000 * before
    assert "of=all" in watched.page.url
    assert watched.page.locator("figure[data-class=timeout]").get_attribute("data-rows") != "0"
    watched.do(lambda: watched.page.locator("label:has(input[name=of][value=valid])").click())
    assert watched.view("latency", highest) == before
    assert not watched.complaints


def test_a_page_without_exclusions_has_no_choice_of_runs(tmp_path):
    campaign = Campaign(tmp_path / "archive", "demo", "myhost", "2026-11-21T11:30:00+00:00")
    write(tmp_path / "tables", campaign, Made(["plain"], [100.0], runs=2, requests=100))
    path = site.build_campaign(campaign, tmp_path / "tables", tmp_path / "reports", VARIANTS, {})
    assert path.name == f"{slug(campaign)}.html"
    assert "with excluded runs" not in path.read_text()
