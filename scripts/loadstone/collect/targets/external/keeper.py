"""Prepares the variants of an external target for one command, and cleans up after them. Started by `session`.

All commands are run here, one after another, so that each cleanup runs once even if Snakemake is killed. The end of
standard input means that the workflow is over, however it ended: then the command that prepares is stopped, and the
variant is cleaned up.

A command may leave processes running for the commands after it: those in its own process group end with it, those in
other sessions become children of this process and end after the variant's cleanup.

What is still to be cleaned up is recorded before the first command is started (`Prepared`), until all cleanup commands
have succeeded. The record is in the user's own state folder, not in the archive or the checkout: so every checkout of
this user finds it, and nobody else's commands are ever run.
"""

import contextlib
import json
import os
import shlex
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from dataclasses import replace as changed
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone import supervisor
from loadstone.archive import encode
from loadstone.archive.durable import replace, sync
from loadstone.archive.locks import MEASURES, PREPARED_LOCK, exclusive, is_held
from loadstone.archive.metadata import parse_duration
from loadstone.archive.progress import duration_text
from loadstone.collect.targets import session
from loadstone.collect.targets.base import Log
from loadstone.collect.targets.session import State
from loadstone.errors import LoadstoneError, printable
from loadstone.process import Program, Supervisor, check

_POLL_S = 0.1
_JOB_S = 30.0  # for a job to notice that the session is over
_GRACE_S = 10.0  # for a command that is stopped
_COMMAND_S = 600.0
_SAY_S = 60.0  # between messages on a command that takes long
_LOG = Path("logs/target.log")
_OUTPUTS = Path("logs/target")  # of commands


# --- the record -------------------------------------------------------------------------------------------------------

_SUFFIX = ".prepared.json"

Command = tuple[str, ...]


@dataclass(frozen=True)
class Prepared:
    """A variant for which commands were started. `folder` is where they run, `done` how many of `cleanup` are done.

    A command that takes longer than `limit_s` is stopped.
    """

    id: str
    folder: str
    variant: str
    since: str
    cleanup: tuple[Command, ...]
    done: int = 0
    limit_s: float = _COMMAND_S

    @property
    def path(self) -> Path:
        return _state_folder() / f"{self.id}{_SUFFIX}"

    def write(self) -> None:
        """Store it durably. Raises LoadstoneError when that fails."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace(self.path, json.dumps(asdict(self)).encode(), mode=0o600)
            sync(self.path)
            sync(self.path.parent)
        except OSError as error:
            raise LoadstoneError(
                f"{self.path}, the record of what has to be cleaned up, can't be written: {error.strerror}"
            ) from None

    def remove(self) -> None:
        """Nothing is left to be cleaned up."""
        self.path.unlink(missing_ok=True)
        sync(self.path.parent)

    def __str__(self) -> str:
        return f"variant {self.variant} (prepared {self.since} in {self.folder})"


def _state_folder() -> Path:
    """Follows the XDG Base Directory Specification."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "loadstone"


def find(folder: Path | None = None) -> Iterator[Prepared]:
    """All records of this user, or those of one folder, oldest first. Raises LoadstoneError for one that is broken."""
    found = []
    for path in sorted(_state_folder().glob(f"*{_SUFFIX}")):
        try:
            content = json.loads(path.read_bytes())
            commands = tuple(tuple(map(str, command)) for command in content["cleanup"])
            found.append(Prepared(**{**content, "cleanup": commands}))
        except FileNotFoundError:  # by now it is cleaned up
            continue
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise LoadstoneError(
                f"{path}, the record of what has to be cleaned up, can't be read ({error}); clean up by hand, then "
                "delete it"
            ) from None
    own = None if folder is None else str(folder.resolve())
    return iter(sorted((each for each in found if own in (None, each.folder)), key=lambda each: each.since))


# --- the keeper -------------------------------------------------------------------------------------------------------


