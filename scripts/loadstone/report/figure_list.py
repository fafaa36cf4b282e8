"""Which figures a page gives: a name among files, a specification and rows for each."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from loadstone.archive import encode
from loadstone.report import figure_distributions as pictured
from loadstone.report import figure_history as history
from loadstone.report import figure_rows as rows_of
from loadstone.report.figure_rows import Page, Row


@dataclass(frozen=True)
class Figure:
    """A chart of a page: its name among files, its specification, its rows, and whether its y axis is logarithmic.

    `runs` are rows of the data set of that name.
    """

    name: str
    spec: str
    rows: list[Row]
    logarithmic: bool = False
    runs: list[Row] = field(default_factory=list)


def all_figures(page: Page, loads: tuple[str, ...] | None) -> Iterator[Figure]:
    """Every chart of a page, also those without rows."""
    if "history" in page.data:
        yield from _through_time(page, loads)
    else:
        yield from _across_load(page, loads)


def _across_load(page: Page, loads: tuple[str, ...] | None) -> Iterator[Figure]:
    data = page.data
    for name in data["statistics"]:
        logarithmic = bool(data["cells"]) and rows_of.is_logarithmic(page, name)
        for chart, part in (("latency", "all"), ("success", "ok")):
            runs = pictured.run_points(page, part, name)
            yield Figure(f"{chart}-{name}", chart, rows_of.across_load(page, part, name), logarithmic, runs=runs)
        told = rows_of.reported(page, name) if "reported" in page.specs else []
        yield Figure(f"reported-{name}", "reported", told, rows_of.is_logarithmic(page, name))
    yield from _concluded(page)
    for name in rows_of.concluded_statistics(page):
        yield Figure(f"heat-{name}", "heat", pictured.bins(page, name))
    yield Figure("failed", "failed", rows_of.failed(page))
    for name in sorted({error["error_class"] for error in data["errors"]}):
        yield Figure(f"errors-{name}", "errors", rows_of.errors(page, name))
    yield Figure("percentiles", "percentiles", rows_of.percentiles(page))
    for number in range(len(data.get("fits", ()))):
        yield Figure(f"fit-{number + 1}", f"fit-{number}", rows_of.fit(page, number))
    parts = (data.get("resources") or {}).get("parts", {})
    for part in parts:
        for what in ("cpu", "memory"):
            yield Figure(f"{what}-{file_name(part)}", f"use-{what}", rows_of.used(page, part, what))
    shown = [data["rate"]] if loads is None else [load for load in loads if load in data["rates"]]
    for load in filter(None, shown):
        yield from _at_load(page, load)


def _concluded(page: Page) -> Iterator[Figure]:
    if page.data.get("concluded"):
        for name in rows_of.concluded_statistics(page):
            for kind in ("ratio", "shift"):
                yield Figure(f"effects-{kind}-{name}", f"effects-{kind}", rows_of.beside_baseline(page, name, kind))
            yield Figure(f"layers-{name}", "layers", rows_of.added(page, name))
    yield Figure("effects-errors", "effects-errors", pictured.errors_beside(page))


def _through_time(page: Page, loads: tuple[str, ...] | None) -> Iterator[Figure]:
    """Of a variant through time: at each load asked for, on each host."""
    data = page.data
    shown = [data["rate"]] if loads is None else [load for load in loads if load in data["rates"]]
    for host in history.hosts(page):
        for load in filter(None, shown):
            for name in data["statistics"]:
                spec = "history-share" if name == history.ERRORS else "history"
                yield Figure(f"{file_name(host)}-{load}-{name}", spec, history.rows(page, host, load, name))


def file_name(part: str) -> str:
    """Of ``scope/name``, without ``%``: Snakemake's report puts names of files into addresses as they are."""
    return "-".join(map(encode, part.split("/", 1))).replace("%", "~")


def _at_load(page: Page, load: str) -> Iterator[Figure]:
    curves, runs = pictured.curves(page, load), pictured.run_curves(page, load)
    logarithmic = rows_of.spans_decades(row["value"] for row in curves)
    yield Figure(f"curves-{load}", "curves", curves, logarithmic, runs=runs)
    if not page.has_rate(load):
        return
    rate, parts = page.rate(load), (page.data.get("resources") or {}).get("parts", {})
    for name in ("p50", "p90"):
        yield Figure(f"time-{load}-{name}", "time", rows_of.over_time(page, rate, name))
    for part in parts:
        for what in ("cpu", "memory"):
            rows = rows_of.used_over_time(page, rate, part, what)
            yield Figure(f"time-{load}-{what}-{file_name(part)}", f"use-time-{what}", rows)
