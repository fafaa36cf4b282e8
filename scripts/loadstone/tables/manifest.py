"""What a campaign's tables were made from: per cell its raw files by size, mtime and hash, and what they said.

Kept beside the tables, so that a cell is read again only when its content changed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadstone.archive import METADATA, Campaign, CellListing
from loadstone.archive.durable import replace, sha256_of
from loadstone.tables import VERSION
from loadstone.tables.layout import manifest_file, prepare_folder


@dataclass
class Source:
    """One raw file as it was when it was read; `sha256` of its bytes, None where it could not be read."""

    size: int
    mtime_ns: int
    sha256: str | None


@dataclass
class Problem:
    """One thing wrong in a cell. `run` is None when it concerns all of the cell; `fault`: it makes the data unfit."""

    run: int | None
    source: str
    problem: str
    fault: bool = False


@dataclass
class CellRecord:
    """What reading one cell gave besides its requests. Rows are dictionaries of the tables' own columns."""

    rate: str
    variant_dir: str
    variant: str
    sources: dict[str, Source] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)  # those of which the cell has a file of its own: its size
    runs: list[dict[str, Any]] = field(default_factory=list)
    summaries: list[dict[str, Any]] = field(default_factory=list)
    incidents: list[dict[str, Any]] = field(default_factory=list)
    planned: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str]:
        """The cell's folders: rate and variant."""
        return self.rate, self.variant_dir


def load(tables: Path, campaign: Campaign) -> dict[tuple[str, str], CellRecord]:
    """Records by rate and variant folder. Empty when there are none, or none of this version of the tables."""
    try:
        content = json.loads(manifest_file(tables, campaign).read_bytes())
        if content["version"] != VERSION:
            return {}
        return {record.key: record for record in map(_record, content["cells"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def save(tables: Path, campaign: Campaign, records: Mapping[tuple[str, str], CellRecord]) -> None:
    """Replace a campaign's manifest in one step."""
    path = manifest_file(tables, campaign)
    prepare_folder(tables, path.parent)
    content = {"version": VERSION, "cells": list(records.values())}
    replace(path, json.dumps(content, default=vars).encode())


def _record(content: dict[str, Any]) -> CellRecord:
    record = CellRecord(**content | {"tables": dict(content["tables"])})
    record.sources = {name: Source(**source) for name, source in content["sources"].items()}
    record.problems = [Problem(**problem) for problem in content["problems"]]
    return record


def present(listing: CellListing) -> dict[str, tuple[int, int]]:
    """Size and mtime of each file of a cell that counts, by name."""
    found = {file.name: (file.size, file.mtime_ns) for file in listing.files}
    return found if listing.metadata is None else found | {METADATA: listing.metadata}


def change(record: CellRecord, listing: CellListing) -> str:
    """Why a cell has to be read again, in words; empty when its content is what was read.

    A file with another mtime alone, or that could not be read, is hashed; when its content is the same, `record` takes
    the new mtime over.
    """
    now = present(listing)
    if new := sorted(now.keys() - record.sources.keys()):
        return f"new: {_some(new)}"
    if gone := sorted(record.sources.keys() - now.keys()):
        return f"gone: {_some(gone)}"
    changed = [name for name, (size, _) in now.items() if size != record.sources[name].size]
    for name, (_, mtime_ns) in now.items():
        source = record.sources[name]
        if name not in changed and (mtime_ns != source.mtime_ns or source.sha256 is None):
            if sha256(listing.cell.path / name) != source.sha256:
                changed.append(name)
            else:
                source.mtime_ns = mtime_ns
    return f"changed: {_some(changed)}" if changed else ""


def sha256(path: Path) -> str | None:
    """The hash of a regular file's bytes; None when it can't be read."""
    try:
        return sha256_of(path)
    except OSError:
        return None


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