class Keeper:
    """Runs the commands of a declared `target`'s variants, ``prepare`` and ``cleanup``, until `ended`."""

    def __init__(
        self, own_id: str, target: Mapping[str, Any], ended: threading.Event, log: Log, keep_open: Sequence[int] = ()
    ) -> None:
        self.id = own_id
        self._variants = target.get("variants", {})
        self._limit_s = parse_duration(target.get("command_timeout")) or _COMMAND_S
        self._ended = ended
        self._log = log
        self._keep_open = keep_open
        self._spared = frozenset(supervisor.children())
        supervisor.adopt_orphans()
        self._prepared: Prepared | None = None
        self._answered = ""

    def keep(self, campaigns: Sequence[str]) -> None:
        """Switch variants on request until the workflow is over. Raises LoadstoneError when a cleanup fails."""
        for left in find(Path.cwd()):
            self._log(f"cleaning up after the {left}")
            self.clean_up(left)
        self._say()
        try:
            while not (self._ended.wait(_POLL_S) or session.is_released(self.id, campaigns)):
                requested = session.request(self.id)
                if requested and requested[0] != self._answered:
                    self._answered = requested[0]
                    self._say(refusal=self._switch(requested[1]))
        finally:
            if self._prepared is not None:
                self._wait_for_job()
                self._leave()

    def _wait_for_job(self) -> None:
        """A job of this session may still be measuring for a moment."""
        try:
            with exclusive("cleaning up", self._log, session.JOB_LOCK.resolve(), _JOB_S, does="measures"):
                pass
        except (OSError, LoadstoneError) as error:
            self._log(f"cleaning up although {error}")

    def _say(self, refusal: str = "") -> None:
        session.write_state(State(self.id, session.HELD, answered=self._answered, refusal=refusal))

    def _switch(self, variant: str) -> str:
        """Prepare a variant, unless it is; returns why that failed."""
        if self._prepared is not None and self._prepared.variant == variant:
            return ""
        self._leave()
        declared = self._variants[variant]
        prepare, cleanup = (tuple(map(tuple, declared.get(name, ()))) for name in ("prepare", "cleanup"))
        if not (prepare or cleanup):
            return ""
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        self._prepared = prepared = Prepared(self.id, str(Path.cwd()), variant, since, cleanup, limit_s=self._limit_s)
        prepared.write()
        try:
            for number, command in enumerate(prepare, 1):
                self._run("preparing", prepared, number, command, stoppable=True)
        except LoadstoneError as error:
            self._leave()
            return f"the variant can't be prepared: {error}"
        return ""

    def _leave(self) -> None:
        left, self._prepared = self._prepared, None
        if left is not None:
            self.clean_up(left)

    def clean_up(self, left: Prepared) -> None:
        """Run the cleanup commands that are not done yet, then end what the variant's commands left running.

        Raises LoadstoneError when one fails; the record stays.
        """
        try:
            for number, command in enumerate(left.cleanup[left.done :], left.done + 1):
                try:
                    self._run("cleaning up", left, number, command)
                except LoadstoneError as error:
                    raise LoadstoneError(
                        f"cleaning up {left.variant} failed ({shlex.join(command)}): {error}"
                    ) from None
                try:
                    changed(left, done=number).write()
                except LoadstoneError as error:  # the other commands are more important
                    self._log(str(error))
            left.remove()
        finally:
            if running := supervisor.end_children(self._spared):
                self._log(f"ended what commands of {left.variant} had left running: {', '.join(running)}")

    def _run(self, doing: str, of: Prepared, number: int, command: Command, *, stoppable: bool = False) -> None:
        self._log(f"{doing} {of.variant}: {shlex.join(command)}")
        program, *arguments = command
        if "/" in program:  # relative to where it was declared
            program = str(Path(of.folder) / program)
        program = shutil.which(program) or program  # by the user's PATH, not as Loadstone finds its own tools
        output = _OUTPUTS / f"{encode(of.variant)}.{doing.replace(' ', '-')}.{number}.log"
        output.unlink(missing_ok=True)
        environment = {"LOADSTONE_VARIANT": of.variant}
        with Supervisor(self._keep_open) as supervising:
            try:
                running = Program(
                    [program, *arguments], supervising, output, environment=environment, folder=Path(of.folder)
                )
            except OSError as error:
                raise LoadstoneError(f"{program} can't be started in {of.folder}: {error.strerror}") from None
            said_s = running.started_s
            while running.exit_code() is None:
                time.sleep(_POLL_S)
                now_s = time.monotonic()
                why = "was interrupted" if stoppable and self._ended.is_set() else ""
                if now_s - running.started_s > of.limit_s:
                    why = f"took longer than {duration_text(of.limit_s)} (target.command_timeout)"
                if why:
                    running.stop(_GRACE_S)
                    raise LoadstoneError(f"{command[0]} {why}; its output is in {output}")
                if now_s - said_s > _SAY_S:
                    said_s = now_s
                    self._log(f"still {doing} {of.variant} after {duration_text(now_s - running.started_s)}")
            code = running.wait()
        check(running, code)


