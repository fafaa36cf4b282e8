"""What a command has planned, kept for those of its jobs that run on other machines.

Such a job looks at archive and tables again, when files have appeared that were not there as the command planned it. It
must ask for the same names all the same, so it takes them from here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from loadstone.archive.durable import replace
from loadstone.errors import LoadstoneError

VARIABLE = "LOADSTONE_COMMAND"  # by which a job is told whose it is


@dataclass(frozen=True)
class Plan:
    """`done` and `traced` say where the tables of campaigns (app/host/timestamp) and trace dumps were asked for.

    `lost` says the same of parts of the site that had lost something, ever.
    """

    command: str
    done: Mapping[str, str]
    traced: Mapping[str, str]
    inventory: str
    lost: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        replace(path, json.dumps(asdict(self)).encode("utf-8", "surrogateescape"))


def read(path: Path, command: str | None) -> Plan:
    """The plan of the command whose job this is. Raises LoadstoneError when there is none, or only a later one's."""
    try:
        plan = Plan(**json.loads(path.read_bytes().decode("utf-8", "surrogateescape")))
    except FileNotFoundError:
        raise LoadstoneError(
            f"this job finds no {path.absolute()}, which the command that asked for it has written: machines of a "
            "scheduler must see this folder, the archive, tables and reports under the same names"
        ) from None
    if plan.command != command:
        raise LoadstoneError("this job was asked for by a command that has ended; another one is at work here since")
    return plan
