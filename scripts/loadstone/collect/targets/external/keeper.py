"""Prepares the variants of an external target for one command, and cleans up after them. Started by `session`.

All commands are run here, one after another, so that each cleanup runs once even if Snakemake is killed. The end of
standard input means that the workflow is over, however it ended: then the command that prepares is stopped, and the
variant is cleaned up. The record (`record`) is removed when all cleanup commands have succeeded.
"""

import contextlib
import json
import shlex
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone.archive import encode
from loadstone.archive.locks import exclusive, is_held
from loadstone.collect.targets import session
from loadstone.collect.targets.base import Log
from loadstone.collect.targets.external.record import Command, Prepared, find
from loadstone.collect.targets.session import State
from loadstone.errors import LoadstoneError, printable
from loadstone.process import Minder, Program, check

_POLL_S = 0.1
_JOB_S = 30.0  # for a job to notice that the session is over
_GRACE_S = 10.0  # for a command that prepares and is stopped
_LOG = Path("logs/target.log")
_OUTPUTS = Path("logs/target")  # of commands


class Keeper:
    """Runs the commands of `variants`, a mapping to their ``prepare`` and ``cleanup``, until `ended`."""

    def __init__(
        self, own_id: str, variants: Mapping[str, Any], ended: threading.Event, log: Log, keep_open: Sequence[int] = ()
    ) -> None:
        self.id = own_id
        self._variants = variants
        self._ended = ended
        self._log = log
        self._keep_open = keep_open
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
            self._wait_for_job()
            self._leave()

    def _wait_for_job(self) -> None:
        """A job of this session may still be measuring for a moment."""
        try:
            with exclusive("cleaning up", self._log, session.JOB_LOCK.resolve(), _JOB_S, does="still measures"):
                pass
        except (OSError, LoadstoneError) as error:
            self._log(f"cleaning up although {error}")

    def _say(self, refusal: str = "") -> None:
        session.say(State(self.id, session.HELD, answered=self._answered, refusal=refusal))

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
        self._prepared = Prepared(self.id, str(Path.cwd()), variant, since, cleanup)
        self._prepared.write()
        try:
            for number, command in enumerate(prepare, 1):
                self._run("preparing", variant, number, command, stoppable=True)
        except LoadstoneError as error:
            self._leave()
            return f"the variant can't be prepared: {error}"
        return ""

    def _leave(self) -> None:
        left, self._prepared = self._prepared, None
        if left is not None:
            self.clean_up(left)

    def clean_up(self, left: Prepared) -> None:
        """Run the cleanup commands that are not done yet. Raises LoadstoneError when one fails; the record stays."""
        for number, command in enumerate(left.cleanup[left.done :], left.done + 1):
            self._run("cleaning up", left.variant, number, command, folder=Path(left.folder))
            replace(left, done=number).write()
        left.remove()

    def _run(
        self,
        doing: str,
        variant: str,
        number: int,
        command: Command,
        *,
        folder: Path | None = None,
        stoppable: bool = False,
    ) -> None:
        self._log(f"{doing} {variant}: {shlex.join(command)}")
        program, *arguments = command
        if folder is not None and "/" in program:  # relative to where it was declared
            program = str(folder / program)
        output = _OUTPUTS / f"{encode(variant)}.{doing.replace(' ', '-')}.{number}.log"
        output.unlink(missing_ok=True)
        with Minder(self._keep_open) as minder:
            try:
                running = Program(
                    [program, *arguments], minder, output, environment={"LOADSTONE_VARIANT": variant}, folder=folder
                )
            except OSError as error:
                raise LoadstoneError(
                    f"{program} can't be started in {folder or Path.cwd()}: {error.strerror}"
                ) from None
            while stoppable and running.exit_code() is None:
                if self._ended.wait(_POLL_S):
                    running.stop(_GRACE_S)
                    raise LoadstoneError("the command was interrupted")
            code = running.wait()
        check(running, code)


def restore(log: Log) -> bool:
    """Clean up after sweeps of this user's checkouts that could not; returns whether there was anything to do.

    Waits while a sweep is still under way. Raises LoadstoneError when a command fails; its record is kept.
    """
    found = list(find())
    for left in found:
        lock = Path(left.folder) / session.KEEPER_LOCK
        with contextlib.ExitStack() as stack:
            if lock.parent.is_dir():  # else the checkout is gone
                stack.enter_context(exclusive("restore", log, path=lock, does="still measures"))
            if left.path.exists():
                log(f"cleaning up after the {left}")
                Keeper(left.id, {}, threading.Event(), log).clean_up(left)
    return bool(found)


def has_records() -> bool:
    """Whether an earlier command in this folder left a variant prepared."""
    return any(find(Path.cwd()))


def others() -> Iterator[str]:
    """A sentence for each variant that a command of another folder, which is over, left prepared."""
    for left in find():
        if left.folder != str(Path.cwd().resolve()) and not is_held(Path(left.folder) / session.KEEPER_LOCK):
            yield f"the {left} was not cleaned up: `snakemake --cores 1 restore` does it"


def main() -> int:
    """Keep an external target as ordered on standard input."""
    order = json.loads(sys.stdin.readline())
    ended = session.ended_with_input()
    log = session.log_to(_LOG)
    try:
        for text in others():
            log(text)
        keeper = Keeper(order["id"], order["target"]["variants"], ended, log, [order["lock"]])
        keeper.keep(order["campaigns"])
        over = session.LOST if order["campaigns"] else session.DONE
        session.say(State(order["id"], over, "the sweep is over"))
        return session.PUT_BACK
    except LoadstoneError as error:
        log(f"error: {error}")
        text = printable(str(error))
    except Exception:  # noqa: BLE001 - into the log, whatever it is
        text = "the target can't be prepared: see above"
        log(traceback.format_exc())
    session.say(State(order["id"], session.FAILED, text))
    return session.NOT_PUT_BACK if has_records() else session.REFUSED


if __name__ == "__main__":
    sys.exit(main())
