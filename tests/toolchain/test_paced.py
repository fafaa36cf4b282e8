"""The program `paced`: what it refuses, and how it is stopped. What it sends: tests/collect/test_generators.py."""

import gzip
import hashlib
import http.client
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.checkout import PROJECT, free_ports

STAGE = {"rate": 10, "to": 10, "nanoseconds": 10**10, "requests": 100, "measured": True}


def start(root: Path, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    files = [f"-measured={folder / 'measured'}", f"-others={folder / 'others'}"]
    return subprocess.Popen(
        [root / ".tools/bin/paced", *files, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("", "standard input: EOF"),
        ("{", "unexpected EOF"),
        ({"stages": []}, "no stage has a request"),
        ({"stages": [STAGE | {"requests": 0}]}, "no stage has a request"),
        ({"stages": [STAGE | {"nanoseconds": 0}]}, "a duration above zero"),
        ({"stages": [STAGE | {"rate": -1}]}, "no negative rates"),
        ({"stages": [STAGE], "draw": {"X": []}}, "no value of the header X"),
        ({"stages": [STAGE], "connections": -1}, "cannot unmarshal number -1"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(root: Path, tmp_path: Path, plan: object, said: str) -> None:
    process = start(root, tmp_path)
    _, errors = process.communicate(plan if isinstance(plan, str) else json.dumps(plan))
    assert process.returncode == 1 and said in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_an_error(root: Path, tmp_path: Path, number: int) -> None:
    process = start(root, tmp_path)
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(json.dumps({"method": "GET", "url": "http://127.0.0.1:1/", "stages": [STAGE]}))
    process.stdin.close()
    while not (tmp_path / "measured").exists():
        assert process.poll() is None
    process.send_signal(number)
    assert process.wait() != 0


@pytest.mark.parametrize(("of", "code"), [(1, 0), (2, 1)])
def test_what_it_can_not_send_in_time_is_left_out(root: Path, tmp_path: Path, of: int, code: int) -> None:
    """Of several, what all lack together could not be told from what one has lost."""
    stage = STAGE | {"rate": 5e6, "to": 5e6, "nanoseconds": 2 * 10**8, "requests": 10**6}
    process = start(root, tmp_path)
    plan = {"method": "GET", "url": "http://127.0.0.1:1/", "stages": [stage], "of": of}
    began = time.monotonic()
    _, errors = process.communicate(json.dumps(plan))
    assert process.returncode == code and re.search(r"could not keep up: sent \d+ of \d+ requests", errors), errors
    assert 1 < time.monotonic() - began < 60
    assert (tmp_path / "measured").stat().st_size > 0


def test_a_part_that_does_not_exist_is_refused(root: Path, tmp_path: Path) -> None:
    process = start(root, tmp_path)
    _, errors = process.communicate(json.dumps({"stages": [STAGE], "part": 3, "of": 3}))
    assert process.returncode == 1 and "no generator 3 of 3" in errors


@pytest.mark.parametrize(
    "wrong", [{"of": 2**64 - 1, "step": 2**63}, {"of": 2, "step": 3}, {"of": 40, "connections": 26}]
)
def test_a_share_that_makes_no_sense_is_refused(root: Path, tmp_path: Path, wrong: dict[str, int]) -> None:
    process = start(root, tmp_path)
    _, errors = process.communicate(json.dumps({"stages": [STAGE], **wrong}))
    assert process.returncode == 1 and "out of range" in errors


def test_without_anybody_who_says_when_to_start_it_sends_nothing(root: Path, tmp_path: Path) -> None:
    process = start(root, tmp_path, "-agree")
    said, errors = process.communicate(json.dumps({"method": "GET", "url": "http://127.0.0.1:1/", "stages": [STAGE]}))
    assert process.returncode == 1 and said == "ready\n" and "no start time" in errors


# --- told over HTTP ---------------------------------------------------------------------------------------------------


class Listening:
    """`paced -listen` on a free port."""

    def __init__(self, root: Path, folder: Path, *arguments: str, token: str = "secret") -> None:
        (self.port,) = free_ports(1)
        command = [root / ".tools/bin/paced", f"-listen=127.0.0.1:{self.port}", f"-folder={folder}", *arguments]
        environment = {**os.environ, "LOADSTONE_TOKEN": token}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    def ask(
        self, method: str, path: str, body: object = None, token: str = "secret", **headers: str
    ) -> tuple[int, bytes]:
        """Status and content; tried again until it listens."""
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                given = None if body is None else json.dumps(body)
                connection.request(method, f"/{path}", given, {"X-Loadstone-Token": token, **headers})
                answer = connection.getresponse()
                return answer.status, answer.read()
            except ConnectionRefusedError:
                assert self.process.poll() is None, self.process.communicate()
            finally:
                connection.close()

    def state(self) -> dict[str, Any]:
        return json.loads(self.ask("GET", "status")[1])


@pytest.fixture
def listening(root: Path, tmp_path: Path) -> Iterator[Callable[..., Listening]]:
    made: list[Listening] = []

    def make(*arguments: str, **options: str) -> Listening:
        made.append(Listening(root, tmp_path, *arguments, **options))
        return made[-1]

    yield make
    for each in made:
        each.process.kill()
        each.process.wait()


# Nobody listens at this address: each request fails at once, and is a result all the same.
PLAN = {
    "method": "GET",
    "url": "http://127.0.0.1:1/",
    "timeout": 10**9,
    "stages": [{"rate": 100, "to": 100, "nanoseconds": 10**8, "requests": 10, "measured": True}],
}


def test_it_does_nothing_for_those_who_do_not_know_its_token(listening) -> None:
    it = listening()
    for path in ("status", "measured", "nothing"):
        assert it.ask("GET", path, token="guess")[0] == 403
    assert it.ask("POST", "end", token="")[0] == 403
    assert it.state()["state"] == "waiting"


def test_it_needs_a_token(listening) -> None:
    process = listening(token="").process
    _, errors = process.communicate()
    assert process.returncode == 1 and "LOADSTONE_TOKEN is not set" in errors


def test_it_ends_by_itself_when_nobody_asks(listening) -> None:
    process = listening("-patience=200ms").process
    _, errors = process.communicate()
    assert process.returncode == 1 and "no request for" in errors


def test_what_is_told_twice_is_done_once_and_results_come_in_parts(listening) -> None:
    it = listening()
    assert it.ask("POST", "start", {"start": time.time_ns() + 10**9})[0] == 422, "without a plan"
    assert [it.ask("POST", "plan", PLAN)[0] for _ in range(2)] == [200, 200]
    assert it.ask("POST", "plan", PLAN | {"part": 1, "of": 2})[0] == 409
    status, why = it.ask("POST", "start", {"start": time.time_ns() - 10**6})
    assert status == 422 and b"the agreed start was missed" in why
    start_ns = time.time_ns() + 10**9
    assert [it.ask("POST", "start", {"start": start_ns})[0] for _ in range(2)] == [200, 200]
    assert it.ask("POST", "start", {"start": start_ns + 1})[0] == 422
    while (state := it.state())["state"] == "sending":
        pass
    assert state["state"] == "done"
    size = state["files"]["measured"]["bytes"]
    parts = [it.ask("GET", "measured", Range=f"bytes={at}-{at + 99}")[1] for at in range(0, size, 100)]
    whole = b"".join(parts)
    assert len(whole) == size and hashlib.sha256(whole).hexdigest() == state["files"]["measured"]["sha256"]
    found = subprocess.run(
        [PROJECT / ".tools/bin/vegeta", "report", "-type=json"],
        input=gzip.decompress(whole),
        capture_output=True,
        check=True,
    )
    assert json.loads(found.stdout)["requests"] == 10
    assert it.ask("POST", "end")[0] == 200
    assert it.process.wait() == 0


def test_a_plan_that_makes_no_sense_is_refused_over_http_too(listening) -> None:
    it = listening()
    status, why = it.ask("POST", "plan", {"stages": []})
    assert status == 422 and b"no stage has a request" in why
    assert it.state()["state"] == "waiting"
