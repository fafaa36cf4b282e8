"""What other sites show of a link to a page: Open Graph tags and a picture."""

import re
import shutil
import struct
import xml.etree.ElementTree as ET
import zlib
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from loadstone.archive import Campaign, campaigns
from loadstone.config.comparisons import Comparison
from loadstone.publish.site import files
from loadstone.report import figure_drawing, figures
from report.concluded import LABEL, VARIANTS, make
from support.site import build_campaign, build_index

OPTIONS = {"title": 'Costs of <us> & "them"'}


@dataclass(frozen=True)
class Made:
    """A site with a campaign and a comparison of which something can be concluded, and what it was made from."""

    reports: Path
    tables: Path
    campaign: Campaign
    compared: Comparison

    def pages(self) -> dict[str, Path]:
        (campaign,) = (self.reports / "campaigns").glob("*.html")
        return {
            "campaign": campaign,
            "comparison": self.reports / "comparisons/layers.html",
            "start": self.reports / "index.html",
        }

    def build_start(self, reports: Path, comparisons: tuple[Comparison, ...]) -> None:
        build_index([self.campaign], self.tables, reports, VARIANTS, OPTIONS, comparisons=comparisons)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    root = tmp_path_factory.mktemp("previews")
    page, _ = make(root, rates=(50, 100, 200))
    tables = next(path.parent for path in root.rglob("effects") if path.is_dir())
    (campaign,) = campaigns(next(path for path in root.rglob("archive") if path.is_dir()))
    compared = Comparison("layers", "Layers", "demo", ("here",), (campaign.timestamp,))
    found = Made(page.parents[1], tables, campaign, compared)
    build_campaign(campaign, tables, found.reports, VARIANTS, OPTIONS)
    found.build_start(found.reports, (compared,))
    return found


@pytest.fixture(params=["campaign", "comparison", "start"])
def page(request, made) -> Path:
    return made.pages()[request.param]


def tags(page: Path) -> dict[str, str]:
    found = re.findall(r'<meta (?:name|property)="([^"]+)" content="([^"]*)">', page.read_text())
    return {name: unescape(content) for name, content in found}


def test_tags_have_the_headline_with_its_interval_and_name_the_picture(page):
    found = tags(page)
    assert found["og:description"] == found["description"] == found["og:image:alt"]
    assert found["og:description"].startswith(f"{LABEL} adds ")
    assert re.search(r"adds [0-9.]+ ms \[[0-9.]+, [0-9.]+\] to the median of Direct", found["og:description"])
    assert found["og:title"] and found["twitter:card"] == "summary_large_image"
    assert found["og:image"] == page.with_suffix(".png").name
    assert (page.parent / found["og:image"]).is_file()
    assert "<script>alert" not in page.read_text().partition("<body>")[0]


def pixels(picture: Path) -> np.ndarray:
    """Red, green and blue of a picture, by row and column; checks what a PNG's chunks say."""
    content, at, chunks = picture.read_bytes(), 8, {}
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert content[at + 8 + length : at + 12 + length] == struct.pack(">I", zlib.crc32(kind + data))
        chunks[kind], at = data, at + 12 + length
    width, height, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert form == [8, 2, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def test_a_picture_is_small_and_has_the_size_that_the_tags_say(page, watched):
    picture, found = page.with_suffix(".png"), tags(page)
    drawn = pixels(picture)
    assert drawn.shape == (630, 1200, 3) == (int(found["og:image:height"]), int(found["og:image:width"]), 3)
    assert 5_000 < picture.stat().st_size < 60_000
    assert (drawn == 255).all(axis=2).mean() > 0.75
    assert (drawn == 0).all(axis=2).sum() > 5_000, "letters"
    # Each of the four variants has its colour, those of `config.variants.look`.
    colours = {tuple(colour) for colour in np.unique(drawn[400:].reshape(-1, 3), axis=0).tolist()}
    for colour in ("E69F00", "009E73"):
        assert tuple(bytes.fromhex(colour)) in colours
    watched.page.goto(picture.as_uri())  # a browser reads it too
    assert watched.page.evaluate("[document.images[0].naturalWidth, document.images[0].naturalHeight]") == [1200, 630]


def test_colours_are_those_of_the_drawing(tmp_path):
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="2">' + "".join(
        f'<rect x="{place}" width="1" height="2" fill="rgb({place % 256},{place // 2},{255 - place // 2})"/>'
        for place in range(400)
    )
    (tmp_path / "x.png").write_bytes(figure_drawing.png(f"{svg}</svg>", "test"))
    drawn = pixels(tmp_path / "x.png")[0].tolist()
    assert drawn == [[place % 256, place // 2, 255 - place // 2] for place in range(400)]


def test_pictures_are_always_the_same_and_belong_to_their_pages(made, tmp_path):
    reports = tmp_path / "reports"
    shutil.copytree(made.reports, reports)
    names = [page.with_suffix(".png").relative_to(made.reports).as_posix() for page in made.pages().values()]
    assert set(names) <= files.of_site(reports).keys()
    before = (reports / "index.png").read_bytes()
    (reports / "index.png").unlink()
    made.build_start(reports, (made.compared,))
    assert (reports / "index.png").read_bytes() == before
    made.build_start(reports, ())
    assert [name for name in names if (reports / name).is_file()] == [names[0], "index.png"], "with the comparison"


def test_without_the_font_there_is_no_picture_but_text(tmp_path, monkeypatch):
    monkeypatch.setattr(figure_drawing, "register_font", lambda: False)
    page = tmp_path / "page.html"
    page.with_suffix(".png").write_bytes(b"former")
    said = {"site_title": "Site", "title": "Page", "headline": None, "plots": [], "lead": "4 variants\u202e"}
    found = figures.link_preview(page, said)["preview"]
    assert (found["image"], found["text"]) == (None, "4 variants\\u202e") and not page.with_suffix(".png").exists()


def test_a_picture_without_headline_says_what_was_measured_and_shows_odd_characters_as_text(tmp_path):
    said = {"site_title": "A & <b>\x07", "title": "T" * 300, "headline": None, "plots": [], "lead": "4 variants"}
    svg = figures._card(said | {"text": "word " * 100})
    texts = ["".join(element.itertext()) for element in ET.fromstring(svg).iter() if element.tag.endswith("}text")]
    assert texts[0] == "A & <b>\\u0007" and texts[1].endswith("T…") and len(texts) == 5 and texts[-1].endswith("…")
    assert figures.link_preview(tmp_path / "page.html", said)["preview"]["image"] == "page.png"
