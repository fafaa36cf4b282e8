"""Which files of an archive a bucket keeps, under which names, and what goes before what."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from loadstone import archive
from loadstone.archive import MAIN_STREAM, RawFile, decode, encode, parse_rate, trace_dumps
from loadstone.archive.staging import read_checksums
from loadstone.importing.plan import IMPORTED

Group = tuple[str, ...]  # app, host and timestamp of a campaign; empty for what lies above

# What goes before what. Without its plan nothing of a campaign can be missing, so none of it is ever collected again
# from a copy that is not whole.
RESULTS, PLAN, MARKS = "results", "plan", "marks"
_DOCUMENT = re.compile(r"[0-9a-f]{16}\.(?:csv|md)")


@dataclass(frozen=True)
class TransferUnit:
    """Files that go together, in the order in which they go; paths relative to the archive.

    Those of a run begin with its checksums, which name the others, and end with its main results, which make it one.
    """

    paths: tuple[str, ...]
    run: int | None = None

    @property
    def folder(self) -> str:
        return self.paths[0].rpartition("/")[0]

    @property
    def name(self) -> str:
        """As messages call it."""
        return self.paths[0] if self.run is None else f"run {self.run} of {self.folder}"

    @property
    def stage(self) -> str:
        """Which of `RESULTS`, `PLAN` and `MARKS` it belongs to."""
        last = self.paths[0].rpartition("/")[2]
        if last == archive.METADATA:
            return PLAN
        return MARKS if last in (archive.COMPLETION, archive.ABANDONED) else RESULTS

    @property
    def sums(self) -> str | None:
        """The file with the checksums of a run, if there is one."""
        return next((path for path in self.paths[:1] if path.endswith(".sha256")), None)


# A large archive has the same few names again and again.
_cached = lru_cache(1 << 16)
_parsed = _cached(archive.parse_name)
_encoded = _cached(encode)


def object_name(path: str) -> str:
    """What an archive's file is called in a bucket."""
    return "/".join(map(_encoded, path.split("/")))


def archive_path(name: str) -> str | None:
    """The file of an archive that an object is; None when it is none, whatever its name would like to be."""
    path = decode(name)
    return path if "\0" not in path and belongs(path) and object_name(path) == name else None


def belongs(path: str) -> bool:
    """Whether a file of an archive's folder is part of a campaign or a trace dump; nothing else is kept."""
    folder, _, name = path.rpartition("/")
    kind = _kind(folder)
    if kind == trace_dumps.FOLDER:
        return trace_dumps.is_dump(name)
    if kind == IMPORTED:
        return _DOCUMENT.fullmatch(name) is not None
    if kind == "cell":
        return name == archive.METADATA or _parsed(name) is not None
    return kind == "campaign" and name in (archive.COMPLETION, archive.ABANDONED)


@_cached
def _kind(folder: str) -> str:
    """What lies in a folder of an archive; empty when nothing that is kept."""
    parts = folder.split("/")
    is_ours = all(part[:1] not in ("", "_", ".") for part in parts[:-1])
    if parts[-1] == trace_dumps.FOLDER:
        return trace_dumps.FOLDER if is_ours and len(parts) <= 4 else ""
    if parts[-1] == IMPORTED:
        return IMPORTED if is_ours and len(parts) == 4 else ""
    if not is_ours or parts[-1][:1] in ("", "_", "."):
        return ""
    if len(parts) == 3:
        return "campaign"
    return "cell" if len(parts) == 5 and parse_rate(parts[3]) is not None else ""


def groups(paths: Iterable[str]) -> dict[Group, list[str]]:
    """The files of each campaign, the oldest name first."""
    found: dict[Group, list[str]] = {}
    for path in paths:
        parts = tuple(path.split("/"))
        of_campaign = len(parts) > 3 and trace_dumps.FOLDER not in parts[:3]
        found.setdefault(parts[:3] if of_campaign else (), []).append(path)
    return dict(sorted(found.items()))


def units(paths: Iterable[str]) -> list[TransferUnit]:
    """The files of one campaign by what goes together, in order."""
    runs: dict[tuple[str, int], list[str]] = {}
    single = []
    for path in sorted(paths):
        raw = _parsed(path.rpartition("/")[2]) if path.count("/") == 5 else None
        if raw is None or raw.kind == "failure":
            single.append(TransferUnit((path,)))
        else:
            runs.setdefault((path.rpartition("/")[0], raw.run), []).append(path)
    whole = [TransferUnit(tuple(sorted(found, key=_rank)), run) for (_, run), found in sorted(runs.items())]
    return [*whole, *single]


def _rank(path: str) -> int:
    raw = _raw(path)
    if raw.kind == "sha256":
        return 0
    return 2 if is_main(path) else 1


def is_main(path: str) -> bool:
    """Whether a run's file is what makes it collected."""
    raw = _raw(path)
    return (raw.kind, raw.stream) == ("results", MAIN_STREAM)


def _raw(path: str) -> RawFile:
    raw = _parsed(path.rpartition("/")[2])
    assert raw is not None
    return raw


def checksums(file: Path, unit: TransferUnit) -> dict[str, str]:
    """What a run's checksums say: path -> SHA-256. Raises ValueError when that is not about the run's own files."""
    found = {}
    for line in read_checksums(file):
        raw = _parsed(line[0]) if line else None
        if line is None or raw is None or raw.run != unit.run:
            raise ValueError(line)
        found[f"{unit.folder}/{line[0]}"] = line[1]
    return found
