"""The place of every source in the archive. What does not fit is refused here, before anything is written.

Metadata are written once: a cell's `metadata.json` holds what all of its runs share and `<run>.run.json` the rest, so
that a later run changes no file. `<run>.sha256` is written last and completes the run.

In: the declaration and the archive. Out: a `Plan`: cells with their metadata, runs and files, and what the
archive holds of them already. No name leads to another folder.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadstone import archive
from loadstone.archive import Campaign, Cell, metadata
from loadstone.archive.durable import sha256_of
from loadstone.archive.stages import number_text
from loadstone.errors import LoadstoneError
from loadstone.importing.declaration import DECLARATION, Refusal, Source, find, load_entries, refusal
from loadstone.readers import FORMATS, Problems, load_generators
from loadstone.readers.base import UNITS_NS

IMPORTED = "_imported"  # folder of a campaign with the documents whose blocks are runs of it
_KNOWN_AT_ONCE = {"records": ".run.json"}  # says in metadata.json that runs were imported, and where it says from where


@dataclass(frozen=True)
class PlannedFile:
    """`name` in its cell, with the hash of its content; `is_there`: the archive holds it already."""

    name: str
    source: Source
    sha256: str
    is_there: bool


@dataclass
class PlannedRun:
    """One run. `started` is ISO 8601 with offset; `is_done`: the archive holds all of it with its checksums."""

    cell: Cell
    run: int
    files: list[PlannedFile] = field(default_factory=list)
    started: str | None = None
    description: str | None = None
    is_done: bool = False


@dataclass
class PlannedCell:
    """`metadata` is what its ``metadata.json`` holds."""

    cell: Cell
    metadata: dict[str, Any]
    runs: list[PlannedRun]


@dataclass
class Plan:
    """What an import does. `notices` are only logged."""

    cells: list[PlannedCell]
    notices: list[str]

    def runs(self) -> list[PlannedRun]:
        return [run for cell in self.cells for run in cell.runs]

    def lines(self) -> list[str]:
        """One line per file that would be copied, then the notices."""
        lines = [
            f"{run.cell}/{file.name} from {file.source}"
            for run in self.runs()
            if not run.is_done
            for file in run.files
            if not file.is_there
        ]
        there = sum(run.is_done for run in self.runs())
        return [*lines, *self.notices, *([f"{there} runs are in the archive already"] if there else [])]


def make(root: Path, declaration: Path = DECLARATION) -> Plan:
    """Check the whole declaration against the sources and the archive `root`.

    Raises LoadstoneError that lists everything that is refused. Writes nothing.
    """
    entries = load_entries(declaration)
    if not entries:
        raise LoadstoneError(f"{DECLARATION} declares nothing to import (see docs/importing.md)")
    found = find(entries)
    planner = _Planner(root, found.refusals)
    for source in found.sources:
        planner.place(source)
    cells = planner.cells()
    if planner.refusals:
        shown = "\n".join(f"  {line}" for line in dict.fromkeys(planner.refusals))
        raise LoadstoneError(f"nothing was imported:\n{shown}")
    return Plan(cells, [*found.left, *planner.notices])


# --- the place of one source ------------------------------------------------------------------------------------------

# What is the same of all runs of a cell.
_FACTS = ("generator", "version", "load_model", "duration", "measured_phase", "zone", "unit")
_LONGEST_NAME_BYTES = 200
_LARGEST_RUN = 10**9


@dataclass(frozen=True)
class _Placed:
    """One source with its place. `facts` are its declared keys other than those of the place and the labels."""

    source: Source
    cell: Cell
    run: int
    facts: Mapping[str, str]
    labels: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"{self.run}.{self.source.format}{self.source.suffix}"


def _place(source: Source, root: Path) -> _Placed:
    """A source's place below the archive `root`, by what its entry says. Raises Refusal."""

    def value(key: str) -> str | None:
        return source.entry.expand(key, source.groups)

    timestamp = _name("timestamp", value("timestamp") or "")
    if archive.parse_timestamp(timestamp) is None:
        raise Refusal(
            f"the timestamp {timestamp!r} is not a time with an offset; write it like 2023-09-27T14:43:27-07:00"
        )
    campaign = Campaign(root, _name("app", value("app") or ""), _name("host", value("host") or ""), timestamp)
    cell = Cell(campaign, _rate(value("rate") or ""), _name("variant", value("variant") or ""))
    facts = {key: text for key in (*_FACTS, "started", "description") if (text := value(key)) is not None}
    _check_facts(facts)
    if tool := FORMATS[source.format].generator:
        if facts.setdefault("generator", tool) != tool:
            raise Refusal(f"the generator is {facts['generator']!r}, but the file was written by {tool}")
    elif source.format == "summary.json" or source.format.startswith("results."):
        facts.setdefault("generator", "vegeta")
    return _Placed(source, cell, _run(value("run") or "1"), facts, source.entry.expand_labels(source.groups))


