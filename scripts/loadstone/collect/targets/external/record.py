"""The record of a prepared variant: what is still to be cleaned up. Written before the first command is started.

It is in the user's own state folder, not in the archive or the checkout: so every checkout of this user finds it, and
nobody else's commands are ever run.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from loadstone.archive.durable import replace, sync
from loadstone.errors import LoadstoneError

_SUFFIX = ".prepared.json"

Command = tuple[str, ...]


@dataclass(frozen=True)
class Prepared:
    """A variant for which commands were started. `folder` is where they run, `done` how many of `cleanup` are done."""

    id: str
    folder: str
    variant: str
    since: str
    cleanup: tuple[Command, ...]
    done: int = 0

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
                f"{self.path} can't be written, which says what is to be cleaned up: {error.strerror}"
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
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise LoadstoneError(
                f"{path} says what is to be cleaned up, but can't be read ({error}); clean up by hand, then delete it"
            ) from None
    own = None if folder is None else str(folder.resolve())
    return iter(sorted((each for each in found if own in (None, each.folder)), key=lambda each: each.since))
