"""The charts of a page as files for papers: PDF and SVG of a given width, font and size; and a page on one sheet.

Also the picture that other sites show for a link to a page.

They show the rows that the page holds. Equal pages, settings, libraries and fonts give equal bytes.
"""

import json
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from pathlib import Path
from typing import Any

from loadstone import __version__
from loadstone.archive import durable, encode
from loadstone.config.variants import on_light
from loadstone.errors import LoadstoneError
from loadstone.percentiles import ERRORS, label
from loadstone.report import figure_drawing
from loadstone.report.chart_rows import Columns
from loadstone.report.figure_drawing import FONT, Figure, Settings, draw, settings
from loadstone.report.numbers import share
from loadstone.report.output import visible, write_bytes
from loadstone.report.queries import Row
from loadstone.text import at, load_unit

_MADE_HERE = "Made by Loadstone"
_JSON = re.compile(r'<script type="application/json" id="(page-data|chart-specs)">(.*?)</script>', re.DOTALL)
_RECEIVED = re.compile(r"loadstone\.receive\((.*)\);\n", re.DOTALL)


@dataclass(frozen=True)
class Page:
    """`data` and `specs` are what the page's script reads; `path` is its file."""

    path: Path
    data: Mapping[str, Any]
    specs: Mapping[str, Any]

    @property
    def charts(self) -> Mapping[str, Any]:
        """The rows of its charts."""
        charts: Mapping[str, Any] = self.data.get("charts") or {}
        return charts

    def rows(self, found: Columns | None, choice: str | None = None, *, known: bool = True) -> list[Row]:
        """Rows of columns that the page holds; with `known` without those that have no value."""
        shares = self.charts.get("shares", ())
        rows = rows_of(found, self.data["variants"], choice, shares=shares) if found else []
        return [row for row in rows if not known or row.get("value", row) is not None]

    def rate(self, rate: str) -> Mapping[str, Any]:
        """What the page loads when this rate is chosen; empty if there is no such file."""
        file = self.path.with_suffix("") / f"{rate}.js"
        if not file.is_file():
            return {}
        found = _RECEIVED.match(file.read_text("utf-8"))
        if found is None:
            raise LoadstoneError(f"{file} is not the data of a page: `snakemake --cores all report` rebuilds it")
        content: Mapping[str, Any] = json.loads(f"[{found[1]}]")[1]
        return content


def rows_of(
    found: Columns,
    variants: Sequence[Mapping[str, str]],
    choice: str | None = None,
    *,
    shares: Sequence[float] = (),
) -> list[Row]:
    """The rows again, with the names and labels of their variants (as `rowsOf` of assets/dom.js)."""
    chosen: dict[str, Any] = {
        name: column.get(choice) if isinstance(column, Mapping) else column for name, column in found["columns"].items()
    }
    rows = []
    for place in range(found["n"]):
        row: Row = {name: column[place] if isinstance(column, list) else column for name, column in chosen.items()}
        if "variant" in row:
            variant = variants[row["variant"]]
            row = {"label": variant["label"], **row, "variant": variant["name"]}
        lists: dict[str, Sequence[Any]] = {name: value for name, value in row.items() if isinstance(value, list)}
        if "place" in row:
            lists["share"] = shares[row["place"] :]
        length = min(map(len, lists.values())) if lists else 1
        rows += [row | {name: value[at] for name, value in lists.items()} for at in range(length)]
    return rows


def read(path: Path) -> Page | None:
    """The page in a file; None if it has no charts. Raises LoadstoneError for an incomplete page."""
    try:
        text = path.read_text("utf-8")
        if _MADE_HERE not in text or not text.rstrip().endswith("</html>"):
            raise ValueError("it is not a complete page of this site")
        found = {name: json.loads(data) for name, data in _JSON.findall(text)}
    except (OSError, ValueError) as error:
        raise LoadstoneError(
            f"{path} cannot be read ({error}): remove it, and the next command builds it again"
        ) from None
    return Page(path, found["page-data"], found["chart-specs"]) if len(found) == 2 else None


