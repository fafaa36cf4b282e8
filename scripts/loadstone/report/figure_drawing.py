"""One chart drawn for paper: its specification without a page around it, as SVG and PDF.

Nobody points at a figure, so that names are written in full, and panels and rows have the size that paper leaves them.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import vl_convert

from loadstone.errors import LoadstoneError
from loadstone.report import figure_font
from loadstone.report.charts.base import FAR
from loadstone.report.figure_font import FONT
from loadstone.report.queries import Row
from loadstone.text import rate_text

_CM = 96 / 2.54  # CSS pixels, in which the charts' lines and points are measured
_POINT = 96 / 72
_PIXEL = {"cm": _CM, "mm": _CM / 10, "in": 96, "pt": _POINT}
_LENGTH = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(cm|mm|in|pt)")
_ROOMY = 11 * _CM  # from here on variants' names are at the ends of their lines, otherwise below the chart
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


_SPACE, _LOWEST, _HIGHEST, _USUAL, _TITLE = 18, 9, 26, 200, 110  # of panels: between them, of a load, of the legend
_ROOM = 0.4  # of the width, for names of rows
# Marks as large as on a page would cover short intervals: areas in squares of a letter's size, on a page and here.
_AREAS = {46: 0.3, 60: 0.3, 26: 0.12}
_ABOVE = -0.61  # how far the first of two lines stands above the middle of them, in letters

Variants = Sequence[Mapping[str, str]]  # those of a page, with their names, labels and colours


@dataclass(frozen=True)
class Figure:
    """A chart of a page: its name among files, its specification, its rows, and whether its y axis is logarithmic.

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


def draw(figure: Figure, specs: Mapping[str, Any], variants: Variants, wanted: Settings) -> Iterator[tuple[str, bytes]]:
    """The content of each of the formats asked for; `specs` and `variants` are the page's."""
    svg, fitting = drawn(figure, specs, variants, wanted)
    for kind in wanted.formats:
        yield kind, _as(kind, svg, fitting)


def drawn(figure: Figure, specs: Mapping[str, Any], variants: Variants, wanted: Settings) -> tuple[str, Settings]:
    """The figure as SVG, and its size where that is another than asked for: some are as high as their rows need."""
    if "facet" not in specs[figure.spec]:
        fitting = _as_high_as_needed(figure, specs, wanted)
        return _svg(specification(figure, specs, variants, fitting)), fitting
    # The size of axes next to panels is known once they are drawn.
    first = _measured(_svg(specification(figure, specs, variants, wanted)))
    svg = _svg(specification(figure, specs, variants, wanted, axes=first[0] - wanted.width))
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


def _as_high_as_needed(figure: Figure, specs: Mapping[str, Any], wanted: Settings) -> Settings:
    """Where every row has a line of its own, the picture is as high as these need."""
    if not _has_lines(specs[figure.spec]):
        return wanted
    rows = fitted(figure.rows, wanted.width, wanted.letter)
    lines = 1 + max(row["name"].count("\n") for row in rows)
    return replace(wanted, height=max(wanted.height, (len(rows) + 4) * (0.4 + 1.1 * lines) * wanted.letter))


# --- a page's specification -> one that stands alone ------------------------------------------------------------------


def specification(
    figure: Figure, specs: Mapping[str, Any], variants: Variants, wanted: Settings, *, axes: float = 0.0
) -> dict[str, Any]:
    """The Vega-Lite specification of one figure, with its rows and without a page around it.

    `axes` is what axes take of the width of a picture of panels, in CSS pixels.
    """
    text = json.dumps({"config": specs["config"], "spec": specs[figure.spec], "log_axis": specs.get("log_axis")})
    loaded = json.loads(_VARIABLE.sub(lambda found: _colour(variants, *found.groups()), text))
    spec, config, rows = loaded["spec"], loaded["config"], figure.rows
    if "facet" in spec:
        _arrange(spec, rows, width=wanted.width - axes, columns=_n_columns(rows, wanted.width))
        return _alone(spec, {"rows": rows}, _config(config, wanted), right=2)
    if figure.logarithmic and spec["usermeta"]["axes"]["y"] != "fixed":
        _make_logarithmic(spec, loaded["log_axis"]["y"])
    has_lines = _has_lines(spec)
    labels = [] if has_lines else _labels(rows, wanted, figure)
    right = 14 if labels and wanted.font != FONT else 2  # a viewer without the font takes a wider one
    for layer in spec.get("layer", ()):
        _stand_alone(layer, variants, with_legend=not labels and not has_lines and _is_named(rows))
    if has_lines:
        rows = fitted(rows, wanted.width, wanted.letter)
        _leave_room(spec, wanted.width, wanted.letter)
    elif labels:
        _label_lines(spec, wanted)
    else:
        spec["layer"] = [layer for layer in spec["layer"] if not _is_label(layer)]
    runs = [row for row in figure.runs if not figure.logarithmic or row["value"] > 0]
    datasets = {"rows": rows, "labels": labels, "knees": figure.knees, "runs": runs}
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


def _colour(variants: Variants, name: str, number: str | None) -> str:
    return _COLOURS[name] if number is None else variants[int(number)]["light"]


