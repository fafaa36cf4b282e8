"""Which files were found to be what a bucket holds, so that the next command compares only what is new.

One JSON file per campaign below the tables, where everything may be removed: then all is compared again.
"""

import json
import os
from contextlib import suppress
from pathlib import Path

from loadstone.archive import encode
from loadstone.archive.durable import replace
from loadstone.errors import LoadstoneError
from loadstone.publish.bucket.store import Held
from loadstone.tables.layout import prepare_folder

_FOLDER = ".stored"
_ABOVE = "above"


class Known:
    """Of one campaign (`group`: its folders) or of what lies elsewhere. `where` names the bucket that is meant."""

    def __init__(self, tables: Path, where: str, group: tuple[str, ...]) -> None:
        *folders, name = map(encode, group or (_ABOVE,))
        self._tables, self._where = tables, where
        self._path = tables.joinpath(_FOLDER, *folders, f"{name}.json")
        self._found = self._read()
        self._is_new = False

    def _read(self) -> dict[str, list[int]]:
        try:
            content = json.loads(self._path.read_bytes())
            return dict(content["files"]) if content["where"] == self._where else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def is_same(self, path: str, status: os.stat_result, held: Held) -> bool:
        """Whether file and object are those that were compared."""
        return self._found.get(path) == _state(status, held)

    def note(self, path: str, status: os.stat_result, held: Held) -> None:
        """That they have the same content."""
        self._found[path], self._is_new = _state(status, held), True

    def save(self) -> None:
        """Once per campaign. What can't be noted is compared again."""
        if self._is_new:
            content = {"where": self._where, "files": self._found}
            with suppress(OSError, LoadstoneError):
                prepare_folder(self._tables, self._path.parent)
                replace(self._path, json.dumps(content).encode("utf-8", "surrogateescape"))


def _state(status: os.stat_result, held: Held) -> list[int]:
    return [status.st_size, status.st_mtime_ns, held.size, held.written_s]