def restore(log: Log) -> None:
    """Clean up after sweeps of this user's checkouts that could not, except for those that are still under way.

    Raises LoadstoneError when a command fails, after all others were tried; its record is kept.
    """
    failed = []
    for left in find():
        folder = Path(left.folder)
        with contextlib.ExitStack() as stack:
            try:
                if not folder.is_dir():
                    raise LoadstoneError(f"its folder is gone; clean up by hand, then delete {left.path}")
                if is_held(folder / session.KEEPER_LOCK):
                    log(f"the {left} is used by a sweep that is still running")
                    continue
                stack.enter_context(exclusive("restore", log, PREPARED_LOCK, does=MEASURES))
                lock = folder / session.KEEPER_LOCK
                if lock.parent.is_dir():
                    stack.enter_context(exclusive("restore", log, lock, 0.0, does=MEASURES))
                if left.path.exists():
                    log(f"cleaning up after the {left}")
                    Keeper(left.id, {}, threading.Event(), log).clean_up(left)
            except LoadstoneError as error:
                failed.append(f"the {left} is not cleaned up: {error}")
    if failed:
        raise LoadstoneError("\n".join(failed))


def has_any() -> bool:
    """Whether any checkout of this user left a variant prepared."""
    return any(find())


def has_records() -> bool:
    """Whether an earlier command in this folder left a variant prepared."""
    return any(find(Path.cwd()))


def others() -> Iterator[str]:
    """A sentence for each variant that a command of another folder, which is over, left prepared."""
    for left in find():
        if left.folder != str(Path.cwd().resolve()) and not is_held(Path(left.folder) / session.KEEPER_LOCK):
            yield f"the {left} was not cleaned up: `snakemake --cores 1 restore` does it"


def _check(ended: threading.Event) -> None:
    if ended.is_set():
        raise LoadstoneError("the sweep is over")


def main() -> int:
    """Keep an external target as ordered on standard input."""
    order = json.loads(sys.stdin.readline())
    ended = session.ended_with_input()
    log = session.log_to(_LOG)
    try:
        for text in others():
            log(text)
        with exclusive("a sweep", log, PREPARED_LOCK, does=MEASURES, while_waiting=lambda: _check(ended)) as held:
            keeper = Keeper(order["id"], order["target"], ended, log, [order["lock"], held])
            keeper.keep(order["campaigns"])
        over = session.LOST if order["campaigns"] else session.DONE
        session.write_state(State(order["id"], over, "the sweep is over"))
        return session.PUT_BACK
    except LoadstoneError as error:
        log(f"error: {error}")
        text = printable(str(error))
    except Exception:  # noqa: BLE001 - into the log, whatever it is
        text = "the target can't be prepared: see above"
        log(traceback.format_exc())
    session.write_state(State(order["id"], session.FAILED, text))
    return session.NOT_PUT_BACK if has_records() else session.REFUSED


if __name__ == "__main__":
    sys.exit(main())
