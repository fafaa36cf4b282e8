"""Metadata of every version."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadstone.archive import metadata
from loadstone.archive.metadata import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("1m0.04s", 60.04),
        ("107.767342ms", 0.107767342),
        ("588.001µs", 588.001e-6),
        ("1h2m3s", 3723),
        ("5m0s", 300),
    ],
)
def test_go_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("text", ["", "10", "s", "10 s", "10x", "1,5s", None, 10, "10s ", "٣s"])
def test_what_is_no_duration(text: object) -> None:
    assert parse_duration(text) is None


def test_the_real_examples_of_old_versions_are_understood(shared: Path) -> None:
    files = sorted((shared / "prose/metadata-examples").glob("*.json"))
    assert len(files) >= 19
    for file in files:
        content = json.loads(file.read_text())
        found = metadata.read(file)
        assert found.problems == [], file
        assert found.rate == float(content["testOptions"]["rate"])
        assert found.expected_requests == found.rate * int(content["testOptions"]["duration"].rstrip("s"))
        assert found.replicas == int(content["workloadInfo"]["test_replicas"])
        assert found.version == content.get("version", "1")
        assert found.runs is None and found.positions == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of what ends where no stack is left
@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b'"text"'])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "metadata.json").write_bytes(content)
    found = metadata.read(tmp_path / "metadata.json")
    assert len(found.problems) == 1 and found.rate is None


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert metadata.read(tmp_path / "metadata.json").problems == ["metadata.json is missing"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"version": "4", "testMode": "vegeta"}, "vegeta"),
        ({"version": "5", "generator": {"name": "vegeta"}}, "vegeta"),
        ({"version": "5", "generator": {"name": "vegeta"}, "stages": [{"name": "test", "duration": "1s"}]}, "paced"),
        ({"version": "5", "generator": {"name": "vegeta"}, "req": {"draw": {"X-User": {}}}}, "paced"),
        ({"version": "5", "generator": {"name": "vegeta", "count": 4}}, "4 of paced"),
        ({"version": "5", "generator": {"name": "vegeta", "count": 4, "in": "cluster"}}, "4 of paced in the cluster"),
        (
            {"generator": {"name": "vegeta", "program": "paced", "connections": 8}},
            "paced over 8 connections",
        ),
        ({"version": "5", "generator": {"name": "k6"}, "stages": [{"name": "test", "duration": "1s"}]}, "k6"),
    ],
)
def test_what_sent_is_known_of_campaigns_that_do_not_say_it_too(tmp_path: Path, content: dict, said: str) -> None:
    (tmp_path / "metadata.json").write_text(json.dumps(content))
    assert metadata.read(tmp_path / "metadata.json").sent_by == said


def test_the_time_limit_of_iterations_is_no_duration() -> None:
    stage = {"name": "test", "duration": "600s", "users": 3}
    content = {"testOptions": {"duration": "10m"}, "loadModel": "closed", "measuredPhase": "test"}
    timed, counted = (metadata.parse(content | {"stages": [stage | more]}) for more in ({}, {"iterations": 40}))
    assert (timed.duration_s, counted.duration_s) == (600, None)


def test_a_named_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metadata.json")
    assert metadata.read(tmp_path / "metadata.json").problems == ["metadata.json is not a file"]


def test_a_file_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    with (tmp_path / "metadata.json").open("wb") as file:
        file.truncate(1 << 40)
    assert metadata.read(tmp_path / "metadata.json").problems == ["metadata.json is larger than 16 MiB"]


def test_brackets_without_end_are_no_json(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_text("[" * 1_000_000)
    assert metadata.read(tmp_path / "metadata.json").problems == ["metadata.json is not JSON"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
_KEYS = [
    "version",
    "testMode",
    "testOptions",
    "warmupOptions",
    "workloadInfo",
    "runs",
    "order",
    "labels",
    "req",
    "target",
]
_INNER = ["rate", "duration", "variant", "test_replicas", "positions", "kind", "timeout"]


@given(st.dictionaries(st.sampled_from(_KEYS), _JSON | st.dictionaries(st.sampled_from(_INNER), _JSON)))
def test_nothing_that_a_file_holds_makes_reading_fail(content: dict) -> None:
    found = metadata.parse(content)
    assert found.rate is None or 0 <= found.rate < 1e12
