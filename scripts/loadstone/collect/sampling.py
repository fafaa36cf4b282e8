"""Sampling the CPU and memory of a target and the load generator during an attack, into ``<run>.resources.csv``.

Samples are taken by a separate thread, because a cluster may be slow to respond. No problem here fails the run: it is
logged, and noted in the run's record.

A sample has two times. `sampled_at` is when it was measured, by the clock of the measuring system; `asked_at`, by our
clock, is the same for all samples of a round.
"""

import contextlib
import csv
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from loadstone.archive import ASKED_AT, RESOURCE_COLUMNS
from loadstone.archive.metadata import parse_duration
from loadstone.collect.generators.base import compress
from loadstone.collect.targets.base import Job, ResourceSample, Target, UnsampledError

GENERATOR = "generator"  # name of samples of the generator's processes, and of the machine on which it runs

_LOCAL_S, _CLUSTER_S = 1.0, 15.0
_SHORTEST_S = 0.05
_FEWEST = 5  # samples of a short run against a local target
_TIMEOUT_S = 5.0  # for the last samples, after the attack has ended
_MIB = 1 << 20
# Listing a process's children reads every process of the machine: 1 ms per 80 of them.
_LIST_EVERY_S = 5.0


def interval_s(target: Mapping[str, Any], duration_s: float) -> float:
    """Seconds from sample to sample: as configured, else 1 (local; less in short runs) or 15. 0: no samples."""
    configured = parse_duration(target.get("resources", {}).get("every"))
    if configured is not None:
        return max(configured, _SHORTEST_S) if configured else 0.0
    return min(_LOCAL_S, max(duration_s / _FEWEST, _SHORTEST_S)) if target["kind"] == "local" else _CLUSTER_S


