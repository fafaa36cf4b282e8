"""The font of figures: one file of it, in which they are drawn, and whose outlines an SVG has in place of its letters.

Word and LaTeX ignore fonts within an SVG, and a viewer that lacks the font takes a wider one. So letters become paths,
laid out by HarfBuzz, as those of the PDF are by its port; `aria-label` has what they say.

With several files of one font the PDF's order of them is chance; with an unknown font a PDF has no text at all.
"""

import atexit
import re
import shutil
import tempfile
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import vl_convert

FONT = "Source Sans Pro"
_Point = tuple[float, float]
_SVG = "http://www.w3.org/2000/svg"
_SPACE = re.compile(r"[ \t\r\n]+")  # a run of these is one space in an SVG
_BEFORE = {"start": 0.0, "middle": 0.5, "end": 1.0}  # the share of a text that is left of where it stands


def _file() -> Path | None:
    """Our font's file; None where it did not come along: conda has none."""
    package = find_spec("font_source_sans_pro")
    if package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0], "files", "SourceSansPro-Regular.ttf")


@cache
def register() -> None:
    """Make our font known: one file of it alone, for which of several is taken depends on the machine."""
    if (file := _file()) is None:  # another font is taken
        return
    folder = tempfile.mkdtemp(prefix="loadstone")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # it is read whenever something is drawn
    shutil.copy(file, folder)
    vl_convert.register_font_directory(folder)


def width(text: str, size: float) -> float:
    """How long a line is at that size of letters, in the same unit."""
    if _file() is None:
        return 0.55 * size * len(text)
    return float(sum(place.x_advance for place in _shaped(text).glyph_positions)) * size / _units()


def outlined(svg: str) -> str:
    """The same picture, its text as paths; text that has letters which our font lacks stays text."""
    if _file() is None:
        return svg
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(svg)  # noqa: S314 - Vega has made it
    for text in root.iter(f"{{{_SVG}}}text"):
        _outline(text)
    return ET.tostring(root, encoding="unicode")


def _outline(text: ET.Element) -> None:
    """Make a text of one or several lines (`tspan`, each so far below the one before) a path."""
    lines = [(0.0, text.text or ""), *((float(line.get("dy", 0)), line.text or "") for line in text)]
    size, down, parts = float(text.attrib["font-size"].removesuffix("px")), 0.0, []
    for below, line in lines:
        down += below
        words = _SPACE.sub(" ", line).strip(" ")
        if (found := _path(words, text.get("text-anchor", "start"), -down * _units() / size)) is None:
            return
        parts.append((words, found))
    kept = {name: value for name, value in text.attrib.items() if name in ("transform", "fill", "opacity", "class")}
    scale = f"{size / _units():.6g}"
    kept["transform"] = f"{kept.get('transform', '')} scale({scale},-{scale})".lstrip()
    text.tag, text.text = f"{{{_SVG}}}path", None
    del text[:]
    text.attrib.clear()
    label = " ".join(words for words, _ in parts if words)
    text.attrib.update(kept | {"role": "img", "aria-label": label, "d": "".join(drawn for _, drawn in parts)})


@cache
def _harfbuzz() -> Any:
    return import_module("uharfbuzz")  # not where our font is not


@cache
def _font() -> Any:
    harfbuzz = _harfbuzz()
    return harfbuzz.Font(harfbuzz.Face(harfbuzz.Blob.from_file_path(str(_file()))))


def _units() -> float:
    """How many of the font's units are as long as its size."""
    return float(_font().face.upem)


def _shaped(words: str) -> Any:
    """The glyphs of a line and how far each advances, in the font's units."""
    buffer = _harfbuzz().Buffer()
    buffer.add_str(words)
    buffer.guess_segment_properties()
    buffer.language = "en"  # not that of this machine
    _harfbuzz().shape(_font(), buffer)
    return buffer


def _path(words: str, anchor: str, up: float) -> str | None:
    """The outlines of a line in the font's units, y upwards; None where a letter has none."""
    if not words:
        return ""
    buffer = _shaped(words)
    if any(glyph.codepoint == 0 for glyph in buffer.glyph_infos):
        return None
    pen = _Pen()
    pen.x, pen.y = -_BEFORE[anchor] * sum(place.x_advance for place in buffer.glyph_positions), up
    for glyph, place in zip(buffer.glyph_infos, buffer.glyph_positions, strict=True):
        pen.shift = pen.x + place.x_offset, pen.y + place.y_offset
        _font().draw_glyph_with_pen(glyph.codepoint, pen)
        pen.x += place.x_advance
    return "".join(pen.drawn)


class _Pen:
    """Takes a glyph's outline and writes it as an SVG's path, each point as seen from the one before."""

    def __init__(self) -> None:
        self.x = self.y = 0.0
        self.shift = self.at = 0.0, 0.0
        self.drawn: list[str] = []

    def _write(self, command: str, *points: _Point) -> None:
        away = ((x - self.at[0], y - self.at[1]) for x, y in points)
        self.drawn.append(command + " ".join(f"{number:.6g}" for point in away for number in point).replace(" -", "-"))
        self.at = points[-1]

    def moveTo(self, point: _Point) -> None:  # noqa: N802 - the names are those of all pens
        self.at = point
        self.drawn.append(f"M{point[0] + self.shift[0]:.6g} {point[1] + self.shift[1]:.6g}")

    def lineTo(self, point: _Point) -> None:  # noqa: N802
        self._write("l", point)

    def qCurveTo(self, *points: _Point) -> None:  # noqa: N802
        self._write("q", *points)

    def curveTo(self, *points: _Point) -> None:  # noqa: N802
        self._write("c", *points)

    def closePath(self) -> None:  # noqa: N802
        self.drawn.append("Z")
