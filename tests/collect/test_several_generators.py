"""Load shared by several generators of this machine: together they send what a single one does, or there is no run."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import psutil
import pytest
from cluster.api import wait_until
from loadstone.archive import metadata
from loadstone.collect.generators import several
from loadstone.collect.targets.base import RunFailedError
from loadstone.collect.targets.kubernetes.generator_pods import Pod, PodFleet
from loadstone.config import load_shapes
from support.bench import Bench
from support.checkout import PROJECT

IDLE_NS = 5 * 10**6  # so long a client may take to put a connection back, also on a busy machine


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Bench]:
    def made(generators: int | None, *options: str, **changes: Any) -> Bench:
        return Bench(tmp_path / str(generators), "--record", *options, generators=generators, **changes)

    return made


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each generator in a process of its own, whatever this machine has."""
    last = max(os.sched_getaffinity(0))
    monkeypatch.setattr(several, "places", lambda generators: [{"processor": last}] * generators)


def seqs(lines: list[dict[str, Any]]) -> list[int]:
    return sorted(line["seq"] for line in lines)


def numbers(lines: list[dict[str, Any]]) -> set[str]:
    return {line["attack"] for line in lines}


def ports(it: Bench) -> tuple[list[list[int]], int]:
    """The ports of the requests of warm-up and test, as they arrived, and how many pairs of requests overlapped.

    The second was sent before the first was answered, or right after it (`IDLE_NS`): only then can they arrive in
    another order, or the second need another connection.
    """
    phases, overlaps = [], 0
    recorded = it.recorded()
    for file, requests in (("1.warmups.json.zst", recorded[:10]), ("1.results.json.zst", recorded[10:])):
        lines = sorted(it.lines(file), key=lambda line: line["seq"])
        assert len(lines) == len(requests)
        sent = [pd.Timestamp(line["timestamp"]).value for line in lines]
        for i, line in enumerate(lines):
            overlaps += sum(start < sent[i] + line["latency"] + IDLE_NS for start in sent[i + 1 :])
        phases.append([request["port"] for request in requests])
    return phases, overlaps


@pytest.fixture(params=[1, 2, 5])
def processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many at most share a run's load."""
    most = int(request.param)
    monkeypatch.setattr(several, "places", lambda generators: [{"not_pinned": "test"}] * min(most, generators))
    return most


@pytest.mark.parametrize(
    ("generators", "rate", "duration"), [(4, 100, "1s"), (3, 100, "1s"), (3, 7.3, "1100ms"), (5, 5, "1s")]
)
def test_they_send_what_one_sends(bench, generators: int, rate: float, duration: str, processes: int) -> None:
    """In however many processes; also at a rate that can't be divided among them, and with one request for each."""
    it = bench(generators, rates=[rate], duration=duration)
    it.collect()
    lines = it.lines("1.results.json.zst")
    planned = metadata.read(it.cell.path / "metadata.json")
    assert planned.generators == generators
    assert seqs(lines) == list(range(planned.expected_requests or -1))
    assert all(line["attack"] == f"generator-{line['seq'] % generators}" for line in lines)
    assert seqs(it.lines("1.warmups.json.zst")) == list(range(10))
    assert json.loads((it.cell.path / "1.summary.json").read_text())["requests"] == planned.expected_requests
    said = json.loads((it.cell.path / "1.run.json").read_text())["generators"]
    dealt = [(number, number % min(processes, generators)) for number in range(generators)]
    assert [(each["generator"], each["process"]) for each in said] == dealt
    assert len(list((it.folder / "logs").glob("attack-*.log"))) == min(processes, generators)
    sent = Counter(line["attack"] for line in lines)
    assert {f"generator-{each['generator']}": each["requests"] for each in said} == sent
    assert not any("X-Vegeta-Attack" in each["headers"] for each in it.recorded()), "the target is told nothing new"


@pytest.mark.parametrize(
    ("generators", "connections", "processes"), [(None, 3, 1), (1, 4, 1), (2, 6, 1), (2, 6, 2)], indirect=["processes"]
)
@pytest.mark.usefixtures("processes")
def test_requests_go_over_connections_in_turn(bench, generators: int | None, connections: int) -> None:
    """However many generators share them in however many processes, and over the same ones before and in the test."""
    it = bench(generators, connections=connections, rates=[50], duration="1s")
    it.collect()
    (warmup, test), overlaps = ports(it)
    assert connections <= len({*warmup, *test}) <= connections + overlaps
    assert len({*warmup} & {*test}) >= connections - overlaps, "the warm-up's are those of the test"
    for phase in (warmup, test):
        out_of_turn = sum(port != before for port, before in zip(phase[connections:], phase, strict=False))
        assert out_of_turn <= 6 * overlaps  # Each changes at most two places, and the order of two others.
    lines = it.lines("1.results.json.zst")
    assert seqs(lines) == list(range(50))
    if generators == 2:
        assert all(line["attack"] == f"generator-{line['seq'] % 2}" for line in lines)