class Sampler:
    """Samples of one run's attack; `file` receives them as CSV.

    A problem is logged once, and only if `is_new` returns true for its text, so that each run need not repeat it.
    """

    def __init__(self, job: Job, file: Path, duration_s: float, is_new: Callable[[str], bool] = lambda _: True) -> None:
        self.every_s = interval_s(job.target, duration_s)
        # After this time, a generator on a clock only waits for responses, which is not the cost of the load. Artillery
        # takes seconds before it begins.
        timed = job.planned.load_model == "open" and job.planned.generator != "artillery"
        self._load_s = duration_s if timed else math.inf
        self._file = file
        self._log = job.log
        self._is_new = is_new
        self._ended = threading.Event()
        self._lock = threading.RLock()
        self._rounds = 0
        self._cpus: float | None = None
        self._problems: dict[str, dict[str, Any]] = {}

    @contextlib.contextmanager
    def during(self, target: Target, generator: Sequence[int]) -> Iterator[None]:
        """Sample until the block ends, or the load has been sent. `generator` are the load generators' process ids.

        There are none when other machines send the load; these are not sampled.
        """
        self._cpus = (available_cpus(generator) or None) if generator else None
        if not self.every_s:
            yield
            return
        measured = [target.sample]
        if generator:
            measured += [ProcessTree(GENERATOR, generator).sample, Machine(GENERATOR).sample]
        thread = threading.Thread(target=self._sample_until_end, args=(measured,), name="sampling", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._note(f"no sampling of CPU and memory: {error}")
        try:
            yield
        finally:
            self._ended.set()
            if thread.ident is not None:
                thread.join(_TIMEOUT_S)
                if thread.is_alive():
                    self._note("the last samples of CPU and memory did not arrive in time")

    def record(self) -> dict[str, Any]:
        """The entry about sampling in the run's record."""
        with self._lock:
            problems = [dict(problem) for problem in self._problems.values()]
            return {
                "every_s": self.every_s,
                "rounds": self._rounds,
                "generator_cpus": self._cpus,
                "problems": problems,
            }

    def compressed(self) -> Path | None:
        """The finished file, or None without samples. Call this only after the attack."""
        finished = self._file.with_suffix(".compressed")
        with self._lock:
            if not self._rounds:
                return None
            try:
                compress([self._file], finished)  # removes the file, so a thread that hangs can add nothing
            except OSError as error:
                self._note(f"the samples of CPU and memory are lost: {error}")
                return None
        return finished

    def _sample_until_end(self, measured: list[Callable[[], list[ResourceSample]]]) -> None:
        """Take samples at regular intervals, and once more at the end if half an interval has passed."""
        try:
            with self._file.open("x", newline="", encoding="utf-8", errors="backslashreplace") as file:
                csv.writer(file).writerow([*RESOURCE_COLUMNS, ASKED_AT])
                started_s = last_s = time.monotonic()
                self._sample_round(measured, file)
                end_s = started_s + self._load_s + self.every_s / 2
                while not self._ended.wait(self.every_s - (time.monotonic() - started_s) % self.every_s):
                    last_s = time.monotonic()
                    if last_s > end_s:
                        return
                    self._sample_round(measured, file)
                if last_s + self.every_s / 2 <= time.monotonic() <= end_s:
                    self._sample_round(measured, file)
        except OSError as error:
            self._note(f"no samples of CPU and memory: {self._file} can't be written: {error.strerror}")

    def _sample_round(self, measured: list[Callable[[], list[ResourceSample]]], file: Any) -> None:
        """One round, whose rows share `asked_at`."""
        asked_at = datetime.now(UTC)
        samples: list[ResourceSample] = []
        for source in measured:
            try:
                samples += source()
            except UnsampledError as error:
                samples += error.samples
                self._note(str(error))
            except Exception as error:  # noqa: BLE001 - no mistake here may cost a run
                self._note(f"a sample of CPU and memory failed: {type(error).__name__}: {error}")
        with self._lock:
            if samples and self._file.exists():
                csv.writer(file).writerows(_fields(sample, asked_at) for sample in samples)
                file.flush()
                self._rounds += 1

    def _note(self, text: str) -> None:
        """Count a problem, and log it the first time."""
        with self._lock:
            found = self._problems.setdefault(text, {"text": text, "first": _text(datetime.now(UTC)), "times": 0})
            found["times"] += 1
            is_first = found["times"] == 1
        if is_first and self._is_new(text):
            self._log(text)


def _fields(sample: ResourceSample, asked_at: datetime) -> list[Any]:
    numbers = (sample.cpu_millicores, sample.memory_mib)
    return [_text(sample.sampled_at), sample.scope, sample.name, *numbers, _text(asked_at)]


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")


# --- processes of this machine ---------------------------------------------------------------------------------------


class ProcessTree:
    """The processes `pids` with all their children, sampled together."""

    def __init__(self, name: str, pids: Sequence[int]) -> None:
        self._name = name
        self._pids = pids
        self._processes: list[psutil.Process] = []
        self._listed_s = -_LIST_EVERY_S
        self._cpu_s: dict[psutil.Process, float] = {}
        self._measured_s: float | None = None

    def sample(self) -> list[ResourceSample]:
        """CPU since the last call, and resident memory (shared pages count once per process).

        Empty at the first call, and when all processes have ended. CPU that a child used between the last call and its
        end is not counted.
        """
        self._update_processes()
        cpu_s: dict[psutil.Process, float] = {}
        memory = 0
        measured_s = time.monotonic()
        for process in self._processes:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                memory += process.memory_info().rss
                cpu_s[process] = times.user + times.system
        before, since_s = self._cpu_s, self._measured_s
        self._cpu_s, self._measured_s = cpu_s, measured_s
        if not cpu_s or memory == 0 or since_s is None or measured_s <= since_s:  # an ended process has no memory
            return []
        used_s = sum(total - before.get(process, 0.0) for process, total in cpu_s.items())
        cpu_millicores = 1000 * used_s / (measured_s - since_s)
        return [ResourceSample(datetime.now(UTC), "process", self._name, cpu_millicores, memory / _MIB)]

    def _update_processes(self) -> None:
        now_s = time.monotonic()
        if now_s - self._listed_s < _LIST_EVERY_S:
            return
        self._processes = []
        for pid in self._pids:
            with contextlib.suppress(psutil.Error):
                root = psutil.Process(pid)
                self._processes += [root, *root.children(recursive=True)]
        self._listed_s = now_s


class Machine:
    """This machine as a whole. Its samples have the scope ``node``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_first = True

    def sample(self) -> list[ResourceSample]:
        """CPU used since the last call of this thread, and memory that is not available. Empty at the first call."""
        percent = psutil.cpu_percent()
        if self._is_first:
            self._is_first = False
            return []
        memory = psutil.virtual_memory()
        cpu_millicores = 10 * percent * (psutil.cpu_count() or 1)
        used_mib = (memory.total - memory.available) / _MIB
        return [ResourceSample(datetime.now(UTC), "node", self._name, cpu_millicores, used_mib)]


def available_cpus(pids: Sequence[int]) -> float:
    """How many CPUs these processes of our own control group may use together; those that have ended use none.

    From their affinity and the group's quota (version 2).
    """
    if not hasattr(os, "sched_getaffinity"):
        return min(float(os.cpu_count() or 1), _quota())
    cpus: set[int] = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            cpus |= os.sched_getaffinity(pid)
    return min(float(len(cpus)), _quota())


def _quota() -> float:
    with contextlib.suppress(OSError, ValueError):
        (own,) = (line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
        quota, period = (Path("/sys/fs/cgroup") / own.lstrip("/") / "cpu.max").read_text().split()
        return int(quota) / int(period)
    return math.inf
