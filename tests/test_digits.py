"""Figures in the texts of tables: three digits and no power of ten, however long the server took."""

import pytest
from loadstone.analysis import run_behaviour
from loadstone.text import ms, three


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.46182, "0.462"), (47.06, "47.1"), (338.6, "339"), (999.7, "1,000"), (-4009, "-4,009")],
)
def test_three_digits(value: float, text: str) -> None:
    assert three(value) == text


def test_a_late_run_of_a_slow_server() -> None:
    row = {
        "limited": True,
        "judged_by": "p99",
        "judged_lag_ns": 479e6,
        "lag_limit_ns": 339e6,
        "achieved_rate": 14996.2,
        "asked_rate": 15000.0,
        "observed_p99_ns": 4008.7e6,
        "corrected_p99_ns": 4010.2e6,
    }
    assert run_behaviour.late_text(row) == (
        "its requests were sent late: the 99th percentile of the send lag is 479 ms, the limit 339 ms; 15,000 of "
        "15,000 requests/s were sent, and the 99th percentile of latency, 4,009 ms, is 4,010 ms from when requests "
        "were due"
    )


def test_levels_of_a_slow_server() -> None:
    row = {
        "shape": "changing level",
        "levels_ns": [912e6, 1994e6, 3400e6, 3800e6],
        "change_seqs": [234, 421, 1171],
        "half_ratio": 1 / 1.55,
    }
    assert run_behaviour.unsettled_text(row) == (
        "is changing level: its level changes at request 234, 421 and 1,171 (912, 1,994, 3,400, 3,800 ms); its second "
        "half took 1.55 times as long as its first (mean latency)"
    )


def test_a_time() -> None:
    assert [ms(time_ns) for time_ns in (462_000, 4.0087e9)] == ["0.462 ms", "4,009 ms"]
