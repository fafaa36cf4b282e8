"""Stages of load: how many requests each holds, and how they are written down."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from loadstone.archive import metadata, stages
from loadstone.archive.stages import Attack, Stage


def by_steps(rate: float, to: float, duration_s: float, count: int = 200_000) -> float:
    """The integral of a rate that changes steadily, summed up in small steps."""
    width = duration_s / count
    return sum((rate + (to - rate) * (index + 0.5) / count) * width for index in range(count))


@pytest.mark.parametrize(
    ("rate", "to", "duration_s", "requests"),
    [
        (5, 5, 60, 300),
        (5, 50, 120, 3300),
        (50, 50, 600, 30_000),
        (0, 10, 3, 15),
        (10, 0, 3, 15),
        (7.7, 7.7, 1.1, 9),  # 8.47: the ninth is due before the end
        (0, 0, 5, 0),
    ],
)
def test_a_stage_holds_the_integral_of_its_rate(rate: float, to: float, duration_s: float, requests: int) -> None:
    stage = Stage("any", duration_s, rate, to)
    assert stages.integral(stage) == requests == math.ceil(by_steps(rate, to, duration_s) - 1e-3)


@given(
    st.floats(0, 500).map(lambda value: round(value, 2)),
    st.floats(0, 500).map(lambda value: round(value, 2)),
    st.integers(1, 120_000),
)
@example(0.0, 6.0, 3981)  # 3.981 - 3 is a little less than 0.981
@example(1.0, 1.0, 1025)  # 1.025 * 1e6 is a little less than 1,025,000; Artillery multiplies by 1,000 twice
@example(5.0, 5.0, 1001)
def test_steps_of_a_ramp_make_it_up(rate: float, to: float, duration_ms: int) -> None:
    stage = Stage("ramp", duration_ms / 1000, rate, to)
    found = stages.steps(stage)
    assert sum(seconds for seconds, _ in found) == pytest.approx(duration_ms / 1000)
    whole = stages.integral(stage)
    # Artillery's clock counts whole microseconds, so that a step may hold a few more.
    assert 0 <= sum(stages.ticks(*step) for step in found) - whole <= max(2, 0.002 * whole)


@pytest.mark.parametrize(("duration_s", "told", "made"), [(1, 7, 7), (1.5, 150, 150), (3600, 1_080_000, 1_080_108)])
def test_artillery_counts_microseconds(duration_s: float, told: int, made: int) -> None:
    assert stages.ticks(duration_s, told) == made


def test_what_is_written_down_is_read_again() -> None:
    shape = [
        Stage("warm-up", 60, 5, 5, requests=300),
        Stage("ramp", 120.5, 5, 50, requests=3314),
        Stage("sustained", 600, 50, 50, requests=30_000, measured=True),
    ]
    written = json.loads(json.dumps([stage.to_json() for stage in shape]))
    assert written[1] == {"name": "ramp", "duration": "120.5s", "rate": "5", "to": "50", "requests": 3314}
    assert stages.parse(written, "sustained", metadata.parse_duration) == shape
    users = [Stage("test", 600, users=3, iterations=30, requests=90, measured=True)]
    written = [stage.to_json() for stage in users]
    assert stages.parse(written, "test", metadata.parse_duration) == users


@pytest.mark.parametrize(
    "content",
    [
        "text",
        [1],
        [{"name": 1, "duration": "1s"}],
        [{"name": "a"}],
        [{"name": "a", "duration": "1 s"}],
        [{"name": "a", "duration": "1s", "rate": "NaN"}],
        [{"name": "a", "duration": "1s", "rate": "fast"}],
        [{"name": "a", "duration": "1s", "rate": True}],
        [{"name": "a", "duration": "1s", "rate": [1]}],
        [{"name": "a", "duration": "1s", "rate": "1", "requests": 1.5}],
        [{"name": "a", "duration": "1s", "rate": "1", "requests": 10**30}],
        [{"name": "a", "duration": "1s"}] * 2000,
    ],
)
def test_stages_that_are_none_are_a_problem_of_the_metadata(content: object) -> None:
    found = metadata.parse({"stages": content, "measuredPhase": "a"})
    assert found.stages == []
    assert any("stages" in problem for problem in found.problems)


def test_expected_are_the_requests_of_the_measured_stage() -> None:
    shape = [Stage("ramp", 2, 0, 10, requests=10).to_json(), Stage("steady", 3, 10, 10, requests=30).to_json()]
    found = metadata.parse(
        {"testOptions": {"rate": "10", "duration": "3s"}, "stages": shape, "measuredPhase": "steady"}
    )
    assert (found.expected_requests, found.load_s, found.problems) == (30, 5, [])
    plain = metadata.parse(
        {"testOptions": {"rate": "10", "duration": "3s"}, "warmupOptions": {"rate": "5", "duration": "1s"}}
    )
    assert (plain.expected_requests, plain.load_s, [stage.name for stage in plain.load]) == (30, 4, ["warmup", "test"])


def test_programs_of_a_shape() -> None:
    warm, ramp, pause = Stage("warm", 1, 5, 5, requests=5), Stage("ramp", 2, 5, 9, requests=14), Stage("pause", 1, 0, 0)
    test = Stage("test", 3, 9, 9, requests=27, measured=True)
    assert stages.together([warm, ramp, test]) == [Attack((warm, ramp, test))]
    assert stages.together([warm, ramp, test])[0].start_s(test) == 3
    assert stages.apart([warm, ramp, test, pause.with_requests(0)]) == [Attack((warm, ramp)), Attack((test,))]


def test_the_stage_of_a_request_that_is_not_measured() -> None:
    shape = [Stage("a", 1, 2, 2, requests=2), Stage("b", 1, 0, 0, requests=0), Stage("c", 1, 3, 3, requests=3)]
    shape.insert(2, Stage("measured", 9, 9, 9, requests=81, measured=True))
    assert stages.phase_names(shape) == (["a", "b", "c"], [2, 2, 5])
    assert stages.phase_names([Stage("users", 1, users=3)]) == ([], [])
