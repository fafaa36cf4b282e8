"""What a page hands to its script."""

from loadstone.report import page_data
from loadstone.report.numbers import MILLISECONDS

NAMES = ("p50", "p90", "p99")


def row(**changes):
    found = {"rate": 10.0, "variant": "plain", "n_runs": 3, "n_requests": 5000, "ok_n_requests": 999}
    found |= {"error_fraction": 0.8, "error_fraction_std": 0.0}
    found |= {f"{name}{part}_ns": 2e6 for name in NAMES for part in ("", "_low", "_high")}
    found |= {f"{name}_estimable": True for name in NAMES} | {f"ok_{name}_ns": 1e6 for name in NAMES}
    return found | changes


def test_a_band_of_one_standard_deviation_ends_at_zero():
    cell = page_data.cell(row(), MILLISECONDS, {"mean": (2e6, 5e6)}, {"mean": (2e6, 1e6)})
    assert cell["all"]["mean"] == [2.0, 0.0, 7.0, True]
    assert cell["ok"]["mean"] == [2.0, 1.0, 3.0, True]


def test_percentiles_of_successful_requests_are_judged_by_their_own_number():
    ok = page_data.cell(row(), MILLISECONDS, {}, {})["ok"]
    assert [ok[name] for name in NAMES] == [[1.0, None, None, True], [1.0, None, None, True], [1.0, None, None, False]]
    ok = page_data.cell(row(ok_n_requests=1000), MILLISECONDS, {}, {})["ok"]
    assert ok["p99"][3] is True
    # Where no request was answered with 200 there is nothing to draw.
    ok = page_data.cell(row(ok_n_requests=None, ok_p99_ns=None), MILLISECONDS, {}, {"mean": (None, None)})["ok"]
    assert ok["p99"] == [None, None, None, False] and ok["mean"] == [None, None, None, False]
