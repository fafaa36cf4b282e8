"""The session of one command at a target that it changes: a cluster, or what is prepared for it elsewhere.

Its keeper (`kubernetes.keeper`, `external.keeper`) is a process of its own, so that it outlives the workflow and puts
the target back whatever happened to the workflow. It holds a lock while it lives, and writes its state to a file, for a
cluster with the time until which the session certainly has it. Jobs change nothing in a cluster without `fence`, and
ask the keeper of an external target for the variant that they measure (`switch`).

The target is restored after the last attempt: each campaign's rule `complete` runs before everything that only reads
results, and tells the keeper that the campaign's attempts are over, also when it fails. The command waits for the
keeper at its end. A refused command still restores what an earlier one left. `plan` and `rights` hold nothing, so they
may run during a sweep.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone.archive.durable import replace
from loadstone.archive.locks import exclusive, is_held
from loadstone.collect.targets.base import Log
from loadstone.config import redact
from loadstone.errors import LoadstoneError, printable
from loadstone.process import Detached

# Relative to the workflow's folder: one workflow at a time works there.
_FOLDER = Path("results/.cluster")
_STATE = _FOLDER / ".session.json"
_FINISHED = _FOLDER / ".finished"  # campaigns whose attempts are over
_LOGGED = _FOLDER / ".logged"  # texts of `is_new`
_REQUEST = _FOLDER / ".request.json"  # of `switch`
KEEPER_LOCK = _FOLDER / ".keeper.lock"
JOB_LOCK = _FOLDER / ".job.lock"
# The variable that holds the session's id in all jobs of a command, so that they read no other keeper's state.
_ID = "LOADSTONE_SESSION"
_POLL_S = 0.2

# Exit codes of a keeper.
PUT_BACK, LEFT_SOME, NOT_PUT_BACK, REFUSED, TAKEN_OVER = 0, 3, 4, 5, 6
_KEEPERS = {kind: f"loadstone.collect.targets.{kind}.keeper" for kind in ("kubernetes", "external")}
_MAY_BE_LEFT = "the next sweep, or `snakemake --cores 1 restore`, restores it"
_OUTCOMES = {
    PUT_BACK: "",
    LEFT_SOME: "the {target} needs your attention: what others changed meanwhile was left as it is",
    NOT_PUT_BACK: f"the {{target}} needs your attention: it is not as it was; {_MAY_BE_LEFT}",
    REFUSED: "the {target} could not be used, and nothing of it was changed",
    TAKEN_OVER: "another sweep has taken the {target} over; it restores what this one changed",
}

WAITING, HELD, LOST, FAILED, DONE = "waiting", "held", "lost", "failed", "done"


@dataclass(frozen=True)
class State:
    """The state of a keeper. `text` explains FAILED and LOST; `held_until` is by `clock`.

    `answered` is the id of the last request of `switch`, and `refusal` why it failed.
    """

    id: str
    name: str
    text: str = ""
    server: str = ""
    record: str = ""
    held_until: float = 0.0
    answered: str = ""
    refusal: str = ""


def clock() -> float:
    """Seconds, which also pass while the machine sleeps; the same for all processes."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def write_state(state: State) -> None:
    """Write the keeper's state."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    replace(_STATE, json.dumps(asdict(state)).encode())


def start(target: Mapping[str, Any], host: str, needed: Iterable[str], campaigns: Iterable[str], log: Log) -> Detached:
    """Start a keeper that prepares the cluster for measuring the variants `needed`; without any it only restores it.

    It holds the cluster until the attempts of all `campaigns` are over, or the command ends. Waits while the keeper of
    an earlier command is still restoring the cluster.
    """
    session_id = str(uuid.uuid4())
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with exclusive(
        "a sweep", log, path=KEEPER_LOCK, does=f"is still restoring its {_target_noun(target['kind'])}"
    ) as held:
        _REQUEST.unlink(missing_ok=True)
        _FINISHED.unlink(missing_ok=True)
        _LOGGED.unlink(missing_ok=True)
        order = {
            "id": session_id,
            "target": target,
            "host": host,
            "needed": sorted(needed),
            "campaigns": sorted(campaigns),
        }
        keeper = Detached(_KEEPERS[target["kind"]], order | {"lock": held}, keep_open=[held])
    os.environ[_ID] = session_id
    write_state(State(session_id, WAITING))
    keeper.begin()
    return keeper


def campaign_finished(campaign: str) -> None:
    """Record after the last attempt of a campaign, whatever its result, that it no longer needs the cluster."""
    if session_id := os.environ.get(_ID):
        _append(_FINISHED, f"{session_id} {campaign}")  # if this fails, the cluster is held until the command ends


def is_released(session_id: str, campaigns: Iterable[str]) -> bool:
    """Whether the attempts of all these campaigns are over in this session."""
    return {f"{session_id} {campaign}" for campaign in campaigns} <= _lines(_FINISHED)


def _target_noun(kind: str) -> str:
    return "cluster" if kind == "kubernetes" else "target"


def outcome_text(code: int, kind: str = "kubernetes") -> str:
    """The meaning of a keeper's exit code as text; empty when the target is as it was."""
    if code in _OUTCOMES:
        what, outcome = _target_noun(kind), _OUTCOMES[code]
        return f"{outcome.format(target=what)} (see above, and logs/{what}.log)" if outcome else ""
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else "failed unexpectedly"
    what, state = _target_noun(kind), _state()
    left = kind == "external" or has_records(state.server if state else "")
    return (
        f"the process that keeps the {what} {how}: see logs/{what}.log. "
        + (f"The {what} needs your attention: " if left else "")
        + (_MAY_BE_LEFT if left else f"Nothing in the {what} has to be restored")
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
    """Whether an earlier session of this folder left anything to restore: on one server, or on any."""
    return record_path(server).exists() if server else any(_record_paths())


def other_records(server: str) -> list[str]:
    """A text for each other server on which an earlier session of this folder left anything to restore."""
    return [
        f"this folder also changed {_server_of(path)}: `snakemake --cores 1 restore` with the context and namespace of "
        "that sweep restores it"
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


def wait_until_held(while_waiting: Callable[[], None] = lambda: None) -> State:
    """Wait until the keeper has the cluster, or has restored it. Raises LoadstoneError when it can't."""
    while (state := check()).name == WAITING:
        while_waiting()
        time.sleep(_POLL_S)
    return state


def request(session: str) -> tuple[str, str] | None:
    """The newest request of `switch` in a session: its id, and the variant."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads(_REQUEST.read_text())
        if content["session"] == session:
            return content["id"], content["variant"]
    return None


def switch(variant: str, while_waiting: Callable[[], None] = lambda: None) -> str:
    """Have the keeper prepare a variant, after it cleaned up after another one; returns why that failed, or "".

    Raises LoadstoneError when the session is over, or something could not be cleaned up.
    """
    request_id = str(uuid.uuid4())
    replace(_REQUEST, json.dumps({"id": request_id, "session": os.environ.get(_ID), "variant": variant}).encode())
    while (state := check()).answered != request_id:
        while_waiting()
        time.sleep(_POLL_S)
    return state.refusal


def fence(limit_s: float) -> State:
    """Return only while this session certainly has the cluster: its Lease was renewed and not taken by anybody else.

    Waits up to `limit_s`, because the API server may be unavailable. Raises LoadstoneError when it is not certain
    by then.
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
        raise LoadstoneError("no session of this command holds the target; collect with `snakemake --cores all`")
    if state.name in (FAILED, LOST):
        raise LoadstoneError(state.text)
    if state.name != DONE and not is_held(KEEPER_LOCK):
        raise LoadstoneError(
            "the process that keeps the target has ended. Start again: the target is restored first, and results "
            "are kept"
        )
    return state


# --- what keepers share ----------------------------------------------------------------------------------------------


def ended_with_input() -> threading.Event:
    """Set when standard input ends, or at SIGTERM, SIGINT or SIGHUP: the workflow is over."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.set())

    def wait_for_end_of_input() -> None:
        while sys.stdin.read(1):
            pass
        ended.set()

    threading.Thread(target=wait_for_end_of_input, daemon=True).start()
    return ended


def log_to(path: Path) -> Log:
    """A log to a file and the terminal that never fails: nobody may be listening, and the disk may be full."""
    file = None
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a", encoding="utf-8", errors="backslashreplace", buffering=1)

    def log(text: str) -> None:
        text = redact.text(text)
        with contextlib.suppress(OSError):
            print(printable(text), file=sys.stderr, flush=True)
        with contextlib.suppress(OSError):
            if file is not None:
                file.write(f"{datetime.now().astimezone().isoformat(timespec='milliseconds')} {text}\n")

    return log
