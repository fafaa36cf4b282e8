"""Opening a sweep: the plan, its order, and metadata that tools written for version 4 can read."""

import json
from collections import Counter
from pathlib import Path

import pytest
import yaml
from conftest import PROJECT
from jsonschema import Draft202012Validator
from loadstone import archive, config
from loadstone.archive import metadata, plan
from loadstone.collect import sweep
from loadstone.config.yaml_files import SCHEMAS
from loadstone.errors import LoadstoneError

VERSION_4 = {
    "version": str,
    "testMode": str,
    "timestamp": str,
    "min_warmup_rate": str,
    "max_warmup_rate": str,
    "warmupsFileSuffix": str,
    "resultsFileSuffix": str,
    "summaryFileSuffix": str,
    "req": {"method": str, "url": str, "header": {"Host": list}},
    "warmupOptions": {"duration": str, "rate": str},
    "testOptions": {"duration": str, "rate": str},
    "workloadInfo": {"variant": str, "namespace": str, "hostname": str, "test_replicas": int},
}


def test_these_are_the_keys_of_the_real_version_4(shared: Path) -> None:
    for name in ("4.json", "4-low-rate.json"):
        real = json.loads((shared / "prose/metadata-examples" / name).read_text())
        assert_types(real, VERSION_4)
        assert list(real) == list(VERSION_4)
        for key, kinds in VERSION_4.items():
            assert not isinstance(kinds, dict) or set(real[key]) == set(kinds)


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    monkeypatch.chdir(PROJECT)
    content = yaml.safe_load((PROJECT / "config/config.yaml").read_text())
    return config.check({**content, "archive": str(tmp_path / "archive"), "host": "here"})


def opened(declared: dict) -> archive.Campaign:
    return sweep.open_sweep(declared, {"vegeta": "v12.13.0"}, lambda _: None)


def assert_types(content: dict, expected: dict) -> None:
    for key, kind in expected.items():
        if isinstance(kind, dict):
            assert_types(content[key], kind)
        else:
            assert type(content[key]) is kind, key


@pytest.mark.parametrize("generator", ["vegeta", "serial", "k6", "artillery"])
def test_what_is_written_meets_the_published_schema(declared: dict, generator: str) -> None:
    declared["sweep"]["generator"] = generator
    schema = json.loads((SCHEMAS / "metadata-5.schema.json").read_text())
    files = list(opened(declared).path.rglob("metadata.json"))
    assert files
    for path in files:
        content = json.loads(path.read_text())
        Draft202012Validator(schema).validate(content)
        assert content.keys() <= schema["properties"].keys()


@pytest.mark.parametrize("generator", ["vegeta", "serial"])
def test_every_key_of_version_4_is_written_with_its_type(declared: dict, generator: str) -> None:
    declared["sweep"]["generator"] = generator
    campaign = opened(declared)
    files = list(campaign.path.glob("*/*/metadata.json"))
    assert len(files) == 12
    for file in files:
        content = json.loads(file.read_text())
        assert_types(content, VERSION_4)
        assert content["version"] == "5"
        assert content["testMode"] == generator
        assert all(type(value) is str for values in content["req"]["header"].values() for value in values)
        assert [key for key in content if key in VERSION_4] == list(VERSION_4), "in the order of version 4"
        assert content["testOptions"]["rate"] == file.parts[-3]
        assert content["workloadInfo"]["variant"] == file.parts[-2]
        assert content["timestamp"] == campaign.timestamp
        for key in ["runs", "seed", "order", "generator", "loadModel", "labels", "tools", "target", "checksums"]:
            assert key in content
        assert file.read_text().endswith("}\n") and '\n  "testMode"' in file.read_text()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "paced"),
        ({"generators": 4}, "4 of paced"),
        ({"generators": 4, "connections": 8}, "4 of paced over 8 connections"),
        ({"connections": 8}, "paced over 8 connections"),
        ({"generator": "serial"}, "serial"),
    ],
)
def test_a_plan_says_what_is_to_send(declared: dict, changes: dict, said: str) -> None:
    declared["sweep"] |= changes
    (path, *_) = opened(declared).path.rglob("metadata.json")
    described = metadata.read(path)
    assert described.sent_by == said
    assert (described.generators, described.connections) == (changes.get("generators"), changes.get("connections"))


