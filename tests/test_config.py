"""The configuration: wrong values are named, and what is derived can't reach what is not."""

import socket
from pathlib import Path

import pytest
import yaml
from conftest import PROJECT
from loadstone import config
from loadstone.errors import LoadstoneError


@pytest.fixture
def content() -> dict:
    return yaml.safe_load((PROJECT / "config/config.yaml").read_text())


@pytest.mark.parametrize(
    "folders",
    [
        {"reports": "results/archive"},
        {"tables": "results/archive/tables"},
        {"archive": "results/tables/archive"},
        {"tables": "reports", "reports": "reports"},
        {"archive": "."},
    ],
)
def test_archive_tables_and_site_are_kept_apart(content: dict, folders: dict) -> None:
    with pytest.raises(LoadstoneError, match="keep them apart"):
        config.check({**content, **folders})


def test_a_link_into_the_archive_is_seen_through(content: dict, tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    (tmp_path / "site").symlink_to(tmp_path / "archive")
    with pytest.raises(LoadstoneError, match="keep them apart"):
        config.check({**content, "archive": str(tmp_path / "archive"), "reports": str(tmp_path / "site")})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"archive": None}, "archive: None is not of type"),
        ({"archive": ["a", "b"]}, "archive: .* is not of type"),
        ({"tables": "a/{x}"}, "can't have any of"),
        ({"report": {"title": float("nan")}}, "neither text nor a number"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_wrong_values_are_named(content: dict, changes: dict, said: str) -> None:
    with pytest.raises(LoadstoneError, match=said):
        config.check({**content, **changes})


def test_an_empty_host_is_the_hostname_and_a_number_is_a_name(content: dict) -> None:

    assert config.check({**content, "host": None})["host"] == socket.gethostname()
    assert config.check({**content, "archive": 2024})["archive"] == "2024"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"resources": {"every": "fast"}}, "target.resources.every: 'fast'"),
        ({"resources": {"namespaces": ["mesh"]}}, "namespaces"),
        (
            {"processes": {"generator": {"command": ["a"], "port": 1, "ready": "http://a"}}},
            "target.processes: .*generator",
        ),
    ],
)
def test_what_is_wrong_with_sampling_is_named(content: dict, change: dict, said: str) -> None:
    with pytest.raises(LoadstoneError, match=said):
        config.check({**content, "target": content["target"] | change})
    assert config.check({**content, "target": content["target"] | {"resources": {"every": "0s"}}})
