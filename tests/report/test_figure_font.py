"""Letters of figures that are paths: laid out as Chromium does with the same font, read out, and whole everywhere."""

import base64
import re
from xml.etree import ElementTree as ET

import pytest
from loadstone.report import figure_drawing, figure_font, figures

# Where the ink of each text begins and ends, in CSS pixels: by Chromium's own layout with our font, and by the paths.
INK = """async ([font, written, drawn]) => {
  const face = new FontFace("Ours", `url(data:font/ttf;base64,${font})`);
  document.fonts.add(await face.load());
  const shown = (svg) => document.body.appendChild(Object.assign(document.createElement("div"), { innerHTML: svg }));
  const share = { start: 0, middle: 0.5, end: 1 }, context = document.createElement("canvas").getContext("2d");
  const texts = [...shown(written).querySelectorAll("text")].map((text) => {
    const size = parseFloat(text.getAttribute("font-size")), fine = 100;
    context.font = `${size * fine}px Ours`;
    const ink = context.measureText(text.textContent), before = share[text.getAttribute("text-anchor")] * ink.width;
    const ends = [-ink.actualBoundingBoxLeft, ink.actualBoundingBoxRight].map((end) => (end - before) / fine);
    return [text.textContent, ...ends];
  });
  const paths = [...shown(drawn).querySelectorAll("path[role=img]")].map((path) => {
    const box = path.getBBox(), { a } = path.transform.baseVal.getItem(path.transform.baseVal.length - 1).matrix;
    return [path.getAttribute("aria-label"), box.x * a, (box.x + box.width) * a];
  });
  return [texts, paths];
}"""


@pytest.fixture
def written(made_site, monkeypatch) -> str:
    """A figure with its letters as text."""
    page = figures.read(made_site.page("hostile"))
    (figure,) = (each for each in figures.all_figures(page, None) if each.name == "latency-p50")
    with monkeypatch.context() as patched:
        patched.setattr(figure_font, "outlined", lambda svg: svg)
        wanted = figure_drawing.settings({"width": "17cm", "formats": ["svg"]})
        ((_, svg),) = figure_drawing.draw(figure, page.specs, page.data["variants"], wanted)
    return svg.decode()


def test_letters_are_where_a_browser_with_the_font_has_them(written, watched) -> None:
    drawn = figure_font.outlined(written)
    font = base64.b64encode(figure_font.file().read_bytes()).decode()
    texts, paths = watched.page.evaluate(INK, [font, written, drawn])
    assert len(texts) == len(paths) > 10 and "<text" not in drawn
    for (text, left, right), (label, first, last) in zip(texts, paths, strict=True):
        assert label == text
        # Skia's bounds are those of control points.
        assert (first, last) == pytest.approx((left, right), abs=0.17), text


def test_nothing_else_of_the_picture_changes(written) -> None:
    before, after = ET.fromstring(written), ET.fromstring(figure_font.outlined(written))
    for one, other in zip(before.iter(), after.iter(), strict=True):
        if one.tag.endswith("}text"):
            assert other.tag.endswith("}path") and other.get("fill") == one.get("fill")
            assert other.get("transform").startswith(one.get("transform"))
        else:
            assert (one.tag, one.attrib, one.text) == (other.tag, other.attrib, other.text)


def text(content: str, **attributes: str) -> str:
    given = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<svg xmlns="http://www.w3.org/2000/svg"><text font-size="10px" {given}>{content}</text></svg>'


def test_what_the_font_lacks_stays_text() -> None:
    assert "<text" in figure_font.outlined(text("latency 漢字"))
    assert "<text" not in figure_font.outlined(text("latency (µs) ≤ 5 – “ü” …"))


def test_lines_stand_below_each_other() -> None:
    (path,) = ET.fromstring(figure_font.outlined(text('<tspan>H</tspan><tspan x="0" dy="12">H</tspan>')))
    assert path.get("aria-label") == "H H"
    first, second = (tuple(map(float, at)) for at in re.findall(r"M(\S+?),(-?[\d.]+)", path.get("d")))
    assert first[0] == second[0] and first[1] - second[1] == pytest.approx(1200)  # thousandths of 10 px, upwards


def test_spaces_count_as_in_an_svg() -> None:
    one, other = (figure_font.outlined(text(content)) for content in ("a b", "  a \n b "))
    assert one == other


def test_figures_in_another_font_keep_their_text(made_site, tmp_path) -> None:
    figures.build(made_site.page("good"), tmp_path / "out", {"font": "DejaVu Sans", "formats": ["svg"]})
    assert "DejaVu Sans" in (tmp_path / "out/latency-p50.svg").read_text()
