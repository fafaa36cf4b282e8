"""The session of one invocation: its keeper holds the cluster, its jobs measure in it.

The keeper is a process of its own (`loadstone.collect.kubernetes.keeper`), so that it outlives the workflow and puts
the cluster back whatever happened to that. It says in a file of the workflow's folder how it stands.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from loadstone.durable import replace
from loadstone.errors import LoadstoneError
from loadstone.process import Detached

Log = Callable[[str], None]

# Relative to the workflow's folder: one workflow at a time works there.
_STATE = Path(".snakemake/loadstone.session.json")
JOB_LOCK = Path(".snakemake/loadstone.session.lock")
_RECORDS = Path("results/.cluster")
_POLL_S = 0.2

WAITING, READY, UNSURE, LOST, FAILED, DONE = "waiting", "ready", "unsure", "lost", "failed", "done"


@dataclass(frozen=True)
class State:
    """How a keeper stands. `text` explains FAILED and LOST."""

    name: str
    text: str
    pid: int
    created: float

    def write(self) -> None:
        """Leave it for the jobs."""
        replace(_STATE, json.dumps(self.__dict__).encode())

    def is_alive(self) -> bool:
        """Whether the process that wrote it still runs."""
        try:
            return psutil.Process(self.pid).create_time() == self.created
        except psutil.Error:
            return False


def say(name: str, text: str = "") -> None:
    """Called by the keeper: how it stands now."""
    _say(name, text, os.getpid())


def _say(name: str, text: str, pid: int) -> None:
    State(name, text, pid, psutil.Process(pid).create_time()).write()


def start(target: Mapping[str, Any], host: str, needed: Iterable[str]) -> Detached:
    """Start a keeper that prepares the cluster for measuring the variants `needed`; none: only puts it back."""
    order = {"target": target, "host": host, "needed": sorted(needed)}
    keeper = Detached("loadstone.collect.kubernetes.keeper", order)
    _say(WAITING, "", keeper.pid)
    keeper.begin()
    return keeper


def has_records() -> bool:
    """Whether an earlier session of this folder left anything to be put back."""
    return any(_RECORDS.glob("*.json"))


def record_path(server: str) -> Path:
    """The file in which this folder keeps the record of one cluster."""
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in server.partition("://")[2])
    return _RECORDS / f"{safe[:100] or 'cluster'}.{os.getuid()}.json"


def join() -> None:
    """Wait until the keeper has the cluster, and has put back what was left. Raises LoadstoneError when it can't."""
    while True:
        state = _read()
        if state.name in (READY, DONE):
            return
        check(state)
        time.sleep(_POLL_S)


def check(state: State | None = None) -> None:
    """Raise LoadstoneError when the cluster is not ours any more."""
    state = state or _read()
    if state.name in (FAILED, LOST):
        raise LoadstoneError(state.text)
    if not state.is_alive():
        raise LoadstoneError(
            "the process that keeps the cluster has ended; start again: the cluster is put back first, and what is "
            "collected stays"
        )


def _read() -> State:
    try:
        return State(**json.loads(_STATE.read_text()))
    except FileNotFoundError:
        raise LoadstoneError("no session holds the cluster; collect with `snakemake --cores all`") from None
