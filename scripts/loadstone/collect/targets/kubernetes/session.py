"""The session of one invocation: its keeper holds the cluster, its jobs measure in it.

The keeper is a process of its own (`keeper`), so that it outlives the workflow and puts the cluster back whatever
happened to that. It lives as long as its lock is held, and says in a file how it stands and until when the cluster is
surely ours. Jobs change nothing without `fence`.

The cluster is given back after the last try: each campaign's `complete` comes before all that only reads results, and
tells the keeper when its tries are over, also when it fails. The end of the command waits for the keeper. A refused
command still puts back what an earlier one left; `plan` and `rights` hold nothing, so they may run next to a sweep.
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
from loadstone.errors import LoadstoneError, printable
from loadstone.process import Detached

Log = Callable[[str], None]

# Relative to the workflow's folder: one workflow at a time works there.
_FOLDER = Path("results/.cluster")
_STATE = _FOLDER / ".session.json"
_OVER = _FOLDER / ".over"
_SAID = _FOLDER / ".said.json"
_KEEPER_LOCK = _FOLDER / ".keeper.lock"
JOB_LOCK = _FOLDER / ".job.lock"
# Of the environment of all jobs of one invocation, so that they heed no other's keeper.
_ID = "LOADSTONE_SESSION"
_POLL_S = 0.2

# How a keeper ends.
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


def start(target: Mapping[str, Any], host: str, needed: Iterable[str], campaigns: Iterable[str], log: Log) -> Detached:
    """Start a keeper that prepares the cluster for measuring the variants `needed`; none: only puts it back.

    It holds the cluster until the tries of all `campaigns` are over, or the command is. Waits while the keeper of a
    former command is still putting back.
    """
    own = str(uuid.uuid4())
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with exclusive("a sweep", log, path=_KEEPER_LOCK, does="is still putting its cluster back") as held:
        _OVER.unlink(missing_ok=True)
        about = {"needed": sorted(needed), "campaigns": sorted(campaigns)}
        order = {"id": own, "target": target, "host": host, **about}
        keeper = Detached("loadstone.collect.targets.kubernetes.keeper", order, keep_open=[held])
    os.environ[_ID] = own
    say(State(own, WAITING))
    keeper.begin()
    return keeper


def campaign_finished(campaign: str) -> None:
    """Called after the last try of a campaign, whatever came of it: nothing of it needs the cluster any more."""
    if own := os.environ.get(_ID):
        with contextlib.suppress(OSError), _OVER.open("a") as file:  # else the cluster is held until the command ends
            file.write(f"{own} {campaign}\n")


def is_released(own: str, campaigns: Iterable[str]) -> bool:
    """Asked by the keeper: whether the tries of all these campaigns are over in its session."""
    try:
        finished = set(_OVER.read_text().splitlines())
    except OSError:
        return False
    return {f"{own} {campaign}" for campaign in campaigns} <= finished


def outcome_text(code: int) -> str:
    """What the exit code of a keeper means to people; empty when the cluster is as it was."""
    if code in _OUTCOMES:
        return _OUTCOMES[code]
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else "ended by a fault of its own"
    state = _state()
    left = has_records(state.server if state else "")
    return (
        f"the process that keeps the cluster {how}: see logs/cluster.log. "
        + ("The cluster needs your attention: " if left else "")
        + (_MAY_BE_LEFT if left else "Nothing of the cluster is to be put back")
    )


def is_new(text: str) -> bool:
    """Whether no job of this session has said this before; from now on one has."""
    own = os.environ.get(_ID, "")
    said: set[str] = set()
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads(_SAID.read_text())
        if content["session"] == own:
            said = set(content["said"])
    if text in said:
        return False
    with contextlib.suppress(OSError):  # then it is said again
        replace(_SAID, json.dumps({"session": own, "said": sorted({*said, text})}).encode())
    return True


def has_records(server: str = "") -> bool:
    """Whether an earlier session of this folder left anything to be put back: on one server, or on any."""
    return record_path(server).exists() if server else any(_record_paths())


def others(server: str) -> list[str]:
    """A sentence for each other server on which an earlier session of this folder left anything to be put back."""
    return [
        f"this folder also changed {_server_of(path)}: `snakemake --cores 1 restore` with the context and namespace of "
        "that sweep puts it back"
        for path in sorted(_record_paths())
        if path != record_path(server)
    ]


def _record_paths() -> Iterator[Path]:
    return _FOLDER.glob("[!.]*.json")  # hidden files are no records


def _server_of(record: Path) -> str:
    """Its address; as much of it as the file's name tells, when the record is not ours to read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return printable(str(json.loads(record.read_text(encoding="utf-8"))["server"]))
    return printable(record.name.removeprefix("cluster-").rsplit(".", 2)[0])


def _state() -> State | None:
    """What the keeper of this session said last; None when it has said nothing."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        state = State(**json.loads(_STATE.read_text()))
        return state if state.id == os.environ.get(_ID) else None
    return None


def record_path(server: str) -> Path:
    """The file in which this folder keeps the record of one cluster."""
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in server.partition("://")[2])
    return _FOLDER / f"cluster-{safe[:100]}.{os.getuid()}.json"


def join(while_waiting: Callable[[], None] = lambda: None) -> State:
    """Wait until the keeper has the cluster, or has put back what was left. Raises LoadstoneError when it can't."""
    while (state := check()).name == WAITING:
        while_waiting()
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
            raise LoadstoneError(f"the Lease on {state.server} was not renewed in time, so another sweep may hold it")
        time.sleep(_POLL_S)


def check() -> State:
    """How the keeper stands. Raises LoadstoneError when the cluster is not ours any more, or never was."""
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
