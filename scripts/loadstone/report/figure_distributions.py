"""The rows that assets/pictured.js draws, for figures that are made without it, and the size of their panels."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loadstone.report.figure_rows import BEYOND, Page, Row, in_order, is_beyond, keyed, label_of, said

_FIGURES = ("mean", "p50", "p90", "p99")
_MEANS = {"summaries": "mean", "raw": "mean"}
_SPACE, _LOWEST, _HIGHEST, _USUAL, _TITLE = 18, 9, 26, 200, 110


def _pictured(page: Page, name: str) -> list[Row]:
    found: list[Row] = (page.data.get("pictured") or {}).get(name, [])
    return found


def _variant(page: Page, each: Mapping[str, Any]) -> str:
    return str(page.data["variants"][each["variant"]]["name"])


def run_points(page: Page, part: str, statistic: str) -> list[Row]:
    """The figure of every run that counts, of all requests (``all``) or of those answered with 200 (``ok``).

    Those far from all figures of cells are left out, as by runsWithin of assets/figures.js.
    """
    values = [cell[part][statistic][0] for cell in page.data["cells"] if cell[part][statistic][0] is not None]
    lowest, highest = (min(values) / BEYOND, max(values) * BEYOND) if values else (0.0, 0.0)
    place = _FIGURES.index(_MEANS.get(statistic, statistic))
    each = _pictured(page, "each")
    found = [
        {"variant": _variant(page, run), "load": run["rate"], "value": run[part][place], "run": _run_name(each, run)}
        for run in each
        if run[part][place] is not None and lowest <= run[part][place] <= highest
    ]
    return in_order(page, found, lambda row: row["load"])


def _run_name(runs: Sequence[Row], run: Row) -> str:
    several = len({each["of"] for each in runs}) > 1
    return f"{run['run']} of {run['of']}" if several else str(run["run"])


def bins(page: Page, statistic: str) -> list[Row]:
    """Latency by time within runs and by load."""
    name = _MEANS.get(statistic, statistic)
    rows = []
    for each in _pictured(page, "bins"):
        variant = _variant(page, each)
        panel = f"{each['variant']:02d}:{label_of(page, variant)}"
        for place, start in enumerate(each["from"]):
            bin_ = {
                "variant": variant,
                "panel": panel,
                "load": each["rate"],
                "from": start,
                "to": start + each["width"],
            }
            bin_["middle"] = start + each["width"] / 2
            bin_["edge"] = start + each["width"] * (1.05 if place + 1 < len(each["from"]) else 1)
            rows.append(bin_ | {"value": each[name][place], "requests": each["requests"][place], "runs": each["runs"]})
    if all(row["value"] is None for row in rows):
        return []
    return in_order(page, rows, lambda row: row["load"])


def curves(page: Page, load: str) -> list[Row]:
    """Latency by percentile at one load, over the requests of all runs that count."""
    return _curves(page, _pictured(page, "curves"), load)


def run_curves(page: Page, load: str) -> list[Row]:
    """The same of single runs."""
    runs = _pictured(page, "each")
    named = [run | {"series": f"{run['variant']}: {_run_name(runs, run)}"} for run in runs]
    return _curves(page, named, load)


def _curves(page: Page, found: Iterable[Row], load: str) -> list[Row]:
    shares, rows = page.data["pictured"]["shares"] if page.data.get("pictured") else [], []
    for each in found:
        if f"{each['rate']:.9f}".rstrip("0").rstrip(".") != load:
            continue
        own = {"variant": _variant(page, each), "load": each["rate"]}
        own |= {"series": each["series"]} if "series" in each else {}
        for place, value in enumerate(each["curve"], each["from"]):
            rows.append(own | {"share": shares[place] * 100, "beyond": 1 / (1 - shares[place]), "value": value})
    return in_order(page, rows, lambda _: 0)


def errors_beside(page: Page) -> list[Row]:
    """Shares of failed requests beside the baseline's, in percentage points."""
    rows = []
    for effect in page.data.get("error_effects") or ():
        value, low, high = effect["points"]
        found = {"load": effect["rate"], "value": value, "point": value, "low": low, "high": high}
        found |= {"verdict": effect["verdict"], "shown": said(effect["verdict"])}
        found["beyond"] = is_beyond(page, effect["variant"], effect["rate"])
        rows.append({"variant": effect["variant"], "label": label_of(page, effect["variant"])} | found)
    return keyed(rows)


def arrange(spec: dict[str, Any], rows: Sequence[Row], *, columns: int, width: float) -> None:
    """Give panels their size, as in assets/pictured.js: `columns` of them in `width` CSS pixels."""
    loads = len({row["load"] for row in rows})
    spec["columns"], spec["spacing"] = columns, _SPACE
    inner = spec["spec"]
    inner["width"] = max(60.0, (width - (columns - 1) * _SPACE) / columns)
    inner["height"] = loads * max(math.ceil(_TITLE / loads), round(max(_LOWEST, min(_HIGHEST, _USUAL / loads))))
    spec["facet"]["header"]["labelLimit"] = inner["width"]
    known = [row["value"] for row in rows if row["value"]]
    domain = [min(known), max(known)] if known else [1, 10]
    colour = inner["layer"][0]["encoding"]["color"]
    colour["scale"]["domain"], legend = domain, colour["legend"]
    legend["values"], legend["gradientLength"] = _ticks(*domain), min(220, width / 2)
    for layer in inner["layer"]:
        layer["encoding"].pop("tooltip", None)


def columns_of(rows: Sequence[Row], width: float) -> int:
    """How many panels stand beside each other."""
    panels = len({row["panel"] for row in rows})
    return min(panels, 3 if width >= 560 and panels != 4 else 2 if width >= 300 else 1)


def _ticks(low: float, high: float) -> list[float]:
    """Round values of a logarithmic scale: enough to read it, few enough to stand apart."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    coarse = [value for power in powers if low <= (value := float(f"1e{power}")) <= high]
    fine = [value for power in powers for digit in (1, 2, 5) if low <= (value := float(f"{digit}e{power}")) <= high]
    if len(fine) < 2:
        return [low, high]
    return fine[:5] if len(fine) <= 5 or len(coarse) < 2 else coarse