def build(page_file: Path, folder: Path, declared: Mapping[str, Any]) -> list[Path]:
    """Draw every chart of a page into a folder, which holds nothing else afterwards; the files, by name.

    Left out are charts without rows and those of single runs that a reader picks. Raises LoadstoneError.
    """
    wanted, page = settings(declared), read(page_file)
    written: list[Path] = []
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if page is None:
            return written
        for figure in all_figures(page, wanted.loads):
            if not figure.rows:
                continue
            for kind, content in draw(figure, page.specs, page.data["variants"], wanted):
                written.append(folder / f"{figure.name}.{kind}")
                durable.replace(written[-1], content)
    except OSError as error:
        raise LoadstoneError(f"{error.filename or folder} cannot be written: {error.strerror or error}") from None
    return written


# --- which figures there are ------------------------------------------------------------------------------------------


def all_figures(page: Page, loads: Sequence[str] | None) -> Iterator[Figure]:
    """Every chart of a page, also those without rows; `loads` None: what the page shows first."""
    data = page.data
    shown = [data["rate"]] if loads is None else [load for load in loads if load in data["rates"]]
    known = [load for load in shown if load]
    if "history" in page.charts:
        yield from _through_time(page, known)
    elif page.charts:
        yield from _across_load(page)
        for load in known:
            yield from _at_load(page, load)


def _across_load(page: Page) -> Iterator[Figure]:
    charts, knees = page.charts, page.rows(page.charts["knees"])
    for name, figure in page.data["figures"].items():
        logarithmic = page.data["logarithmic"].get(name, False)
        for chart, runs in (("latency", "runs"), ("success", "success_runs")):
            rows, of_runs = page.rows(charts[chart], name), page.rows(charts[runs], figure)
            yield Figure(f"{chart}-{name}", chart, rows, logarithmic and bool(charts["latency"]["n"]), of_runs, knees)
        yield Figure(f"reported-{name}", "reported", page.rows(charts["reported"], name), logarithmic)
    for name in dict.fromkeys(page.data["figures"].values()):
        for kind in ("ratio", "shift"):
            rows = page.rows(charts["effects"].get(name), kind, known=False)
            yield Figure(f"effects-{kind}-{name}", f"effects-{kind}", rows)
        dumbbells = page.rows(charts.get("dumbbell", {}).get(name))
        yield Figure(f"dumbbell-{name}", "dumbbell", dumbbells, page.data["logarithmic"].get(name, False))
        yield Figure(f"layers-{name}", "layers", page.rows(charts["layers"].get(name), known=False))
        bins = page.rows(charts["heat"], name, known=False)
        yield Figure(f"heat-{name}", "heat", bins if any(row["value"] is not None for row in bins) else [])
    yield Figure("effects-errors", "effects-errors", page.rows(charts["effects-errors"], known=False))
    yield Figure("failed", "failed", page.rows(charts["failed"]))
    for name, columns in charts["errors"].items():
        yield Figure(f"errors-{name}", "errors", page.rows(columns))
    yield Figure("percentiles", "percentiles", page.rows(charts["percentiles"]))
    for number, fit in enumerate(charts.get("fit", ())):
        rows = _of_kinds(line=page.rows(fit["line"]), run=page.rows(fit["runs"]))
        yield Figure(f"fit-{number + 1}", f"fit-{number}", rows)
    for part, columns in charts.get("usage", {}).items():
        for what in ("cpu", "memory"):
            yield Figure(f"{what}-{file_name(part)}", f"use-{what}", page.rows(columns, what))


def _of_kinds(**parts: list[Row]) -> list[Row]:
    """The rows of several data sets in one, each with its `kind`."""
    return [row | {"kind": kind} for kind, rows in parts.items() for row in rows]


def _at_load(page: Page, load: str) -> Iterator[Figure]:
    curves = page.charts["curves"].get(load, {})
    rows, runs = page.rows(curves.get("rows")), page.rows(curves.get("runs"))
    yield Figure(f"curves-{load}", "curves", rows, curves.get("logarithmic", False), runs)
    charts = page.rate(load).get("charts", {})
    for name in ("p50", "p90"):
        yield Figure(f"time-{load}-{name}", "time", page.rows(charts.get("time"), name))
    for part, columns in charts.get("usage", {}).items():
        for what in ("cpu", "memory"):
            yield Figure(f"time-{load}-{what}-{file_name(part)}", f"use-time-{what}", page.rows(columns, what))


