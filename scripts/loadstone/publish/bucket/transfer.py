"""Push and pull transfer what is missing on the other side; no result on either side is ever replaced.

`push`: of a campaign all runs go first, then its plans, then the marks that close it; of a run its main results go
last. So a killed push leaves nothing that looks more complete than it is, and the next one continues.

`pull`: a campaign that is not here is built in a hidden folder next to its place and appears by one rename. Each run is
downloaded into a hidden folder of its own, compared with its checksums, and given its names, main results last. Marks
come before the runs and plans after them, so that an incomplete copy asks for no attack. `pull` is a command of its
own: the graph of any other target is older than what it downloads.
"""

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from loadstone.archive import LEADS_OUT, encode, leads_out, locks
from loadstone.archive.durable import give_name, replace, sha256_of, sync
from loadstone.errors import LoadstoneError
from loadstone.publish import s3
from loadstone.publish.bucket import names
from loadstone.publish.bucket.names import MARKS, PLAN, RESULTS, Group, TransferUnit
from loadstone.publish.bundle import table_files
from loadstone.publish.s3 import DamagedError, Store, each
from loadstone.tables import verify
from loadstone.tables.layout import prepare_folder, text
from loadstone.text import counted, megabytes

if TYPE_CHECKING:
    from pyarrow import fs

ARCHIVE, TABLES = "archive", "tables"
_LOCK = ".pull.lock"
_COMPARED = ".stored"
_ABOVE = ("above",)
_SHOWN = 20  # names in a preview
_PROGRESS_EVERY_S = 10.0

Log = Callable[[str], None]


def push(archive: Path, tables: Path, declared: Mapping[str, Any] | None, log: Log) -> None:
    """Push to the bucket what is missing there.

    A file that differs from its object is named, its run or campaign stays as it is there, and everything else is
    pushed. Then LoadstoneError is raised, as for any other error.
    """
    with s3.opened(declared) as bucket, bucket.writing():
        transfer = _Transfer(archive, tables, bucket, log)
        _push(transfer, declared)
        transfer.end(
            "there",
            "all others are there, and its tables are unchanged. Objects in a bucket are never replaced: if the file "
            "here is right, remove the object there",
        )


def pull(archive: Path, tables: Path, declared: Mapping[str, Any] | None, log: Log) -> None:
    """Pull into the archive what is missing.

    Which files were compared is recorded below `tables`. An object that differs from its file here, or does not match
    the checksums of its run, is named, its run is skipped, and everything else is pulled. Then LoadstoneError is
    raised, as for any other error.
    """
    with s3.opened(declared) as bucket:
        there = _listing(bucket)
        lock = locks.hold("pull", archive / _LOCK)
        transfer = _Transfer(archive, tables, bucket, log)
        try:
            _pull(transfer, there)
        finally:
            (archive / _LOCK).unlink()
            os.close(lock)
        transfer.end("here", "all others are here, and nothing here was replaced")


def preview(command: str, archive: Path, tables: Path, declared: Mapping[str, Any] | None) -> list[str]:
    """What `push` or `pull` would do now, for people; changes nothing. Raises LoadstoneError."""
    with s3.opened(declared) as bucket:
        transfer = _Transfer(archive, tables, bucket, lambda _: None, dry_run=True)
        if command == "push":
            _push(transfer, declared)
        else:
            _pull(transfer, _listing(bucket))
        return transfer.lines()


def _push(transfer: "_Transfer", declared: Mapping[str, Any] | None) -> None:
    links: list[str] = []
    found = list(verify.files(transfer.archive, links)) if transfer.archive.is_dir() else []
    here = list(filter(names.belongs, found))
    transfer.problems += [f"{text(path)} {LEADS_OUT}" for path in links]
    if others := len(found) - len(here):
        transfer.notices.append(
            f"{counted(others, 'file')} in the archive's folder belong to no campaign and are not pushed"
        )
    there, _ = _by_path(transfer.bucket.listing(ARCHIVE))
    for group, paths in names.groups(here).items():
        _CampaignPush(transfer, group, there).push(names.units(paths))
    if not (declared or {}).get("tables", True) or transfer.problems:
        return
    if there.keys() - set(here):
        transfer.notices.append(
            f"{transfer.bucket.name} holds runs that are missing here, so its tables are left unchanged: pull, then "
            "push"
        )
    else:
        _push_tables(transfer)


