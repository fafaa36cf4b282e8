"""Extensions of a campaign: further runs, variants or rates that were planned after it was complete.

Each is one file of the campaign, ``extension.<n>.json``, written once: part n + 1 of the campaign, which is complete
with ``completion_time.<n + 1>.txt``. What was there before stays as it is, so that copies only ever gain files;
`metadata.read_cell` merges the plans.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from loadstone.archive import COMPLETIONS, EXTENSION, METADATA, Campaign, Cell, leads_out, parse_rate
from loadstone.archive.durable import open_raw

_VARIANT = re.compile(r"[^/\0._][^/\0]*")
_MOST_RUNS = 1_000_000
_LARGEST_BYTES = 16 << 20

Place = tuple[str, str]  # rate and variant of a cell, as its folders are named


class FurtherRuns(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The further runs of a cell: number of the first, positions of all; `metadata` are those of a new cell."""

    rate: str
    variant: str
    first_run: int
    positions: list[int]
    metadata: dict[str, Any] | None = None

    @property
    def place(self) -> Place:
        return self.rate, self.variant


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """One extension, with the keys of its file; `declaration` is the digest of the sweep that planned it.

    `differences` say what was not as in the first part (``sweep.extend: anyway``), `identities` are the variants'
    digests then, made with the names in `redact`.
    """

    number: int = 0
    time: str
    loadstone: str
    declaration: str
    tools: dict[str, str] = {}
    identities: dict[str, str] = {}
    redact: dict[str, list[str]] = {}
    differences: list[str] = []
    cells: list[FurtherRuns]

    @property
    def name(self) -> str:
        return f"extension.{self.number}.json"

    def runs_of(self, place: Place) -> FurtherRuns | None:
        """The further runs of a cell, if there are any."""
        return next((each for each in self.cells if each.place == place), None)

    def encoded(self) -> bytes:
        """As JSON."""
        return (json.dumps(msgspec.to_builtins(self), indent=2) + "\n").encode()


def read(campaign: Campaign) -> list[Extension]:
    """The extensions of a campaign in their order; one that can't be read, or leads out of the archive, is missing."""
    found = []
    for name in _names(campaign):
        path = campaign.path / name
        if path.is_symlink() and leads_out(path, campaign.root):
            continue
        try:
            status = path.stat()
            found.append(_read(path, status.st_size, status.st_mtime_ns))
        except (OSError, ValueError, RecursionError):
            continue
    return found


def unreadable(campaign: Campaign) -> list[str]:
    """The names of a campaign's extensions that can't be read."""
    known = {each.name for each in read(campaign)}
    return [name for name in _names(campaign) if name not in known]


def problems(campaign: Campaign) -> list[tuple[str, str]]:
    """Names of extensions that can't be read or are missing, and what is wrong with each."""
    found = [(name, "can't be read") for name in unreadable(campaign)]
    known = {_number(name) for name in _names(campaign)}
    completed = [path.name for path in campaign.path.glob("completion_time.*.txt")]
    parts = [_number(name) for name in completed if COMPLETIONS.fullmatch(name)]
    expected = range(1, max([0, *known, *(part - 1 for part in parts)]) + 1)
    return found + [(f"extension.{number}.json", "is missing") for number in expected if number not in known]


def fingerprint(cell: Cell) -> str:
    """Changes when an extension of the campaign plans further runs of a cell; empty when none does."""
    plans = [
        (part.number, runs.first_run, runs.positions, part.identities.get(cell.variant_dir))
        for part in read(cell.campaign)
        if (runs := part.runs_of((cell.rate, cell.variant_dir)))
    ]
    return hashlib.sha256(repr(plans).encode()).hexdigest()[:16] if plans else ""


def unwritten(campaign: Campaign) -> list[tuple[Cell, Mapping[str, Any]]]:
    """New cells of the newest extension that have no folder yet, with their metadata: it was interrupted."""
    newest = read(campaign)[-1:]
    new = [(Cell(campaign, *runs.place), runs.metadata) for each in newest for runs in each.cells if runs.metadata]
    return [(cell, content) for cell, content in new if not (cell.path / METADATA).exists()]


def _number(name: str) -> int:
    """The number in a file's name."""
    return int(name.split(".")[1])


def _names(campaign: Campaign) -> list[str]:
    try:
        names = [entry.name for entry in os.scandir(campaign.path) if EXTENSION.fullmatch(entry.name)]
    except OSError:
        return []
    return sorted(names, key=_number)


@lru_cache(maxsize=100)
def _read(path: Path, size: int, _mtime_ns: int) -> Extension:
    if size > _LARGEST_BYTES:
        raise ValueError(f"is larger than {_LARGEST_BYTES >> 20} MiB")
    with open_raw(path) as file:
        found = msgspec.json.decode(file.read(), type=Extension)
    if sum(len(cell.positions) for cell in found.cells) > _MOST_RUNS:
        raise ValueError("has too many runs")
    if not all(parse_rate(cell.rate) and _VARIANT.fullmatch(cell.variant) for cell in found.cells):
        raise ValueError("names a folder outside the campaign")
    return msgspec.structs.replace(found, number=_number(path.name))