def _through_time(page: Page, loads: Sequence[str]) -> Iterator[Figure]:
    """The charts of a variant through time: on each host, at each of the loads."""
    for host, load, name in product(page.data["choices"]["host"], loads, page.data["statistics"]):
        found = page.charts["history"].get(host, {}).get(load, {}).get(name, {})
        rows = _of_kinds(change=page.rows(found.get("changes")), point=page.rows(found.get("points")))
        yield Figure(f"{file_name(host)}-{load}-{name}", "history-share" if name == ERRORS else "history", rows)


def file_name(part: str) -> str:
    """A file name for ``scope/name``, without ``%``: Snakemake's report puts file names into addresses as they are."""
    return "-".join(map(encode, part.split("/", 1))).replace("%", "~")


# --- a page on one sheet of A4 ----------------------------------------------------------------------------------------


_WIDTH, _HEIGHT, _MARGIN = 595.0, 842.0, 42.0  # A4 in points
_INNER = _WIDTH - 2 * _MARGIN
_LETTER = 0.47  # mean width of a letter, in font sizes
_ROWS, _COLUMNS = 12, 7  # of the matrix
_HIGHEST = 240.0  # of a chart
# Marks of verdicts as paths 6 pt wide: as letters they would come from another font.
_UP, _DOWN = "M3 0L6 6H0Z", "M0 0H6L3 6Z"
_SHAPES = {
    "slower": _UP,
    "more": _UP,
    "faster": _DOWN,
    "fewer": _DOWN,
    "equivalent": "M0.5 0.5H5.5V5.5H0.5Z",
    "inconclusive": "M0.5 3a2.5 2.5 0 0 1 5 0a2.5 2.5 0 0 1 -5 0Z",
}
_FILLS = {"slower": "#fbeee4", "more": "#fbeee4", "faster": "#e4f2f6", "fewer": "#e4f2f6"}


def build_summary(page_file: Path, path: Path, font: str = FONT) -> Path:
    """Write the summary of a campaign's or comparison's page. Raises LoadstoneError."""
    page = read(page_file)
    if page is None or "sheet" not in page.data:
        raise LoadstoneError(f"{page_file} has no results to summarise")
    content = figure_drawing.pdf(_sheet(page, font))
    try:
        durable.replace(path, content)
    except OSError as error:
        raise LoadstoneError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


def _sheet(page: Page, font: str) -> str:
    """The sheet as SVG, in points."""
    said = page.data["sheet"]
    parts: list[str] = []
    y = _MARGIN
    for text, size, colour in (
        (said["title"], 16, "#000000"),
        (said["brief"], 8.5, "#545b63"),
        (said["headline"], 11.5, "#000000"),
    ):
        lines, y = _lines(text, y, size, colour)
        parts += lines
    matrix, y = _matrix(page, y + 2)
    parts += matrix
    for figure in _figures(page):
        drawing, y = _figure(page, figure, y + 4, font)
        parts.append(drawing)
    texts = [said["runs"], *said["caveats"]]
    for place, text in enumerate(texts):
        lines, end = _lines(text, y, 8.5, "#000000")
        if end > _HEIGHT - _MARGIN - 24 and place:
            lines, _ = _lines(f"and {len(texts) - place} more on the page", y, 8.5, "#545b63")
            parts += lines
            break
        parts, y = parts + lines, end
    lines, _ = _lines(said["made_by"], _HEIGHT - _MARGIN, 7.5, "#545b63")
    parts += lines
    family = f"{escape(font)}, Liberation Sans, Arial, sans-serif"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:g}" height="{_HEIGHT:g}" '
        f'viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" font-family="{family}">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>'
    )


def _lines(text: str, y: float, size: float, colour: str) -> tuple[list[str], float]:
    """Wrapped text from `y` on downwards, and where it ends."""
    found = []
    for line in textwrap.wrap(text, int(_INNER / (size * _LETTER))):
        y += size * 1.25
        found.append(_text(line, _MARGIN, y, size, colour=colour))
    return found, y + size * 0.45 if found else y


