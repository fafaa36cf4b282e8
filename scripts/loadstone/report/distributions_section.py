"""What charts show of single runs, of the time within runs and of whole distributions, for a page's script.

Latencies are in the page's unit, to four digits. Loads are keys as `rate_name` writes them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.analysis.distributions import SHARES
from loadstone.config.variants import Style
from loadstone.report import verdict_words
from loadstone.report.conclusions import Conclusions
from loadstone.report.numbers import Unit, rate_name
from loadstone.report.queries import Questions, Row
from loadstone.stats.bootstrap import ERRORS
from loadstone.text import rate_text

_DIGITS = 4
_FIGURES = ("mean", "p50", "p90", "p99")


@dataclass(frozen=True)
class Pictured:
    """Rows of the tables `time_bins`, `percentile_curves` and `run_figures`; ``variant`` names the series."""

    bins: list[Row]
    curves: list[Row]
    runs: list[Row]

    @property
    def rates(self) -> list[float]:
        """Loads at which there is a distribution."""
        return sorted({row["rate"] for row in self.curves})


def gather(
    questions: Questions,
    comparison: str | None = None,
    *,
    counts: Callable[[Row], bool] = lambda _: True,
    named: Callable[[Row], Row] = lambda row: row,
) -> Pictured:
    """Ask the tables; `counts` says of a run whether the page rests on it, `named` gives a row its series' name."""
    return Pictured(
        bins=[named(row) for row in questions.of_scope("time_bins", comparison)],
        curves=[named(row) for row in questions.of_scope("percentile_curves", comparison)],
        runs=[named(row) for row in questions.rows("page_run_figures") if counts(row)],
    )


def script_data(found: Pictured, styles: Sequence[Style], unit: Unit) -> dict[str, Any]:
    """``bins``: of a load and variant its bins as columns; ``curves``: pooled; ``each``: runs, with their curves."""
    order = {style.name: place for place, style in enumerate(styles)}
    short = _short(unit)
    return {
        "pictured": {
            "shares": SHARES,
            "bins": _bins([row for row in found.bins if row["variant"] in order], order, short),
            "curves": [
                {
                    "rate": row["rate"],
                    "variant": order[row["variant"]],
                    "runs": row["n_runs"],
                    "requests": row["n_requests"],
                    **_curve(row, short),
                }
                for row in found.curves
                if row["variant"] in order
            ],
            "each": [
                {
                    "rate": row["rate"],
                    "variant": order[row["variant"]],
                    "run": row["run"],
                    "of": row["timestamp"],
                    "all": [short(row[f"{name}_ns"]) for name in _FIGURES],
                    "ok": [short(row[f"ok_{name}_ns"]) for name in _FIGURES],
                    "requests": row["n_requests"],
                    "ok_requests": row["ok_n_requests"],
                    "timeouts": row["n_timeouts"],
                    **_curve(row, short),
                }
                for row in found.runs
                if row["variant"] in order
            ],
        }
    }


def error_effects(found: Conclusions, styles: Sequence[Style]) -> list[dict[str, Any]]:
    """Variants' shares of failed requests beside the baseline's, in percentage points; none where no request failed."""
    labels = {style.name: style.label for style in styles}
    order = {style.name: place for place, style in enumerate(styles)}
    rows = [row for row in found.effects if row["variant"] in order and row["statistic"] == ERRORS]
    if not any(row["value"] or row["baseline_value"] for row in rows):
        return []
    return [
        {
            "rate": row["rate"],
            "at": rate_name(row["rate"]),
            "variant": row["variant"],
            "baseline": labels.get(row["baseline"], row["baseline"]),
            "points": [_points(row[f"shift{end}"]) for end in ("", "_low", "_high")],
            "verdict": row["verdict"],
            "why": row["why"] and verdict_words.relabelled(row["why"], labels),
            "needed": row["runs_needed"],
            "p": row["p_adjusted"] and float(f"{row['p_adjusted']:.{_DIGITS}g}"),
            "runs": row["n_runs"],
            "baseline_runs": row["baseline_n_runs"],
            "pairs": row["n_pairs"],
        }
        for row in sorted(rows, key=lambda row: (row["rate"], order[row["variant"]]))
    ]


def _points(share: float | None) -> float | None:
    return None if share is None else float(f"{100 * share:.{_DIGITS}g}")


def rates(found: Pictured) -> list[str]:
    """Loads of the percentile curves, as the page's script names them."""
    return [rate_name(rate) for rate in found.rates]


def choices(found: Pictured) -> list[tuple[str, str]]:
    """The same as a reader chooses among them."""
    return [(rate_name(rate), rate_text(rate)) for rate in found.rates]


def _short(unit: Unit) -> Callable[[float | None], float | None]:
    def short(latency_ns: float | None) -> float | None:
        value = unit.of(latency_ns)
        return None if value is None else float(f"{value:.{_DIGITS}g}")

    return short


def _curve(row: Row, short: Callable[[float | None], float | None]) -> dict[str, Any]:
    """Latencies at consecutive `SHARES`, ``from`` the place of the first; ``least``: that of the first least one."""
    shares = row["shares"]
    if not shares:
        return {"from": 0, "curve": [], "least": None}
    least = row["least_from_share"]
    return {
        "from": SHARES.index(shares[0]),
        "curve": [short(value) for value in row["latencies_ns"]],
        "least": None if least is None else SHARES.index(least),
    }


def _bins(
    rows: Sequence[Row], order: Mapping[str, int], short: Callable[[float | None], float | None]
) -> list[dict[str, Any]]:
    groups: dict[tuple[float, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["rate"], row["variant"]), []).append(row)
    return [
        {
            "rate": rate,
            "variant": order[variant],
            "width": round(own[0]["to_s"] - own[0]["from_s"], 6),
            "from": [round(row["from_s"], 6) for row in own],
            "requests": [row["n_requests"] for row in own],
            "runs": max(row["n_runs"] for row in own),
            "timeouts": sum(row["n_timeouts"] for row in own),
            **{name: [short(row[f"{name}_ns"]) for row in own] for name in _FIGURES},
            "least": _least(own),
        }
        for (rate, variant), own in groups.items()
    ]


def _least(rows: Sequence[Row]) -> dict[str, list[int]]:
    """By figure the places of bins whose value is a least one, for requests timed out; without those that have none."""
    found = {"mean": [place for place, row in enumerate(rows) if row["n_timeouts"]]}
    for name in _FIGURES[1:]:
        found[name] = [place for place, row in enumerate(rows) if row[f"{name}_censored"]]
    return {name: places for name, places in found.items() if places}
