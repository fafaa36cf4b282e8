"""Checks that the archive is still what was collected: every file is hashed and compared with its recorded checksums.

Recorded are the checksums of a run (``<run>.sha256``, written when it was collected) and, for every file, the checksum
of when it was first seen. The archive is never written to, so the latter are below the tables, in one JSON file per
campaign and one for the files above the campaigns: ``<tables>/.checksums/<app>/<host>/<timestamp>.json``.
Removing such a file accepts the campaign as it is now. A verification that is interrupted is continued by the next one
within a day.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

import msgspec

from loadstone.archive import LEADS_OUT, Campaign, decode, encode, leads_out
from loadstone.archive.durable import replace
from loadstone.archive.staging import read_checksums
from loadstone.errors import LoadstoneError
from loadstone.tables.cell import load_records, sha256_or_none
from loadstone.tables.layout import prepare_folder, text
from loadstone.text import counted

RECORDS = ".checksums"
_ABOVE = "above"  # name of the record of files above the campaigns; records of campaigns are in folders
_UNFINISHED = "unfinished.json"
_CONTINUED_S = 24 * 3600
_LOG_EVERY_S = 10.0
_FAULTS = ("changed", "vanished", "unreadable")
_KINDS = (*_FAULTS, "appeared")
_SUMS = re.compile(r"([1-9][0-9]*)\.sha256")

Log = Callable[[str], None]
Group = tuple[str, ...]  # app, host and timestamp of a campaign; empty for the files above the campaigns


@dataclass
class Findings:
    """What a verification found, files by their path relative to the archive. `recorded`: seen for the first time."""

    changed: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    appeared: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    recorded: int = 0
    checked: int = 0
    checked_bytes: int = 0

    @property
    def is_intact(self) -> bool:
        """Whether all that was recorded is still there, with the same content."""
        return not (self.changed or self.vanished or self.unreadable)

    def lines(self, *, appeared: bool = True) -> Iterator[str]:
        """One line per file that is not as it was recorded; those that appeared are no faults, and can be left out."""
        for kind in _KINDS if appeared else _FAULTS:
            for what in getattr(self, kind):
                yield f"{kind}: {what}"

    def summary(self) -> str:
        """The counts in one sentence."""
        counts = ", ".join(f"{len(getattr(self, kind)):,} {kind}" for kind in _KINDS)
        recorded = f"; {counted(self.recorded, 'checksum')} recorded for later checks" if self.recorded else ""
        return f"{self.checked:,} files, {self.checked_bytes / 1e6:,.1f} MB: {counts}{recorded}"


def verify_archive(root: Path, tables: Path, log: Log) -> None:
    """`verify` as a command: raises LoadstoneError unless the archive is as it was."""
    found = verify(root, tables, log)
    log(found.summary())
    if not found.is_intact:
        raise LoadstoneError(
            f"the archive {root} differs from its recorded checksums; the files are named above. Restore them from a "
            f"copy. To accept a campaign as it is, remove its file below {tables / RECORDS}, and in the archive the "
            "`N.sha256` of the changed runs"
        )


def verify(root: Path, tables: Path, log: Log) -> Findings:
    """Hash every file of the archive and compare; what has no record yet gets one below `tables`.

    A link that leads out of the archive is unreadable.

    Raises LoadstoneError when the archive can't be listed or `tables` can't be written. Files and folders whose names
    begin with a dot are no part of the archive.
    """
    if not root.is_dir():
        raise LoadstoneError(f"the archive {root} is not a folder; there is nothing to verify")
    groups = _grouped(root)
    for group in _recorded_groups(tables):
        groups.setdefault(group, {})
    progress = tables / RECORDS / _UNFINISHED
    total, done = _continued(progress)
    if done:
        log(f"continuing an interrupted verification: {len(done)} of {len(groups)} campaigns are done")
    last_said = time.monotonic()
    for number, (group, files) in enumerate(sorted(groups.items()), 1):
        name = "/".join(group)
        if name in done:
            continue
        _Verifier(root, tables, group, files, found=total, log=log).verify()
        done.append(name)
        replace(progress, json.dumps({"done": done, "found": asdict(total)}).encode())
        if time.monotonic() - last_said > _LOG_EVERY_S:
            last_said = time.monotonic()
            log(f"{number} of {len(groups)} campaigns: {total.summary()}")
    progress.unlink(missing_ok=True)
    return total


def _continued(progress: Path) -> tuple[Findings, list[str]]:
    """What a verification of the last day found before it was interrupted, and in which campaigns."""
    try:
        if time.time() - progress.stat().st_mtime < _CONTINUED_S:
            content = json.loads(progress.read_bytes())
            return Findings(**content["found"]), content["done"]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # start again
    return Findings(), []


# --- the archive's files ----------------------------------------------------------------------------------------------


def _grouped(root: Path) -> dict[Group, dict[str, Path | None]]:
    """Every file, by campaign and then by its path within the archive; None for a link that leads out of it."""
    groups: dict[Group, dict[str, Path | None]] = {}
    links: list[str] = []
    found: dict[str, Path | None] = {path: root / path for path in files(root, links)}
    for path, file in (found | dict.fromkeys(links)).items():
        parts = PurePosixPath(path).parts
        is_campaigns = len(parts) > 3 and not any(part.startswith("_") for part in parts[:3])
        groups.setdefault(parts[:3] if is_campaigns else (), {})[path] = file
    return groups


def files(root: Path, links: list[str]) -> Iterator[str]:
    """Every file of an archive by its path within it; every folder is entered once.

    Links are followed, except for those that lead out of the archive: they are added to `links`.
    """
    refused: list[OSError] = []
    seen: set[Path] = set()
    for path, folders, names in os.walk(root, onerror=refused.append, followlinks=True):
        folder = Path(path)
        if folder.resolve() in seen:
            folders.clear()
            continue
        seen.add(folder.resolve())
        visible = {name: folder / name for name in sorted((*folders, *names)) if not name.startswith(".")}
        out = {name for name, file in visible.items() if file.is_symlink() and leads_out(file, root)}
        links += [visible[name].relative_to(root).as_posix() for name in out]
        folders[:] = sorted(visible.keys() & set(folders) - out)
        yield from (visible[name].relative_to(root).as_posix() for name in sorted(visible.keys() & set(names) - out))
    for error in refused:
        if Path(error.filename) == root:
            raise LoadstoneError(f"the archive {root} cannot be listed: {error.strerror}")
        yield Path(error.filename).relative_to(root).as_posix()  # shows up as a file that can't be read


# --- recorded checksums -----------------------------------------------------------------------------------------------


def _record_file(tables: Path, group: Group) -> Path:
    folder = tables / RECORDS
    return folder.joinpath(*map(encode, group[:-1])) / f"{encode(group[-1]) if group else _ABOVE}.json"


def _recorded_groups(tables: Path) -> Iterator[Group]:
    for path in (tables / RECORDS).glob("*/*/*.json"):
        yield tuple(map(decode, path.relative_to(tables / RECORDS).with_suffix("").parts))
    if _record_file(tables, ()).exists():
        yield ()


def _read(path: Path) -> dict[str, str] | None:
    """First-seen hashes by path; None where there is no record.

    Raises LoadstoneError for a damaged record, because ignoring it would hide what changed.
    """
    try:
        return msgspec.convert(json.loads(path.read_bytes())["files"], dict[str, str])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LoadstoneError(
            f"{path} cannot be read ({error}); it has the checksums of the archive's files from when they were first "
            "seen. Restore it, or remove it to record them again"
        ) from None


# --- one campaign -----------------------------------------------------------------------------------------------------


class _Verifier:
    """Adds what it finds in one campaign to `found`."""

    def __init__(
        self, root: Path, tables: Path, group: Group, files: Mapping[str, Path | None], *, found: Findings, log: Log
    ) -> None:
        self.found, self.log = found, log
        self.root, self.tables, self.group, self.files = root, tables, group, files
        self.record = _record_file(tables, group)
        self.is_first = not self.record.exists()
        self.known = self._known()

    def _known(self) -> dict[str, str]:
        """First-seen hashes by path. Before the first verification: what the tables were made from."""
        recorded = _read(self.record)
        if recorded is not None:
            return recorded
        if not self.group:
            return {}
        records = load_records(self.tables, Campaign(self.root, *self.group))
        return {
            "/".join([*self.group, *key, name]): source.sha256
            for key, record in records.items()
            for name, source in record.sources.items()
            if source.sha256 is not None
        }

    def verify(self) -> None:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            now = dict(zip(self.files, pool.map(_sha256, self.files.values()), strict=True))
        recorded = self._recorded_at_collection()
        for path in sorted({*now, *self.known, *recorded}):
            self._judge(path, now.get(path), recorded.get(path))
        prepare_folder(self.tables, self.record.parent)
        replace(self.record, json.dumps({"group": self.group, "files": self.known}, indent=0).encode())

    def _add(self, kind: str, what: str) -> None:
        getattr(self.found, kind).append(what)
        self.log(f"{kind}: {what}")

    def _judge(self, path: str, now: str | None, recorded: tuple[str, str] | None) -> None:
        known, shown = self.known.get(path), text(path)
        if now is None:
            if path in self.files and self.files[path] is None:
                self._add("unreadable", f"{shown} {LEADS_OUT}")
            elif os.path.lexists(self.root / path):
                self._add("unreadable", shown)
            elif not self._is_being_collected(path):
                self._add("vanished", shown)
            return
        self.found.checked += 1
        self.found.checked_bytes += self._size(path)
        if recorded is not None and recorded[0] != now:
            self._add("changed", f"{shown} (not what {text(recorded[1])} says)")
        elif known is not None and known != now:
            why = "and its checksum file with it: was the run replaced?" if recorded else "since it was first seen"
            self._add("changed", f"{shown} ({why})")
        elif known is None and self.is_first:
            self.found.recorded += 1
        elif known is None:
            self._add("appeared", shown)
        if known is None:
            self.known[path] = recorded[0] if recorded else now

    def _recorded_at_collection(self) -> dict[str, tuple[str, str]]:
        """Path -> (hash, name of the checksum file) for all files that a ``<run>.sha256`` names."""
        sums: dict[str, tuple[str, str]] = {}
        for path, file in self.files.items():
            if file is None or not _SUMS.fullmatch(file.name):
                continue
            try:
                found = [line for line in read_checksums(file) if line is not None]
            except OSError:
                continue  # named as unreadable when it is judged itself
            folder = PurePosixPath(path).parent
            for name, digest in found:
                if "/" not in name:
                    sums[str(folder / name)] = digest, file.name
        return sums

    def _is_being_collected(self, path: str) -> bool:
        """A run's files are linked one after another, its checksums before its results, out of a hidden folder."""
        place = self.root / path
        return (place.parent / f".{place.name.partition('.')[0]}.part").exists()

    def _size(self, path: str) -> int:
        try:
            return (self.root / path).stat().st_size
        except OSError:
            return 0


def _sha256(file: Path | None) -> str | None:
    return sha256_or_none(file) if file else None