def _text(text: str, x: float, y: float, size: float, *, colour: str = "#000000", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _matrix(page: Page, y: float) -> tuple[list[str], float]:
    """The verdicts on the statistic that the page shows first; of many loads those of both ends and between."""
    said = page.data["sheet"]["matrix"]
    cells = page.data["matrix"].get(said.get("shown", ""), [])
    if not cells:
        return [], y
    places = _spread(len(said["rates"]), _COLUMNS)
    name_width, height, size = 120.0, 24.0, 8.5
    width = min(90.0, (_INNER - name_width) / len(places))
    parts = [_text(said["caption"], _MARGIN, y + size, size - 0.5, colour="#545b63")]
    y += 14
    for column, place in enumerate(places):
        middle = _MARGIN + name_width + (column + 0.5) * width
        parts.append(_text(said["rates"][place], middle, y + size, size, anchor="middle"))
    y += 12
    for name, row in list(zip(said["variants"], cells, strict=True))[:_ROWS]:
        lines = textwrap.wrap(name, int(name_width / (size * _LETTER)), max_lines=2, placeholder="…")
        for number, line in enumerate(lines):
            parts.append(_text(line, _MARGIN, y + (14 if len(lines) == 1 else 9 + 10 * number), size))
        for column, place in enumerate(places):
            x = _MARGIN + name_width + column * width
            verdict, change, bounds, caveat = row[place] or ("", "–", "", 0)
            fill = _FILLS.get(verdict, "#f5f6f7")
            box = f'x="{x + 1:.1f}" y="{y:.1f}" width="{width - 2:.1f}" height="{height - 2:g}"'
            parts.append(f'<rect {box} fill="{fill}"/>')
            shape = _SHAPES.get(verdict)
            if shape:
                parts.append(f'<path d="{shape}" transform="translate({x + 6:.1f} {y + 3.2:.1f})" {_stroke(verdict)}/>')
            parts.append(_text(f"{change}{'*' if caveat else ''}", x + width / 2 + 4, y + 9.5, size, anchor="middle"))
            parts.append(_text(bounds, x + width / 2, y + 18.5, size - 1.5, colour="#545b63", anchor="middle"))
        y += height
    return parts, y + 2


def _stroke(verdict: str) -> str:
    """The colours of a mark; that of an inconclusive verdict is hollow."""
    colour = {"slower": "#b5501b", "more": "#b5501b", "faster": "#0b6e8a", "fewer": "#0b6e8a"}.get(verdict, "#545b63")
    return f'fill="{"none" if verdict == "inconclusive" else colour}" stroke="{colour}" stroke-width="0.7"'


def _spread(number: int, most: int) -> list[int]:
    """At most so many places of a list, evenly spread, with both ends."""
    if number <= most:
        return list(range(number))
    return sorted({round(step * (number - 1) / (most - 1)) for step in range(most)})


def _figures(page: Page) -> Iterator[Figure]:
    """Latency across load and the differences from the baseline, of the statistic that the page shows first."""
    statistic = page.data["statistic"]
    figure = page.data["figures"][statistic]
    wanted = (f"latency-{statistic}", f"dumbbell-{figure}", f"effects-ratio-{figure}", f"reported-{statistic}")
    found = {figure.name: figure for figure in all_figures(page, None) if figure.rows}
    yield from [found[name] for name in wanted if name in found][:2]


def _figure(page: Page, figure: Figure, y: float, font: str) -> tuple[str, float]:
    """A chart over the sheet's width, and where it ends."""
    wanted = Settings(_INNER, _INNER * 0.36, font, 8, ("svg",), None)
    svg, height = figure_drawing.part_of_sheet(figure, page.specs, page.data["variants"], wanted)
    if height > _HIGHEST:  # too many rows for a sheet: the matrix has them
        return "", y
    return f'<g transform="translate({_MARGIN:g} {y:.1f})">{svg}</g>', y + height + 4


# --- a page as the picture of a link ----------------------------------------------------------------------------------


_CARD_WIDTH, _CARD_HEIGHT, _EDGE = 1200, 630, 60  # CSS pixels: what other sites show of a link
_MOST_LINES, _MOST_ROWS, _ROW = 3, 4, 48  # of the headline; of the plot, and their height
_PLOT_AT, _WORDS_AT = 430, 790
_LARGE_LETTER = 0.43  # of the headline, in font sizes
_PLOT_SCALE = 2  # of the plots of `findings`


def link_preview(page_file: Path, context: Mapping[str, Any]) -> dict[str, Any]:
    """Draw what other sites show for a link to the page, next to its file; the variable ``preview`` of ``base.html``.

    `context` has ``site_title``, ``title``, ``headline`` (a `Finding` or None), ``plots`` (rows of `findings.plots`)
    and ``lead``, the text without a headline. Without the included font there is no picture.
    """
    headline, picture = context["headline"], page_file.with_suffix(".png")
    text = visible(headline.sentence if headline else context["lead"])
    has_picture = figure_drawing.register_font()
    if has_picture:
        write_bytes(picture, figure_drawing.png(_card({**context, "text": text}), f"{_MADE_HERE} {__version__}"))
    else:
        picture.unlink(missing_ok=True)
    about = {"title": context["title"], "text": text, "image": picture.name if has_picture else None}
    return {"preview": about | {"width": _CARD_WIDTH, "height": _CARD_HEIGHT}}


def _card(said: Mapping[str, Any]) -> str:
    """The picture as SVG: the site, the page, the headline, and the variants' differences as far as there is room."""
    inner = _CARD_WIDTH - 2 * _EDGE
    parts = [
        _text(_cut(said["site_title"], inner, 28), _EDGE, 76, 28, colour="#545b63"),
        _text(_cut(said["title"], inner, 38), _EDGE, 134, 38, colour="#545b63"),
    ]
    size = 52
    lines = textwrap.wrap(said["text"], int(inner / (size * _LARGE_LETTER)), max_lines=_MOST_LINES, placeholder=" …")
    for number, line in enumerate(lines):
        parts.append(_text(line, _EDGE, 212 + number * 62, size))
    plots = said["plots"][:_MOST_ROWS]
    top = _CARD_HEIGHT - 30 - _ROW * len(plots)
    if plots:
        parts.append(_text(_cut(_about(plots), inner, 24), _EDGE, top - 14, 24, colour="#545b63"))
        middle = _PLOT_AT + 80 * _PLOT_SCALE
        parts.append(f'<path d="M{middle} {top}V{top + _ROW * len(plots)}" stroke="#767676" stroke-width="2"/>')
    for number, row in enumerate(plots):
        parts += _row_of_card(row, top + (number + 0.5) * _ROW)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_CARD_WIDTH}" height="{_CARD_HEIGHT}" '
        f'font-family="{FONT}"><rect width="100%" height="100%" fill="#ffffff"/>'
        f'<rect width="14" height="100%" fill="#0b6e8a"/>{"".join(parts)}</svg>'
    )


