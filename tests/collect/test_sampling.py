"""What is used during an attack: measured from real processes, written with the run, and never at the run's cost."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

import psutil
import pytest
import zstandard
from loadstone import archive
from loadstone.archive.metadata import Metadata
from loadstone.collect import sampling
from loadstone.collect.sampling import Machine, ProcessTree, Sampler, available_cpus, interval_s
from loadstone.collect.targets.base import ResourceSample, UnsampledError
from loadstone.readers import Problems, resources
from support.bench import Bench

_IDLE_WITH_A_BUSY_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
print(child.pid, flush=True)
time.sleep(600)
"""


@contextmanager
def running(program: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A Python program and the first line that it prints; ended with its children."""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        if process.poll() is None:
            for each in [*psutil.Process(process.pid).children(recursive=True), process]:
                each.kill()
        process.wait()


def read(path: Path) -> list[dict[str, Any]]:
    problems = Problems()
    rows = list(map(vars, resources.read(path, problems)))
    assert problems.texts() == []
    return rows


def test_a_run_is_archived_with_what_its_processes_and_the_generator_used(tmp_path: Path) -> None:
    bench = Bench(tmp_path, duration="1s")
    bench.target["resources"] = {"every": "200ms"}
    bench.collect()
    rows = read(bench.cell.path / "1.resources.csv.zst")
    by_name = {key: [row for row in rows if (row["scope"], row["name"]) == key] for key in _SCOPES}
    assert set(by_name) == {(row["scope"], row["name"]) for row in rows}
    assert all(by_name.values())
    assert sum(row["cpu_millicores"] for row in by_name["process", "server"]) > 0
    assert all(row["memory_mib"] > 1 for row in rows)
    record = json.loads((bench.cell.path / "1.run.json").read_text())
    (phase,) = (phase for phase in record["phases"] if phase["phase"] == "test")
    started, ended = (datetime.fromisoformat(text) for text in (phase["started"], record["ended"]))
    assert all(started <= row["asked_at"] <= ended for row in rows)
    assert record["sampling"]["problems"] == []
    assert record["sampling"]["rounds"] == len({row["asked_at"] for row in rows})
    assert "1.resources.csv.zst" in (bench.cell.path / "1.sha256").read_text()
    assert archive.scan_campaign(bench.campaign).problems == []


_SCOPES = [("process", "server"), ("process", "generator"), ("node", "generator")]


def test_what_a_generator_uses_while_it_only_waits_for_answers_is_not_sampled(tmp_path: Path) -> None:
    """The server takes 4 s for an answer, the load is sent in 0.5 s."""
    bench = Bench(tmp_path, "--drip", rates=[2], duration="500ms", timeout="10s", warmup={"duration": "0s"})
    bench.target["resources"] = {"every": "100ms"}
    bench.collect()
    rows = read(bench.cell.path / "1.resources.csv.zst")
    times = sorted({row["asked_at"] for row in rows})
    assert times
    assert (times[-1] - times[0]).total_seconds() < 2
    (record,) = [json.loads((bench.cell.path / "1.run.json").read_text())]
    ended, started = (datetime.fromisoformat(text) for text in (record["ended"], record["phases"][0]["started"]))
    assert (ended - started).total_seconds() > 3


def test_no_samples_are_taken_where_none_are_wanted(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.target["resources"] = {"every": "0s"}
    bench.collect()
    assert bench.cell.results(1).exists()
    assert not (bench.cell.path / "1.resources.csv.zst").exists()


@pytest.mark.parametrize(
    ("target", "duration_s", "expected"),
    [
        ({"kind": "local"}, 60, 1),
        ({"kind": "local"}, 1.5, 0.3),
        ({"kind": "local"}, 0.001, 0.05),
        ({"kind": "kubernetes"}, 1.5, 15),
        ({"kind": "local", "resources": {"every": "10s"}}, 1.5, 10),
        ({"kind": "kubernetes", "resources": {"every": "1ns"}}, 1.5, 0.05),
        ({"kind": "local", "resources": {"every": "0s"}}, 60, 0),
    ],
)
def test_the_time_from_sample_to_sample(target: dict[str, Any], duration_s: float, expected: float) -> None:
    assert interval_s(target, duration_s) == pytest.approx(expected)


def test_a_process_counts_with_its_children() -> None:
    with running(_IDLE_WITH_A_BUSY_CHILD) as (process, child):
        tree = ProcessTree("idle", [process.pid])
        assert tree.sample() == []
        before_s = psutil.Process(int(child)).cpu_times().user
        while psutil.Process(int(child)).cpu_times().user < before_s + 0.1:
            time.sleep(0.01)
        (idle,) = tree.sample()
        assert (idle.scope, idle.name) == ("process", "idle")
        assert idle.cpu_millicores is not None
        assert idle.cpu_millicores > 0
        own = psutil.Process(process.pid).memory_info().rss / 2**20
        assert idle.memory_mib is not None
        assert idle.memory_mib > 1.5 * own  # two Pythons


def test_a_process_that_ended_has_no_samples_and_hides_no_other() -> None:
    with running("print()") as (process, _):
        trees = [ProcessTree("ended", [process.pid]), ProcessTree("both", [process.pid, psutil.Process().pid])]
        for tree in trees:
            tree.sample()
        while process.poll() is None:
            time.sleep(0.01)
        assert [sample.name for tree in trees for sample in tree.sample()] == ["both"]


def test_a_machine_is_at_most_as_busy_as_it_has_cpus() -> None:
    machine = Machine("here")
    assert machine.sample() == []
    deadline = time.monotonic() + 60
    while not (found := machine.sample()):  # the kernel counts in hundredths of a second
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (sample,) = found
    assert (sample.scope, sample.name) == ("node", "here")
    assert 0 <= (sample.cpu_millicores or 0) <= 1000 * psutil.cpu_count()
    assert 0 < available_cpus([os.getpid()]) <= psutil.cpu_count()


def test_processes_may_use_the_processors_of_each_and_ended_ones_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(pid: int) -> set[int]:
        if pid == 3:
            raise ProcessLookupError(pid)
        return {1: {1}, 2: {2}}[pid]

    monkeypatch.setattr(os, "sched_getaffinity", of)
    monkeypatch.setattr(sampling, "_quota", lambda: inf)
    assert [available_cpus(pids) for pids in ([1], [1, 2], [3, 1, 2], [3])] == [1, 2, 2, 0]


class Asked:
    """A target of which only samples are asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls = 0
        self.asked = threading.Event()

    def sample(self) -> list[ResourceSample]:
        self.calls += 1
        answer = self.answers[min(self.calls, len(self.answers)) - 1]
        if self.calls >= len(self.answers):
            self.asked.set()
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer


def sampled(folder: Path, target: Any, until: threading.Event) -> tuple[Sampler, list[str]]:
    said: list[str] = []

    class Job:
        target = {"kind": "local", "resources": {"every": "50ms"}}  # noqa: RUF012
        planned = Metadata(mode="serial")
        log = said.append

    sampler = Sampler(Job, folder / "samples", 1.0)  # type: ignore[arg-type]
    with sampler.during(target, [psutil.Process().pid]):
        assert until.wait(60)
    return sampler, said


def _pod(name: str) -> ResourceSample:
    return ResourceSample(datetime(2026, 1, 1, 12, 0, 0, 1500, UTC), "pod", name, 12.345678, None)


def test_what_cannot_be_known_is_said_once_and_what_can_is_kept(tmp_path: Path) -> None:
    gone = UnsampledError("no metrics", [_pod("a/1")])
    target = Asked([], gone, gone, ValueError("a mistake"), [_pod("a/2")], [])
    sampler, said = sampled(tmp_path, target, target.asked)
    assert said == ["no metrics", "a sample of CPU and memory failed: ValueError: a mistake"]
    problems = sampler.record()["problems"]
    assert [(problem["text"], problem["times"]) for problem in problems] == [(said[0], 2), (said[1], 1)]
    finished = sampler.compressed()
    assert finished is not None
    pods = [row for row in read_as(finished) if row["scope"] == "pod"]
    assert [(row["name"], row["cpu_millicores"], row["memory_mib"]) for row in pods] == [
        ("a/1", 12.345678, None),
        ("a/1", 12.345678, None),
        ("a/2", 12.345678, None),
    ]
    assert pods[0]["sampled_at"] == datetime(2026, 1, 1, 12, 0, 0, 1000, UTC)


def read_as(finished: Path) -> list[dict[str, Any]]:
    return read(finished.rename(finished.with_name("1.resources.csv.zst")))


def test_an_answer_that_never_comes_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_TIMEOUT_S", 0.1)
    release = threading.Event()
    target = Asked([], [_pod("a/1")], lambda: release.wait() and [_pod("a/late")])
    try:
        sampler, said = sampled(tmp_path, target, target.asked)
        assert said == ["the last samples of CPU and memory did not arrive in time"]
        finished = sampler.compressed()
        assert finished is not None
    finally:
        release.set()
    assert {row["name"] for row in read_as(finished)} == {"a/1", "generator"}


def test_a_disk_that_takes_no_samples_costs_no_run(tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    seen = threading.Event()
    threading.Timer(0.2, seen.set).start()
    sampler, said = sampled(tmp_path, Asked([]), seen)
    assert len(said) == 1
    assert "no samples of CPU and memory" in said[0]
    assert sampler.compressed() is None
    assert sampler.record()["rounds"] == 0


def test_samples_that_cannot_be_compressed_are_noted(tmp_path: Path) -> None:
    (tmp_path / "samples.compressed").mkdir()
    target = Asked([], [_pod("a/1")])
    sampler, said = sampled(tmp_path, target, target.asked)
    assert sampler.compressed() is None
    (problem,) = sampler.record()["problems"]
    assert said == [problem["text"]] and "are lost" in said[0]


def test_names_and_files_survive_whatever_a_target_is_called(tmp_path: Path) -> None:
    name = 'a "quoted", name\nof two lines'
    target = Asked([], [_pod(name)], [])
    sampler, _ = sampled(tmp_path, target, target.asked)
    finished = sampler.compressed()
    assert finished is not None
    assert zstandard.get_frame_parameters(finished.read_bytes()).has_checksum
    assert name in {row["name"] for row in read_as(finished)}