def test_without_a_number_of_connections_one_is_enough_while_answers_come_in_time(bench) -> None:
    it = bench(None, rates=[50], duration="1s")
    it.collect()
    (warmup, test), overlaps = ports(it)
    assert len({*warmup, *test}) <= 1 + overlaps


@pytest.mark.usefixtures("alone")
def test_they_start_together_and_take_turns(bench) -> None:
    it = bench(4, rates=[40], duration="1s", warmup=None)
    it.collect()
    said = json.loads((it.cell.path / "1.run.json").read_text())["generators"]
    (start_ns,) = {each["start"] for each in said}
    lags_s = sorted(
        datetime.fromisoformat(line["timestamp"][:26].rstrip("Z") + "Z").timestamp() - start_ns / 1e9 - line["seq"] / 40
        for line in it.lines("1.results.json.zst")
    )
    # A busy machine sends late, never early; half of all requests are on time on any.
    assert lags_s[0] > -0.001 and lags_s[20] < 0.1


def test_a_single_one_leaves_what_it_always_did(bench) -> None:
    one, none = bench(1), bench(None)
    for it in (one, none):
        it.collect()
    assert numbers(one.lines("1.results.json.zst")) == numbers(none.lines("1.results.json.zst")) == {""}
    assert sorted(file.name for file in one.cell.path.iterdir()) == sorted(
        file.name for file in none.cell.path.iterdir()
    )
    assert "generators" not in json.loads((none.cell.path / "1.run.json").read_text())
    assert "count" not in json.loads((none.cell.path / "metadata.json").read_text())["generator"]


@pytest.mark.usefixtures("processes")
def test_they_share_stages_and_ramps(bench) -> None:
    stages = [
        {"name": "ramp", "rate": 20, "to": "100%", "duration": "1s"},
        {"name": "steady", "rate": "100%", "duration": "500ms"},
        {"name": "down", "rate": "100%", "to": 0, "duration": "500ms", "measured": False},
    ]
    stages[1]["measured"] = True
    it = bench(3, rates=[80], shape=stages, duration=None, warmup=None)
    it.collect()
    others, measured = it.lines("1.warmups.json.zst"), it.lines("1.results.json.zst")
    assert (seqs(others), seqs(measured)) == (list(range(50 + 20)), list(range(40)))
    assert all(line["attack"] == f"generator-{line['seq'] % 3}" for line in measured)