def _row_of_card(row: Mapping[str, Any], y: float) -> Iterator[str]:
    """A variant, its ratio to the baseline with the interval, and its verdict."""
    finding, colour = row["finding"], on_light(row["style"].colour)
    x = {name: None if row[name] is None else _PLOT_AT + _PLOT_SCALE * row[name] for name in ("at", "from", "to")}
    yield _text(_cut(finding.variant, _PLOT_AT - _EDGE, 28), _EDGE, y + 10, 28)
    if x["from"] is not None:
        yield f'<path d="M{x["from"]:.1f} {y:.1f}H{x["to"]:.1f}" stroke="#000000" stroke-width="4"/>'
    if x["at"] is not None:
        yield f'<circle cx="{x["at"]:.1f}" cy="{y:.1f}" r="9" fill="{colour}"/>'
    shape = f'<path d="{_SHAPES[finding.verdict]}" transform="translate({_WORDS_AT} {y - 11:.1f}) scale(3.6)" '
    yield f"{shape}{_stroke(finding.verdict)}/>"
    yield _text(f"{finding.verdict} {' '.join(filter(None, finding.change))}", _WORDS_AT + 34, y + 9, 26)


def _about(plots: Sequence[Mapping[str, Any]]) -> str:
    """What the rows of a card show."""
    findings = [row["finding"] for row in plots]
    row, baselines = findings[0].row, list(dict.fromkeys(visible(each.baseline) for each in findings))
    intervals = f", with {share(row['confidence'])} intervals" if any(each.bounds for each in findings) else ""
    where = at([row["rate"]], [row["rate"]], load_unit([row["load_model"]]))
    return f"{label(row['statistic'])} relative to {', '.join(baselines)} {where}{intervals}"


def _cut(text: str, width: float, size: float) -> str:
    """As much of a text as fits into a line."""
    most = int(width / (size * _LETTER))
    text = visible(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"
