"""The charts of a page as files for papers: PDF and SVG of a given width, font and size of letters.

They are drawn from what the page's own script draws from, so they show the same. Equal pages, settings and libraries
give equal bytes: neither dates nor this machine's fonts are in them, unless the settings name a font of its own.
"""

import json
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import vl_convert

from loadstone.archive import durable
from loadstone.errors import LoadstoneError
from loadstone.report import figure_distributions as pictured
from loadstone.report import figure_font, ticks
from loadstone.report import figure_lines as lines
from loadstone.report import figure_rows as rows_of
from loadstone.report.figure_font import FONT
from loadstone.report.figure_list import Figure, all_figures
from loadstone.report.figure_rows import Page, Row

_CM = 96 / 2.54  # CSS pixels, in which the charts' lines and points are measured
_POINT = 96 / 72
_PIXEL = {"cm": _CM, "mm": _CM / 10, "in": 96, "pt": _POINT}
_LENGTH = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(cm|mm|in|pt)")
_ROOMY = 11 * _CM  # from here on variants' names stand beside their lines, else below the chart
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
_NAMED = re.compile(rb"(?: +/[A-Za-z]+[0-9]+ [0-9]+ 0 R\n)+")
_DRAWN = re.compile(r'<svg\b[^>]*? width="([0-9.]+)" height="([0-9.]+)"')
_PART = re.compile(r"(?:(?<=id=\"gradient_)|(?<=url\(#gradient_)|(?<=id=\"clip)|(?<=url\(#clip))[0-9]+(?=[\")])")
_SIZE = re.compile(r'(<svg\b[^>]*?) width="[0-9.]+" height="[0-9.]+"')


@dataclass(frozen=True)
class Settings:
    """`width` and `height` are in CSS pixels, `font_size` in points; `loads` None: what the page shows first."""

    width: float
    height: float
    font: str
    font_size: float
    formats: tuple[str, ...]
    loads: tuple[str, ...] | None

    @property
    def letter(self) -> float:
        """The size of letters in CSS pixels."""
        return self.font_size * _POINT


def settings(declared: Mapping[str, Any]) -> Settings:
    """The configuration's ``figures``."""
    width = length(declared.get("width", "8.5cm"))
    return Settings(
        width=width,
        height=length(declared["height"]) if "height" in declared else width * (0.62 if width < _ROOMY else 0.5),
        font=declared.get("font", FONT),
        font_size=float(declared.get("font_size", 8)),
        formats=tuple(declared.get("formats", ("pdf", "svg"))),
        loads=tuple(f"{load:.9f}".rstrip("0").rstrip(".") for load in declared["loads"])
        if "loads" in declared
        else None,
    )


def length(text: str) -> float:
    """``8.5cm`` in CSS pixels. Raises LoadstoneError."""
    if (found := _LENGTH.fullmatch(text)) is None:
        raise LoadstoneError(f"figures: {text!r} is no length such as 8.5cm, 85mm, 3.3in or 240pt")
    return float(found[1]) * _PIXEL[found[2]]


def build(page_file: Path, folder: Path, declared: Mapping[str, Any]) -> list[Path]:
    """Draw every chart of a page into a folder, which holds nothing else afterwards; the files, by name.

    Left out are charts without rows and those of single runs that a reader picks. Raises LoadstoneError.
    """
    wanted, page = settings(declared), rows_of.read(page_file)
    written: list[Path] = []
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    except OSError as error:
        raise LoadstoneError(f"the folder {folder} cannot be made: {error.strerror or error}") from None
    if page is None:
        return written
    figure_font.register()
    for figure in all_figures(page, wanted.loads):
        if not figure.rows:
            continue
        svg, fitting = _drawn(page, figure, wanted)
        for kind in wanted.formats:
            written.append(folder / f"{figure.name}.{kind}")
            _write(written[-1], _as(kind, svg, fitting))
    return written


def _write(path: Path, content: bytes) -> None:
    try:
        durable.replace(path, content)
    except OSError as error:
        raise LoadstoneError(f"{path} cannot be written: {error.strerror or error}") from None


def _drawn(page: Page, figure: Figure, wanted: Settings) -> tuple[str, Settings]:
    """The figure as SVG, and its size where that is another than asked for: some are as high as their rows need."""
    if "facet" not in page.specs[figure.spec]:
        fitting = _as_high_as_needed(page, figure, wanted)
        return _svg(specification(page, figure, fitting)), fitting
    # What axes take beside panels is known once they are drawn.
    first = _measured(_svg(specification(page, figure, wanted)))
    svg = _svg(specification(page, figure, wanted, beside=first[0] - wanted.width))
    width, height = _measured(svg)
    return svg, replace(wanted, height=height * wanted.width / width)


