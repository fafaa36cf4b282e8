"""The archive and its tables -> a bucket: what is not there yet; of the archive nothing there is replaced or removed.

Of a campaign all runs go first, then what was planned, then what closes it; of a run its main results go last. So what
a killed push leaves is never taken for more than it is, and the next one goes on.
"""

from collections.abc import Mapping
from pathlib import Path
from stat import S_ISREG
from typing import Any

from loadstone.archive.durable import sha256_of
from loadstone.errors import LoadstoneError
from loadstone.publish.bucket import names, store
from loadstone.publish.bucket.names import MARKS, PLAN, RESULTS, Group, TransferUnit
from loadstone.publish.bucket.store import ARCHIVE, TABLES, ComparedFiles, Log, ObjectInfo, Store, TransferLog
from loadstone.publish.bundle import table_files
from loadstone.publish.s3 import each
from loadstone.tables import verify
from loadstone.tables.layout import text
from loadstone.text import counted

_COMPARED_TABLES = (TABLES,)
_SHOWN = 20  # names in a preview


def push(archive: Path, tables: Path, declared: Mapping[str, Any] | None, log: Log) -> int:
    """Push to the bucket what is missing there; returns how many files were transferred.

    A file that differs from its object is named, its run or campaign is left as it is there, and all else is done; then
    LoadstoneError is raised, as for whatever else goes wrong.
    """
    with store.opened(declared) as place, place.writing():
        done = _Push(archive, tables, place, log)
        done.archive()
        if (declared or {}).get("tables", True) and not done.tally.problems:
            done.tables()
        for line in (*done.tally.notices, *done.tally.problems):
            log(line)
        if done.tally.files or done.removed:
            log(f"{place.name}: {done.tally.moves()} transferred, {counted(done.tally.same, 'file')} already there")
        else:
            log(f"{place.name} already holds all {counted(done.tally.same, 'file')}: nothing was transferred")
        if done.tally.problems:
            raise LoadstoneError(
                f"{counted(len(done.tally.problems), 'part')} of the archive could not be pushed to {place.name} "
                "(named above); all others are there, and its tables are unchanged. Objects in a bucket are never "
                "replaced: if the file here is right, remove the object there"
            )
        return done.tally.files


def preview(archive: Path, tables: Path, declared: Mapping[str, Any] | None) -> list[str]:
    """What `push` would do with archive and tables as they are now, for people. Raises LoadstoneError."""
    with store.opened(declared) as place:
        looked = _Push(archive, tables, place, lambda _: None, dry=True)
        looked.archive()
        if (declared or {}).get("tables", True) and not looked.tally.problems:
            looked.tables()
        found = looked.tally
        lines = [f"  transferred: {found.moves()}", *(f"    {name}" for name in looked.sent[:_SHOWN])]
        if len(looked.sent) > _SHOWN:
            lines.append(f"    and {len(looked.sent) - _SHOWN:,} more")
        return [place.name, *lines, *(f"  {line}" for line in (*found.notices, *found.problems))]


class _Push:
    def __init__(self, archive: Path, tables: Path, place: Store, log: Log, *, dry: bool = False) -> None:
        self.root, self.tables_folder, self.place, self.dry = archive, tables, place, dry
        self.tally = TransferLog(log)
        self.removed = 0
        self.sent: list[str] = []
        self._is_behind = False  # whether the bucket holds what is not here

    def archive(self) -> None:
        here: list[str] = []
        others = 0
        for path in verify.files(self.root) if self.root.is_dir() else ():
            if names.belongs(path):
                here.append(path)
            else:
                others += 1
        if others:
            self.tally.notice(
                f"{counted(others, 'file')} in the archive's folder belong to no campaign and are not pushed"
            )
        held = {names.archive_path(name): size for name, size in self.place.listing(ARCHIVE).items()}
        there = {path: size for path, size in held.items() if path is not None}
        self._is_behind = bool(there.keys() - set(here))
        for group, paths in names.groups(here).items():
            _CampaignPush(self, group, there).push(names.units(paths))

    def send(self, name: str, path: Path) -> ObjectInfo | None:
        """Transfer one file; None in a dry run."""
        if self.dry:
            self.sent.append(text(name))
        held = None if self.dry else self.place.put(name, path)
        self.tally.moved(path.stat().st_size)
        return held

    def tables(self) -> None:
        """Push all tables, unless they would replace tables of more runs than are here."""
        if self._is_behind:
            self.tally.notice(
                f"{self.place.name} holds runs that are missing here, so its tables are left unchanged: pull, then push"
            )
            return
        ours = {path.relative_to(self.tables_folder).as_posix(): path for path in table_files(self.tables_folder)}
        there, compared = (
            self.place.listing(TABLES),
            ComparedFiles(self.tables_folder, self.place.address, _COMPARED_TABLES),
        )

        def bring(name: str) -> None:
            path, held = ours[name], there.get(name)
            status = path.stat()
            if held is not None and (
                compared.is_same(name, status, held)
                or (held.size == status.st_size and self.place.is_same(f"{TABLES}/{name}", path))
            ):
                compared.note(name, status, held)
                self.tally.was_there()
                return
            if (now := self.send(f"{TABLES}/{name}", path)) is not None:
                compared.note(name, status, now)

        each(bring, sorted(ours))
        gone = sorted(name for name in there.keys() - ours.keys() if name.endswith(".parquet"))
        self.removed = len(gone)
        if not self.dry:
            each(lambda name: self.place.remove(f"{TABLES}/{name}"), gone)
            compared.save()
        if gone:
            self.tally.notice(f"{counted(len(gone), 'table file')} removed that no longer exist here")