def test_reading_back_gives_the_plan(declared: dict) -> None:
    campaign = opened(declared)
    lacking = plan.missing(archive.scan_campaign(campaign))
    assert [planned.position for planned in lacking] == list(range(1, 49))
    described = metadata.read(lacking[0].cell.path / "metadata.json")
    assert described.problems == []
    assert (described.load_model, described.runs, described.duration_s) == ("open", 4, 1.5)


def test_blocks_hold_every_cell_once_and_the_seed_gives_the_order_again() -> None:
    order = plan.order(["a", "b", "c"], [10, 20], 4, "blocks", seed=7)
    assert order == plan.order(["a", "b", "c"], [10, 20], 4, "blocks", seed=7)
    assert order != plan.order(["a", "b", "c"], [10, 20], 4, "blocks", seed=8)
    for block in range(4):
        assert sorted(positions[block] for positions in order.values()) == list(range(block * 6 + 1, block * 6 + 7))
    firsts = Counter(
        min(plan.order(["a", "b"], [1], 1, "blocks", seed=seed).items(), key=lambda item: item[1])[0]
        for seed in range(200)
    )
    assert min(firsts.values()) > 70


def test_the_fixed_order_is_run_rate_variant() -> None:
    order = plan.order(["a", "b"], [20, 10], 2, "fixed", seed=7)
    assert order == {(20, "a"): [1, 5], (20, "b"): [2, 6], (10, "a"): [3, 7], (10, "b"): [4, 8]}


@pytest.mark.parametrize(
    ("rate", "expected"), [(10, 5), (20, 10), (180, 90), (200, 100), (1000, 100), (0.5, 0), (11, 5)]
)
def test_warm_up_rates_are_those_of_version_4(rate: float, expected: int) -> None:
    assert sweep.warmup_rate(rate, {"min_rate": 0, "max_rate": 100}) == expected


def test_an_open_sweep_is_resumed_and_another_declaration_refused(declared: dict) -> None:
    first = opened(declared)
    assert opened(declared) == first
    with pytest.raises(LoadstoneError, match=r"(?s)still open.*abandoned.txt"):
        opened({**declared, "sweep": {**declared["sweep"], "runs": 5}})
    (first.path / archive.ABANDONED).touch()
    assert archive.scan_campaign(first).problems == []


def test_an_interrupted_opening_leaves_no_campaign(declared: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0

    def failing(path: Path, content: bytes) -> bool:
        nonlocal written
        written += 1
        if written == 5:
            raise OSError(28, "No space left on device")
        return path.write_bytes(content) > 0

    monkeypatch.setattr(sweep, "write_new", failing)
    with pytest.raises((OSError, LoadstoneError)):
        opened(declared)
    assert list(archive.campaigns(Path(declared["archive"]))) == []


def test_a_port_that_no_process_declares_is_named(declared: dict) -> None:
    declared["target"]["processes"]["envoy"]["port"] = 12345
    with pytest.raises(LoadstoneError, match=r"variants.envoy.url: none of its processes declares the port 18081"):
        config.check(declared)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"variants": ["plain", "nothing"]}, "nothing.*is not declared"),
        ({"variants": ["../../etc"]}, "does not match|is not valid"),
        ({"variants": []}, "sweep.variants"),
        ({"rates": [0]}, "sweep.rates.0"),
        ({"rates": ["fast"]}, "sweep.rates.0"),
        ({"rates": [0.1]}, "less than one request"),
        ({"runs": 0}, "sweep.runs"),
        ({"duration": "2"}, "sweep.duration"),
        ({"duration": "0s"}, "longer than zero"),
        ({"order": "random"}, "sweep.order"),
        ({"app": "_hidden"}, "sweep.app"),
        ({"wamrup": {}}, "wamrup"),
        ({"warmup": {"duration": "1s", "min_rate": 9, "max_rate": 3}}, "min_rate is above"),
    ],
)
def test_a_wrong_declaration_is_named(declared: dict, change: dict, said: str) -> None:
    with pytest.raises(LoadstoneError, match=said):
        config.check({**declared, "sweep": {**declared["sweep"], **change}})
    assert not Path(declared["archive"]).exists()