def _push_tables(transfer: "_Transfer") -> None:
    """Make the tables there the same as those here."""
    here = {path.relative_to(transfer.tables).as_posix(): path for path in table_files(transfer.tables)}
    there = transfer.bucket.listing(TABLES)
    compared = ComparedFiles(transfer.tables, transfer.bucket, (TABLES,))

    def push_file(name: str) -> None:
        is_there = name in there and compared.is_same(f"{TABLES}/{name}", here[name], there[name])
        if is_there:
            transfer.was_there()
        else:
            transfer.send(f"{TABLES}/{name}", here[name], compared)

    each(push_file, sorted(here))
    gone = [f"{TABLES}/{name}" for name in there.keys() - here.keys() if name.endswith(".parquet")]
    if not transfer.dry_run:
        each(transfer.bucket.remove, gone)
        compared.save()
    if gone:
        transfer.removed = len(gone)
        transfer.notices.append(f"{counted(len(gone), 'table file')} removed that no longer exist here")


def _pull(transfer: "_Transfer", there: "Mapping[str, fs.FileInfo]") -> None:
    """Campaign after campaign; files above all campaigns come first."""
    known, strange = _by_path(there)
    if strange:
        transfer.notices.append(f"{counted(strange, 'object')} belong to no campaign and are not pulled")
    for group, paths in names.groups(known).items():
        _CampaignPull(transfer, group, known).pull(names.units(paths))


def _listing(bucket: Store) -> "dict[str, fs.FileInfo]":
    """All objects of the archive there, by their names. Raises LoadstoneError when there is none."""
    if not (there := bucket.listing(ARCHIVE)):
        raise LoadstoneError(f"{bucket.name} holds no archive: push one, or correct `storage.to`")
    return there


def _by_path(objects: "Mapping[str, fs.FileInfo]") -> "tuple[dict[str, fs.FileInfo], int]":
    """Objects by their paths in an archive, and how many belong to none."""
    found = {path: info for name, info in objects.items() if (path := names.archive_path(name)) is not None}
    return found, len(objects) - len(found)


def _object(path: str) -> str:
    return f"{ARCHIVE}/{names.object_name(path)}"


class ComparedFiles:
    """Which files of a campaign (`group`: its folders) were compared with their objects, recorded below `tables`."""

    def __init__(self, tables: Path, bucket: Store, group: Group) -> None:
        *folders, name = map(encode, group or _ABOVE)
        self._tables, self._bucket = tables, bucket
        self._path = tables.joinpath(_COMPARED, *folders, f"{name}.json")
        self._found = self._read()
        self._is_new = False

    def _read(self) -> dict[str, list[int]]:
        try:
            content = json.loads(self._path.read_bytes())
            return dict(content["files"]) if content["where"] == self._bucket.address else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def is_same(self, name: str, file: Path, info: "fs.FileInfo") -> bool:
        """Whether a file and an object have the same content; they are read only if either has changed since."""
        status = file.stat()
        if self._found.get(name) == _identity(status, info):
            return True
        if status.st_size != info.size or not self._bucket.is_same(name, file):
            return False
        self.note(name, status, info)
        return True

    def note(self, name: str, status: os.stat_result, info: "fs.FileInfo") -> None:
        """Record that a file and an object have the same content."""
        self._found[name], self._is_new = _identity(status, info), True

    def save(self) -> None:
        """Once per campaign. If that fails, the files are compared again next time."""
        if self._is_new:
            content = {"where": self._bucket.address, "files": self._found}
            with suppress(OSError, LoadstoneError):
                prepare_folder(self._tables, self._path.parent)
                replace(self._path, json.dumps(content).encode("utf-8", "surrogateescape"))


