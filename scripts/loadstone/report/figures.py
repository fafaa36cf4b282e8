"""The charts of a page as files for papers: PDF and SVG of a given width, font and size of letters.

They show the rows that the page holds. Equal pages, settings, libraries and fonts give equal bytes.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from loadstone.archive import durable, encode
from loadstone.errors import LoadstoneError
from loadstone.percentiles import ERRORS
from loadstone.report.chart_rows import Columns
from loadstone.report.figure_drawing import Figure, draw, settings
from loadstone.report.queries import Row

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
