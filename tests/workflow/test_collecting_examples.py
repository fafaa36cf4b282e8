"""The sweeps of config/examples, opened and collected against servers that stand in for those of their groups."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import PROJECT
from support.checkout import Checkout
from support.generators import require
from support.outside import assert_cleaned_up
from support.standin import Answer, StandIn

_NOTE = '#!/bin/sh\necho "$(basename "$0") $*" >> {notes}\n'


class Example:
    """A checkout whose target and sweep are an example's, small and with a server of ours behind its addresses."""

    def __init__(self, pristine: Path, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        self.notes = folder / "notes"
        self.notes.touch()
        programs = folder / "programs"
        programs.mkdir()
        for program in ("docker-compose", "ssh", "kubectl"):
            (programs / program).write_text(_NOTE.format(notes=self.notes))
            (programs / program).chmod(0o755)
        monkeypatch.setenv("PATH", str(programs), prepend=":")
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        self.checkout = Checkout(pristine, folder / "checkout")
        self.config = yaml.safe_load((PROJECT / f"config/examples/{name}/config.yaml").read_text())

    def collect(self, server: StandIn, tls: dict[str, str] | None = None, **sweep: Any) -> list[dict[str, Any]]:
        """Open and collect it; returns the runs' records."""
        for variant in self.config["target"]["variants"].values():
            variant.update({"resolve": f"127.0.0.1:{server.port}", **({"tls": tls} if tls else {})})
        self.config["target"]["allow"].append("127.0.0.1")
        self.config["sweep"] |= {"runs": 2, **sweep}
        self.checkout.replace(**self.config)
        self.checkout.run("--cores", "1", "open")
        self.checkout.run("--cores", "all", "attacks")
        return [json.loads(file.read_text()) for file in sorted(self.checkout.archive.rglob("*.run.json"))]


@pytest.fixture
def example(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Example]:
    return lambda name: Example(pristine, tmp_path / "example", name, monkeypatch)


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[Callable[..., StandIn]]:
    made: list[StandIn] = []

    def make(answer: Callable[[str, str, dict[str, str]], Answer], *names: str, **options: Any) -> StandIn:
        made.append(StandIn(tmp_path / "server", answer, *names, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_proxy_that_is_started_by_commands_and_measured_by_artillery(example, standing) -> None:
    require("artillery")
    server = standing(lambda *_: (200, {"server": "envoy"}, "ok"))
    it = example("3scale")
    for stage, length in zip(it.config["sweep"]["shape"], ("1s", "1s", "2s"), strict=True):
        stage["duration"] = length
    records = it.collect(server, rates=[10])
    assert len(records) == 6
    assert [[stage["phase"] for stage in record["phases"]] for record in records] == [
        ["warm-up", "ramp-up", "sustained"]
    ] * 6
    assert {host for _, _, host in server.seen} == {"localhost"}
    notes = it.notes.read_text().splitlines()
    switches = [re.sub(r".*scenario-(\d).yaml (up|down).*", r"\2 \1", note) for note in notes]
    assert_cleaned_up([each.replace("up", "prepare").replace("down", "cleanup") for each in switches])
    assert len(switches) <= 12  # grouped: at most once per variant and block


def test_a_service_elsewhere_over_https_with_a_client_certificate(example, standing) -> None:
    it = example("belfrage")
    (host,) = it.config["target"]["allow"]
    server = standing(lambda *_: (200, {}, "{}"), host, clients=True)
    tls = {"ca": server.ca, "cert": server.cert, "key": server.key}
    records = it.collect(server, tls, rates=[20], duration="500ms", warmup={"duration": "100ms", "min_rate": 10})
    assert len(records) == 4
    assert {path for _, path, _ in server.seen} == {"/"} and {seen for _, _, seen in server.seen} == {host}
    notes = it.notes.read_text().splitlines()
    assert set(notes) == {
        "ssh playground sudo install-release without-observer",
        "ssh playground sudo install-release with-observer",
    }
    assert {each["protocol"] for record in records for each in record["negotiated"]} == {"http1"}
    secret = Path(server.key).read_bytes().splitlines()[1]
    kept = [path for path in it.checkout.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in kept if secret in path.read_bytes()]


def test_users_who_log_in_and_list_pages_by_k6(example, standing) -> None:
    require("k6")

    def answer(method: str, path: str, headers: dict[str, str]) -> Answer:
        if method == "POST":
            return 201, {"Content-Type": "application/json"}, json.dumps({"token": "secret-token"})
        if headers.get("authorization") != "Bearer secret-token":
            return 401, {}, "Unauthorized"
        return 200, {"Content-Type": "application/json"}, json.dumps({"data": [], "page": path})

    it = example("rancher")
    server = standing(answer, "upstream.local.gd")
    it.config["sweep"]["script"]["environment"]["PAGES"] = "3"
    it.config["sweep"]["script"]["requests"] = 3
    records = it.collect(server, {"ca": server.ca}, users=[2], iterations=5, duration="1m", runs=1)
    assert len(records) == 2
    logins = [path for method, path, _ in server.seen if method == "POST"]
    pages = [path for method, path, _ in server.seen if method == "GET"]
    assert len(logins) == 2 * 5 and len(pages) == 2 * 2 * 5 * 3
    assert {host for _, _, host in server.seen} == {"upstream.local.gd:8443"}
    assert it.notes.read_text().count("rollout status") == 2