def _identity(status: os.stat_result, info: "fs.FileInfo") -> list[int]:
    return [status.st_size, status.st_mtime_ns, info.size, (info.mtime_ns or 0) // 1_000_000_000]


@dataclass
class _Transfer:
    """One push or pull, by several threads. `problems` make it fail at its end, `notices` do not."""

    archive: Path
    tables: Path
    bucket: Store
    log: Log
    dry_run: bool = False
    sent: list[str] = field(default_factory=list)
    bytes: int = 0
    same: int = 0
    removed: int = 0
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    _reported: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, name: str, file: Path, compared: ComparedFiles) -> None:
        """Write one object."""
        status = file.stat()
        if not self.dry_run:
            compared.note(name, status, self.bucket.put(name, file))
        self.moved(name, status.st_size)

    def moved(self, name: str, size: int) -> None:
        """Count a transferred file."""
        with self._lock:
            self.sent.append(name)
            self.bytes += size
            if time.monotonic() - self._reported > _PROGRESS_EVERY_S:
                self._reported = time.monotonic()
                self.log(f"so far {self._amount()}")

    def was_there(self, number: int = 1) -> None:
        """Count files that were on both sides."""
        with self._lock:
            self.same += number

    def end(self, where: str, state: str) -> None:
        """Log what was done. Raises LoadstoneError when there were problems."""
        for line in (*self.notices, *self.problems):
            self.log(line)
        if self.sent or self.removed or self.problems:
            self.log(f"{self.bucket.name}: {self._amount()} transferred, {counted(self.same, 'file')} already {where}")
        else:
            self.log(f"{self.bucket.name}: all {counted(self.same, 'file')} already {where}: nothing was transferred")
        if self.problems:
            raise LoadstoneError(
                f"{counted(len(self.problems), 'part')} of the archive could not be transferred (named above); " + state
            )

    def lines(self) -> list[str]:
        """What would be done, after a dry run."""
        more = [f"    and {len(self.sent) - _SHOWN:,} more"] if len(self.sent) > _SHOWN else []
        shown = [f"    {text(name)}" for name in self.sent[:_SHOWN]]
        messages = [f"  {line}" for line in (*self.notices, *self.problems)]
        return [self.bucket.name, f"  transferred: {self._amount()}", *shown, *more, *messages]

    def _amount(self) -> str:
        return f"{counted(len(self.sent), 'file')} ({megabytes(self.bytes)})"


class _IncompleteError(DamagedError):
    """A run has no main results yet."""


class _Campaign:
    """One campaign, or the files above all campaigns, on both sides; `there` are the objects by their files' paths."""

    def __init__(self, transfer: _Transfer, group: Group, there: "Mapping[str, fs.FileInfo]") -> None:
        self._transfer, self._there = transfer, there
        self._compared = ComparedFiles(transfer.tables, transfer.bucket, group)

    def _at(self, path: str) -> Path:
        return self._transfer.archive / path

    def _is_same(self, path: str) -> bool:
        return self._compared.is_same(_object(path), self._at(path), self._there[path])

    def _is_collecting(self, unit: TransferUnit) -> bool:
        """Whether a run is being collected: its files get their names one after another, out of a hidden folder."""
        return unit.run is not None and self._at(unit.paths[0]).with_name(f".{unit.run}.part").exists()

    def _check(self, unit: TransferUnit, at: Callable[[str], Path]) -> None:
        """Raises DamagedError unless the files of a run, which are `at` some place, match its checksums."""
        if unit.sums is None:
            return
        try:
            sums = names.checksums(at(unit.sums), unit)
        except ValueError:
            raise DamagedError(f"{text(unit.sums)} does not hold checksums") from None
        for path in sums:
            if not at(path).exists():
                is_begun = names.is_main(path) or not any(map(names.is_main, unit.paths))
                missing = f"{text(unit.sums)} lists {text(path.rpartition('/')[2])}, which is missing"
                raise (_IncompleteError if is_begun else DamagedError)(missing)
        for path, digest in sums.items():
            if sha256_of(at(path)) != digest:
                raise DamagedError(f"{text(path)} does not match its checksum in {text(unit.sums)}")

    def _save(self) -> None:
        if not self._transfer.dry_run:
            self._compared.save()


class _CampaignPush(_Campaign):
    def push(self, units: list[TransferUnit]) -> None:
        """Push stage after stage; a file that cannot be pushed holds back the stages after its own."""
        self._is_held_back = False
        try:
            for stage in (RESULTS, PLAN, MARKS):
                if not self._is_held_back:
                    each(self._push_unit, [unit for unit in units if unit.stage == stage])
        finally:
            self._save()

    def _push_unit(self, unit: TransferUnit) -> None:
        missing = [path for path in unit.paths if path not in self._there]
        try:
            why = self._refusal(unit, missing)
        except OSError as error:
            if error.errno is None:  # of the storage
                raise
            why = f"{text(error.filename or unit.name)} cannot be read: {error.strerror}"
        if why:
            self._is_held_back = True
            self._transfer.problems.append(f"{text(unit.name)} was not pushed: {why}" if missing else why)
        elif missing and self._is_collecting(unit):
            self._is_held_back = True
            self._transfer.notices.append(f"{text(unit.name)} was not pushed: it is still being collected")
        else:
            self._transfer.was_there(len(unit.paths) - len(missing))
            for path in missing:
                self._transfer.send(_object(path), self._at(path), self._compared)

    def _refusal(self, unit: TransferUnit, missing: list[str]) -> str:
        """Why nothing of a unit may be transferred; empty if it may."""
        for path in unit.paths:
            if not S_ISREG(self._at(path).stat().st_mode):  # reading a pipe would block forever
                return f"{text(path)} is not a regular file"
        for path in unit.paths:
            if path in self._there and not self._is_same(path):
                return f"{text(path)} differs from the object in the bucket"
        if missing and not self._is_collecting(unit):
            try:
                self._check(unit, self._at)
            except DamagedError as error:
                return str(error)
        return ""