def _name(key: str, text: str) -> str:
    """A folder's name in the archive, checked: it can't lead to another folder and is printable."""
    why = ""
    if not text or text.strip() != text:
        why = "is empty, or begins or ends with a space"
    elif "/" in text or text in (".", ".."):
        why = "leads to another folder"
    elif text[0] in "._":
        why = "begins with a dot or an underscore; such folders are not part of an archive"
    elif not text.isprintable():
        why = "holds characters that can't be printed"
    elif len(text.encode("utf-8", "surrogateescape")) > _LONGEST_NAME_BYTES:
        why = f"is longer than {_LONGEST_NAME_BYTES} bytes"
    if why:
        raise Refusal(f"{key}: the name {text!r} {why}")
    return text


def _rate(text: str) -> str:
    rate = archive.parse_rate(text)
    if rate is None or rate > 1e12:
        raise Refusal(f"the rate {text!r} is not a positive number: requests/s, or users of closed load")
    return number_text(rate)


def _run(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < _LARGEST_RUN):
        raise Refusal(f"the run {text!r} is not a whole number of at least 1")
    return int(text)


def _check_facts(facts: Mapping[str, str]) -> None:
    if "duration" in facts and not metadata.parse_duration(facts["duration"]):
        raise Refusal(f"the duration {facts['duration']!r} is not valid; write it like 60s, 5m or 1m30s")
    if "started" in facts and archive.parse_timestamp(facts["started"]) is None:
        raise Refusal(f"started: {facts['started']!r} is not a time with an offset, like 2023-09-27T14:43:27-07:00")
    if "unit" in facts and facts["unit"] not in UNITS_NS:
        raise Refusal(f"the unit {facts['unit']!r} is not valid; it must be s, ms, us or ns")
    if "zone" in facts and archive.parse_timestamp(f"2000-01-01T00:00:00{facts['zone']}") is None:
        raise Refusal(f"the zone {facts['zone']!r} is not valid; write the offset, like -07:00")


def _is_of_resources(source: Source) -> bool:
    """Whether it holds other tools' CPU and memory, and no requests."""
    return archive.FOREIGN.get(source.format) == "resources"


# --- which phase is used ----------------------------------------------------------------------------------------------

_NAMES_PHASES = "artillery.json"  # before its requests are read


def _phase_notice(placed: _Placed) -> str | None:
    """A notice when several phases are possible, none is declared, and so the last one is used. Raises Refusal."""
    declared, kind = placed.facts.get("measured_phase"), placed.source.format
    may_have = FORMATS[kind].phases or FORMATS[kind].samples or _is_of_resources(placed.source)
    if declared is not None and not may_have:
        raise Refusal(f"measured_phase is {declared!r}, but files of this format ({kind}) have no phases; remove it")
    report = FORMATS[kind].report if kind == _NAMES_PHASES else None
    read = report(placed.source.path, Problems()) if report else None
    names = [phase.name for phase in read.phases] if read else []
    listed = ", ".join(map(repr, names))
    if declared is not None and names and declared not in names:
        raise Refusal(f"measured_phase is {declared!r}, but its phases are {listed}")
    if declared is None and len(names) > 1:
        return f"{placed.source}: of its phases {listed} the last one is used; declare measured_phase to use another"
    return None


# --- all sources ------------------------------------------------------------------------------------------------------


