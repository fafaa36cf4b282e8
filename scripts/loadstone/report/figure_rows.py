"""The rows that a page's script draws (assets/figures.js), for figures that are made without one.

`Page` is what a page gives to its script; everything a reader may choose there is an argument here.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.report.numbers import significant
from loadstone.text import rate_text

Row = dict[str, Any]
_MADE_HERE = "Made by Loadstone"
_JSON = re.compile(r'<script type="application/json" id="(page-data|chart-specs)">(.*?)</script>', re.DOTALL)
_RECEIVED = re.compile(r"loadstone\.receive\((.*)\);\n", re.DOTALL)
BEYOND = 3  # as in assets/figures.js: an interval that reaches further is cut in the picture
_DECADES = 1.5
_SAID = {"inconclusive": "can't tell", None: "none failed"}


@dataclass(frozen=True)
class Page:
    """`data` and `specs` are what the page's script reads; `path` is its file."""

    path: Path
    data: Mapping[str, Any]
    specs: Mapping[str, Any]

    def has_rate(self, rate: str) -> bool:
        """Whether there is something to load at this rate."""
        return self._file(rate).is_file()

    def _file(self, rate: str) -> Path:
        return self.path.with_suffix("") / f"{rate}.js"

    def rate(self, rate: str) -> Mapping[str, Any]:
        """What the page loads when this rate is chosen."""
        file = self._file(rate)
        found = _RECEIVED.match(file.read_text("utf-8"))
        if found is None:
            raise LoadstoneError(f"{file} is no data of a page: `snakemake --cores all report` makes it again")
        content: Mapping[str, Any] = json.loads(f"[{found[1]}]")[1]
        return content


def read(path: Path) -> Page | None:
    """The page of a file; None where it draws nothing. Raises LoadstoneError for what is no whole page."""
    try:
        text = path.read_text("utf-8")
        if _MADE_HERE not in text or not text.rstrip().endswith("</html>"):
            raise ValueError("it is no whole page of this site")
        found = {name: json.loads(data) for name, data in _JSON.findall(text)}
    except (OSError, ValueError) as error:
        raise LoadstoneError(
            f"{path} cannot be read ({error}): remove it, and the next command makes it again"
        ) from None
    return Page(path, found["page-data"], found["chart-specs"]) if len(found) == 2 else None


def in_order(page: Page, rows: Iterable[Row], then: Callable[[Row], Any]) -> list[Row]:
    """Rows with the labels of their variants, in the variants' order."""
    order = {variant["name"]: place for place, variant in enumerate(page.data["variants"])}
    labels = {variant["name"]: variant["label"] for variant in page.data["variants"]}
    named = [row | {"label": labels[row["variant"]]} for row in rows]
    return sorted(named, key=lambda row: (order[row["variant"]], then(row)))


def said(verdict: str | None) -> str:
    """A verdict as charts write it; there is none where no request of either failed."""
    return _SAID.get(verdict, verdict or "")


def is_logarithmic(page: Page, statistic: str) -> bool:
    """Whether latencies need a logarithmic axis: one variant that saturates would press all others flat."""
    values = [cell["all"][statistic][0] for cell in page.data["cells"]]
    values = values or [run.get(statistic) for run in page.data["reported"]["runs"]]
    return spans_decades(values)


def spans_decades(values: Iterable[float | None]) -> bool:
    """Whether a linear axis would show the highest of these alone."""
    known = [value for value in values if value]
    return bool(known) and max(known) / min(known) > 10**_DECADES


def across_load(page: Page, part: str, statistic: str) -> list[Row]:
    """Latencies of all requests (``all``) or of those answered with 200 (``ok``)."""
    rows = []
    for cell in page.data["cells"]:
        value, low, high, estimable = cell[part][statistic]
        if value is not None:
            found = {"load": cell["rate"], "value": value, "low": low, "high": high, "estimable": estimable}
            found["beyond"] = is_beyond(page, cell["variant"], cell["rate"])
            rows.append({"variant": cell["variant"], **found})
    return _cut(in_order(page, rows, lambda row: row["load"]))


def _cut(rows: list[Row]) -> list[Row]:
    if not rows:
        return rows
    values = [row["value"] for row in rows]
    lowest, highest = min(values) / BEYOND, max(values) * BEYOND
    return [
        row if row["low"] is None else row | {"low": max(row["low"], lowest), "high": min(row["high"], highest)}
        for row in rows
    ]