def _svg(spec: Mapping[str, Any]) -> str:
    """Drawn, with names of its parts that do not depend on what was drawn before."""
    svg = vl_convert.vegalite_to_svg(dict(spec))
    numbers = {name: str(number) for number, name in enumerate(dict.fromkeys(_PART.findall(svg)))}
    return _PART.sub(lambda found: numbers[found[0]], svg)


def _measured(svg: str) -> tuple[float, float]:
    """Width and height that a drawing took."""
    found = _DRAWN.search(svg)
    if found is None:
        raise LoadstoneError("figures: a picture without a size was drawn")
    return float(found[1]), float(found[2])


def _as_high_as_needed(page: Page, figure: Figure, wanted: Settings) -> Settings:
    """Where every row has a line of its own, the picture is as high as these need."""
    if not lines.has_lines(page.specs[figure.spec]):
        return wanted
    rows = lines.fitted(figure.rows, wanted.width, wanted.letter)
    return replace(wanted, height=max(wanted.height, lines.height(rows, wanted.letter)))


# --- a page's specification -> one that stands alone ------------------------------------------------------------------


def specification(page: Page, figure: Figure, wanted: Settings, *, beside: float = 0.0) -> dict[str, Any]:
    """The Vega-Lite specification of one figure, with its rows and without a page around it.

    `beside` is what axes take of the width of a picture of panels, in CSS pixels.
    """
    text = json.dumps({"config": page.specs["config"], "spec": page.specs[figure.spec]})
    loaded = json.loads(_VARIABLE.sub(lambda found: _colour(page, *found.groups()), text))
    spec, config = loaded["spec"], loaded["config"]
    if "facet" in spec:
        columns = pictured.columns_of(figure.rows, wanted.width)
        pictured.arrange(spec, figure.rows, columns=columns, width=wanted.width - beside)
        return _alone(spec, {"rows": figure.rows}, _config(config, wanted), right=2)
    rows = rows_of.above_zero(figure.rows) if figure.logarithmic else figure.rows
    if spec["usermeta"]["axes"]["y"] != "fixed":
        _scale(spec, "y", logarithmic=figure.logarithmic)
    has_lines = lines.has_lines(spec)
    labels = [] if has_lines else _labels(rows, wanted, figure)
    right = 14 if labels and wanted.font != FONT else 2  # a viewer without the font takes a wider one
    for layer in spec.get("layer", ()):
        _stand_alone(layer, page, with_legend=not labels and not has_lines and _is_named(rows))
    if has_lines:
        rows = lines.fitted(rows, wanted.width, wanted.letter)
        lines.leave_room(spec, wanted.width, wanted.letter)
    elif labels:
        _beside_lines(spec, wanted)
    else:
        spec["layer"] = [layer for layer in spec["layer"] if not _is_label(layer)]
    runs = [row for row in figure.runs if not figure.logarithmic or row["value"] > 0]
    datasets = {"rows": rows, "labels": labels, "knees": rows_of.knees(page), "runs": runs}
    ticks.name(spec | {"datasets": datasets})
    return _alone(spec, datasets, _config(config, wanted), right=right) | {
        "width": wanted.width,
        "height": wanted.height,
        "autosize": {"type": "fit", "contains": "padding"},
    }


def _alone(
    spec: Mapping[str, Any], datasets: Mapping[str, list[Row]], config: Mapping[str, Any], *, right: int
) -> dict[str, Any]:
    return {
        **{key: value for key, value in spec.items() if key not in ("usermeta", "width", "height")},
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "padding": {"left": 2, "top": 2, "right": right, "bottom": 2},
        "datasets": datasets,
        "config": config,
    }


def _colour(page: Page, name: str, number: str | None) -> str:
    if number is not None:
        return str(page.data["variants"][int(number)]["light"])
    return _COLOURS[name]


def _scale(spec: dict[str, Any], channel: str, *, logarithmic: bool) -> None:
    """As setScale of assets/site.js."""
    for layer in spec.get("layer", ()):
        _scale(layer, channel, logarithmic=logarithmic)
    encoding = spec.get("encoding", {}).get(channel)
    if encoding and "field" in encoding and encoding.get("scale", {}) is not None:
        given = encoding.get("scale", {})
        rest = {key: value for key, value in given.items() if key not in ("zero", "nice", "domainMin")}
        encoding["scale"] = {"padding": 10, **rest, "nice": False, "type": "log"} if logarithmic else given


def _is_label(layer: Mapping[str, Any]) -> bool:
    return bool(layer.get("data", {}).get("name") == "labels")


def _is_named(rows: list[Row]) -> bool:
    return "variant" in rows[0] or "variant" in rows[-1]


def _stand_alone(layer: dict[str, Any], page: Page, *, with_legend: bool) -> None:
    """Nobody points at a figure; and where names do not stand beside lines, they stand below the chart."""
    encoding = layer.get("encoding", {})
    encoding.pop("tooltip", None)
    colour = encoding.get("color")
    if with_legend and colour and "field" in colour:
        names = {variant["name"]: variant["label"] for variant in page.data["variants"]}
        scale = colour["scale"]
        colour |= {
            "field": "label",
            "scale": scale | {"domain": [names[name] for name in scale["domain"]]},
            "legend": {
                "orient": "bottom",
                "title": None,
                "symbolType": "circle",
                "symbolStrokeWidth": 0,  # which would be dashed as lines are
                "columns": 2,
                "labelLimit": 0,
            },
        }