class _CampaignPull(_Campaign):
    def __init__(self, transfer: _Transfer, group: Group, there: "Mapping[str, fs.FileInfo]") -> None:
        super().__init__(transfer, group, there)
        self._incomplete: set[str] = set()  # cells with a run that was not pulled
        self._depth = len(group)
        self._final = self._base = transfer.archive.joinpath(*group)
        if group and not os.path.lexists(self._final):
            self._base = self._final.with_name(f".{group[-1]}.pull")

    def _at(self, path: str) -> Path:
        return self._base.joinpath(*path.split("/")[self._depth :])

    def pull(self, units: list[TransferUnit]) -> None:
        """Pull what is not here; a new campaign appears at the end."""
        self._is_closed = names.is_closed([unit.name for unit in units])
        try:
            for stage in (MARKS, RESULTS, PLAN):
                each(self._pull_unit, [unit for unit in units if unit.stage == stage])
            if self._base != self._final and any(path.is_file() for path in self._base.rglob("*")):
                sync(self._base)
                self._base.rename(self._final)
                sync(self._final.parent)
        finally:
            self._save()

    def _pull_unit(self, unit: TransferUnit) -> None:
        planned = (f"{cell}/" for cell in self._incomplete if f"{cell}/".startswith(f"{unit.folder}/"))
        if unit.stage == PLAN and not self._is_closed and any(planned):
            return  # the missing run would be collected again
        for path in unit.paths:
            if leads_out(self._at(path), self._transfer.archive):
                self._skip(unit, f"{text(path)} was not pulled: it or a folder of it {LEADS_OUT}")
                return
        missing = [path for path in unit.paths if not os.path.lexists(self._at(path))]
        for path in unit.paths:
            if path not in missing and not self._is_same(path):
                self._skip(unit, f"{text(path)} differs from the object in the bucket; the file here was kept")
                return
        self._transfer.was_there(len(unit.paths) - len(missing))
        if self._transfer.dry_run:
            for path in missing:
                self._transfer.moved(_object(path), self._there[path].size)
        else:
            first = self._at(unit.paths[0])
            staging = first.with_name(f".{unit.run or first.name}.pull")
            shutil.rmtree(staging, ignore_errors=True)  # of a killed pull
            if missing and self._is_collecting(unit):
                self._transfer.notices.append(f"{text(unit.name)} is being collected here and was not pulled")
            elif missing:
                self._fetch(unit, missing, staging)

    def _fetch(self, unit: TransferUnit, missing: list[str], staging: Path) -> None:
        def at(path: str) -> Path:
            return staging / path.rpartition("/")[2] if path in missing else self._at(path)

        staging.mkdir(parents=True)
        try:
            for path in missing:
                self._copy(path, at(path))
            self._check(unit, at)
            self._give_names(missing, staging)
            sync(staging.parent)
        except _IncompleteError:
            self._incomplete.add(unit.folder)
            self._transfer.notices.append(f"{text(unit.name)} is incomplete in the bucket: its push has not ended")
        except DamagedError as error:
            self._skip(unit, f"{text(unit.name)} is damaged in the bucket: {error}")
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _copy(self, path: str, file: Path) -> None:
        with file.open("xb") as target:
            for chunk in self._transfer.bucket.fetch(_object(path)):
                target.write(chunk)
        sync(file)
        if file.stat().st_size != self._there[path].size:
            raise OSError(f"{text(path)} was replaced in the bucket during the transfer")

    def _give_names(self, missing: list[str], staging: Path) -> None:
        """Give files their names in their order, main results last. A file that appeared meanwhile stays."""
        for path in missing:
            final, info = self._at(path), self._there[path]
            try:
                give_name(staging / final.name, final)
            except FileExistsError:
                self._transfer.problems.append(f"{text(path)} appeared here during the pull and was kept")
                return
            self._compared.note(_object(path), final.stat(), info)
            self._transfer.moved(_object(path), info.size)

    def _skip(self, unit: TransferUnit, why: str) -> None:
        self._incomplete.add(unit.folder)
        self._transfer.problems.append(why)
