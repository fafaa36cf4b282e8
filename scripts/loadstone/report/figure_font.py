"""The font of figures: one file of it, in which they are drawn, and whose outlines an SVG has in place of its letters.

Word and LaTeX ignore fonts within an SVG, and a viewer that lacks the font takes a wider one. So letters become paths,
laid out by HarfBuzz, as those of the PDF are by its port; `aria-label` has what they say.
"""

import atexit
import re
import shutil
import tempfile
from functools import cache, partialmethod
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import vl_convert

FONT = "Source Sans Pro"
_SVG = "http://www.w3.org/2000/svg"
_SPACE = re.compile(r"[ \t\r\n]+")  # a run of these is one space in an SVG
_BEFORE = {"start": 0.0, "middle": 0.5, "end": 1.0}  # the share of a text that is left of where it stands
_KEPT = ("transform", "fill", "opacity", "class")


@cache
def file() -> Path | None:
    """The file of our font, registered with vl-convert; None where its package is not installed: conda has none."""
    package = find_spec("font_source_sans_pro")
    if package is None or package.origin is None:
        return None
    # A folder of its own: with several files of one font, the machine decides which one is used.
    folder = tempfile.mkdtemp(prefix="loadstone")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # it is read whenever something is drawn
    copy = shutil.copy(Path(package.origin).parent / "files/SourceSansPro-Regular.ttf", folder)
    vl_convert.register_font_directory(folder)
    return Path(copy)


def outlined(svg: str) -> str:
    """The picture with its texts as paths; a text with letters that our font does not have stays text."""
    if file() is None:
        return svg
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(svg)  # noqa: S314 - Vega has made it
    for text in root.iter(f"{{{_SVG}}}text"):
        _outline(text)
    return ET.tostring(root, encoding="unicode")


def _outline(text: ET.Element) -> None:
    """Make a text of one or several lines (`tspan`, each so far below the one before) a path."""
    pen, font, words = _Pen(), _font(), []
    scale = float(text.attrib["font-size"].removesuffix("px")) / font.face.upem
    for line in (text, *text):
        pen.y -= float(line.get("dy", 0)) / scale
        if not (content := _SPACE.sub(" ", line.text or "").strip(" ")):
            continue
        glyphs = _shaped(content)
        if any(glyph.codepoint == 0 for glyph, _ in glyphs):
            return
        pen.x = -_BEFORE[text.get("text-anchor", "start")] * sum(place.x_advance for _, place in glyphs)
        for glyph, place in glyphs:
            font.draw_glyph_with_pen(glyph.codepoint, pen)
            pen.x += place.x_advance
        words.append(content)
    kept = {name: text.attrib[name] for name in _KEPT if name in text.attrib}
    kept["transform"] = f"{kept.get('transform', '')} scale({scale:.6g},-{scale:.6g})".lstrip()
    text.clear()
    text.tag = f"{{{_SVG}}}path"
    text.attrib.update(kept | {"role": "img", "aria-label": " ".join(words), "d": "".join(pen.drawn)})


@cache
def _font() -> Any:
    harfbuzz = import_module("uharfbuzz")  # installed only together with our font
    return harfbuzz.Font(harfbuzz.Face(harfbuzz.Blob.from_file_path(str(file()))))


def _shaped(words: str) -> list[tuple[Any, Any]]:
    """The glyphs of a line and how far each advances, in the font's units."""
    harfbuzz = import_module("uharfbuzz")
    buffer = harfbuzz.Buffer()
    buffer.add_str(words)
    buffer.guess_segment_properties()
    buffer.language = "en"  # not that of this machine
    harfbuzz.shape(_font(), buffer)
    return list(zip(buffer.glyph_infos, buffer.glyph_positions, strict=True))


class _Pen:
    """Collects outlines as an SVG path; `x` and `y` are the position of the glyph."""

    def __init__(self) -> None:
        self.x = self.y = 0.0
        self.drawn: list[str] = []

    def _write(self, command: str, *points: tuple[float, float]) -> None:
        self.drawn.append(command + " ".join(f"{self.x + x:.6g},{self.y + y:.6g}" for x, y in points))

    moveTo = partialmethod(_write, "M")  # noqa: N815 - the names are those of all pens
    lineTo = partialmethod(_write, "L")  # noqa: N815
    qCurveTo = partialmethod(_write, "Q")  # noqa: N815
    curveTo = partialmethod(_write, "C")  # noqa: N815
    closePath = partialmethod(_write, "Z")  # noqa: N815
