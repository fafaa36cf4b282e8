"""The session of one invocation: its keeper holds the cluster, its jobs measure in it.

The keeper is a process of its own (`loadstone.collect.kubernetes.keeper`), so that it outlives the workflow and puts
the cluster back whatever happened to that. It lives as long as its lock is held, and says in a file how it stands and
until when the cluster is surely ours. Jobs change nothing without `fence`.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loadstone.durable import replace
from loadstone.errors import LoadstoneError
from loadstone.lock import exclusive, is_held
from loadstone.process import Detached

Log = Callable[[str], None]

# Relative to the workflow's folder: one workflow at a time works there.
_FOLDER = Path("results/.cluster")
_STATE = _FOLDER / ".session.json"
_KEEPER_LOCK = _FOLDER / ".keeper.lock"
JOB_LOCK = _FOLDER / ".job.lock"
# Of the environment of all jobs of one invocation, so that they heed no other's keeper.
_ID = "LOADSTONE_SESSION"
_POLL_S = 0.2

WAITING, HELD, LOST, FAILED, DONE = "waiting", "held", "lost", "failed", "done"


@dataclass(frozen=True)
class State:
    """How a keeper stands. `text` explains FAILED and LOST; `held_until` is by `clock`."""

    id: str
    name: str
    text: str = ""
    server: str = ""
    record: str = ""
    held_until: float = 0.0


def clock() -> float:
    """Seconds that count also while the machine sleeps; the same for all processes."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def say(state: State) -> None:
    """Called by the keeper: how it stands now."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    replace(_STATE, json.dumps(asdict(state)).encode())


def start(target: Mapping[str, Any], host: str, needed: Iterable[str], log: Log) -> Detached:
    """Start a keeper that prepares the cluster for measuring the variants `needed`; none: only puts it back.

    Waits while the keeper of a former command is still putting back.
    """
    own = str(uuid.uuid4())
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with exclusive("a sweep", log, path=_KEEPER_LOCK) as held:
        order = {"id": own, "target": target, "host": host, "needed": sorted(needed)}
        keeper = Detached("loadstone.collect.kubernetes.keeper", order, keep_open=[held])
    os.environ[_ID] = own
    say(State(own, WAITING))
    keeper.begin()
    return keeper


def has_records() -> bool:
    """Whether an earlier session of this folder left anything to be put back."""
    return any(_FOLDER.glob("[!.]*.json"))


def record_path(server: str) -> Path:
    """The file in which this folder keeps the record of one cluster."""
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in server.partition("://")[2])
    return _FOLDER / f"cluster-{safe[:100]}.{os.getuid()}.json"


def join() -> State:
    """Wait until the keeper has the cluster, or has put back what was left. Raises LoadstoneError when it can't."""
    while (state := check()).name == WAITING:
        time.sleep(_POLL_S)
    return state


def fence(limit_s: float) -> State:
    """Return only while the cluster is surely ours: its Lease was renewed, and nobody had it since we did.

    Waits for that as long as `limit_s`, as the API server may be away. Raises LoadstoneError when it can't be known.
    """
    given_up = time.monotonic() + limit_s
    while True:
        state = check()
        if state.name == HELD and clock() < state.held_until:
            return state
        if time.monotonic() > given_up:
            raise LoadstoneError(
                f"whether {state.server} is still ours can't be known: its Lease was not renewed in time"
            )
        time.sleep(_POLL_S)


def check() -> State:
    """How the keeper stands. Raises LoadstoneError when the cluster is not ours any more, or never was."""
    try:
        state = State(**json.loads(_STATE.read_text()))
    except FileNotFoundError:
        state = None
    if state is None or state.id != os.environ.get(_ID):
        raise LoadstoneError("no session of this command holds the cluster; collect with `snakemake --cores all`")
    if state.name in (FAILED, LOST):
        raise LoadstoneError(state.text)
    if state.name != DONE and not is_held(_KEEPER_LOCK):
        raise LoadstoneError(
            "the process that keeps the cluster has ended; start again: the cluster is put back first, and what is "
            "collected stays"
        )
    return state
