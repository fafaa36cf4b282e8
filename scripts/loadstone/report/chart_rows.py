"""The rows of every chart of a page: its script, the figure files and the downloads all use these.

A page holds rows as columns. A column is a list with a value per row, one value that all rows share, or an object of
such columns by what the reader chooses (a statistic, ratio or shift, CPU or memory). Variants are their places in the
page's list. A value that is itself a list stands for as many rows. Latencies are in the page's unit, loads in the
unit of the load, shares in percent.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from loadstone import stats
from loadstone.analysis.distributions import SHARES
from loadstone.config.variants import Style, on_dark, on_light
from loadstone.percentiles import ERRORS, LATENCIES, PERCENTILES, SHOWN_PERCENTILES
from loadstone.report import conclusions, findings
from loadstone.report.conclusions import Conclusions, layers_in_order
from loadstone.report.numbers import Unit, latency_text, rate_name, rounded, signed
from loadstone.report.queries import Distributions, Row

Columns = dict[str, Any]

_ENDS = {"value": "", "low": "_low", "high": "_high"}  # endings of the names of columns
_WIDEST = 100
OVER_TIME = {name: PERCENTILES[name] for name in ("p50", "p90")}  # of each time bin at one load
_DECADES = 1.5


# --- rows <-> columns -------------------------------------------------------------------------------------------------


def columns(rows: Sequence[Row]) -> Columns:
    """Rows, all with the same names, as a page holds them."""
    names = rows[0] if rows else ()
    return {"n": len(rows), "columns": {name: _column([row[name] for row in rows]) for name in names}}


def _columns_by(name: str, rows: Iterable[Row]) -> dict[str, Columns]:
    """Rows grouped by their column `name`, each group as columns."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[name], []).append({key: value for key, value in row.items() if key != name})
    return {key: columns(group) for key, group in groups.items()}


def _column(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, Mapping):
        return {choice: _column([value[choice] for value in values]) for choice in first}
    is_shared = not isinstance(first, list) and all(value == first for value in values)
    return first if is_shared else values


def variants(styles: Sequence[Style]) -> list[dict[str, str]]:
    """The variants in the order of charts and tables, with their colours on a light and on a dark page."""
    return [
        {
            "name": style.name,
            "label": style.label,
            "light": on_light(style.colour),
            "dark": on_dark(style.colour),
        }
        for style in styles
    ]


def _places(styles: Sequence[Style]) -> dict[str, int]:
    return {style.name: place for place, style in enumerate(styles)}


def _in_order(rows: Iterable[Row], styles: Sequence[Style], *by: str) -> list[Row]:
    """Rows of the page's variants, which become their places, sorted by the columns `by`."""
    places = _places(styles)
    known = [row | {"variant": places[row["variant"]]} for row in rows if row["variant"] in places]
    return sorted(known, key=itemgetter(*by))


def spans_decades(values: Iterable[float | None]) -> bool:
    """Whether on a linear axis the highest of these would flatten all others, as one variant that saturates does."""
    known = [value for value in values if value]
    return bool(known) and max(known) / min(known) > 10**_DECADES


# --- across load ------------------------------------------------------------------------------------------------------


def across_load(
    cells: Sequence[Row],
    found_errors: Iterable[Row],
    styles: Sequence[Style],
    unit: Unit,
    found: Conclusions,
    *,
    means: Mapping[str, str],
    ok_means: Mapping[str, str],
) -> dict[str, Any]:
    """The charts across load.

    `means` and `ok_means` (of code 200) are, by name, the beginnings of the columns ``mean_ns`` and ``std_ns``.
    """
    known = [cell for cell in cells if cell["error_fraction"] is not None]
    return {
        "latency": _latency(cells, styles, unit, means, found),
        "success": _latency(cells, styles, unit, ok_means, found, prefix="ok_"),
        "failed": _shares(((cell, cell["error_fraction"], cell["error_fraction_std"]) for cell in known), styles),
        "errors": _errors(cells, found_errors, styles),
    }


