"""What processes of this machine use: CPU as the difference between two moments, memory as it is."""

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path

import psutil

from loadstone.collect.targets.base import ResourceSample

_MIB = 1 << 20
# Listing a process's children reads every process of the machine: 1 ms per 80 of them.
_LIST_EVERY_S = 5.0


class ProcessTrees:
    """Processes with all their children, by name; `roots` are their process ids, one or several that are one thing."""

    def __init__(self, roots: Mapping[str, int | Sequence[int]]) -> None:
        self._trees = {name: _Tree([pids] if isinstance(pids, int) else pids) for name, pids in roots.items()}

    def sample(self) -> list[ResourceSample]:
        """CPU since the last call, and resident memory (pages that processes share count once for each).

        A process is missing in its first sample, when there is no last call, and once it has ended. What a child used
        between the last call and its end is not counted.
        """
        found = []
        for name, tree in self._trees.items():
            if (used := tree.measure()) is not None:
                found.append(ResourceSample(datetime.now(UTC), "process", name, *used))
        return found


class _Tree:
    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._processes: list[psutil.Process] = []
        self._listed_s = -_LIST_EVERY_S
        self._cpu_s: dict[psutil.Process, float] = {}
        self._measured_s: float | None = None

    def measure(self) -> tuple[float, float] | None:
        """Millicores since the last call and MiB now."""
        self._list()
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
        if not cpu_s or memory == 0 or since_s is None or measured_s <= since_s:  # one that has ended has no memory
            return None
        used_s = sum(total - before.get(process, 0.0) for process, total in cpu_s.items())
        return 1000 * used_s / (measured_s - since_s), memory / _MIB

    def _list(self) -> None:
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
    """This machine as a whole: all its processes together. Its samples have the scope ``node``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._before: tuple[float, float] | None = None

    def sample(self) -> list[ResourceSample]:
        """CPU in use since the last call (none in the first), and memory that is not available."""
        times = psutil.cpu_times()
        # Linux counts guests in user and nice as well.
        whole_s = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        idle_s = times.idle + getattr(times, "iowait", 0.0)
        before, self._before = self._before, (whole_s, idle_s)
        if before is None or whole_s <= before[0]:
            return []
        busy = 1 - (idle_s - before[1]) / (whole_s - before[0])
        memory = psutil.virtual_memory()
        cpu_millicores = 1000 * (psutil.cpu_count() or 1) * max(0.0, min(1.0, busy))
        return [
            ResourceSample(
                datetime.now(UTC), "node", self._name, cpu_millicores, (memory.total - memory.available) / _MIB
            )
        ]


def available_cpus(pids: Sequence[int]) -> float:
    """How many CPUs these processes may use together, which are in this one's control group.

    By their affinity and the group's quota (version 2); those that have ended can use none.
    """
    cpus = len(_affinity(pids)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(float(cpus), _quota())


def _quota() -> float:
    with contextlib.suppress(OSError, ValueError):
        (own,) = (line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
        quota, period = (Path("/sys/fs/cgroup") / own.lstrip("/") / "cpu.max").read_text().split()
        return int(quota) / int(period)
    return inf


def _affinity(pids: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found |= os.sched_getaffinity(pid)
    return found
