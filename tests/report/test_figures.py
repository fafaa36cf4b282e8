"""Figures for papers: what the pages show, in the size asked for, the same bytes each time, hostile names as text."""

import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import jinja2
import pytest
from conftest import PROJECT
from loadstone.errors import LoadstoneError
from loadstone.percentiles import LATENCIES
from loadstone.report import figure_drawing, figures
from loadstone.report.site_layout import slug
from report.conftest import ENDING, SCRIPT

BUILD = """
import sys
from pathlib import Path
from loadstone.report.figures import build
build(Path(sys.argv[1]), Path(sys.argv[2]), {"width": "17cm"})
"""


def page_of(site, name: str):
    return site.reports / "campaigns" / f"{slug(site.campaigns[name])}.html"


@pytest.fixture(scope="module")
def made(made_site, tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures") / "hostile"
    figures.build(page_of(made_site, "hostile"), folder, {"width": "17cm"})
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def texts(svg: bytes) -> list[str]:
    """What is written in a figure."""
    found = [element for element in ET.fromstring(svg).iter() if element.tag.endswith("}text")]
    return [" ".join(" ".join(element.itertext()).split()) for element in found]


def caption(name: str, kind: str = "campaigns") -> str:
    """What Snakemake's own report says of a figure, without what it says of all; fails where a word is not known."""
    template = PROJECT / "scripts/loadstone/report/captions/figure.rst"
    job = {"wildcards": {"name": name, "kind": kind, "slug": "demo"}}
    rendered = (
        jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(template.read_text()).render(snakemake=job)
    )
    return rendered.partition("It shows what the page")[0].strip()


def test_every_figure_has_a_caption_of_its_own_kind(made) -> None:
    said = {name.partition(".")[0]: caption(name.partition(".")[0]) for name in made}
    concluded = [
        f"{kind}-{figure}" for kind in ("effects-ratio", "effects-shift", "layers") for figure in ("mean", "p99")
    ]
    said |= {
        name: caption(name) for name in [*concluded, "effects-errors", "heat-p99", "cpu-pod-x", "time-50-memory-pod-x"]
    }
    assert all(said.values()), said
    kinds = {name.partition("-")[0] for name in said}
    assert len({said[min(n for n in said if n.partition("-")[0] == kind)] for kind in kinds}) == len(kinds)
    assert (
        "their difference with its interval" in said["effects-shift-p99"]
        and "percentage points" in said["effects-errors"]
    )
    assert caption("heat-100-p50", "variants").startswith("The median of latency in each campaign")
    assert caption("big.host-100-error_fraction", "variants").startswith("The share of failed requests in each")


def test_every_chart_with_rows_is_there(made) -> None:
    stems = {name.rpartition(".")[0] for name in made}
    assert {name.rpartition(".")[2] for name in made} == {"pdf", "svg"}
    assert stems == {
        *(f"{kind}-{statistic}" for kind in ("latency", "success") for statistic in LATENCIES),
        *("heat-mean", "heat-p50"),  # of 45 requests in a bin, no more is estimable
        *("failed", "errors-http_503", "errors-timeout", "time-50-p50", "time-50-p90", "curves-50"),
    }


@pytest.mark.parametrize(
    ("declared", "centimetres"), [({"width": "8.5cm"}, 8.5), ({"width": "3.3 in", "height": "50mm"}, 8.382)]
)
def test_the_size_is_the_one_asked_for(made_site, tmp_path, declared, centimetres) -> None:
    figures.build(page_of(made_site, "good"), tmp_path / "out", declared)
    svg = (tmp_path / "out/latency-p50.svg").read_bytes()
    root = ET.fromstring(svg)
    assert float(root.get("width").removesuffix("cm")) == pytest.approx(centimetres, rel=1e-3)
    height = float(root.get("height").removesuffix("cm"))
    if "height" in declared:
        assert height == pytest.approx(5)
    box = re.search(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", (tmp_path / "out/latency-p50.pdf").read_bytes())
    assert [float(side) for side in box.groups()] == pytest.approx(
        [centimetres / 2.54 * 72, height / 2.54 * 72], rel=1e-3
    )


def test_letters_have_the_size_asked_for(made_site, tmp_path) -> None:
    figures.build(page_of(made_site, "good"), tmp_path / "out", {"width": "17cm", "font_size": 12, "formats": ["svg"]})
    svg = (tmp_path / "out/latency-p50.svg").read_text()
    (letter,) = set(re.findall(r'font-size="([0-9.]+)px"', svg))
    width = float(ET.fromstring(svg).get("viewBox").split()[2])
    points = 17 / 2.54 * 72
    assert float(letter) / width * points == pytest.approx(12)
    assert not list((tmp_path / "out").glob("*.pdf"))


def test_other_processes_make_the_same_bytes(made_site, made, tmp_path) -> None:
    command = [sys.executable, "-c", BUILD, page_of(made_site, "hostile"), tmp_path / "again"]
    subprocess.run(command, check=True, env={"PYTHONPATH": str(PROJECT / "scripts"), "TZ": "Asia/Tokyo", "HOME": "/"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == made


def test_variants_are_named_as_text_whatever_they_are_called(made) -> None:
    found = texts(made["failed.svg"])
    assert any(text.startswith("<script>") for text in found) and any(text.startswith("</script>") for text in found)
    for name, content in made.items():
        if name.endswith(".svg"):
            assert b"<script" not in content and b"var(--" not in content


@pytest.mark.parametrize("width", ["8.5cm", "17cm"])
def test_figures_name_variants_below(made_site, tmp_path, width) -> None:
    figures.build(page_of(made_site, "hostile"), tmp_path / "out", {"width": width, "formats": ["svg"]})
    svg = (tmp_path / "out/latency-p50.svg").read_bytes()
    assert b"role-legend" in svg
    assert {SCRIPT, ENDING} <= set(texts(svg))


def test_names_of_lines_are_read_in_full(made_site, tmp_path) -> None:
    """On a page a pointer shows what is cut; and no mark is as wide as to hide a short interval."""
    name = "Envoy with a filter that reads bodies, and with one that writes headers"
    page = figures.read(page_of(made_site, "hostile"))
    row = {"variant": name, "label": name, "load": 1000.0, "verdict": "inconclusive", "shown": "can't tell"}
    row |= {"value": 1.1, "low": 1.09, "high": 1.11, "scaled": 1.1, "margin_low": 0.9, "margin_high": 1.1}
    variants = [*page.data["variants"], {"name": name, "label": name, "light": "#000000"}]
    figure = figure_drawing.Figure("effects-ratio-p50", "effects-ratio", [row])
    for width in ("6cm", "8.5cm", "17cm"):
        wanted = figure_drawing.settings({"width": width, "formats": ["svg"]})
        ((_, svg),) = figure_drawing.draw(figure, page.specs, variants, wanted)
        (label,) = (text for text in texts(svg) if text.startswith("1,000 · "))
        assert label == f"1,000 · {name}"
        (radius,) = map(float, re.findall(rb'd="M([0-9.]+),0A', svg))
        assert 2 * radius + 1.8 < 12, "CSS pixels, of letters"


def test_the_axis_of_ratios_names_the_baseline_and_not_what_is_beside_it(made_site) -> None:
    page = figures.read(page_of(made_site, "hostile"))
    row = {"variant": "v", "label": "v", "load": 1000.0, "verdict": "slower", "shown": "slower"}
    row |= {"value": 2.0, "low": 0.95, "high": 5.5, "scaled": 2.0, "margin_low": 0.95, "margin_high": 1.05}
    figure = figure_drawing.Figure("effects-ratio-p50", "effects-ratio", [row])
    wanted = figure_drawing.settings({"width": "8.5cm", "formats": ["svg"]})
    ((_, svg),) = figure_drawing.draw(figure, page.specs, page.data["variants"], wanted)
    assert "1" in texts(svg) and "0.9" not in texts(svg)


def test_pdfs_hold_text_and_nothing_of_the_moment(made) -> None:
    for name, content in made.items():
        if name.endswith(".pdf"):
            assert b"SourceSansPro" in content
            assert b"CreationDate" not in content and b"/ID" not in content


def test_figures_and_page_draw_the_same_rows(made_site, watched) -> None:
    """In Chromium, for every chart that both draw."""
    page_file = page_of(made_site, "hostile")
    page = figures.read(page_file)
    watched.open(page_file.as_uri())
    ids = watched.page.eval_on_selector_all(
        "figure[data-chart]", "all => all.map(f => [f.id, f.dataset.chart, f.dataset.class, f.dataset.stat])"
    )
    shown = {figure.name: figure.rows for figure in figures.all_figures(page, None)}
    runs = {figure.name: figure.runs for figure in figures.all_figures(page, None)}
    checked = set()
    for name, chart, kind, statistic in ids:
        ours = {
            "latency": "latency-p50",
            "success": "success-p50",
            "failed": "failed",
            "errors": f"errors-{kind}",
            "time": f"time-50-{statistic}",
            "heat": "heat-p50",
            "curves": "curves-50",
        }.get(chart)
        if ours is None or not shown.get(ours):
            continue
        drawn = watched.view(name, "view.data('rows')")
        if runs[ours]:
            drawn += watched.view(name, "view.data('runs')")
        for mine, theirs in zip([*shown[ours], *runs[ours]], drawn, strict=True):
            assert mine.items() <= theirs.items(), ours
        checked.add(chart)
    assert checked == {"latency", "success", "failed", "errors", "time", "heat", "curves"}


def test_panels_take_the_width_asked_for(made) -> None:
    root = ET.fromstring(made["heat-p50.svg"])
    assert float(root.get("width").removesuffix("cm")) == pytest.approx(17, rel=1e-3)
    _, _, width, height = map(float, root.get("viewBox").split())
    assert width == pytest.approx(17 / 2.54 * 72 * 12 / 8, rel=0.03), "letters keep their size"
    assert float(root.get("height").removesuffix("cm")) == pytest.approx(17 * height / width, rel=1e-3)
    assert "Time in the run (s)" in texts(made["heat-p50.svg"])


def test_what_was_drawn_before_makes_no_difference(made_site, made, tmp_path) -> None:
    again = figures.build(page_of(made_site, "hostile"), tmp_path / "again", {"width": "17cm", "formats": ["svg"]})
    assert {path.name: path.read_bytes() == made[path.name] for path in again} == dict.fromkeys(
        [path.name for path in again], True
    )


def test_a_page_without_charts_has_no_figures(made_site, tmp_path) -> None:
    assert figures.build(page_of(made_site, "empty"), tmp_path / "out", {}) == []


@pytest.mark.parametrize("damage", ["empty", "cut", "no text", "another's", "odd"])
def test_what_is_no_whole_page_is_told_and_former_figures_stay(made_site, tmp_path, damage) -> None:
    content = page_of(made_site, "good").read_bytes()
    page = tmp_path / "page.html"
    page.write_bytes(
        {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "no text": b"\xff\xfe" + content,
            "another's": b"<!doctype html><html></html>",
            "odd": content.replace(b'id="page-data">{', b'id="page-data">{{'),
        }[damage]
    )
    (tmp_path / "out").mkdir()
    (tmp_path / "out/latency-p50.svg").write_text("former")
    with pytest.raises(LoadstoneError, match=r"page\.html cannot be read"):
        figures.build(page, tmp_path / "out", {})
    assert (tmp_path / "out/latency-p50.svg").read_text() == "former"


def test_a_place_that_is_no_folder_is_told(made_site, tmp_path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(LoadstoneError, match="out cannot be written"):
        figures.build(page_of(made_site, "good"), tmp_path / "out", {})
    assert (tmp_path / "out").read_text() == "mine"


def test_parts_have_names_that_are_addresses_too() -> None:
    assert figures.file_name("process/envoy") == "process-envoy"
    assert figures.file_name("pod/a b/<c>%") == "pod-a b~2F~3Cc~3E~25"
