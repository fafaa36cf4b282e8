"""The published schema of metadata version 5, the reader and the writers agree."""

import copy
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from loadstone.archive import metadata
from loadstone.config.yaml_files import SCHEMAS

SCHEMA = json.loads((SCHEMAS / "metadata-5.schema.json").read_text())
VALID = Draft202012Validator(SCHEMA)
WHOLE = {
    "version": "5",
    "testMode": "k6",
    "timestamp": "2026-11-21T12:00:00+01:00",
    "min_warmup_rate": "0",
    "max_warmup_rate": "100",
    "warmupsFileSuffix": ".warmups.json.zst",
    "resultsFileSuffix": ".results.json.zst",
    "summaryFileSuffix": ".summary.json",
    "req": {"method": "GET", "url": "http://127.0.0.1/"},
    "warmupOptions": {"duration": "1s", "rate": "50"},
    "testOptions": {"duration": "10s", "rate": "100", "timeout": "30s"},
    "workloadInfo": {"variant": "plain", "namespace": "n", "hostname": "h", "test_replicas": 2},
    "runs": 2,
    "seed": 7,
    "order": {"kind": "blocks", "positions": [2, 5]},
    "generator": {"name": "k6", "version": "1", "program": "p", "count": 4, "in": "cluster", "connections": 8},
    "loadModel": "open",
    "users": 3,
    "stages": [
        {"name": "test", "duration": "10s", "rate": "100", "to": "200", "users": 1, "iterations": 2, "requests": 9}
    ],
    "measuredPhase": "test",
    "script": {},
    "labels": {"pods": "10"},
    "tools": {"k6": "1"},
    "target": {},
    "imported": {},
    "zone": "+01:00",
    "unit": "ms",
}

# Every place in it, by its keys.
PLACES = [(key,) for key in WHOLE if key != "version"]
PLACES += [
    (key, inner)
    for key in ("warmupOptions", "testOptions", "workloadInfo", "order", "generator")
    for inner in WHOLE[key]
]
PLACES += [("stages", 0), ("order", "positions", 0), *(("stages", 0, key) for key in WHOLE["stages"][0])]

NUMBERS_AT_EDGES = [0, -1, 1, 0.5, 1.0, -0.5, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 1e12, 1e11, 10**400]
TEXTS_AT_EDGES = [
    "",
    "1",
    "0.5",
    "1.",
    "-1",
    "1e3",
    "00100",
    "2147483647",
    "2147483648",
    "999999999999",
    "10s",
    "1m.5s",
]
OTHERS_AT_EDGES = [None, True, [], [1], [1.0], [-1], ["1"], {}, {"a": 1}, [{}], [{"name": "a", "duration": "1s"}]]
NUMBERS = st.one_of(st.sampled_from(NUMBERS_AT_EDGES), st.integers(), st.floats())
TEXTS = st.one_of(st.sampled_from(TEXTS_AT_EDGES), st.text(max_size=8))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=4,
)


def put(place: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    content = copy.deepcopy(WHOLE)
    inner: Any = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return content


def is_told_apart_by_python_alone(value: Any) -> bool:
    """Texts that Python takes for a number or can't encode, which JSON Schema can't say; no writer writes them."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            return True
        try:
            float(value)
        except ValueError:
            return False
        return not re.fullmatch(r"[0-9]{1,12}(\.[0-9]*)?", value, re.ASCII) or "." in value
    if isinstance(value, dict):
        return any(map(is_told_apart_by_python_alone, [*value, *value.values()]))
    return isinstance(value, list) and any(map(is_told_apart_by_python_alone, value))


def test_it_is_a_schema_and_takes_the_whole() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    VALID.validate(WHOLE)
    assert metadata.parse(WHOLE).problems == []


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_schema_and_reader_agree_at_every_edge(place) -> None:
    for value in [*NUMBERS_AT_EDGES, *TEXTS_AT_EDGES, *OTHERS_AT_EDGES]:
        if not is_told_apart_by_python_alone(value):
            content = put(place, value)
            assert VALID.is_valid(content) == (metadata.parse(content).problems == []), value


@given(place=st.sampled_from(PLACES), value=VALUES)
def test_what_the_schema_takes_the_reader_understands_and_nothing_else(place, value) -> None:
    assume(not is_told_apart_by_python_alone(value))
    content = put(place, value)
    assert VALID.is_valid(content) == (metadata.parse(content).problems == []), metadata.parse(content).problems


@given(place=st.sampled_from(PLACES), name=TEXTS, value=VALUES)
def test_keys_that_nobody_knows_are_no_fault(place, name, value) -> None:
    content = copy.deepcopy(WHOLE)
    inner: Any = content
    for key in place[:-1]:
        inner = inner[key]
    assume(isinstance(inner, dict) and name not in inner and name not in metadata_keys())
    inner[name] = value
    assert VALID.is_valid(content) and metadata.parse(content).problems == []


def metadata_keys() -> set[str]:
    """Keys of older versions that the reader also knows."""
    return {"warmupRate", "includesWarmup", "presidioReq", "presidioReqBodies", "presidioReqTemplate"}


@given(place=st.sampled_from([place for place in PLACES if len(place) > 1 and place[0] != "stages"]), value=VALUES)
def test_a_part_that_is_no_object_is_named(place, value) -> None:
    assume(not isinstance(value, dict) and value is not None)
    content = copy.deepcopy(WHOLE) | {place[0]: value}
    assert metadata.parse(content).problems


def test_every_key_that_version_4_had_is_there() -> None:
    keys = {"version", "testMode", "timestamp", "min_warmup_rate", "max_warmup_rate", "warmupsFileSuffix"}
    keys |= {"resultsFileSuffix", "summaryFileSuffix", "req", "warmupOptions", "testOptions", "workloadInfo"}
    assert keys <= SCHEMA["properties"].keys()


def written_keys(root: Path) -> set[str]:
    """The keys that the writers name in the source."""
    text = (root / "scripts/loadstone/collect/sweep.py").read_text().split("def _metadata(")[1]
    return set(re.findall(r'^        "(\w+)":', text, re.MULTILINE))


def test_every_key_that_a_sweep_writes_is_published(pytestconfig: pytest.Config) -> None:
    assert written_keys(pytestconfig.rootpath) <= SCHEMA["properties"].keys()