def _make_logarithmic(spec: dict[str, Any], log_axis: Mapping[str, Any]) -> None:
    """Make the y axis logarithmic, as setScale of assets/chart.js does where a reader chooses so."""
    spec["params"] = [*spec.get("params", ()), *log_axis["params"]]
    for layer in spec["layer"]:
        encoding = layer.get("encoding", {}).get("y")
        if encoding and "field" in encoding and encoding.get("scale", {}) is not None:
            given = encoding.get("scale", {})
            rest = {key: value for key, value in given.items() if key not in ("zero", "nice", "domainMin")}
            encoding["scale"] = {"padding": 10, **rest, "nice": False, "type": "log"}
            encoding["axis"] = {**log_axis["axis"], **encoding.get("axis", {})}


def _is_label(layer: Mapping[str, Any]) -> bool:
    return bool(layer.get("data", {}).get("name") == "labels")


def _is_named(rows: list[Row]) -> bool:
    return "variant" in rows[0] or "variant" in rows[-1]


def _stand_alone(layer: dict[str, Any], variants: Variants, *, with_legend: bool) -> None:
    """A figure has no tooltips; names that are not at line ends are below the chart."""
    encoding = layer.get("encoding", {})
    encoding.pop("tooltip", None)
    colour = encoding.get("color")
    if with_legend and colour and "field" in colour:
        names = {variant["name"]: variant["label"] for variant in variants}
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
    drawn = [row for row in rows if row.get("kind") != "change"]
    levels = [float(row["value"] if "value" in row else row["share"]) for row in drawn]
    lowest, highest = min(levels) / FAR, max(levels) * FAR  # as charts/load.py cuts intervals
    reached = [
        min(max(row[end], lowest), highest) for row in drawn for end in ("low", "high") if row.get(end) is not None
    ]
    low = min([*levels, *reached]) if figure.logarithmic else 0.0
    place = _Axis(low, max([*levels, *reached]), figure.logarithmic)
    last = {row["variant"]: row | {"at": place.share(level)} for row, level in zip(drawn, levels, strict=True)}
    found = list(last.values())
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


def _label_lines(spec: dict[str, Any], wanted: Settings) -> None:
    axes = (layer.get("encoding", {}).get("y", {}) for layer in spec["layer"] if not _is_label(layer))
    y = next(axis for axis in axes if "field" in axis)
    for layer in filter(_is_label, spec["layer"]):
        layer["encoding"]["y"] = y | {"field": "at"}
        if "limit" in layer["mark"]:
            layer["mark"]["limit"] = 0.3 * wanted.width


# --- charts with a line for each row (forest plots), and panels -------------------------------------------------------


def _has_lines(spec: Mapping[str, Any]) -> bool:
    """Whether each row of such a chart has a line of its own."""
    return bool(spec["usermeta"].get("rows"))


def fitted(rows: list[Row], width: float, letter: float) -> list[Row]:
    """Rows whose names are broken between words where they are wider than there is room in a figure of that width."""
    return [row | {"name": _broken(row, _ROOM * width, letter)} for row in rows]


def _broken(row: Row, room: float, letter: float) -> str:
    """The name of a row in lines; in the first there is room for the load, which the first row of each load bears."""
    load, lines = f"{rate_text(row['load'])} · ", list[str]()
    for part in str(row.get("name") or row["label"]).split("\n"):
        held, *words = part.split(" ")
        for word in words:
            if figure_font.width(f"{held} {word}" if lines else f"{load}{held} {word}", letter) > room:
                lines.append(held)
                held = word
            else:
                held += f" {word}"
        lines.append(held)
    return "\n".join(lines)


def _leave_room(spec: dict[str, Any], width: float, letter: float) -> None:
    """Change a specification so that names have their room, in as many lines as they have, and marks are small."""
    for layer in spec["layer"]:
        encoding = layer.get("encoding", {})
        axis = encoding.get("y", {}).get("axis", {})
        if "labelLimit" in axis:
            # What measures text there finds a line a little longer than it is.
            lines = "length(split(datum.value, '\\n')) - 1"
            axis |= {"labelLimit": 1.1 * _ROOM * width, "labelOffset": {"expr": f"{_ABOVE * letter} * ({lines})"}}
        mark = layer["mark"]
        if mark["type"] == "point" and "size" in mark:
            mark["size"] = _area(mark["size"], letter)
        size = encoding.get("size", {})
        for given in (size, size.get("condition", {})):
            if "value" in given:
                given["value"] = _area(given["value"], letter)


def _area(on_a_page: int, letter: float) -> float:
    return _AREAS[on_a_page] * letter**2


def _arrange(spec: dict[str, Any], rows: Sequence[Row], *, columns: int, width: float) -> None:
    """Give panels their size: `columns` of them in `width` CSS pixels."""
    loads = len({row["load"] for row in rows})
    spec["columns"], spec["spacing"] = columns, _SPACE
    inner = spec["spec"]
    inner["width"] = max(60.0, (width - (columns - 1) * _SPACE) / columns)
    inner["height"] = loads * max(math.ceil(_TITLE / loads), round(max(_LOWEST, min(_HIGHEST, _USUAL / loads))))
    spec["facet"]["header"]["labelLimit"] = inner["width"]
    inner["layer"][0]["encoding"]["color"]["legend"]["gradientLength"] = min(220, width / 2)
    for layer in inner["layer"]:
        layer["encoding"].pop("tooltip", None)


def _n_columns(rows: Sequence[Row], width: float) -> int:
    """How many panels stand in a line."""
    panels = len({row["label"] for row in rows})
    return min(panels, 3 if width >= 560 and panels != 4 else 2 if width >= 300 else 1)


# --- letters and formats ----------------------------------------------------------------------------------------------


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