class _Planner:
    def __init__(self, root: Path, refusals: list[str]) -> None:
        self.root, self.refusals = root, refusals
        self.placed: dict[Cell, list[_Placed]] = {}
        self.campaigns: dict[Campaign, str | None] = {}
        self.notices: list[str] = []

    def _refuse(self, source: Source, why: object) -> None:
        self.refusals.append(refusal(source.entry, source, why))

    def place(self, source: Source) -> None:
        """Give a source the place that its entry declares."""
        try:
            placed = _place(source, self.root)
        except Refusal as why:
            self._refuse(source, why)
            return
        for other in self.placed.setdefault(placed.cell, []):
            if (other.run, other.source.format) == (placed.run, placed.source.format):
                self._refuse(
                    source,
                    f"{placed.cell}/{placed.name} is {other.source} too (entry {other.source.entry.number}); give each "
                    "a run, rate, variant or timestamp of its own",
                )
                return
        try:
            self.notices += filter(None, [_phase_notice(placed)])
        except Refusal as why:
            self._refuse(source, why)
        self.placed[placed.cell].append(placed)

    def cells(self) -> list[PlannedCell]:
        """Every cell with its runs, checked against what the archive holds."""
        found = []
        for cell, placed in sorted(self.placed.items(), key=lambda item: item[0]):
            try:
                _check_folders(cell)
                if cell.campaign not in self.campaigns:
                    self._check_spelling(cell.campaign)
                    self.campaigns[cell.campaign] = _foreign_cell(cell.campaign)
                if (other := self.campaigns[cell.campaign]) is not None:
                    raise Refusal(f"{other} was not imported; imports need a campaign (timestamp) of their own")
                content = _metadata(cell, placed)
                _check_metadata(cell, content)
            except Refusal as why:
                self._refuse(placed[0].source, why)
                continue
            found.append(PlannedCell(cell, content, self._runs(cell, placed)))
        return found

    def _check_spelling(self, campaign: Campaign) -> None:
        """A moment has one timestamp; a second text for it would be a second campaign of the same runs."""
        declared_too = {cell.campaign for cell in self.placed}
        for other in sorted({*declared_too, *_siblings(campaign)}):
            is_same = (other.app, other.host, other.instant) == (campaign.app, campaign.host, campaign.instant)
            if is_same and other != campaign:
                where = "declared too" if other in declared_too else "in the archive"
                raise Refusal(f"{campaign.timestamp} is the moment of {other}, which is {where}; write it the same way")

    def _runs(self, cell: Cell, placed: Iterable[_Placed]) -> list[PlannedRun]:
        runs: dict[int, PlannedRun] = {}
        for each in sorted(placed, key=lambda each: (each.run, _is_of_resources(each.source))):
            run = runs.setdefault(each.run, PlannedRun(cell, each.run))
            heading = each.source.block.headings[-1:] if each.source.block else ()
            run.description = run.description or each.facts.get("description") or next(iter(heading), None)
            try:
                started = each.facts.get("started")
                if run.started and started and run.started != started:
                    raise Refusal(f"run {run.run} of {cell} started at {run.started} as another file of it says")
                run.started = run.started or started
                run.files.append(_file(cell, each))
            except Refusal as why:
                self._refuse(each.source, why)
        for run in runs.values():
            self._check_run(run)
        return list(runs.values())

    def _check_run(self, run: PlannedRun) -> None:
        sums = run.cell.path / f"{run.run}.sha256"
        if not sums.exists():
            return
        run.is_done = all(file.is_there for file in run.files)
        for file in run.files:
            if not file.is_there:
                self._refuse(
                    file.source,
                    f"run {run.run} of {run.cell} was imported without it. Runs are imported as a whole: remove its "
                    f"files (rm '{run.cell.path}/{run.run}.'*) to import all of them again, or give it another run",
                )


# --- one cell ---------------------------------------------------------------------------------------------------------