def _latency(
    cells: Sequence[Row],
    styles: Sequence[Style],
    unit: Unit,
    means: Mapping[str, str],
    found: Conclusions,
    *,
    prefix: str = "",
) -> Columns:
    """Latency across load; `prefix` ``ok_``: of requests that were answered with 200, percentiles without intervals."""
    rows = []
    for cell in cells:
        requests = cell[f"{prefix}n_requests"] or 0
        own: dict[str, Sequence[Any]] = {}
        for name, probability in SHOWN_PERCENTILES.items():
            value = unit.of(cell[f"{prefix}{name}_ns"])
            if prefix:
                own[name] = value, None, None, stats.estimable(requests, probability)
            else:
                own[name] = value, *interval(cell, name, unit), bool(cell[f"{name}_estimable"])
        for name, start in means.items():
            mean_ns, std_ns = cell[f"{start}mean_ns"], cell[f"{start}std_ns"]
            own[name] = *map(unit.of, _band(mean_ns, std_ns or 0.0)), mean_ns is not None
        rows.append(
            {
                "variant": cell["variant"],
                "load": cell["rate"],
                "runs": cell["n_runs"],
                "requests": requests,
                "beyond": found.is_beyond_knee(cell["variant"], cell["rate"]),
                **_by_end(own, "value", "low", "high", "estimable"),
            }
        )
    return columns(_in_order(rows, styles, "variant", "load"))


def _band(mean: float | None, std: float | None) -> tuple[float | None, float | None, float | None]:
    """A mean with one standard deviation to either side, but not below zero; without one, no band."""
    if mean is None or std is None:
        return mean, None, None
    return mean, max(0.0, mean - std), mean + std


def _by_end(values: Mapping[str, Sequence[Any]], *ends: str) -> dict[str, dict[str, Any]]:
    """From values by figure, in the order of `ends`, to figures by end."""
    return {end: {name: own[at] for name, own in values.items()} for at, end in enumerate(ends)}


def interval(row: Row, name: str, unit: Unit) -> tuple[float | None, float | None]:
    """The interval of one percentile; (None, None) where there is none, or the runs are too few for it.

    The interval of a few runs that differ wildly is of no use, as numbers or in a chart.
    """
    low, high = unit.of(row[f"{name}_low_ns"]), unit.of(row[f"{name}_high_ns"])
    return (None, None) if low is None or high is None or high > _WIDEST * low else (low, high)


def logarithmic(across: Columns, reported: Columns) -> dict[str, bool]:
    """By statistic, whether latencies across load (or, without any, reported ones) need a logarithmic axis."""
    values = (across if across["n"] else reported)["columns"].get("value", {})
    listed = {name: column if isinstance(column, list) else [column] for name, column in values.items()}
    return {name: spans_decades(column) for name, column in listed.items()}


def _errors(cells: Sequence[Row], found: Iterable[Row], styles: Sequence[Style]) -> dict[str, Columns]:
    """Shares of requests by class of error; a cell without errors of a class has a share of zero."""
    seen = {(row["error_class"], row["rate"], row["variant"]): (row["share"], row["share_std"]) for row in found}
    counted = [cell for cell in cells if cell["n_requests"]]

    return {
        name: _shares(
            ((cell, *seen.get((name, cell["rate"], cell["variant"]), (0.0, 0.0))) for cell in counted), styles
        )
        for name in sorted({name for name, *_ in seen})
    }


def _shares(found: Iterable[tuple[Row, float, float | None]], styles: Sequence[Style]) -> Columns:
    """Shares of cells with their spread, in percent; none when all are zero."""
    rows = [
        {
            "variant": cell["variant"],
            "load": cell["rate"],
            "share": 100 * share,
            "low": 100 * max(0.0, share - (spread or 0.0)),
            "high": 100 * min(1.0, share + (spread or 0.0)),
            "spread": 100 * (spread or 0.0),
        }
        for cell, share, spread in found
    ]
    return columns(_in_order(rows, styles, "variant", "load") if any(row["share"] > 0 for row in rows) else [])


# --- single runs, time within runs, and distributions -----------------------------------------------------------------


def of_runs(found: Distributions, styles: Sequence[Style], unit: Unit) -> dict[str, Any]:
    """Single runs behind the charts across load, latency by time and load, and percentile curves."""
    return {
        "runs": _runs(found, styles, unit),
        "success_runs": _runs(found, styles, unit, "ok_"),
        "heat": _time_bins(found, styles, unit),
        "shares": [round(100 * share, 6) for share in SHARES],
        "curves": _percentile_curves(found, styles, unit),
    }