def test_headers_are_drawn_by_all(bench, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("\n".join(f"token-{number}" for number in range(50)))
    it = bench(2, warmup=None, request={"draw": {"X-Token": {"file": str(tmp_path / "tokens")}}})
    it.collect()
    assert len({each["headers"].get("X-Token") for each in it.recorded()}) > 10


def generators_of_this_process() -> list[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return [each for each in found if each.status() != psutil.STATUS_ZOMBIE and "paced" in each.name()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_one_that_dies_fails_the_run_and_ends_the_others(bench, number: int, processes: int) -> None:
    """Also one that sends for several, and the only one."""
    it = bench(3, rates=[50], duration="60s", warmup=None)

    def kill_one() -> None:
        while not it.served() > 10:
            time.sleep(0.01)
        os.kill(generators_of_this_process()[-1].pid, number)

    thread = threading.Thread(target=kill_one)
    thread.start()
    with pytest.raises(RunFailedError, match=r"generators? [\d, ]+ of 3 failed"):
        it.collect()
    thread.join()
    assert len(list((it.folder / "logs").glob("attack-*.log"))) == min(processes, 3)
    assert generators_of_this_process() == []
    it.assert_nothing_left()


def test_one_that_misses_the_agreed_start_fails_the_run(bench, processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several, "_AHEAD_S", -0.01)  # agreed too late
    it = bench(3, warmup=None)
    with pytest.raises(RunFailedError, match=r"generators? [\d, ]+ of 3 failed, so the load.*: .*start was missed"):
        it.collect()
    assert len(list((it.folder / "logs").glob("attack-*.log"))) == min(processes, 3)
    it.assert_nothing_left()


@pytest.mark.usefixtures("alone")
def test_results_that_lack_a_request_are_no_run(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if one's file were lost between its end and the merging."""
    it = bench(2, warmup=None)
    from loadstone.collect.generators.vegeta import Vegeta  # noqa: PLC0415

    whole = Vegeta._results
    monkeypatch.setattr(Vegeta, "_results", lambda self, phase: whole(self, phase)[:1])
    with pytest.raises(RunFailedError, match="hold 25 requests instead of 50"):
        it.collect()
    it.assert_nothing_left()


@pytest.mark.parametrize(
    ("here", "expected"), [(2, [1]), (3, [1, 2]), (4, [1, 2, 3]), (5, [1, 2, 3, 4]), (8, [4, 5, 6, 7])]
)
def test_each_process_has_a_processor_and_one_is_left_for_the_target(
    here: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(here)))
    assert several.places(4) == [{"processor": number} for number in expected]


def test_none_is_pinned_to_an_only_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    (found,) = several.places(2)
    assert "only processor" in found["not_pinned"]


def test_where_processes_cant_be_pinned_each_generator_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    assert several.places(3) == [{"not_pinned": "this system can't pin processes"}] * 3


def test_a_pinned_one_runs_on_its_processor_alone(bench) -> None:
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        pytest.skip("one processor")
    seen: list[set[int]] = []

    class Watched(several.LocalFleet):
        def exit_code(self) -> int | None:
            alive = (program.pid for program in self._programs if program.exit_code() is None)
            seen.extend(os.sched_getaffinity(pid) for pid in alive)
            return super().exit_code()

    it = bench(1, warmup=None, duration="300ms")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(several, "LocalFleet", Watched)
        it.collect()
    assert seen and all(each == {available[-1]} for each in seen)
    record = json.loads((it.cell.path / "1.run.json").read_text())
    (said,) = record["generators"]
    assert (said["process"], said["processor"]) == (0, available[-1])
    assert record["sampling"]["generator_cpus"] <= 1
    assert numbers(it.lines("1.results.json.zst")) == {""}


def test_a_failure_names_the_generators_of_the_process() -> None:
    plan = {"part": 1, "of": 5, "step": 2}
    assert several.failure(plan, "failed", -9, "last words") == (
        "the process of generators 1, 3 of 5 failed (killed by signal 9), so the load was not complete: last words"
    )


def test_what_makes_no_sense_is_refused() -> None:
    sweep = {"rates": [2], "duration": "1s", "runs": 1, "generators": 3}
    assert load_shapes.faults(sweep) == [
        "generators: 3 generators have 2 requests to send at 2 requests/s; each needs one"
    ]
    assert load_shapes.faults(sweep | {"generators": 2}) == []
    assert "is only for vegeta" in load_shapes.faults(sweep | {"generator": "serial"})[0]
    for generator in ("serial", "k6", "artillery"):
        alone = {"rates": [2], "duration": "1s", "runs": 1, "connections": 2, "generator": generator}
        assert load_shapes.faults(alone) == [f"connections: is only for vegeta; the generator is {generator}"]
    shared = {"rates": [20], "duration": "1s", "runs": 1, "generators": 4}
    assert load_shapes.faults(shared | {"connections": 8}) == []
    assert load_shapes.faults(shared | {"connections": 6}) == ["connections: 6 can't be shared evenly by 4 generators"]
    assert load_shapes.faults(shared | {"connections": 40}) == [
        "connections: 40 have 20 requests to send at 20 requests/s; each needs one"
    ]


def test_a_collecting_process_that_is_killed_leaves_no_generator(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from support.bench import Bench; "
        "from loadstone.collect.generators import several; "
        "several.places = lambda count: [{'not_pinned': 'test'}] * count; "
        "Bench(Path(sys.argv[1]), generators=3, rates=[50], duration='60s', warmup=None).collect()"
    )
    paths = os.pathsep.join([str(PROJECT / "tests"), str(PROJECT / "scripts")])
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE
    )

    def of_it() -> list[psutil.Process]:
        found = psutil.process_iter(["cmdline", "name"])
        return [each for each in found if any(str(tmp_path) in part for part in each.info["cmdline"] or [])]

    while len([each for each in of_it() if each.info["name"] == "paced"]) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.kill()
    process.communicate()
    try:
        wait_until(lambda: not of_it(), "the end of all that it started")
    finally:
        for left in of_it():
            left.kill()
    assert not list(tmp_path.rglob("1.results.json.zst"))


def test_pods_of_an_image_that_does_not_redact_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, declared = SimpleNamespace(get=lambda *_: None), SimpleNamespace(namespace="load")
    fleet = PodFleet(cluster, declared, 1.0, "a-record", [{"part": 0, "of": 1, "step": 1}], [])  # type: ignore[arg-type]
    answer = {"now": 1, "state": "waiting", "negotiated": []}
    monkeypatch.setattr(PodFleet, "_ask", lambda *_: json.dumps(answer))
    with pytest.raises(RunFailedError, match="its image is of an earlier version, which does not redact"):
        fleet._status(Pod(0, "pod", "node"))
    answer["redacted"] = {}
    assert fleet._status(Pod(0, "pod", "node")) == answer
