"""A bucket -> the archive: what is not here yet; nothing here is replaced or removed.

A campaign that is not here is put together in a hidden folder beside its place and appears by one rename. Each run is
fetched into a hidden folder of its own, held against its checksums, and given its names, main results last.
What closes a campaign comes before its runs and what plans them after, so that half of a copy asks for no attack.

`pull` is a command of its own: the graph of any other target is older than what it fetches.
"""

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from loadstone.archive import locks
from loadstone.archive.durable import give_name, sha256_of, sync
from loadstone.errors import LoadstoneError
from loadstone.publish.bucket import names, store
from loadstone.publish.bucket.names import MARKS, PLAN, RESULTS, Group, TransferUnit
from loadstone.publish.bucket.store import ARCHIVE, ComparedFiles, Log, ObjectInfo, Store, TransferLog
from loadstone.publish.s3 import each
from loadstone.tables.layout import text
from loadstone.text import counted

_LOCK = ".pull.lock"
_SHOWN = 20
_LARGEST_SUMS_BYTES = 1 << 20


def pull(archive: Path, tables: Path, declared: Mapping[str, Any] | None, log: Log) -> int:
    """Pull into the archive what is missing; returns how many files were transferred.

    What was compared is noted below `tables`. An object that differs from its file here, or is not what its run's
    checksums say, is named and its run left out, and all else is done; then LoadstoneError is raised, as for whatever
    else goes wrong.
    """
    with store.opened(declared) as place:
        there = _listing(place)
        archive.mkdir(parents=True, exist_ok=True)
        held = locks.hold("pull", archive / _LOCK)
        try:
            done = _Pull(archive, tables, place, there, log)
            done.all()
        finally:
            (archive / _LOCK).unlink()
            os.close(held)
        for line in (*done.tally.notices, *done.tally.problems):
            log(line)
        if done.tally.files or done.tally.problems:
            log(f"{place.name}: {done.tally.moves()} transferred, {counted(done.tally.same, 'file')} already here")
        else:
            log(f"all {counted(done.tally.same, 'file')} of {place.name} are already here: nothing was transferred")
        if done.tally.problems:
            raise LoadstoneError(
                f"{counted(len(done.tally.problems), 'part')} of {place.name} could not be pulled (named above); all "
                "others are here, and nothing here was replaced"
            )
        return done.tally.files


def preview(archive: Path, tables: Path, declared: Mapping[str, Any] | None) -> list[str]:
    """What `pull` would do, for people; changes nothing. Raises LoadstoneError."""
    with store.opened(declared) as place:
        looked = _Pull(archive, tables, place, _listing(place), lambda _: None, dry=True)
        looked.all()
        found = looked.tally
        return [
            place.name,
            f"  transferred: {found.moves()}",
            *(f"  {line}" for line in (*found.notices, *found.problems)),
        ]


def _listing(place: Store) -> dict[str, ObjectInfo]:
    """All objects of the archive there, by their names; one that is there is no empty bucket."""
    if not (there := place.listing(ARCHIVE)):
        raise LoadstoneError(f"{place.name} holds no archive: push one, or correct `storage.to`")
    return there


class _Pull:
    def __init__(
        self, archive: Path, tables: Path, place: Store, there: Mapping[str, ObjectInfo], log: Log, *, dry: bool = False
    ) -> None:
        self.root, self.tables, self.place, self.dry = archive, tables, place, dry
        self.tally = TransferLog(log)
        self.there: dict[str, ObjectInfo] = {}
        strange = []
        for name, held in there.items():
            if (path := names.archive_path(name)) is None:
                strange.append(name)
            else:
                self.there[path] = held
        if strange:
            shown = ", ".join(map(text, sorted(strange)[:_SHOWN])) + (", ..." if len(strange) > _SHOWN else "")
            self.tally.notice(f"{counted(len(strange), 'object')} belong to no campaign and are not pulled: {shown}")

    def all(self) -> None:
        """Campaign after campaign, what lies above them first."""
        for group, paths in names.groups(self.there).items():
            _CampaignPull(self, group).pull(names.units(paths))