def _runs(found: Distributions, styles: Sequence[Style], unit: Unit, prefix: str = "") -> Columns:
    """Figures of every valid run; `prefix` ``ok_``: of requests that were answered with 200."""
    name = _run_names(found.runs)
    rows = [
        {
            "variant": row["variant"],
            "load": row["rate"],
            "run": name(row),
            "requests": row[f"{prefix}n_requests"],
            "value": {figure: rounded(unit.of(row[f"{prefix}{figure}_ns"]), 4) for figure in LATENCIES},
            "at_least": {figure: not prefix and _at_least(row, figure) for figure in LATENCIES},
        }
        for row in found.runs
    ]
    return columns(_in_order(rows, styles, "variant", "load"))


def _run_names(found: Sequence[Row]) -> Callable[[Row], str]:
    several = len({row["timestamp"] for row in found}) > 1
    return lambda row: f"{row['run']} of {row['timestamp']}" if several else str(row["run"])


def _time_bins(found: Distributions, styles: Sequence[Style], unit: Unit) -> Columns:
    """Latency by time within runs and by load: a row per load and variant, with lists over its bins."""
    groups: dict[tuple[float, str], list[Row]] = {}
    for row in found.bins:
        groups.setdefault((row["rate"], row["variant"]), []).append(row)
    rows = [
        {
            "variant": variant,
            "load": rate,
            "from": [round(row["from_s"], 6) for row in own],
            "to": [round(row["to_s"], 6) for row in own],
            "requests": [row["n_requests"] for row in own],
            "runs": max(row["n_runs"] for row in own),
            "value": {name: [rounded(unit.of(row[f"{name}_ns"]), 4) for row in own] for name in LATENCIES},
            "at_least": {name: any(bounds := [_at_least(row, name) for row in own]) and bounds for name in LATENCIES},
        }
        for (rate, variant), own in groups.items()
    ]
    return columns(_in_order(rows, styles, "variant", "load"))


def _at_least(row: Row, name: str) -> bool:
    """Whether a figure of a run or a time bin is a lower bound, because requests timed out."""
    return bool(row["n_timeouts"] if name == "mean" else row[f"{name}_censored"])


def _percentile_curves(found: Distributions, styles: Sequence[Style], unit: Unit) -> dict[str, dict[str, Any]]:
    """By load: latency by percentile of all requests of a variant (``rows``), and of each run (``runs``).

    A row per curve; ``place`` is the position of its first share among all shares.
    """
    name, places = _run_names(found.runs), _places(styles)

    def curve(row: Row) -> Row:
        own = row["shares"] or []
        least = row["least_from_share"]
        return {
            "variant": row["variant"],
            "load": row["rate"],
            "place": SHARES.index(own[0]) if own else 0,
            "value": [rounded(unit.of(value), 4) for value in row["latencies_ns"]] if own else [],
            "at_least_from": None if least is None or not own else SHARES.index(least),
        }

    curves = [curve(row) | {"requests": row["n_requests"], "runs": row["n_runs"]} for row in found.curves]
    runs = [
        curve(row) | {"run": name(row), "series": f"{places[row['variant']]}: {name(row)}"}
        for row in found.runs
        if row["variant"] in places
    ]
    return {
        rate_name(rate): {
            part: columns(_in_order((row for row in rows if row["load"] == rate), styles, "variant"))
            for part, rows in (("rows", curves), ("runs", runs))
        }
        | {"logarithmic": spans_decades(value for row in curves if row["load"] == rate for value in row["value"])}
        for rate in dict.fromkeys(row["load"] for row in (*curves, *runs))
    }


# --- conclusions ------------------------------------------------------------------------------------------------------


def of_conclusions(
    found: Conclusions, styles: Sequence[Style], unit: Unit, step: Sequence[float] | None
) -> dict[str, Any]:
    """Saturation points, the charts of differences, and overhead per layer; `step` is that of coarse latencies."""
    effects = _relative_to_baseline(found, styles, unit)
    return {
        "knees": _knees(found, styles),
        "effects-errors": effects.pop(ERRORS, columns([])),
        "effects": effects,
        "dumbbell": _dumbbells(found, styles, unit),
        "layers": _layers(found, styles, unit, step),
    }


