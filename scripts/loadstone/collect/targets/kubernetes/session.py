"""The session of one command in a cluster: its keeper holds the cluster, its jobs measure in it.

The keeper is a process of its own (`keeper`), so that it outlives the workflow and puts the cluster back whatever
happened to the workflow. It holds a lock while it lives, and writes its state to a file, with the time until which the
session certainly has the cluster. Jobs change nothing without `fence`.

The cluster is put back after the last try: each campaign's rule `complete` runs before everything that only reads
results, and notes for the keeper that the campaign's tries are over, also when it fails. The command waits for the
keeper at its end. A refused command still puts back what an earlier one left. `plan` and `rights` hold nothing, so they
may run during a sweep.
"""

import contextlib
import json
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loadstone.archive.durable import replace
from loadstone.archive.locks import exclusive, is_held
from loadstone.collect.targets.base import Log
from loadstone.errors import LoadstoneError, printable
from loadstone.process import Detached

# Relative to the workflow's folder: one workflow at a time works there.
_FOLDER = Path("results/.cluster")
_STATE = _FOLDER / ".session.json"
_FINISHED = _FOLDER / ".finished"  # campaigns whose tries are over
_LOGGED = _FOLDER / ".logged"  # texts of `is_new`
_KEEPER_LOCK = _FOLDER / ".keeper.lock"
JOB_LOCK = _FOLDER / ".job.lock"
# The variable that holds the session's id in all jobs of a command, so that they read no other keeper's state.
_ID = "LOADSTONE_SESSION"
_POLL_S = 0.2

# Exit codes of a keeper.
PUT_BACK, LEFT_SOME, NOT_PUT_BACK, REFUSED, TAKEN_OVER = 0, 3, 4, 5, 6
_MAY_BE_LEFT = "the next sweep, or `snakemake --cores 1 restore`, puts it back"
_SEE = "see above, and logs/cluster.log"
_OUTCOMES = {
    PUT_BACK: "",
    LEFT_SOME: f"the cluster needs your attention: what others changed meanwhile was left as it is ({_SEE})",
    NOT_PUT_BACK: f"the cluster needs your attention: it is not as it was; {_MAY_BE_LEFT} ({_SEE})",
    REFUSED: f"the cluster could not be used, and nothing of it was changed ({_SEE})",
    TAKEN_OVER: f"another sweep has taken the cluster over; it puts back what this one changed ({_SEE})",
}

WAITING, HELD, LOST, FAILED, DONE = "waiting", "held", "lost", "failed", "done"


@dataclass(frozen=True)
class State:
    """The state of a keeper. `text` explains FAILED and LOST; `held_until` is by `clock`."""

    id: str
    name: str
    text: str = ""
    server: str = ""
    record: str = ""
    held_until: float = 0.0


def clock() -> float:
    """Seconds, which also pass while the machine sleeps; the same for all processes."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def say(state: State) -> None:
    """Write the keeper's state."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    replace(_STATE, json.dumps(asdict(state)).encode())


def start(target: Mapping[str, Any], host: str, needed: Iterable[str], campaigns: Iterable[str], log: Log) -> Detached:
    """Start a keeper that prepares the cluster for measuring the variants `needed`; without any it only puts it back.

    It holds the cluster until the tries of all `campaigns` are over, or the command is. Waits while the keeper of an
    earlier command is still putting the cluster back.
    """
    own = str(uuid.uuid4())
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with exclusive("a sweep", log, path=_KEEPER_LOCK, does="is still putting its cluster back") as held:
        _FINISHED.unlink(missing_ok=True)
        _LOGGED.unlink(missing_ok=True)
        order = {"id": own, "target": target, "host": host, "needed": sorted(needed), "campaigns": sorted(campaigns)}
        keeper = Detached("loadstone.collect.targets.kubernetes.keeper", order, keep_open=[held])
    os.environ[_ID] = own
    say(State(own, WAITING))
    keeper.begin()
    return keeper