def _labels(rows: list[Row], wanted: Settings, figure: Figure) -> list[Row]:
    """Where the variants' names stand: at their lines' ends, moved apart; empty where there is no room for them."""
    if wanted.width < _ROOMY or "variant" not in rows[0]:
        return []
    values = [
        float(row[name])
        for row in rows
        for name in ("value" if "value" in row else "share", "low", "high")
        if row.get(name) is not None
    ]
    low, high = (min(values), max(values)) if figure.logarithmic else (0.0, max(values))
    place = _Axis(low, high, figure.logarithmic)
    found = [
        row | {"at": place.share(float(row["value"] if "value" in row else row["share"]))} for row in rows_of.ends(rows)
    ]
    gap = 1.35 * wanted.letter / (wanted.height * 0.75)  # what the axis leaves of the height
    shares = _apart([row["at"] for row in found], gap)
    return [
        {"variant": row["variant"], "label": row["label"], "at": place.value(share)}
        for row, share in zip(found, shares, strict=True)
    ]


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    logarithmic: bool

    def share(self, value: float) -> float:
        """How far up a value is, 0 to 1."""
        if self.high == self.low:
            return 0.5
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        if self.high == self.low:
            return self.high
        if self.logarithmic:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + (self.high - self.low) * share


def _apart(places: list[float], gap: float) -> list[float]:
    """Places on a line from 0 to 1, moved until none is nearer than `gap` to the next."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = [places[index] for index in order]
    for _ in range(60):
        for index in range(1, len(moved)):
            overlap = gap - (moved[index] - moved[index - 1])
            if overlap > 0:
                moved[index - 1] -= overlap / 2
                moved[index] += overlap / 2
        moved = [min(max(place, index * gap), 1 - (len(moved) - 1 - index) * gap) for index, place in enumerate(moved)]
    return [moved[order.index(index)] for index in range(len(places))]


def _beside_lines(spec: dict[str, Any], wanted: Settings) -> None:
    axes = (layer.get("encoding", {}).get("y", {}) for layer in spec["layer"] if not _is_label(layer))
    y = next(axis for axis in axes if "field" in axis)
    for layer in filter(_is_label, spec["layer"]):
        layer["encoding"]["y"] = y | {"field": "at"}
        if "limit" in layer["mark"]:
            layer["mark"]["limit"] = 0.3 * wanted.width


def _config(config: Mapping[str, Any], wanted: Settings) -> dict[str, Any]:
    # One weight of one font: a file with several names them in an order that changes from time to time.
    size = wanted.letter
    plain = {"labelFontSize": size, "titleFontSize": size, "titleFontWeight": "normal", "labelFontWeight": "normal"}
    return {
        **config,
        "background": None,
        "font": f"{wanted.font}, Helvetica, Arial, sans-serif",
        "axis": {**config["axis"], **plain, "titlePadding": 5, "labelPadding": 3},
        "header": {"labelFontSize": size, "labelFontWeight": "normal"},
        "legend": {
            **config.get("legend", {}),
            "labelFontSize": size,
            "titleFontSize": size,
            "titleFontWeight": "normal",
            "rowPadding": 1,
            "columnPadding": 12,
            "offset": 4,
            "symbolSize": 50,
            "symbolOpacity": 1,
        },
        "text": {**config.get("text", {}), "fontSize": size},
    }


def _as(kind: str, svg: str, wanted: Settings) -> bytes:
    """An SVG of its true size; or the PDF of it, whose unit is the point."""
    if kind == "svg":
        width, height = (f"{pixels / _CM:.4g}cm" for pixels in (wanted.width, wanted.height))
        sized = _SIZE.sub(rf'\1 width="{width}" height="{height}"', svg, count=1)
        return (figure_font.outlined(sized) if wanted.font == FONT else sized).encode()
    width, height = (f"{pixels / _POINT:.6g}" for pixels in (wanted.width, wanted.height))
    pdf: bytes = vl_convert.svg_to_pdf(_SIZE.sub(rf'\1 width="{width}" height="{height}"', svg, count=1))
    if b"/FontName" not in pdf and "<text" in svg:
        raise LoadstoneError(
            f"figures: this machine has no font {wanted.font!r} nor another one, so there would be no text in the "
            f"pictures. Install it, or leave `figures.font` out for {FONT}, which Loadstone brings along"
        )
    # Its names of resources stand in an order of chance; in any other, they mean the same and take the same room.
    return _NAMED.sub(lambda found: b"".join(sorted(found[0].splitlines(keepends=True))), pdf)