class _CampaignPush:
    def __init__(self, push: _Push, group: Group, there: Mapping[str, ObjectInfo]) -> None:
        self._push, self._there = push, there
        self._tally = push.tally
        self._compared = ComparedFiles(push.tables_folder, push.place.address, group)
        self._held_back: list[str] = []

    def push(self, units: list[TransferUnit]) -> None:
        """What stays back keeps back what would say that the campaign is whole."""
        try:
            for stage in (RESULTS, PLAN, MARKS):
                if not self._held_back:
                    each(self._offer, [unit for unit in units if unit.stage == stage and not self._is_known(unit)])
        finally:
            if not self._push.dry:
                self._compared.save()

    def _is_known(self, unit: TransferUnit) -> bool:
        """Whether all of it is there, as it was compared before; nobody is asked."""
        for path in unit.paths:
            if path not in self._there:
                return False
            if not self._compared.is_same(path, (self._push.root / path).stat(), self._there[path]):
                return False
        self._tally.was_there(len(unit.paths))
        return True

    def _offer(self, unit: TransferUnit) -> None:
        missing = [path for path in unit.paths if path not in self._there]
        try:
            why = self._refusal(unit, missing)
        except OSError as error:
            if error.errno is None:  # the storage's
                raise
            why = f"{text(error.filename or unit.name)} cannot be read: {error.strerror}"
        if why:
            self._held_back.append(unit.name)
            self._tally.problem(f"{text(unit.name)} was not transferred: {why}" if missing else why)
            return
        if missing and self._is_at_work(unit):
            self._held_back.append(unit.name)
            self._tally.notice(f"{text(unit.name)} was not pushed: it is still being collected")
            return
        self._tally.was_there(len(unit.paths) - len(missing))
        for path in missing:
            file = self._push.root / path
            status = file.stat()
            if (held := self._push.send(f"{ARCHIVE}/{names.object_name(path)}", file)) is not None:
                self._compared.note(path, status, held)

    def _refusal(self, unit: TransferUnit, missing: list[str]) -> str:
        """Why nothing of it may be transferred; empty where it may."""
        for path in unit.paths:
            if not S_ISREG((self._push.root / path).stat().st_mode):  # to read a pipe would block for ever
                return f"{text(path)} is not a regular file"
        for path in unit.paths:
            if path in self._there and not self._is_same(path):
                return f"{text(path)} differs from the object in the bucket"
        return self._fault(unit) if missing else ""

    def _is_same(self, path: str) -> bool:
        file, held = self._push.root / path, self._there[path]
        status = file.stat()
        if self._compared.is_same(path, status, held):
            return True
        if status.st_size != held.size or not self._push.place.is_same(f"{ARCHIVE}/{names.object_name(path)}", file):
            return False
        self._compared.note(path, status, held)
        return True

    def _is_at_work(self, unit: TransferUnit) -> bool:
        """A run's files are given their names one after another, out of a hidden folder."""
        return unit.run is not None and (self._push.root / unit.folder / f".{unit.run}.part").exists()

    def _fault(self, unit: TransferUnit) -> str:
        """Why a run is not what its checksums say; nothing of such a one is transferred."""
        if unit.sums is None or self._is_at_work(unit):
            return ""
        try:
            sums = names.checksums((self._push.root / unit.sums).read_bytes(), unit)
        except ValueError:
            return f"{text(unit.sums)} does not hold checksums"
        for path, digest in sums.items():
            if path not in unit.paths:
                return f"{text(unit.sums)} lists {text(path.rpartition('/')[2])}, which is missing here"
            if sha256_of(self._push.root / path) != digest:
                return f"{text(path)} does not match its checksum in {text(unit.sums)}"
        return ""
