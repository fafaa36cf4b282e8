"""The demo's application and its proxies, as real Envoys on ports of their own."""

import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPMessage
from pathlib import Path

import pytest

VARIANTS = {"plain": "app", "envoy": "envoy", "passthrough-filter": "passthrough-filter", "body-filter": "body-filter"}
DECLARED = {"app": 18080, "envoy": 18081, "passthrough-filter": 18082, "body-filter": 18083}


def fetch(url: str) -> tuple[int, HTTPMessage, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def start(root: Path, config: Path) -> subprocess.Popen[bytes]:
    options = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]
    return subprocess.Popen([root / ".venv/bin/envoy", "--config-path", config, *options], stderr=subprocess.PIPE)


def wait_until_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while True:
        assert process.poll() is None, process.stderr.read().decode()
        try:
            if fetch(f"http://127.0.0.1:{port}/ready")[0] == 200:
                return
        except OSError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.01)


def free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture(scope="module")
def configs(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int]]:
    """The configurations with other ports, so that these tests disturb no demo that is running."""
    ports = dict(zip(DECLARED.values(), free_ports(len(DECLARED)), strict=True))
    folder = tmp_path_factory.mktemp("demo")
    for name in DECLARED:
        text = (root / "config/demo" / f"{name}.yaml").read_text()
        text = re.sub(r"(port_value: )(\d+)", lambda found: f"{found[1]}{ports[int(found[2])]}", text)
        (folder / f"{name}.yaml").write_text(text)
    return {name: (folder / f"{name}.yaml", ports[port]) for name, port in DECLARED.items()}


@pytest.fixture(scope="module")
def demo(root: Path, configs: dict[str, tuple[Path, int]]) -> Iterator[dict[str, int]]:
    """All processes of the demo, ready; yields the port of each."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for file, port in configs.values():
            processes.append(start(root, file))
            wait_until_ready(port, processes[-1])
        yield {name: port for name, (_, port) in configs.items()}
    finally:
        for process in processes:
            process.terminate()
            process.communicate(timeout=10)


@pytest.mark.parametrize(("variant", "process"), VARIANTS.items())
def test_every_variant_says_who_it_is_and_serves_the_same_page(
    demo: dict[str, int], variant: str, process: str
) -> None:
    status, headers, body = fetch(f"http://127.0.0.1:{demo[process]}/")
    assert status == 200
    assert headers.get_all("x-variant") == [variant]
    assert 4000 < len(body) < 6000
    assert body == fetch(f"http://127.0.0.1:{demo['app']}/")[2]


def test_the_body_filter_works_on_the_body(demo: dict[str, int]) -> None:
    _, headers, body = fetch(f"http://127.0.0.1:{demo['body-filter']}/")
    found = int(headers["x-personal-data"])
    assert found > len(re.findall(rb"[\w.]+@[\w.]+", body)) > 10


def test_only_the_two_pages_exist(demo: dict[str, int]) -> None:
    assert fetch(f"http://127.0.0.1:{demo['envoy']}/elsewhere")[0] == 404


def test_a_second_process_on_the_port_fails(
    root: Path, demo: dict[str, int], configs: dict[str, tuple[Path, int]]
) -> None:
    second = start(root, configs["app"][0])
    _, errors = second.communicate(timeout=20)
    assert second.returncode != 0
    assert b"Address already in use" in errors


def test_a_proxy_is_not_ready_without_its_application(root: Path, configs: dict[str, tuple[Path, int]]) -> None:
    file, port = configs["envoy"]
    lonely, nobody = file.with_name("lonely.yaml"), free_ports(2)
    text = file.read_text().replace(f"port_value: {port}}}", f"port_value: {nobody[0]}}}")
    lonely.write_text(text.replace(f"port_value: {configs['app'][1]}}}", f"port_value: {nobody[1]}}}"))
    process = start(root, lonely)
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                status = fetch(f"http://127.0.0.1:{nobody[0]}/ready")[0]
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        assert status == 503
    finally:
        process.terminate()
        process.communicate(timeout=10)


@pytest.mark.parametrize("name", DECLARED)
def test_ports_are_on_loopback_only(root: Path, name: str) -> None:
    text = (root / "config/demo" / f"{name}.yaml").read_text()
    assert set(re.findall(r"\baddress: ([\d.]+)", text)) == {"127.0.0.1"}
    assert f"port_value: {DECLARED[name]}" in text