def _knees(found: Conclusions, styles: Sequence[Style]) -> Columns:
    """The saturation point of each variant that has one, with its interval."""
    names = {"variant": "variant", "knee": "knee_rate", "low": "low", "high": "high"}
    rows = [{name: row[column] for name, column in names.items()} for row in found.knees]
    return columns(_in_order((row for row in rows if row["knee"] is not None), styles, "variant"))


def _relative_to_baseline(found: Conclusions, styles: Sequence[Style], unit: Unit) -> dict[str, Columns]:
    """By statistic: each variant relative to the baseline at every load.

    Latencies as ``ratio`` or as ``shift``, shares of failed requests in percentage points; none if no request failed.
    """
    labels = {style.name: style.label for style in styles}
    failed = any(row["value"] or row["baseline_value"] for row in found.effects if row["statistic"] == ERRORS)
    effects = _in_order(found.effects, styles, "rate", "variant")
    rows = [
        {
            "statistic": row["statistic"],
            "variant": row["variant"],
            "load": row["rate"],
            "baseline": labels.get(row["baseline"], row["baseline"]),
            "verdict": row["verdict"],
            "shown": row["verdict"] or "none failed",
            "why": conclusions.reason_text(found, row, styles),
            "needed": row["runs_needed"],
            "p": rounded(row["p_adjusted"], 5),
            "runs": row["n_runs"],
            "baseline_runs": row["baseline_n_runs"],
            "pairs": row["n_pairs"],
        }
        | (
            {name: rounded(row[f"shift{end}"] and 100 * row[f"shift{end}"], 4) for name, end in _ENDS.items()}
            if row["statistic"] == ERRORS
            else _latency_effect(row, unit, beyond=found.is_beyond_knee(styles[row["variant"]].name, row["rate"]))
        )
        for row in effects
        if row["statistic"] != ERRORS or failed
    ]
    return _columns_by("statistic", rows)


def _latency_effect(row: Row, unit: Unit, *, beyond: bool) -> Row:
    before, margin = unit.of(row["baseline_value"]) or 0.0, row["margin"] or 0.0
    ends = {
        name: {"ratio": rounded(row[f"ratio{end}"], 5), "shift": rounded(unit.of(row[f"shift{end}"]), 5)}
        for name, end in _ENDS.items()
    }
    return {
        "beyond": beyond,
        **ends,
        "margin_low": {"ratio": rounded(1 / (1 + margin), 5), "shift": rounded(before / (1 + margin) - before, 5)},
        "margin_high": {"ratio": rounded(1 + margin, 5), "shift": rounded(before * margin, 5)},
        # Latency beyond saturation grows as long as the attack lasts, and would flatten all others.
        "scaled": ends["value"] | ({"shift": None} if beyond else {}),
    }


def _dumbbells(found: Conclusions, styles: Sequence[Style], unit: Unit) -> dict[str, Columns]:
    """By statistic: the latency of each variant and of its baseline (``before``), where there is no verdict."""
    labels = {style.name: style.label for style in styles}
    rows = [
        {
            "statistic": each.row["statistic"],
            "variant": each.row["variant"],
            "load": each.row["rate"],
            "baseline": each.baseline,
            "before": unit.of(each.row["baseline_value"]),
            "value": unit.of(each.row["value"]),
            "shown": each.change[0],
            "runs": each.row["n_runs"],
            "baseline_runs": each.row["baseline_n_runs"],
        }
        for each in findings.dumbbells(found.effects, found.knees, labels)
    ]
    return _columns_by("statistic", _in_order(rows, styles, "load", "variant"))