def failed(page: Page) -> list[Row]:
    """Shares of requests that failed, in percent; none when none did."""
    told = [cell for cell in page.data["cells"] if cell["failed"][0] is not None]
    return _shares(page, ((cell, *cell["failed"]) for cell in told))


def errors(page: Page, name: str) -> list[Row]:
    """The same of one class of error; a cell that never saw it has a share of zero."""
    found = {
        (error["rate"], error["variant"]): (error["share"], error["share_std"])
        for error in page.data["errors"]
        if error["error_class"] == name
    }
    cells = [cell for cell in page.data["cells"] if cell["requests"]]
    return _shares(page, ((cell, *found.get((cell["rate"], cell["variant"]), (0.0, 0.0))) for cell in cells))


def _shares(page: Page, cells: Iterable[tuple[Mapping[str, Any], float, float | None]]) -> list[Row]:
    rows = []
    for cell, share, spread in cells:
        low, high = max(0.0, share - (spread or 0)) * 100, min(1.0, share + (spread or 0)) * 100
        found = {"variant": cell["variant"], "load": cell["rate"]}
        rows.append(found | {"share": share * 100, "low": low, "high": high})
    return in_order(page, rows, lambda row: row["load"]) if any(row["share"] > 0 for row in rows) else []


def reported(page: Page, statistic: str) -> list[Row]:
    """What tools reported of single runs; the averages of a comparison's page are none of that."""
    runs = page.data["reported"]["runs"]
    rows = [run | {"value": run[statistic]} for run in runs if run.get(statistic) is not None]
    return in_order(page, rows, lambda row: row["load"])


def percentiles(page: Page) -> list[Row]:
    """Percentile curves of single runs."""
    return in_order(page, page.data["reported"]["percentiles"], lambda _: 0)


def fit(page: Page, number: int) -> list[Row]:
    """A line fitted over runs, and the runs."""
    fitted = page.data["fits"][number]
    line = [point | {"kind": "line"} for point in fitted["line"]]
    return line + in_order(page, [run | {"kind": "run"} for run in fitted["runs"]], lambda _: 0)


def used(page: Page, part: str, what: str) -> list[Row]:
    """CPU or memory of one part across load."""
    rows = [
        _used(cell["variant"], *cell[what], runs=cell["runs"]) | {"load": cell["rate"]}
        for cell in page.data["resources"]["cells"]
        if cell["part"] == part and cell[what][0] is not None
    ]
    return in_order(page, rows, lambda row: row["load"])


def used_over_time(page: Page, rate: Mapping[str, Any], part: str, what: str) -> list[Row]:
    """The same over time at one rate."""
    columns = rate["resources"]
    names = ("part", "variant", what, f"{what}_std", "runs", "time")
    rows = [
        _used(variant, mean, spread, runs=runs) | {"time": time}
        for of, variant, mean, spread, runs, time in zip(*(columns[name] for name in names), strict=True)
        if of == part and mean is not None
    ]
    return in_order(page, rows, lambda row: row["time"])


def _used(variant: str, mean: float, spread: float | None, *, runs: int) -> Row:
    several = runs > 1
    low, high = (max(0.0, mean - (spread or 0)), mean + (spread or 0)) if several else (None, None)
    return {"variant": variant, "value": mean, "low": low, "high": high}


def over_time(page: Page, rate: Mapping[str, Any], statistic: str) -> list[Row]:
    """Latency per time bin at one rate; none of requests whose times nobody knows."""
    time = rate["time"]
    width = time["width_s"]
    rows = [
        {"variant": variant, "phase": phase, "value": value, "time": start + width / 2, "start": start}
        | {"end": start + width}
        for variant, phase, value, start in zip(
            time["variant"], time["phase"], time[statistic], time["start_s"], strict=True
        )
        if start is not None
    ]
    return in_order(page, rows, lambda row: row["time"])


def knees(page: Page) -> list[Row]:
    """Where each variant's knee is."""
    found = _concluded(page, "knees")
    return [knee | {"label": label_of(page, knee["variant"])} for knee in found if knee["knee"] is not None]


def _concluded(page: Page, name: str) -> list[Row]:
    found: list[Row] = (page.data.get("concluded") or {}).get(name, [])
    return found


def is_beyond(page: Page, variant: str, rate: float) -> bool:
    """Whether a load is beyond the variant's knee."""
    return any(each["variant"] == variant and rate in each["beyond"] for each in _concluded(page, "knees"))


def concluded_statistics(page: Page) -> list[str]:
    """Those of the page's statistics that conclusions are drawn of; a comparison's two means are one there."""
    return list(dict.fromkeys("mean" if name in ("summaries", "raw") else name for name in page.data["statistics"]))


