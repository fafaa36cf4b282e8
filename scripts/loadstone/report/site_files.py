"""What each part of the site consists of, so that a file that it loses or that is cut short is noticed and made again.

A part is what one job makes: ``campaigns/<slug>``, ``comparisons/<id>``, ``traces/<slug>``, ``variants``, ``index``,
``ask``, ``assets``, ``figures/<kind>/<slug>``. ``<reports>/.made/<part>/files`` holds a line ``<size> <name>`` for each
of its files, in bytes or ``any``. It is asked for again under names that do not exist yet,
``<reports>/.made/<part>/<nth>``, as tables are (`loadstone.workflow.markers`).

Outputs of rules can't replace this. Of a ``directory()`` Snakemake sees only that it is there, and removes it before
its job, so that one new run would make the data of all loads again. ``update(directory())`` keeps it, but fails for
ever after a kill: the copy that Snakemake made for safety is in the way of the next one. A parameter that says that
something is lost would make the part twice, for it changes back.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.archive.durable import replace

FOLDER = ".made"
_RECORD = "files"
_BEGUN = "begun"  # as long as it is made; a job that was killed leaves it
_ANY = b"any"


@dataclass(frozen=True)
class Part:
    """One part of the site in `reports`."""

    reports: Path
    name: str

    @property
    def folder(self) -> Path:
        """Where its record lies, and the names under which it was asked for again."""
        return self.reports / FOLDER / self.name

    @property
    def record(self) -> Path:
        """The list of its files."""
        return self.folder / _RECORD

    def begin(self) -> "Part":
        """Before it is made. What has another size than it was made with goes: nothing may take it for complete."""
        for name, size in (read(self.record) or {}).items():
            path = self.reports / name
            if size is not None and path.is_file() and not path.is_symlink() and path.stat().st_size != size:
                path.unlink()
        replace(self.folder / _BEGUN, b"")
        return self

    def finish(self, files: Iterable[Path], *, growing: Iterable[Path] = ()) -> None:
        """It is made, and these are its files; those of `growing` others write on, so that they may have any size."""
        found = [*((path, b"%d" % path.stat().st_size) for path in files), *((path, _ANY) for path in growing)]
        lines = {b"%s %s\n" % (size, os.fsencode(path.relative_to(self.reports))) for path, size in found}
        content = b"".join(sorted(lines))
        if not (self.record.is_file() and self.record.read_bytes() == content):
            replace(self.record, content)
        (self.folder / _BEGUN).unlink(missing_ok=True)
        names = sorted((int(entry.name), entry) for entry in self.folder.iterdir() if entry.name.isdigit())
        for _, older in names[:-1]:
            older.unlink()


def read(record: Path) -> dict[str, int | None] | None:
    """The sizes in bytes of a part's files by their names in the site, None for any; None when it has no record."""
    try:
        lines = record.read_bytes().splitlines()
    except OSError:
        return None
    parts = (line.partition(b" ") for line in lines)
    return {os.fsdecode(name): None if size == _ANY else _bytes(size) for size, _, name in parts}


def _bytes(size: bytes) -> int:
    return int(size) if size.isdigit() else -1  # of a record that was cut short


@dataclass
class SiteSnapshot:
    """Which parts of a site have lost a file. `requested` has the answers, which stay the same within a command."""

    reports: Path
    requested: dict[str, list[str]] = field(default_factory=dict)
    _folders: dict[str, dict[str, int]] = field(default_factory=dict)

    def markers(self, name: str, *pages: str) -> list[str]:
        """The marker under which a part was last asked for again, if ever; a new one when it has lost something.

        When one of its `pages` is not there, whoever needs that sees it anyway.
        """
        if name not in self.requested:
            folder = Part(self.reports, name).folder
            last = max((int(entry) for entry in self._sizes(str(folder)) if entry.isdigit()), default=0)
            nth = last if self._is_complete(folder, pages) else last + 1
            self.requested[name] = [str(folder / str(nth))] if nth else []
        return self.requested[name]

    def _is_complete(self, folder: Path, pages: Iterable[str]) -> bool:
        if not all(self._size(page) is not None for page in pages):
            return True
        made = read(folder / _RECORD)
        if made is None or _BEGUN in self._sizes(str(folder)):
            return False
        found = ((self._size(name), size) for name, size in made.items())
        return all(here is not None and size in (here, None) for here, size in found)

    def _size(self, name: str) -> int | None:
        parent, _, own = name.rpartition("/")
        return self._sizes(os.path.join(self.reports, parent)).get(own)  # noqa: PTH118 - called for each file

    def _sizes(self, folder: str) -> dict[str, int]:
        """The sizes of what a folder holds, by name; each folder is read once."""
        if folder not in self._folders:
            try:
                with os.scandir(folder) as entries:
                    self._folders[folder] = {entry.name: entry.stat(follow_symlinks=False).st_size for entry in entries}
            except OSError:
                self._folders[folder] = {}
        return self._folders[folder]
