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
from loadstone.report.output import template_text, visible, write_bytes
from loadstone.report.queries import Row
from loadstone.text import at, load_unit

_SITE_MARKER = "Made by Loadstone"
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
        if _SITE_MARKER not in text or not text.rstrip().endswith("</html>"):
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
        yield from _over_campaigns(page, known)
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
        rows = _with_kinds(line=page.rows(fit["line"]), run=page.rows(fit["runs"]))
        yield Figure(f"fit-{number + 1}", f"fit-{number}", rows)
    for part, columns in charts.get("usage", {}).items():
        for what in ("cpu", "memory"):
            yield Figure(f"{what}-{file_name(part)}", f"use-{what}", page.rows(columns, what))


def _with_kinds(**parts: list[Row]) -> list[Row]:
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


def _over_campaigns(page: Page, loads: Sequence[str]) -> Iterator[Figure]:
    """The charts of a variant over time: on each host, at each of the loads."""
    for host, load, name in product(page.data["choices"]["host"], loads, page.data["statistics"]):
        found = page.charts["history"].get(host, {}).get(load, {}).get(name, {})
        rows = _with_kinds(change=page.rows(found.get("changes")), point=page.rows(found.get("points")))
        yield Figure(f"{file_name(host)}-{load}-{name}", "history-share" if name == ERRORS else "history", rows)


def file_name(part: str) -> str:
    """A file name for ``scope/name``, without ``%``: Snakemake's report puts file names into addresses as they are."""
    return "-".join(map(encode, part.split("/", 1))).replace("%", "~")


# --- a page on one sheet of A4 ----------------------------------------------------------------------------------------


_WIDTH, _HEIGHT, _MARGIN = 595.0, 842.0, 42.0  # A4 in points
_INNER = _WIDTH - 2 * _MARGIN
_LETTER_WIDTH = 0.47  # mean width of a letter, in font sizes
_MAX_ROWS, _MAX_COLUMNS = 12, 7  # of the matrix
_NAME_WIDTH, _ROW_HEIGHT, _SIZE = 120.0, 24.0, 8.5
_INK, _SOFT = "#000000", "#545b63"
_MAX_CHART_HEIGHT = 240.0  # of a chart


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
    content = page.data["sheet"]
    lines, y = [], _MARGIN
    for name, size, colour in (("title", 16, _INK), ("brief", 8.5, _SOFT), ("headline", 11.5, _INK)):
        wrapped, y = _wrapped_lines(content[name], y, size, colour)
        lines += wrapped
    matrix = _matrix(page, y + 2)
    y = matrix["end"]
    drawings = []
    for figure in _sheet_figures(page):
        drawing, end = _draw_on_sheet(page, figure, y + 4, font)
        drawings.append((y + 4, drawing))
        y = end
    texts = [content["runs"], *content["caveats"]]
    for place, text in enumerate(texts):
        wrapped, end = _wrapped_lines(text, y, 8.5, _INK)
        if end > _HEIGHT - _MARGIN - 24 and place:
            lines += _wrapped_lines(f"and {len(texts) - place} more on the page", y, 8.5, _SOFT)[0]
            break
        lines, y = lines + wrapped, end
    lines += _wrapped_lines(content["made_by"], _HEIGHT - _MARGIN, 7.5, _SOFT)[0]
    about = {"width": _WIDTH, "height": _HEIGHT, "margin": _MARGIN, "font": font}
    return template_text("summary.svg", about | {"lines": lines, "matrix": matrix, "drawings": drawings})


def _wrapped_lines(text: str, y: float, size: float, colour: str) -> tuple[list[tuple[str, float, float, str]], float]:
    """Wrapped text from `y` on downwards (each line with its y, size and colour), and where it ends."""
    lines = textwrap.wrap(text, int(_INNER / (size * _LETTER_WIDTH)))
    found = [(line, y + size * 1.25 * number, size, colour) for number, line in enumerate(lines, 1)]
    return found, y + size * (1.25 * len(lines) + 0.45) if lines else y


def _matrix(page: Page, y: float) -> dict[str, Any]:
    """The verdicts on the statistic that the page shows first; of many loads those of both ends and between."""
    content = page.data["sheet"]["matrix"]
    cells = page.data["matrix"].get(content.get("shown", ""), [])
    if not cells:
        return {"end": y}
    places = _evenly_spaced(len(content["rates"]), _MAX_COLUMNS)
    letters = int(_NAME_WIDTH / (_SIZE * _LETTER_WIDTH))
    rows = [
        (
            textwrap.wrap(name, letters, max_lines=2, placeholder="…"),
            [(row[at] or ("", "–", "", ""))[:4] for at in places],
        )
        for name, row in list(zip(content["variants"], cells, strict=True))[:_MAX_ROWS]
    ]
    return {
        "y": y,
        "end": y + 28 + _ROW_HEIGHT * len(rows),
        "caption": content["caption"],
        "rates": [content["rates"][place] for place in places],
        "rows": rows,
        "size": _SIZE,
        "name_width": _NAME_WIDTH,
        "width": min(90.0, (_INNER - _NAME_WIDTH) / len(places)),
        "height": _ROW_HEIGHT,
    }


