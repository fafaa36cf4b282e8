"""What a declared sweep says of its load, and what contradicts itself there."""

from typing import Any

import pytest
from loadstone.config import load_shapes

SEED = [
    {"name": "warm-up", "rate": 5, "duration": "60s"},
    {"name": "ramp", "rate": 5, "to": "100%", "duration": "120s"},
    {"name": "sustained", "rate": "100%", "duration": "600s"},
]


def test_rates_of_stages_go_with_each_rate_of_the_sweep() -> None:
    sweep = {"rates": [50, 80], "shape": SEED}
    assert load_shapes.faults(sweep) == []
    at_50, at_80 = (load_shapes.planned(sweep, rate) for rate in (50, 80))
    assert [(stage.rate, stage.to, stage.requests) for stage in at_50] == [(5, 5, 300), (5, 50, 3300), (50, 50, 30_000)]
    assert [(stage.rate, stage.to, stage.requests) for stage in at_80] == [(5, 5, 300), (5, 80, 5100), (80, 80, 48_000)]
    assert [stage.name for stage in at_50 if stage.measured] == ["sustained"]
    assert load_shapes.measured_duration(sweep) == "600s"


def test_the_measured_stage_need_not_be_the_last() -> None:
    stages = [
        {"name": "spike", "rate": "100%", "duration": "1s", "measured": True},
        {"name": "after", "rate": "12.5%", "duration": "2s"},
    ]
    planned = load_shapes.planned({"rates": [40], "shape": stages}, 40)
    assert [(stage.rate, stage.measured) for stage in planned] == [(40, True), (5, False)]


def test_users_repeat_until_they_have_done_enough_or_the_time_is_over() -> None:
    (stage,) = load_shapes.planned({"users": [3], "iterations": 30, "generator": "k6"}, 3)
    assert (stage.users, stage.iterations, stage.requests, stage.duration_s) == (3, 30, 90, 600)
    warmup, stage = load_shapes.planned({"users": [3], "duration": "10s", "warmup": {"duration": "1s"}}, 3)
    assert (warmup.users, warmup.duration_s, stage.requests, stage.duration_s) == (3, 1, None, 10)


OPEN: dict[str, Any] = {"rates": [10], "duration": "2s"}


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        ({"duration": "2s"}, "either rates"),
        (OPEN | {"users": [1], "generator": "k6"}, "either rates"),
        ({"users": [1], "duration": "2s"}, "vegeta does not support closed load"),
        (OPEN | {"iterations": 3}, "needs users"),
        (OPEN | {"script": {"file": "x.js"}}, "is only for k6"),
        ({"rates": [10]}, "duration: is required"),
        (OPEN | {"shape": SEED}, "conflicts with sweep.shape, whose stages define it"),
        ({"rates": [10], "shape": SEED, "generator": "serial"}, "needs open load"),
        ({"users": [10], "shape": SEED, "generator": "k6"}, "needs open load"),
        ({"rates": [10], "shape": [SEED[0], SEED[0]]}, "two stages have the name warm-up"),
        ({"rates": [10], "shape": [each | {"measured": True} for each in SEED]}, "only one stage"),
        ({"rates": [10], "shape": [SEED[2] | {"duration": "0s"}]}, "longer than zero"),
        ({"rates": [10], "duration": "99999999h"}, "longer than zero and shorter than 31 years"),
        ({"rates": [10], "shape": SEED[:1]}, "must have the rate that sweep.rates says (10 requests/s)"),
        ({"rates": [50], "shape": SEED[:2]}, "must have the rate"),
        ({"rates": [10], "duration": "500ms", "generator": "k6"}, "of at least a second"),
        ({"rates": [10], "shape": [SEED[2] | {"duration": "1.0001s"}], "generator": "artillery"}, "milliseconds"),
        ({"rates": [0.1], "duration": "2s"}, "less than one request"),
        (OPEN | {"warmup": {"duration": "1s", "min_rate": 9, "max_rate": 3}}, "min_rate is above max_rate"),
    ],
)
def test_what_contradicts_itself_is_named(sweep: dict[str, Any], said: str) -> None:
    assert said in "; ".join(load_shapes.faults(sweep))
