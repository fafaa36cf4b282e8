"""One chart drawn for paper: a page's specification with its rows and without the page, as SVG and PDF.

It is drawn with the page's letters and scaled until these have the size asked for, so that lines and points stay in
proportion. Nobody points at a figure: names are written in full.
"""

import atexit
import json
import math
import re
import shutil
import struct
import tempfile
import textwrap
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import vl_convert

from loadstone.errors import LoadstoneError
from loadstone.report.numbers import rate_name
from loadstone.report.queries import Row
from loadstone.text import rate_text

FONT = "Source Sans Pro"
_LETTER = 12  # CSS pixels: the size of letters on a page
_CM = 72 / 2.54  # points
_POINTS = {"cm": _CM, "mm": _CM / 10, "in": 72, "pt": 1}
_LENGTH = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(cm|mm|in|pt)")
_VARIABLE = re.compile(r"var\(--([a-z-]+)(?:(?<=variant-)([0-9]+))?\)")
_COLOURS = {
    "ink": "#000000",
    "ink-soft": "#333333",
    "grid": "#e3e3e3",
    "axis": "#767676",
    "paper": "#ffffff",
    "shade": "#eeeeee",
    "run": "#3a6ea5",
    "bad": "#c0392b",
}
_PNG = b"\x89PNG\r\n\x1a\n"
_NAMED = re.compile(rb"(?: +/[A-Za-z]+[0-9]+ [0-9]+ 0 R\n)+")
_SIZE = re.compile(r'(<svg\b[^>]*?) width="([0-9.]+)" height="([0-9.]+)"')
_PART = re.compile(r"(?:(?<=id=\"gradient_)|(?<=url\(#gradient_)|(?<=id=\"clip)|(?<=url\(#clip))[0-9]+(?=[\")])")
_NAMES = 0.4  # of the width, for names of rows
_WIDE = 6  # CSS pixels, of a letter of names
_SPACE, _LOWEST, _HIGHEST, _USUAL, _TITLE = 18, 9, 26, 200, 110  # of panels: between them, of a load, of the legend

Variants = Sequence[Mapping[str, str]]  # those of a page, with their names, labels and colours


@dataclass(frozen=True)
class Figure:
    """A chart of a page: its name among files, its specification, its rows, and whether latencies are logarithmic.

    `runs` and `knees` are rows of the data sets of these names.
    """

    name: str
    spec: str
    rows: list[Row]
    logarithmic: bool = False
    runs: list[Row] = field(default_factory=list)
    knees: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """`width`, `height` and `font_size` are in points; `loads` None: what the page shows first."""

    width: float
    height: float
    font: str
    font_size: float
    formats: tuple[str, ...]
    loads: tuple[str, ...] | None


def settings(declared: Mapping[str, Any]) -> Settings:
    """The configuration's ``figures``."""
    width = length(declared.get("width", "8.5cm"))
    return Settings(
        width=width,
        height=length(declared["height"]) if "height" in declared else width * (0.62 if width < 11 * _CM else 0.5),
        font=declared.get("font", FONT),
        font_size=declared.get("font_size", 8),
        formats=tuple(declared.get("formats", ("pdf", "svg"))),
        loads=tuple(map(rate_name, declared["loads"])) if "loads" in declared else None,
    )


def length(text: str) -> float:
    """``8.5cm`` in points. Raises LoadstoneError."""
    if (found := _LENGTH.fullmatch(text)) is None:
        raise LoadstoneError(f"figures: {text!r} is not a length such as 8.5cm, 85mm, 3.3in or 240pt")
    return float(found[1]) * _POINTS[found[2]]


def draw(figure: Figure, specs: Mapping[str, Any], variants: Variants, wanted: Settings) -> Iterator[tuple[str, bytes]]:
    """The content of each of the formats asked for; `specs` and `variants` are the page's.

    Where each row has a line of its own, and in panels, the picture is as high as these need.
    """
    svg = _drawn(figure, specs, variants, wanted)
    for kind in wanted.formats:
        yield (
            kind,
            pdf(_sized(svg, wanted.width, "")) if kind == "pdf" else _sized(svg, wanted.width / _CM, "cm").encode(),
        )


def part_of_sheet(figure: Figure, specs: Mapping[str, Any], variants: Variants, wanted: Settings) -> tuple[str, float]:
    """The same as an element of a larger SVG, and its height in points."""
    svg = _sized(_drawn(figure, specs, variants, wanted, f"{figure.name}-"), wanted.width, "")
    size = _SIZE.search(svg)
    return svg, float(size[3]) if size else wanted.height


