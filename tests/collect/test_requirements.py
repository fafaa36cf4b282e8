"""What a sweep needs on this machine: every program and file that is not there is named, nothing is started."""

import copy
from pathlib import Path

import pytest
from loadstone.collect.sweep import versions
from loadstone.errors import LoadstoneError

CONFIG = {
    "sweep": {"variants": ["plain", "proxied"]},
    "target": {
        "kind": "local",
        "processes": {
            "app": {
                "command": ["python3", "-c", "raise SystemExit('started')", "http://x/y.yaml", "--health=/api.json"]
            },
            "proxy": {"command": ["envoy", "--config-path", "proxy.yaml", "--log=/nowhere/proxy.log"]},
            "unused": {"command": ["no-such-program-at-all"]},
        },
        "variants": {"plain": {"processes": ["app"]}, "proxied": {"processes": ["app", "proxy"]}},
    },
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "proxy.yaml").touch()
    return copy.deepcopy(CONFIG)


def test_what_is_there_is_asked_for_its_version(config) -> None:
    found = versions(config)
    assert set(found) == {"python", "vegeta", "paced", "python3", "envoy"} and "1.40" in found["envoy"]
    assert found["python3"] == ""  # not known to answer, so not started


def test_everything_that_is_missing_is_named_at_once(config, tmp_path: Path) -> None:
    (tmp_path / "proxy.yaml").unlink()
    config["target"]["processes"]["app"]["command"] = ["./my-server", "--settings=/nowhere/app.toml"]
    with pytest.raises(LoadstoneError) as raised:
        versions(config)
    assert str(raised.value).splitlines() == [
        "the sweep cannot be opened:",
        f"  the program './my-server' was not found (relative paths count from {tmp_path})",
        "  the process 'app' names the file /nowhere/app.toml, which does not exist",
        f"  the process 'proxy' names the file proxy.yaml, which does not exist (relative paths count from {tmp_path})",
    ]
