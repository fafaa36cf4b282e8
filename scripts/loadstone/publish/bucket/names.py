"""Which files of an archive a bucket keeps, under which names, and in which order they are transferred."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from loadstone import archive
from loadstone.archive import MAIN_STREAM, decode, encode, parse_rate, trace_dumps
from loadstone.archive.staging import read_checksums
from loadstone.importing.plan import IMPORTED

Group = tuple[str, ...]  # app, host and timestamp of a campaign; empty for files above all campaigns

# The stages of a transfer. Without its plan no run of a campaign is missing, so an incomplete copy never leads to runs
# being collected again.
RESULTS, PLAN, MARKS = "results", "plan", "marks"
_DOCUMENT = re.compile(r"[0-9a-f]{16}\.(?:csv|md)")


@dataclass(frozen=True)
class TransferUnit:
    """Files that are transferred together, in their order; paths relative to the archive.

    Those of a run begin with its checksums, which name the others, and end with its main results, which make it
    collected.
    """

    paths: tuple[str, ...]
    run: int | None = None

    @property
    def folder(self) -> str:
        return self.paths[0].rpartition("/")[0]

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.paths[0] if self.run is None else f"run {self.run} of {self.folder}"

    @property
    def stage(self) -> str:
        """`RESULTS`, `PLAN` or `MARKS`."""
        return _stage(self.paths[0].rpartition("/")[2])

    @property
    def sums(self) -> str | None:
        """The file with the checksums of a run, if there is one."""
        return self.paths[0] if self.paths[0].endswith(".sha256") else None


# A large archive has the same few names again and again.
_cached = lru_cache(1 << 16)
_parsed = _cached(archive.parse_name)
_encoded = _cached(encode)


def object_name(path: str) -> str:
    """The name of an archive's file in a bucket."""
    return "/".join(map(_encoded, path.split("/")))


def archive_path(name: str) -> str | None:
    """The file of an archive with this name in a bucket; None when there is none, so that no name leads elsewhere."""
    path = decode(name)
    return path if "\0" not in path and belongs(path) and object_name(path) == name else None


def belongs(path: str) -> bool:
    """Whether a file in an archive's folder is part of a campaign or a trace dump; a bucket keeps nothing else."""
    folder, _, name = path.rpartition("/")
    kind = _kind(folder)
    if kind == trace_dumps.FOLDER:
        return trace_dumps.is_dump(name)
    if kind == IMPORTED:
        return _DOCUMENT.fullmatch(name) is not None
    if kind == "cell":
        return name == archive.METADATA or _parsed(name) is not None
    return kind == "campaign" and name != archive.METADATA and _stage(name) != RESULTS


def _stage(name: str) -> str:
    if name == archive.ABANDONED or archive.COMPLETIONS.fullmatch(name):
        return MARKS
    return PLAN if name == archive.METADATA or archive.EXTENSION.fullmatch(name) else RESULTS


@_cached
def _kind(folder: str) -> str:
    """The kind of an archive's folder; empty when a bucket keeps nothing of it."""
    parts = folder.split("/")
    is_visible = all(part[:1] not in ("", "_", ".") for part in parts[:-1])
    if parts[-1] == trace_dumps.FOLDER:
        return trace_dumps.FOLDER if is_visible and len(parts) <= 4 else ""
    if parts[-1] == IMPORTED:
        return IMPORTED if is_visible and len(parts) == 4 else ""
    if not is_visible or parts[-1][:1] in ("", "_", "."):
        return ""
    if len(parts) == 3:
        return "campaign"
    return "cell" if len(parts) == 5 and parse_rate(parts[3]) is not None else ""


def groups(paths: Iterable[str]) -> dict[Group, list[str]]:
    """The files of each campaign, sorted by name."""
    found: dict[Group, list[str]] = {}
    for path in paths:
        parts = tuple(path.split("/"))
        of_campaign = len(parts) > 3 and trace_dumps.FOLDER not in parts[:3]
        found.setdefault(parts[:3] if of_campaign else (), []).append(path)
    return dict(sorted(found.items()))


def units(paths: Iterable[str]) -> list[TransferUnit]:
    """The files of one campaign, grouped by run; any other file is a unit of its own."""
    found: dict[tuple[str, int | None], list[str]] = {}
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        raw = _parsed(name) if path.count("/") == 5 else None
        key = (path, None) if raw is None or raw.kind == "failure" else (folder, raw.run)
        found.setdefault(key, []).append(path)
    return [
        TransferUnit(tuple(sorted(files, key=lambda path: (is_main(path), not path.endswith(".sha256")))), run)
        for (_, run), files in found.items()
    ]


def is_closed(paths: Iterable[str]) -> bool:
    """Whether a campaign with these files is complete, every part of it, or was given up."""
    found = [path.rpartition("/")[2] for path in paths]
    completed, extensions = (
        sum(pattern.fullmatch(name) is not None for name in found)
        for pattern in (archive.COMPLETIONS, archive.EXTENSION)
    )
    return archive.ABANDONED in found or completed > extensions


def is_main(path: str) -> bool:
    """Whether a run's file is what makes it collected."""
    raw = _parsed(path.rpartition("/")[2])
    return raw is not None and (raw.kind, raw.stream) == ("results", MAIN_STREAM)


def checksums(file: Path, unit: TransferUnit) -> dict[str, str]:
    """Path -> SHA-256 by the checksums of a run. Raises ValueError when they are not of the run's own files."""
    found = {}
    for line in read_checksums(file):
        raw = _parsed(line[0]) if line else None
        if line is None or raw is None or raw.run != unit.run:
            raise ValueError(line)
        found[f"{unit.folder}/{line[0]}"] = line[1]
    return found