def _drawn(figure: Figure, specs: Mapping[str, Any], variants: Variants, wanted: Settings, prefix: str = "") -> str:
    register_font()
    svg = vl_convert.vegalite_to_svg(specification(figure, specs, variants, wanted))
    # vl-convert numbers an SVG's parts on from those of the SVG before.
    numbers = {name: f"{prefix}{number}" for number, name in enumerate(dict.fromkeys(_PART.findall(svg)))}
    return _PART.sub(lambda found: numbers[found[0]], svg)


@cache
def register_font() -> bool:
    """Let vl-convert find our font; False where its package is not installed: conda has none."""
    package = find_spec("font_source_sans_pro")
    if package is None or package.origin is None:
        return False
    # A folder of its own: with several files of one font, the machine decides which one is used.
    folder = tempfile.mkdtemp(prefix="loadstone")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # it is read whenever something is drawn
    shutil.copy(Path(package.origin).parent / "files/SourceSansPro-Regular.ttf", folder)
    vl_convert.register_font_directory(folder)
    return True


@cache
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script without imports, for pages. It takes seconds."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle


def _sized(svg: str, width: float, unit: str) -> str:
    def size(found: re.Match[str]) -> str:
        height = width * float(found[3]) / float(found[2])
        return f'{found[1]} width="{width:.6g}{unit}" height="{height:.6g}{unit}"'

    return _SIZE.sub(size, svg, count=1)


def pdf(svg: str) -> bytes:
    """An SVG as PDF, always the same bytes."""
    register_font()
    content: bytes = vl_convert.svg_to_pdf(svg)
    # The order of a PDF's resources is random; sorted, they mean the same and take the same number of bytes.
    return _NAMED.sub(lambda found: b"".join(sorted(found[0].splitlines(keepends=True))), content)


def png(svg: str, made_by: str) -> bytes:
    """An opaque SVG in CSS pixels as PNG with a text `made_by`, always the same bytes.

    What vl-convert writes is three times larger: it is compressed in haste and has an opacity for each pixel.
    """
    register_font()
    content: bytes = vl_convert.svg_to_png(svg)
    width, height = struct.unpack(">II", content[16:24])
    rows = np.frombuffer(zlib.decompress(b"".join(_chunks(content, b"IDAT"))), np.uint8).reshape(height, -1)
    if (rows[:, 0] != 1).any():  # each row holds differences from the pixel before
        raise LoadstoneError(
            "this version of vl-convert writes PNG files in an unsupported format: install the version pinned in "
            "envs/report.yaml"
        )
    steps = np.delete(rows, np.s_[::4], axis=1)  # without the filter's number and the opacities
    raw = np.zeros((height, 1 + 3 * width), np.uint8)
    raw[:, 1:] = np.cumsum(steps.reshape(height, width, 3), axis=1, dtype=np.uint8).reshape(height, -1)
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0),
        b"tEXt": b"Software\0" + made_by.encode("latin-1"),
        b"IDAT": _deflated(raw.tobytes()),
        b"IEND": b"",
    }
    return _PNG + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )


def _chunks(content: bytes, wanted: bytes) -> Iterator[bytes]:
    """The data of a PNG's chunks of one kind."""
    at = len(_PNG)
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        if content[at + 4 : at + 8] == wanted:
            yield content[at + 8 : at + 8 + length]
        at += 12 + length


def _deflated(raw: bytes) -> bytes:
    """As zlib's format, by the library that pyarrow comes with: Python's differs between machines."""
    gzip: bytes = pa.Codec("gzip", compression_level=6).compress(raw, asbytes=True)
    return b"\x78\x9c" + gzip[10:-8] + struct.pack(">I", zlib.adler32(raw))


# --- a page's specification -> one that stands alone ------------------------------------------------------------------


def specification(figure: Figure, specs: Mapping[str, Any], variants: Variants, wanted: Settings) -> dict[str, Any]:
    """The Vega-Lite specification of one figure, with its rows, in CSS pixels at the page's font size."""

    def colour(found: re.Match[str]) -> str:
        return _COLOURS[found[1]] if found[2] is None else variants[int(found[2])]["light"]

    spec: dict[str, Any]
    spec, config, log_axis = json.loads(
        _VARIABLE.sub(colour, json.dumps([specs[figure.spec], specs["config"], specs.get("log_axis")]))
    )
    width, height = (_LETTER / wanted.font_size * side for side in (wanted.width, wanted.height))
    runs = [row for row in figure.runs if not figure.logarithmic or row["value"] > 0]
    spec |= {
        "padding": 2,
        "config": _config(config, wanted.font),
        "datasets": {"rows": figure.rows, "labels": [], "knees": figure.knees, "runs": runs},
    }
    if "facet" in spec:
        _arrange(spec, figure.rows, width)
        return spec
    axes = spec["usermeta"]["axes"]
    channel = "x" if axes["x"] == "latency" and axes["y"] == "fixed" else "y"
    if figure.logarithmic and axes[channel] != "fixed":
        _make_logarithmic(spec, log_axis[channel], channel)
    if spec["usermeta"].get("rows"):
        rows = [row | {"name": _wrapped(row, _NAMES * width)} for row in figure.rows]
        spec["datasets"]["rows"] = rows
        lines = 1 + max(row["name"].count("\n") for row in rows)
        height = max(height, (len(rows) + 4) * (5 + 13 * lines))
    else:
        _add_legend(spec, figure.rows, variants, width)
    return spec | {"width": width, "height": height, "autosize": {"type": "fit", "contains": "padding"}}


