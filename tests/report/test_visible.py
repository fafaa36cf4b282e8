"""Control characters in names of the archive: nothing behind them is turned around, in pages, charts and figures."""

import json
import re
from xml.etree import ElementTree as ET

import pytest
from loadstone.archive import Campaign
from loadstone.report import figures, output
from report.conftest import VARIANTS
from report.synthetic import Made, write
from report.test_figures import texts
from support import site
from support.site import write_assets

TURNED = "plain\u202edesrever"
SHOWN = r"plain\u202edesrever"
CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a campaign whose host, variant and site have such names."""
    root = tmp_path_factory.mktemp("turned")
    campaign = Campaign(root / "archive", "demo", "host\u2067x", "2026-11-21T11:30:00+00:00")
    write(root / "tables", campaign, Made([TURNED, "bell\x07"], [10.0, 50.0], runs=2, requests=60))
    write_assets(root / "reports")
    options = {"title": "Results\u202e of us"}
    made = site.build_campaign(campaign, root / "tables", root / "reports", VARIANTS, options)
    site.build_index([campaign], root / "tables", root / "reports", VARIANTS, options)
    return made


def test_no_file_of_the_site_has_one(page):
    for path in page.parent.parent.rglob("*.html"):
        assert not CONTROLS.search(path.read_text("utf-8")), path
    text = page.read_text("utf-8")
    assert r"host\u2067x" in text.partition("<title>")[2].partition("</title>")[0]
    assert r"Results\u202e of us" in text


def test_charts_and_controls_have_the_same_name(page, watched):
    watched.open(page.as_uri())
    assert SHOWN in watched.page.locator("#latency .plot svg text").all_text_contents()
    assert {row["label"] for row in watched.view("latency", "view.data('rows')")} == {SHOWN, r"bell\u0007"}
    watched.do(lambda: watched.page.get_by_label(SHOWN, exact=True).uncheck())
    assert {row["label"] for row in watched.view("latency", "view.data('rows')")} == {r"bell\u0007"}
    watched.do(lambda: watched.page.locator("select[name=variant]").select_option(SHOWN))
    assert f"of {SHOWN} at" in watched.page.locator("#run-name").inner_text()
    assert watched.view("cdf", "view.data('rows').length") > 10
    assert watched.complaints == []


def test_figures_too(page, tmp_path):
    figures.build(page, tmp_path / "out", {"width": "17cm"})
    svg = (tmp_path / "out/latency-p50.svg").read_bytes()
    assert ET.fromstring(svg) is not None and {SHOWN, r"bell\u0007"} <= set(texts(svg))
    assert (tmp_path / "out/latency-p50.pdf").stat().st_size > 1000


@pytest.mark.parametrize(
    "text", [TURNED, "\\\u202e", r"\u202e", "\\\\\u2066\x08\x0c\x00", "a\nb\tc", "ü \ud800", "\x7f"]
)
def test_json_has_what_html_has(text):
    assert json.loads(output.as_json({text: [text]})) == {output.visible(text): [output.visible(text)]}
    assert not CONTROLS.search(output.visible(text))