def campaign_finished(campaign: str) -> None:
    """Note after the last try of a campaign, whatever its result, that it does not need the cluster any more."""
    if own := os.environ.get(_ID):
        _append(_FINISHED, f"{own} {campaign}")  # if this fails, the cluster is held until the command ends


def is_released(own: str, campaigns: Iterable[str]) -> bool:
    """Whether the tries of all these campaigns are over in the session `own`."""
    return {f"{own} {campaign}" for campaign in campaigns} <= _lines(_FINISHED)


def outcome_text(code: int) -> str:
    """The meaning of a keeper's exit code as text; empty when the cluster is as it was."""
    if code in _OUTCOMES:
        return _OUTCOMES[code]
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else "failed unexpectedly"
    state = _state()
    left = has_records(state.server if state else "")
    return (
        f"the process that keeps the cluster {how}: see logs/cluster.log. "
        + ("The cluster needs your attention: " if left else "")
        + (_MAY_BE_LEFT if left else "Nothing in the cluster has to be put back")
    )


def is_new(text: str) -> bool:
    """Whether no job of this session has asked this of the same text before."""
    line = json.dumps([os.environ.get(_ID, ""), text])
    if line in _lines(_LOGGED):
        return False
    _append(_LOGGED, line)
    return True


def _lines(file: Path) -> set[str]:
    try:
        return set(file.read_text(errors="replace").splitlines())
    except OSError:
        return set()


def _append(file: Path, line: str) -> None:
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as lines:
            lines.write(f"{line}\n")


def has_records(server: str = "") -> bool:
    """Whether an earlier session of this folder left anything to put back: on one server, or on any."""
    return record_path(server).exists() if server else any(_record_paths())


def others(server: str) -> list[str]:
    """A text for each other server on which an earlier session of this folder left anything to put back."""
    return [
        f"this folder also changed {_server_of(path)}: `snakemake --cores 1 restore` with the context and namespace of "
        "that sweep puts it back"
        for path in sorted(_record_paths())
        if path != record_path(server)
    ]


def _record_paths() -> Iterator[Path]:
    return _FOLDER.glob("[!.]*.json")  # hidden files are no records


def _server_of(record: Path) -> str:
    """The address of its server; as far as the file's name has it when the record can't be read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return printable(str(json.loads(record.read_text(encoding="utf-8"))["server"]))
    return printable(record.name.removeprefix("cluster-").rsplit(".", 2)[0])


def _state() -> State | None:
    """The last state that this session's keeper has written, if any."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        state = State(**json.loads(_STATE.read_text()))
        return state if state.id == os.environ.get(_ID) else None
    return None


def record_path(server: str) -> Path:
    """The file in which this folder has the record of one cluster."""
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in server.partition("://")[2])
    return _FOLDER / f"cluster-{safe[:100]}.{os.getuid()}.json"


def join(while_waiting: Callable[[], None] = lambda: None) -> State:
    """Wait until the keeper has the cluster, or has put it back. Raises LoadstoneError when it can't."""
    while (state := check()).name == WAITING:
        while_waiting()
        time.sleep(_POLL_S)
    return state


def fence(limit_s: float) -> State:
    """Return only while this session certainly has the cluster: its Lease is renewed, and nobody else had it since.

    Waits up to `limit_s`, because the API server may be away. Raises LoadstoneError when it is not certain by then.
    """
    given_up = time.monotonic() + limit_s
    while True:
        state = check()
        if state.name == HELD and clock() < state.held_until:
            return state
        if time.monotonic() > given_up:
            raise LoadstoneError(f"the Lease on {state.server} was not renewed in time, so another sweep may hold it")
        time.sleep(_POLL_S)


def check() -> State:
    """The keeper's state. Raises LoadstoneError when this session does not have the cluster any more, or never had."""
    if (state := _state()) is None:
        raise LoadstoneError("no session of this command holds the cluster; collect with `snakemake --cores all`")
    if state.name in (FAILED, LOST):
        raise LoadstoneError(state.text)
    if state.name != DONE and not is_held(_KEEPER_LOCK):
        raise LoadstoneError(
            "the process that keeps the cluster has ended. Start again: the cluster is put back first, and results "
            "are kept"
        )
    return state