def _metadata(cell: Cell, placed: Iterable[_Placed]) -> dict[str, Any]:
    """Version 5 metadata from what all files of the cell are declared to be; they must not contradict one another."""
    facts: dict[str, str] = {}
    labels: dict[str, str] = {}
    for each in placed:
        for known, declared in (
            (facts, {key: each.facts[key] for key in _FACTS if key in each.facts}),
            (labels, each.labels),
        ):
            for key, value in declared.items():
                if known.setdefault(key, value) != value:
                    raise Refusal(
                        f"{key} is {known[key]!r} of one file of {cell} and {value!r} of {each.source}; what differs "
                        "needs a variant, rate or timestamp of its own"
                    )
    generator = facts.get("generator")
    if generator is None and all(_is_of_resources(each.source) for each in placed):
        raise Refusal(f"{cell}: no results of this run are imported; only samples")
    if generator is None:
        raise Refusal(f"{cell}: it is not known which load generator sent the requests; declare it: generator: wrk2")
    load_model = _load_model(cell, generator, facts.get("load_model"))
    options = {"duration": facts["duration"]} if "duration" in facts else {}
    found: dict[str, Any] = {
        "version": metadata.VERSION,
        "testMode": generator,
        "timestamp": cell.campaign.timestamp,
        "testOptions": options | ({} if load_model == "closed" else {"rate": cell.rate}),
        "workloadInfo": {"variant": cell.variant_dir, "hostname": cell.campaign.host},
        "checksums": {"algorithm": "sha256", "fileSuffix": ".sha256"},
        "generator": {"name": generator} | ({"version": facts["version"]} if "version" in facts else {}),
        "loadModel": load_model,
        "labels": labels,
        "imported": _KNOWN_AT_ONCE,
    }
    if load_model == "closed":
        if not cell.rate.isdigit():
            raise Refusal(f"{cell}: under closed load the rate is the number of users, which {cell.rate} can't be")
        found["users"] = int(cell.rate)
    found |= {"measuredPhase": facts["measured_phase"]} if "measured_phase" in facts else {}
    return found | {key: facts[key] for key in ("zone", "unit") if key in facts}


def _load_model(cell: Cell, generator: str, declared: str | None) -> str:
    known = load_generators.load_models(generator)
    if declared is not None and known and declared not in known:
        raise Refusal(f"{cell}: {generator} sends {' or '.join(known)} load, but load_model is {declared}")
    if (found := declared or load_generators.only_load_model(generator)) is None:
        raise Refusal(
            f"{cell}: {generator} supports several load models; declare which it was: load_model: open, or closed"
        )
    return found


def _check_metadata(cell: Cell, content: Mapping[str, Any]) -> None:
    path = cell.path / archive.METADATA
    there = _read(path)
    if there is None:
        return
    if different := sorted(key for key in {*content, *there} if content.get(key) != there.get(key)):
        differences = "; ".join(
            f"{key} is {json.dumps(there.get(key))} there and {json.dumps(content.get(key))} here" for key in different
        )
        raise Refusal(
            f"{path} was imported from another declaration: {differences}. Declare it as it was, or give it a "
            "variant, rate or timestamp of its own. To correct the import, remove this folder and import again: "
            f"rm -r {shlex.quote(str(cell.path))}"
        )


def _check_folders(cell: Cell) -> None:
    """No folder on the way may be a link, which could lead out of the archive, or anything else."""
    for folder in (cell.path, *cell.path.parents):
        if folder == cell.campaign.root:
            return
        if folder.is_symlink():
            raise Refusal(f"{folder} is a link, which may lead out of the archive; imports go into folders only")
        if os.path.lexists(folder) and not folder.is_dir():
            raise Refusal(f"{folder} is not a folder")


def _siblings(campaign: Campaign) -> list[Campaign]:
    """The archive's campaigns of the same app and host."""
    folder = campaign.path.parent
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    return [Campaign(campaign.root, campaign.app, campaign.host, name) for name in names]


def _foreign_cell(campaign: Campaign) -> str | None:
    """A cell of a campaign that was not imported, if it holds one."""
    if not campaign.path.is_dir():
        return None
    for listing in archive.scan_campaign(campaign).cells:
        described = _read(listing.cell.path / archive.METADATA)
        if (described is None and listing.runs()) or (described is not None and "imported" not in described):
            return str(listing.cell)
    return None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = metadata.load(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise Refusal(f"{path} is not a JSON object")
    return content


def _file(cell: Cell, placed: _Placed) -> PlannedFile:
    source, path = placed.source, cell.path / placed.name
    block = source.block
    digest = _sha256(source.path) if block is None else hashlib.sha256(block.content).hexdigest()
    is_there = os.path.lexists(path)
    if is_there and (path.is_symlink() or _sha256(path) != digest):
        raise Refusal(
            f"{path} exists with different content. An import never replaces a result: give this file another run, or "
            "remove that one if you do not need it"
        )
    return PlannedFile(placed.name, source, digest, is_there)


def _sha256(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror or error}") from None
