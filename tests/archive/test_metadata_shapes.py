"""Every shape that metadata had over the years: rebuilt here, and the examples of the real ones where they are."""

import json
from pathlib import Path

import pytest
from loadstone.archive import metadata
from support import shapes

T1, T2, T3, T4 = (
    "2024-03-30T16:28:22-04:00",
    "2024-04-26T01:47:38-04:00",
    "2024-05-05T02:10:21-04:00",
    "2025-03-13T10:28:49-04:00",
)
UNSAID = {"metadata_version", "load_model", "generator"}
ONE = {"version": "1", "mode": "vegeta", "load_model": "open", "warmup_duration_s": None}

CASES = {
    "0-b": (
        shapes.version_0b(T1, "h", "10", "filter"),
        ONE | {"replicas": 2},
        UNSAID,
    ),
    "0-c": (
        shapes.version_0c(T1, "h", "10", "filter"),
        ONE | {"replicas": 2},
        UNSAID,
    ),
    "1-a": (
        shapes.version_1a(T1, "h", "1000", "envoy"),
        ONE | {"replicas": 10, "includes_warmup": None, "warmup_rate": None},
        UNSAID,
    ),
    "1-b": (shapes.version_1b(T1, "h", "100", "plain"), ONE | {"replicas": 10}, UNSAID),
    "1-d": (
        shapes.version_1d("2024-04-05T22:14:57-04:00", "h", "150", "envoy"),
        ONE | {"replicas": 10, "includes_warmup": True, "warmup_rate": None},
        UNSAID,
    ),
    "1-e": (
        shapes.version_1e("2024-04-09T20:14:12-04:00", "h", "120", "filter"),
        ONE | {"replicas": 10, "includes_warmup": True, "warmup_rate": 100},
        UNSAID,
    ),
    "2": (
        shapes.version_2(T2, "h", "60", "filter"),
        {"version": "2", "warmup_rate": 100, "warmup_duration_s": 10, "includes_warmup": None},
        {"load_model", "generator"},
    ),
    "3": (
        shapes.version_3(T3, "h", "60", "istio"),
        {"version": "3", "mode": "vegeta", "load_model": "open", "generator": "vegeta"},
        {"load_model", "generator"},
    ),
    "3-serial": (
        shapes.version_3(T3, "h", "100", "istio", "serial"),
        {"version": "3", "mode": "serial", "load_model": "serial", "generator": "serial", "expected_requests": 1000},
        {"load_model", "generator"},
    ),
    "3.1": (
        shapes.version_31(T3, "h", "60", "istio"),
        {"version": "3.1"},
        {"load_model", "generator"},
    ),
    "3.1 without a content type": (
        shapes.version_31(T3, "h", "60", "istio", content_type=False),
        {"version": "3.1"},
        {"load_model", "generator"},
    ),
    "3.1 that says 3": (
        shapes.version_31(T3, "h", "60", "istio", "3"),
        {"version": "3.1"},
        UNSAID,
    ),
    "3.2": (
        shapes.version_32(T3, "h", "20", "istio"),
        {"version": "3.2"},
        {"load_model", "generator"},
    ),
    "3.2 that says 3": (shapes.version_32(T3, "h", "20", "istio", "3"), {"version": "3.2"}, UNSAID),
    "4": (
        shapes.version_4(T4, "h", "950", "istio"),
        {"version": "4", "warmup_rate": 100, "expected_requests": 9500},
        {"load_model", "generator"},
    ),
    "4 at a low rate": (
        shapes.version_4(T4, "h", "10", "istio"),
        {"version": "4", "warmup_rate": 5},
        {"load_model", "generator"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_shape_has_one_meaning(case: str) -> None:
    content, expected, inferred = CASES[case]
    found = metadata.parse(json.loads(json.dumps(content)))
    assert {name: getattr(found, name) for name in expected} == expected
    assert set(found.inferred) == inferred
    assert all(found.inferred.values())
    assert found.problems == []
    assert (found.rate, found.duration_s) == (float(content["testOptions"]["rate"]), 10)
    assert (found.hostname, found.variant) == ("h", content["workloadInfo"]["variant"])
    assert found.request["header"]["Host"][0].endswith(".example.com")


@pytest.mark.parametrize(
    ("timestamp", "doubtful"),
    [
        ("2024-04-12T00:21:50-04:00", False),
        ("2024-04-12T13:06:39-04:00", True),
        ("2024-04-14T00:54:06-04:00", True),
        ("2024-04-17T00:47:50-04:00", True),
        ("2024-04-17T04:47:51+00:00", False),
    ],
)
def test_the_warm_up_that_was_most_likely_not_made_is_marked(timestamp: str, doubtful: bool) -> None:
    found = metadata.parse(shapes.version_1e(timestamp, "h", "100", "filter"))
    assert ("warmup_rate" in found.inferred) is doubtful
    assert (found.includes_warmup, found.warmup_rate) == (True, 100), "what the file says stays"


@pytest.mark.parametrize(
    ("replicas", "expected"), [("10", 10), (10, 10), ("2", 2), ("", None), ("ten", None), (2.5, None)]
)
def test_replicas_as_text_and_as_number(replicas: object, expected: int | None) -> None:
    content = shapes.version_3(T3, "h", "60", "istio")
    content["workloadInfo"]["test_replicas"] = replicas
    found = metadata.parse(content)
    assert found.replicas == expected
    assert len(found.problems) == (expected is None)


def test_version_5_infers_nothing_that_it_says() -> None:
    content = shapes.version_4(T4, "h", "10", "istio")
    content |= {"version": "5", "loadModel": "open", "generator": {"name": "vegeta", "version": "12.13.0"}}
    assert metadata.parse(content).inferred == {}


# What metadata-versions.md of the real archive states of each example, besides what the file itself spells out.
REAL = {
    "0-b-inline": ("1", "vegeta", 2, None),
    "0-c-results-file": ("1", "vegeta", 2, None),
    "1-a-flat": ("1", "vegeta", 10, None),
    "1-a-flat-renamed-folder": ("1", "vegeta", 10, None),
    "1-b-flat": ("1", "vegeta", 10, None),
    "1-c-nested": ("1", "vegeta", 10, None),
    "1-d-nested-warmup": ("1", "vegeta", 10, None),
    "1-e-ts": ("1", "vegeta", 10, 100),
    "1-e-ts-moone": ("1", "vegeta", 2, 100),
    "2": ("2", "vegeta", 10, 100),
    "3": ("3", "vegeta", 10, 100),
    "3-plain": ("3", "vegeta", 10, 100),
    "3-serial": ("3", "serial", 2, 100),
    "3.1-a-no-content-type": ("3.1", "vegeta", 10, 100),
    "3.1-b": ("3.1", "vegeta", 10, 100),
    "3.1-c-big-body": ("3.1", "vegeta", 10, 100),
    "3.2": ("3.2", "vegeta", 10, 100),
    "4": ("4", "vegeta", 10, 100),
    "4-low-rate": ("4", "vegeta", 10, 5),
}


def test_the_real_examples_are_all_here(shared: Path) -> None:
    assert {file.stem for file in (shared / "prose/metadata-examples").glob("*.json")} == set(REAL)


@pytest.mark.parametrize("name", REAL)
def test_a_real_example_means_what_is_stated_of_it(shared: Path, name: str) -> None:
    file = shared / f"prose/metadata-examples/{name}.json"
    content = json.loads(file.read_text())
    found = metadata.read(file)
    assert (found.version, found.mode, found.replicas, found.warmup_rate) == REAL[name]
    assert found.problems == []
    assert found.load_model == {"vegeta": "open", "serial": "serial"}[found.mode]
    assert found.rate == float(content["testOptions"]["rate"])
    assert found.expected_requests == found.rate * int(content["testOptions"]["duration"].rstrip("s"))
    assert (found.timestamp, found.hostname) == (content["timestamp"], content["workloadInfo"]["hostname"])
    assert found.includes_warmup == (True if name.startswith(("1-d", "1-e")) else None)
    assert ("warmup_rate" in found.inferred) == (name == "1-e-ts")
    assert ("metadata_version" in found.inferred) == (name[0] in "01")
    if found.version in ("3.1", "3.2"):
        assert metadata.parse(content | {"version": "3"}).version == found.version
