"""Extensions of a campaign: further runs, variants or rates that were planned after it was complete.

Each is one file of the campaign, ``extension.<n>.json``, written once: part n + 1 of the campaign, which is complete
with ``completion_time.<n + 1>.txt``. What was there before stays as it is, so that copies only ever gain files;
`metadata.read_cell` merges the plans.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from loadstone.archive import COMPLETIONS, EXTENSION, METADATA, Campaign, Cell, parse_rate
from loadstone.archive.durable import open_raw

_VARIANT = re.compile(r"[^/\0._][^/\0]*")
_MOST_RUNS = 1_000_000
_LARGEST_BYTES = 16 << 20

Place = tuple[str, str]  # rate and variant of a cell, as its folders are named


@dataclass(frozen=True)
class Extension:
    """One extension; `declaration` is the digest of the sweep that planned it.

    `positions` are those of a cell's further runs, by `Place`, `first_runs` the number of the first.

    `differences` say what was not as in the first part (``sweep.extend: anyway``), `identities` are the variants'
    digests then. `metadata` are those of new cells.
    """

    number: int
    time: str
    loadstone: str
    declaration: str
    first_runs: Mapping[Place, int]
    positions: Mapping[Place, Sequence[int]]
    identities: Mapping[str, str] = field(default_factory=dict)
    differences: Sequence[str] = ()
    tools: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[Place, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"extension.{self.number}.json"

    def encoded(self) -> bytes:
        """As JSON."""
        cells = []
        for place, positions in self.positions.items():
            cell: dict[str, Any] = {"rate": place[0], "variant": place[1], "firstRun": self.first_runs[place]}
            cell["positions"] = list(positions)
            cells.append(cell | ({"metadata": self.metadata[place]} if place in self.metadata else {}))
        content = {
            "number": self.number,
            "time": self.time,
            "loadstone": self.loadstone,
            "declaration": self.declaration,
            "tools": dict(self.tools),
            "identities": dict(self.identities),
            "differences": list(self.differences),
            "cells": cells,
        }
        return (json.dumps(content, indent=2) + "\n").encode()


def read(campaign: Campaign) -> list[Extension]:
    """The extensions of a campaign in their order; one that can't be read is missing."""
    found = []
    for name in _names(campaign):
        path = campaign.path / name
        try:
            status = path.stat()
            found.append(_read(path, status.st_size, status.st_mtime_ns))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
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
    place = cell.rate, cell.variant_dir
    plans = [
        (part.number, part.first_runs[place], part.positions[place], part.identities.get(cell.variant_dir))
        for part in read(cell.campaign)
        if place in part.positions
    ]
    return hashlib.sha256(repr(plans).encode()).hexdigest()[:16] if plans else ""


def unwritten(campaign: Campaign) -> list[tuple[Cell, Mapping[str, Any]]]:
    """New cells of the newest extension that have no folder yet, with their metadata: it was interrupted."""
    newest = read(campaign)[-1:]
    cells = [(Cell(campaign, *place), content) for each in newest for place, content in each.metadata.items()]
    return [(cell, content) for cell, content in cells if not (cell.path / METADATA).exists()]


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
        raise ValueError(f"has more than {_LARGEST_BYTES >> 20} MiB")
    with open_raw(path) as file:
        content = json.loads(file.read())
    json.dumps(content, ensure_ascii=False).encode()  # half a character can't be in a table
    cells = {(str(cell["rate"]), str(cell["variant"])): cell for cell in content["cells"]}
    if sum(len(cell["positions"]) for cell in cells.values()) > _MOST_RUNS:
        raise ValueError("has too many runs")
    if not all(parse_rate(rate) and _VARIANT.fullmatch(variant) for rate, variant in cells):
        raise ValueError("names a folder outside the campaign")
    return Extension(
        number=_number(path.name),
        time=str(content["time"]),
        loadstone=str(content["loadstone"]),
        declaration=str(content["declaration"]),
        first_runs={place: int(cell["firstRun"]) for place, cell in cells.items()},
        positions={place: [int(position) for position in cell["positions"]] for place, cell in cells.items()},
        identities={str(name): str(digest) for name, digest in content.get("identities", {}).items()},
        differences=[str(text) for text in content.get("differences", ())],
        tools={str(name): str(version) for name, version in content.get("tools", {}).items()},
        metadata={place: cell["metadata"] for place, cell in cells.items() if "metadata" in cell},
    )