def beside_baseline(page: Page, statistic: str, kind: str) -> list[Row]:
    """Variants beside the baseline at every load, by ``ratio`` or ``shift``."""
    rows, margin = [], float((page.data.get("concluded") or {}).get("margin") or 0)
    for effect in (each for each in _concluded(page, "effects") if each["statistic"] == statistic):
        value, low, high = effect[kind]
        before = effect["before"] or 0.0
        least, most = (
            (1 / (1 + margin), 1 + margin) if kind == "ratio" else (before / (1 + margin) - before, before * margin)
        )
        found = {"load": effect["rate"], "value": value, "low": low, "high": high, "verdict": effect["verdict"]}
        found |= {"margin_low": least, "margin_high": most, "shown": said(effect["verdict"])}
        found["beyond"] = is_beyond(page, effect["variant"], effect["rate"])
        rows.append({"variant": effect["variant"], "label": label_of(page, effect["variant"])} | found)
    return keyed(_drawn(rows, kind))


def added(page: Page, statistic: str) -> list[Row]:
    """What each layer adds, at every load."""
    rows = []
    for layer in (each for each in _concluded(page, "layers") if each["statistic"] == statistic):
        value, low, high = layer["added"]
        beyond = any(is_beyond(page, layer[name], layer["rate"]) for name in ("variant", "below_name"))
        found = {"load": layer["rate"], "value": value, "low": low, "high": high, "beyond": beyond}
        found |= {"sure": low is not None and (low > 0 or high < 0), "shown": _signed(page, layer)}
        names = label_of(page, layer["variant"]), layer["below"]
        written = {"label": " over ".join(names), "name": "\nover ".join(names)}
        rows.append({"variant": layer["variant"], **written} | found)
    return keyed(_drawn(rows, "shift"))


def label_of(page: Page, name: str) -> str:
    """What a variant is called."""
    return next(str(variant["label"]) for variant in page.data["variants"] if variant["name"] == name)


def _signed(page: Page, layer: Row) -> str:
    value, step = layer["added"][0], page.data.get("step")
    if value is None:
        return ""
    text = f"{round(abs(value) / step[0]) * step[0]:.{step[1]}f}" if step else significant(abs(value))
    return f"{'−' if value < 0 else '+'}{text}{' (in doubt)' if layer['warning'] else ''}"


def keyed(rows: list[Row]) -> list[Row]:
    """With what is written beside each: the first of a load bears the load too."""
    found = []
    for place, row in enumerate(rows):
        first = place == 0 or rows[place - 1]["load"] != row["load"]
        name = row.get("name", row["label"])
        named = f"{rate_text(row['load'])} · {name}" if first else name
        found.append(row | {"first": first, "key": f"{place}:{named}"})
    return found


def _drawn(rows: list[Row], kind: str) -> list[Row]:
    """As `drawn` of assets/effects.js: what is far beyond all others is cut, or left out of the picture."""
    within = [row for row in rows if not row["beyond"]] if kind == "shift" else rows
    values = [row["value"] for row in within or rows if row["value"] is not None]
    if not values:
        return [row | {"point": row["value"]} for row in rows]
    room = BEYOND * max(map(abs, values))
    lowest, highest = (min(*values, 1) / BEYOND, max(*values, 1) * BEYOND) if kind == "ratio" else (-room, room)
    found = []
    for row in rows:
        value, low, high = row["value"], row["low"], row["high"]
        far = value is not None and not lowest <= value <= highest
        ends = (None, None) if far or low is None else (max(low, lowest), min(high, highest))
        cut = [None if end == whole or far else end for end, whole in zip(ends, (low, high), strict=True)]
        drawn = {"low": ends[0], "high": ends[1], "cut_low": cut[0], "cut_high": cut[1]}
        found.append(row | drawn | {"point": None if far else value})
    return found


def above_zero(rows: list[Row]) -> list[Row]:
    """For a logarithmic axis: what reaches zero or below is drawn to just under the smallest value."""
    known = [row.get(name) for row in rows for name in ("low", "value")]
    least = min((value for value in known if value is not None and value > 0), default=1.0)
    return [row | {"low": least / 1.5} if row.get("low") is not None and row["low"] <= 0 else row for row in rows]


def ends(rows: list[Row]) -> Iterator[Row]:
    """The last row of each variant."""
    yield from {row["variant"]: row for row in rows if "variant" in row}.values()
