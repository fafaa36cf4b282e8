"""The rows of charts, made once, and what a page holds of them."""

from collections.abc import Mapping
from typing import Any

import pytest
from loadstone.config.variants import Style
from loadstone.percentiles import SHOWN_PERCENTILES
from loadstone.report import chart_rows, figures
from loadstone.report.conclusions import Conclusions
from loadstone.report.numbers import MILLISECONDS

NAMES = tuple(SHOWN_PERCENTILES)
STYLES = [Style("plain", "Direct", "#0072B2"), Style("<b>", "<b>", "#E69F00")]
NOTHING = Conclusions([], [], [], [], [], [])


def cell(**changes: Any) -> dict[str, Any]:
    found = {"rate": 10.0, "variant": "plain", "n_runs": 3, "n_requests": 5000, "ok_n_requests": 999}
    found |= {"error_fraction": 0.8, "error_fraction_std": 0.0}
    found |= {f"{name}{part}_ns": 2e6 for name in NAMES for part in ("", "_low", "_high")}
    found |= {f"{name}_estimable": True for name in NAMES} | {f"ok_{name}_ns": 1e6 for name in NAMES}
    return found | changes


def shown(
    made: Mapping[str, Any], chart: str, statistic: str, means: tuple[float | None, float | None] = (None, None)
) -> list[Any]:
    """Value, low, high and whether it is estimable of the one row that a cell gives."""
    row = {**made, "run_mean_ns": means[0], "run_std_ns": means[1]}
    prefix = {"mean": "run_"}
    charts = chart_rows.across_load([row], [], STYLES, MILLISECONDS, NOTHING, means=prefix, ok_means=prefix)
    (row,) = figures.rows_of(charts[chart], chart_rows.variants(STYLES), statistic)
    assert (row["label"], row["load"]) == ("Direct", 10)
    return [row[name] for name in ("value", "low", "high", "estimable")]


def test_a_band_of_one_standard_deviation_ends_at_zero() -> None:
    assert shown(cell(), "latency", "mean", (2e6, 5e6)) == [2.0, 0.0, 7.0, True]
    assert shown(cell(), "success", "mean", (2e6, 1e6)) == [2.0, 1.0, 3.0, True]


def test_percentiles_of_successful_requests_are_judged_by_their_own_number() -> None:
    found = [shown(cell(), "success", name) for name in NAMES]
    assert found == [[1.0, None, None, True], [1.0, None, None, True], [1.0, None, None, False]]
    assert shown(cell(ok_n_requests=1000), "success", "p99")[3] is True
    # Where no request was answered with 200 there is nothing to draw.
    none = cell(ok_n_requests=None, ok_p99_ns=None)
    assert shown(none, "success", "p99") == shown(none, "success", "mean") == [None, None, None, False]


ROWS = [
    [],
    [{"variant": 0, "load": 10.0, "value": {"p50": 1.5, "p90": None}, "note": "a"}],
    [{"variant": place, "load": 10.0, "value": {"p50": 1.5, "p90": place}, "note": None} for place in (0, 1, 1)],
    [{"variant": place, "from": [0.0, 1.0], "value": {"p50": [1, None]}, "flag": {"p50": False}} for place in (0, 1)],
    [{"variant": 1, "place": place, "value": [5.0, 6.0][place:]} for place in (0, 1)],
    [{"x": 1.0, "line": 2.0}, {"x": 2.0, "line": 2.0}],
]


@pytest.mark.parametrize("rows", ROWS)
def test_a_page_s_script_finds_the_same_rows(rows: list[dict[str, Any]], made_site: Any, watched: Any) -> None:
    watched.open(made_site.page("good").as_uri())
    held, variants, shares = chart_rows.columns(rows), chart_rows.variants(STYLES), [50.0, 90.0]
    for choice in ("p50", "p90"):
        mine = figures.rows_of(held, variants, choice, shares=shares)
        page = {"variants": variants, "charts": {"shares": shares}}
        theirs = watched.page.evaluate(
            "([held, page, choice]) => loadstone.rowsOf(held, page, choice)", [held, page, choice]
        )
        assert theirs == mine
    first = figures.rows_of(held, variants, "p50", shares=shares)
    assert len(first) == sum(
        len(row["value"]["p50"]) if "from" in row else 2 - row["place"] if "place" in row else 1 for row in rows
    )
    assert all(
        row["label"] == STYLES[[style.name for style in STYLES].index(row["variant"])].label
        for row in first
        if "variant" in row
    )