def _evenly_spaced(number: int, most: int) -> list[int]:
    """At most so many places of a list, evenly spread, with both ends."""
    if number <= most:
        return list(range(number))
    return sorted({round(step * (number - 1) / (most - 1)) for step in range(most)})


def _sheet_figures(page: Page) -> Iterator[Figure]:
    """Latency across load and the differences from the baseline, of the statistic that the page shows first."""
    statistic = page.data["statistic"]
    figure = page.data["figures"][statistic]
    wanted = (f"latency-{statistic}", f"dumbbell-{figure}", f"effects-ratio-{figure}", f"reported-{statistic}")
    found = {figure.name: figure for figure in all_figures(page, None) if figure.rows}
    yield from [found[name] for name in wanted if name in found][:2]


def _draw_on_sheet(page: Page, figure: Figure, y: float, font: str) -> tuple[str, float]:
    """A chart over the sheet's width, and where it ends."""
    wanted = Settings(_INNER, _INNER * 0.36, font, 8, ("svg",), None)
    svg, height = figure_drawing.part_of_sheet(figure, page.specs, page.data["variants"], wanted)
    if height > _MAX_CHART_HEIGHT:  # too many rows for a sheet: the matrix has them
        return "", y
    return svg, y + height + 4


# --- a page as the picture of a link ----------------------------------------------------------------------------------


_CARD_WIDTH, _CARD_HEIGHT, _EDGE = 1200, 630, 60  # CSS pixels: what other sites show of a link
_MAX_LINES, _MAX_PLOT_ROWS, _ROW = 3, 4, 48  # of the headline; of the plot, and their height
_PLOT_AT, _WORDS_AT = 430, 790
_LARGE_LETTER_WIDTH = 0.43  # of the headline, in font sizes
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
        write_bytes(picture, figure_drawing.png(_card({**context, "text": text}), f"{_SITE_MARKER} {__version__}"))
    else:
        picture.unlink(missing_ok=True)
    about = {"title": context["title"], "text": text, "image": picture.name if has_picture else None}
    return {"preview": about | {"width": _CARD_WIDTH, "height": _CARD_HEIGHT}}


def _card(content: Mapping[str, Any]) -> str:
    """The picture as SVG: the site, the page, the headline, and the variants' differences as far as there is room."""
    inner = _CARD_WIDTH - 2 * _EDGE
    plots = content["plots"][:_MAX_PLOT_ROWS]
    rows = [
        {
            name: None if row[name] is None else _PLOT_AT + _PLOT_SCALE * row[name]
            for name in ("zero", "at", "from", "to")
        }
        | {
            "variant": _truncated(row["finding"].variant, _PLOT_AT - _EDGE, 28),
            "colour": on_light(row["style"].colour),
            "verdict": row["finding"].verdict,
            "change": " ".join(filter(None, row["finding"].change)),
        }
        for row in plots
    ]
    about = {
        "site": _truncated(content["site_title"], inner, 28),
        "title": _truncated(content["title"], inner, 38),
        "lines": textwrap.wrap(
            content["text"], int(inner / (52 * _LARGE_LETTER_WIDTH)), max_lines=_MAX_LINES, placeholder=" …"
        ),
        "about": _truncated(_card_caption(plots), inner, 24) if plots else "",
        "rows": rows,
        "words_at": _WORDS_AT,
    }
    sizes = {"width": _CARD_WIDTH, "height": _CARD_HEIGHT, "edge": _EDGE, "row": _ROW, "font": FONT}
    return template_text("preview.svg", about | sizes)


def _card_caption(plots: Sequence[Mapping[str, Any]]) -> str:
    """What the rows of a card show."""
    findings = [row["finding"] for row in plots]
    row, baselines = findings[0].row, list(dict.fromkeys(visible(each.baseline) for each in findings))
    intervals = f", with {share(row['confidence'])} intervals" if any(each.bounds for each in findings) else ""
    where = at([row["rate"]], [row["rate"]], load_unit([row["load_model"]]))
    return f"{label(row['statistic'])} relative to {', '.join(baselines)} {where}{intervals}"


def _truncated(text: str, width: float, size: float) -> str:
    """As much of a text as fits into a line."""
    most = int(width / (size * _LETTER_WIDTH))
    text = visible(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"