class _CampaignPull:
    def __init__(self, pull: _Pull, group: Group) -> None:
        self._pull, self._place, self._tally, self._there = pull, pull.place, pull.tally, pull.there
        self._compared = ComparedFiles(pull.tables, pull.place.address, group)
        self._incomplete: set[str] = set()  # cells of which a run was not taken
        self._prefix = "/".join(group)
        self._final = self._base = pull.root.joinpath(*group)
        if group and not os.path.lexists(self._final):
            self._base = self._final.with_name(f".{group[-1]}.pull")

    def pull(self, units: list[TransferUnit]) -> None:
        """Bring what is not here; a new campaign appears at the end."""
        is_closed = any(unit.stage == MARKS for unit in units)
        try:
            for stage in (MARKS, RESULTS, PLAN):
                each(self._take, [unit for unit in units if unit.stage == stage and self._is_due(unit, is_closed)])
            if self._base != self._final and any(path.is_file() for path in self._base.rglob("*")):
                sync(self._base)
                self._base.rename(self._final)
                sync(self._final.parent)
        finally:
            if not self._pull.dry:
                self._compared.save()

    def _is_due(self, unit: TransferUnit, is_closed: bool) -> bool:
        """Not when all of it is here as it was compared before; and no plan by which a run would be asked for again."""
        if unit.stage == PLAN and not is_closed and unit.folder in self._incomplete:
            return False
        for path in unit.paths:
            try:
                if not self._compared.is_same(path, self._at(path).stat(), self._there[path]):
                    return True
            except OSError:
                return True
        self._tally.was_there(len(unit.paths))
        return False

    def _take(self, unit: TransferUnit) -> None:
        missing = [path for path in unit.paths if not os.path.lexists(self._at(path))]
        for path in unit.paths:
            if path not in missing and not self._is_same(path):
                self._leave(unit, f"{text(path)} differs from the object in the bucket; the file here was kept")
                return
        self._tally.was_there(len(unit.paths) - len(missing))
        if self._pull.dry:
            for path in missing:
                self._tally.moved(self._there[path].size)
        else:
            shutil.rmtree(self._staging(unit), ignore_errors=True)  # of one that was killed
            if missing:
                self._fetch(unit, missing)

    def _is_same(self, path: str) -> bool:
        file, held = self._at(path), self._there[path]
        status = file.stat()
        if self._compared.is_same(path, status, held):
            return True
        if status.st_size != held.size or not self._place.is_same(self._object(path), file):
            return False
        self._compared.note(path, status, held)
        return True

    def _fetch(self, unit: TransferUnit, missing: list[str]) -> None:
        folder = self._at(unit.paths[0]).parent
        if unit.run is not None and (folder / f".{unit.run}.part").exists():
            self._tally.notice(f"{text(unit.name)} is being collected here and was not pulled")
            return
        staging = self._staging(unit)
        staging.mkdir(parents=True)
        try:
            if self._is_valid(unit, missing, staging):
                self._appear(missing, staging)
                sync(folder)
        except store.DamagedError:
            self._leave(unit, f"{text(unit.name)} is damaged in the bucket, as the storage itself reports")
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _staging(self, unit: TransferUnit) -> Path:
        first = self._at(unit.paths[0])
        return first.with_name(f".{unit.run or first.name}.pull")

    def _is_valid(self, unit: TransferUnit, missing: Collection[str], staging: Path) -> bool:
        """Fetch what is missing; whether all of it is what the run's checksums say."""
        sums: dict[str, str] = {}
        for path in missing if unit.sums is None else (unit.sums, *(path for path in missing if path != unit.sums)):
            file = staging / path.rpartition("/")[2]
            if path in missing:
                self._copy(path, file)
            if path == unit.sums:
                try:
                    sums = self._sums(unit, file if path in missing else self._at(path))
                except ValueError:
                    self._leave(unit, f"{text(path)} is damaged in the bucket: it does not hold checksums")
                    return False
                if absent := sorted(
                    named for named in sums if named not in unit.paths and not self._at(named).exists()
                ):
                    self._report_missing(unit, absent)
                    return False
            elif path in sums and sha256_of(file) != sums[path]:
                self._leave(
                    unit,
                    f"{text(path)} is damaged in the bucket: it does not match its checksum in {text(unit.sums or '')}",
                )
                return False
        return True

    def _sums(self, unit: TransferUnit, file: Path) -> dict[str, str]:
        if file.stat().st_size > _LARGEST_SUMS_BYTES:
            raise ValueError(file)
        return names.checksums(file.read_bytes(), unit)

    def _report_missing(self, unit: TransferUnit, absent: list[str]) -> None:
        """A push brings main results last; without them it has not ended."""
        if any(map(names.is_main, absent)) or not any(map(names.is_main, unit.paths)):
            self._incomplete.add(unit.folder)
            self._tally.notice(f"{text(unit.name)} is incomplete in the bucket: its push has not ended")
        else:
            self._leave(unit, f"{text(unit.name)} is damaged in the bucket: {text(absent[0])} is missing")

    def _copy(self, path: str, file: Path) -> None:
        with file.open("xb") as target:
            for chunk in self._place.fetch(self._object(path)):
                target.write(chunk)
        sync(file)
        if file.stat().st_size != self._there[path].size:
            raise OSError(f"{text(path)} was replaced in the bucket while it was fetched")

    def _appear(self, missing: list[str], staging: Path) -> None:
        """In the order of `TransferUnit`: main results last. What has taken a name meanwhile stays."""
        for path in missing:
            final = self._at(path)
            try:
                give_name(staging / final.name, final)
            except FileExistsError:
                self._tally.problem(f"{text(path)} appeared here during the pull and was kept")
                return
            self._compared.note(path, final.stat(), self._there[path])
            self._tally.moved(self._there[path].size)

    def _leave(self, unit: TransferUnit, why: str) -> None:
        self._incomplete.add(unit.folder)
        self._tally.problem(why)

    def _at(self, path: str) -> Path:
        return self._base / path.removeprefix(f"{self._prefix}/") if self._prefix else self._base / path

    @staticmethod
    def _object(path: str) -> str:
        return f"{ARCHIVE}/{names.object_name(path)}"
