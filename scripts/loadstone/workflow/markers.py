"""Markers: files that request work under names that do not exist yet.

Neither mtimes nor Snakemake's own records affect such a name, and nothing is removed before the work is done again. A
marker is ``<folder>/<prefix><nth>``; while there is work to do, the next one is requested. A marker of tables has the
fingerprint of their inputs; a marker of a run only says that the run was attempted.

They are used where Snakemake's own means are not enough:

- runs: no file of the archive may be an output, which Snakemake removes before a job and after a failed one;
- tables of a campaign or a trace dump: their files depend on what was converted, and an archive from a backup or from
  git has other mtimes;
- the inventory: the removal of a campaign must be noticed without Snakemake's records of inputs and parameters;
- parts of the site with missing files: `loadstone.report.site_layout`;
- a cluster to restore: a command without a job would not even call ``onstart``.

Everything else (statistics, database, pages) is left to Snakemake: mtimes, the set of inputs, parameters. Versions of
tables, pages and assets are parameters.

A job on another machine would see an archive that has changed in the meantime, and request other names: it takes those
of its command from a file (`Requested`), which the command removes when it ends. Without that file, a job refuses to
start, and one that runs ends (`wait_for_end`): a scheduler may hold jobs that the command could not cancel.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from loadstone.archive.durable import replace
from loadstone.errors import LoadstoneError

# Environment variables: the id of a job's command, and in jobs on other machines the file of its `Requested`.
VARIABLE = "LOADSTONE_COMMAND"
FILE_VARIABLE = "LOADSTONE_REQUESTED"
_POLL_S = 2.0


def next_marker(folder: Path, prefix: str = "") -> str:
    """The first name that has not been used."""
    return str(folder / f"{prefix}{_last_number(folder, prefix) + 1}")


def last_marker(folder: Path, prefix: str = "") -> str | None:
    """The newest marker, if there is any."""
    last = _last_number(folder, prefix)
    return str(folder / f"{prefix}{last}") if last else None


def up_to_date_or_next(folder: Path, fingerprint: str) -> str:
    """The newest marker when it holds this fingerprint, else the next one."""
    last = last_marker(folder)
    return last if last and Path(last).read_text() == fingerprint else next_marker(folder)


def write_marker(marker: Path, fingerprint: str) -> None:
    """Record the fingerprint of finished work and remove older markers."""
    replace(marker, fingerprint.encode())
    for older in marker.parent.iterdir():
        if older.name.isdigit() and int(older.name) < int(marker.name):
            older.unlink()


def _last_number(folder: Path, prefix: str) -> int:
    try:
        names = [entry.name.removeprefix(prefix) for entry in folder.iterdir() if entry.name.startswith(prefix)]
    except FileNotFoundError:
        return 0
    return max((int(name) for name in names if name.isdigit()), default=0)


@dataclass(frozen=True)
class Requested:
    """The markers that a command requests: of the tables of campaigns (app/host/timestamp) and of trace dumps.

    `parts` are those of parts of the site, by name.
    """

    command: str
    tables: Mapping[str, str]
    traces: Mapping[str, str]
    inventory: str
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        replace(path, json.dumps(asdict(self)).encode("utf-8", "surrogateescape"))


def read_requested(path: Path, command: str | None) -> Requested:
    """The markers that this job's command requested. Raises LoadstoneError when the command has ended."""
    try:
        requested = Requested(**json.loads(path.read_bytes().decode("utf-8", "surrogateescape")))
    except FileNotFoundError:
        raise LoadstoneError(
            f"this job cannot find {path.absolute()}: either its command has ended, or this machine does not see the "
            "folder. Machines of a scheduler must see this folder, the archive, tables and reports at the same paths"
        ) from None
    if requested.command != command:
        raise LoadstoneError("the command that requested this job has ended, and another one has begun")
    return requested


def wait_for_end(path: Path, command: str) -> str:
    """Wait until the command of this job has ended; returns how that shows."""
    while True:
        try:
            read_requested(path, command)
        except LoadstoneError as error:
            return str(error)
        except (OSError, ValueError, TypeError):  # a shared file system that is away for a moment
            pass
        time.sleep(_POLL_S)