def _layers(
    found: Conclusions, styles: Sequence[Style], unit: Unit, step: Sequence[float] | None
) -> dict[str, Columns]:
    """By statistic: overhead per layer."""
    labels, places = {style.name: style.label for style in styles}, _places(styles)
    resolution_ns = step[0] * unit.length_ns if step else None
    rows = []
    for row in layers_in_order(found, labels):
        ends = {name: rounded(unit.of(row[f"added{end}_ns"]), 5) for name, end in _ENDS.items()}
        value, low, high = ends.values()
        size = "" if value is None else signed(latency_text(row["added_ns"], unit, resolution_ns))
        variant, below = labels[row["variant"]], labels.get(row["below"], row["below"])
        beyond = any(found.is_beyond_knee(row[name], row["rate"]) for name in ("variant", "below"))
        rows.append(
            {
                "statistic": row["statistic"],
                "variant": places[row["variant"]],
                "label": f"{variant} over {below}",
                "name": f"{variant}\nover {below}",
                "load": row["rate"],
                **ends,
                "scaled": None if beyond else value,
                "sure": low is not None and high is not None and (low > 0 or high < 0),
                "shown": f"{size}{' (in doubt)' if row['warning'] and size else ''}",
                "warning": conclusions.reason_text(found, row, styles),
                "runs": row["n_runs"],
            }
        )
    return _columns_by("statistic", rows)


# --- what tools reported, lines over runs, and resource usage ---------------------------------------------------------


def reported(rows: Iterable[Row], styles: Sequence[Style], *then: str) -> Columns:
    """What tools reported of single runs: rows of `reported_section`, by variant and then by these columns."""
    return columns(_in_order(rows, styles, "variant", *then))


def fit(line: Sequence[Row], points: Iterable[Row], styles: Sequence[Style]) -> dict[str, Columns]:
    """A line over runs with the band of its mean, and the runs; the line stays when variants are hidden."""
    return {"line": columns(line), "runs": columns(_in_order(points, styles, "variant"))}


def resource_usage(found: Iterable[Row], styles: Sequence[Style], across: str = "load") -> dict[str, Columns]:
    """By part: CPU and memory with their spread over runs, across load or over time (`across` is the column)."""
    rows = []
    for row in _in_order(found, styles, "variant", across):
        several = row["runs"] > 1
        bands = {name: _band(row[name], row[f"{name}_std"] or 0.0 if several else None) for name in ("cpu", "memory")}
        own = {name: row[name] for name in ("part", "variant", across, "runs")}
        rows.append(own | _by_end(bands, "value", "low", "high"))
    return _columns_by("part", rows)


def latency_over_time(found: Iterable[Row], styles: Sequence[Style], unit: Unit) -> Columns:
    """Latency per bin of time since the start of the test."""
    rows = [
        {
            "variant": row["variant"],
            "phase": row["phase"],
            "start": row["from_s"],
            "end": row["to_s"],
            "time": (row["from_s"] + row["to_s"]) / 2,
            "requests": row["n_requests"],
            "value": dict(zip(OVER_TIME, map(unit.of, row["percentiles_ns"]), strict=True)),
            "at_least": {name: row["at_least"][name] for name in OVER_TIME},
        }
        for row in found
    ]
    return columns(_in_order(rows, styles, "variant", "time"))


# --- over time --------------------------------------------------------------------------------------------------------

_NOTE_LINES, _LONGEST_NOTE = 3, 60


def history(points: Sequence[Row], level_text: Callable[[Row], str], unit: str) -> dict[str, Columns]:
    """Figures of a variant over time on one host, at one load and of one statistic, and where their level changes.

    `points` are in the order of time, with a place for ``variant``, which is a way of measuring; `level_text` gives
    the value of a row's level, in `unit`.
    """
    points = sorted(points, key=lambda row: row["variant"])
    dated = [row["at"] for row in points if row["at"] is not None]
    middle = (min(dated) + max(dated)) / 2 if dated else 0
    before: dict[tuple[int, int], Row] = {(row["variant"], row["level"]): row for row in points}
    changes: list[Row] = []
    for row in points:
        last = before.get((row["variant"], row["level"] - 1))
        if not row["change"] or last is None or row["at"] is None:
            continue
        note, levels = row["note"], f"{level_text(last)} to {level_text(row)} {unit}"
        changes.append(
            {
                "variant": row["variant"],
                "at": row["at"],
                "levels": f"{row['when']}: from {levels}",
                "tooltip": f"{row['when']}: from {levels}" + (f". {note}" if note else ""),
                "line": len(changes) % _NOTE_LINES,
                "side": "right" if row["at"] <= middle else "left",
                "text": f"{note[:_LONGEST_NOTE]}…" if len(note) > _LONGEST_NOTE else note or row["when"],
            }
        )
    return {"points": columns(points), "changes": columns(changes)}