def _config(config: Mapping[str, Any], font: str) -> dict[str, Any]:
    # One weight: a PDF with several files of a font names them in an order that changes from time to time.
    return {
        **config,
        "font": f"{font}, Liberation Sans, Arial, Helvetica, sans-serif",
        "axis": {**config["axis"], "titleFontWeight": "normal", "titlePadding": 5},
        "legend": {**config["legend"], "titleFontWeight": "normal", "rowPadding": 1, "offset": 4},
    }


def _make_logarithmic(spec: dict[str, Any], log_axis: Mapping[str, Any], channel: str) -> None:
    """Make an axis (x or y) logarithmic, as setScale of assets/chart.js does where a reader chooses so."""
    spec["params"] = [*spec.get("params", ()), *log_axis["params"]]
    for layer in spec["layer"]:
        encoding = layer.get("encoding", {}).get(channel)
        if encoding and "field" in encoding and encoding.get("scale", {}) is not None:
            given = encoding.get("scale", {})
            rest = {key: value for key, value in given.items() if key not in ("zero", "nice", "domainMin")}
            encoding["scale"] = {"padding": 10, **rest, "nice": False, "type": "log"}
            encoding["axis"] = {**log_axis["axis"], **encoding.get("axis", {})}


def _add_legend(spec: dict[str, Any], rows: list[Row], variants: Variants, width: float) -> None:
    """Name the variants below the chart, where a page has their names at the ends of lines."""
    spec["layer"] = [layer for layer in spec["layer"] if layer.get("data") != {"name": "labels"}]
    drawn = {row.get("variant") for row in rows}
    letters = int((width - 90) / _WIDE)
    lines = {each["name"]: textwrap.wrap(each["label"], letters) for each in variants if each["name"] in drawn}
    if not lines:
        return
    room = 30 + _WIDE * max(len(line) for label in lines.values() for line in label)
    legend = {
        "orient": "bottom",
        "title": None,
        "values": list(lines),
        "labelExpr": f"{json.dumps(lines)}[datum.value]",
        "labelLimit": 0,
        "columns": max(1, min(4, int(width / room))),
        "symbolOpacity": 1,
        "symbolStrokeWidth": 0,  # which would be dashed as lines are
        **({} if '"shape": {"field"' in json.dumps(spec) else {"symbolType": "circle"}),
    }
    for layer in spec["layer"]:
        for channel in ("color", "shape"):
            encoding = layer.get("encoding", {}).get(channel, {})
            if encoding.get("field") == "variant":
                encoding["legend"] = legend


def _wrapped(row: Row, room: float) -> str:
    """The name of a row, wrapped; the first line leaves room for the load, which the first row of each load shows."""
    letters, load = int(room / _WIDE), f"{rate_text(row['load'])} · "
    lines = str(row.get("name") or row["label"]).split("\n")
    first = textwrap.wrap(lines[0], letters, initial_indent=load)
    rest = [part for line in lines[1:] for part in textwrap.wrap(line, letters)]
    return "\n".join([*first, *rest]).removeprefix(load)


def _arrange(spec: dict[str, Any], rows: Sequence[Row], width: float) -> None:
    """Give panels their size, as `arrange` of assets/figures.js does."""
    panels, loads = len({row["label"] for row in rows}), {row["load"] for row in rows}
    columns = min(panels, 3 if width >= 560 and panels != 4 else 2 if width >= 300 else 1)
    axis = 42 + 7 * max(len(rate_text(load)) for load in loads)
    inner = spec["spec"]
    inner["width"] = max(60.0, (width - axis - (columns - 1) * _SPACE) / columns)
    lowest = math.ceil(_TITLE / len(loads))
    inner["height"] = len(loads) * max(lowest, round(max(_LOWEST, min(_HIGHEST, _USUAL / len(loads)))))
    inner["layer"][0]["encoding"]["color"]["legend"]["gradientLength"] = min(220, width / 2)
    spec["facet"]["header"]["labelLimit"] = inner["width"]
    spec |= {"columns": columns, "spacing": _SPACE}
