"""Extending the newest complete campaign of the configured sweep: more runs, further variants or rates.

Only what is new is planned, in further blocks of the same seed's sequence. It must be measured as the rest was: what
differs is refused, or recorded where ``sweep.extend`` is ``anyway``.
"""

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone import __version__, archive
from loadstone.archive import Campaign, CampaignListing, Cell, metadata
from loadstone.archive.durable import new_folder, write_new
from loadstone.archive.extension import Extension, FurtherRuns, Place, read, unreadable, unwritten
from loadstone.archive.metadata import Metadata
from loadstone.archive.plan import has_plan, order
from loadstone.archive.progress import duration_text
from loadstone.archive.run_records import RunRecord, read_run_record
from loadstone.archive.stages import load_text, number_text
from loadstone.collect import sweep
from loadstone.collect.generators import k6
from loadstone.collect.targets.base import Log
from loadstone.config import redact
from loadstone.config.load_shapes import loads
from loadstone.config.target import changes, identity_digest, plan_changes, script_changes
from loadstone.errors import LoadstoneError

ANYWAY = "anyway"
_EXTENDED = ("sweep.runs", "sweep.rates", "sweep.variants")  # changes of a plan that are what is extended
_OWN = ("loadstone", "python")  # versions that may differ


def extend(config: Mapping[str, Any], log: Log) -> Campaign:
    """Write the extension of the newest complete campaign, and open it again.

    Raises LoadstoneError, with nothing written, for what is wrong. Finishes an extension that was interrupted.
    """
    campaign = _extendable(config)
    tools = sweep.versions(config)
    sweep.check_target(config, log)
    if unwritten(campaign):
        _write_cells(campaign)
        log(f"the extension of {campaign} was interrupted; it is finished")
    planned = plan(config, campaign, tools, k6.script_files(config))
    if planned is None:
        log(f"{campaign} has everything that is configured")
        return campaign
    if not write_new(campaign.path / planned.name, planned.encoded()):
        raise LoadstoneError(f"{campaign} is being extended by another command; try again")
    _write_cells(campaign)
    for line in lines(campaign, planned):
        log(line)
    log("`snakemake --cores all` measures them")
    return campaign


def preview(config: Mapping[str, Any]) -> list[str]:
    """What `extend` would plan now; changes nothing. Raises LoadstoneError."""
    campaign = _extendable(config)
    planned = plan(config, campaign, sweep.versions(config), k6.script_files(config))
    return lines(campaign, planned) if planned else [f"{campaign} has everything that is configured"]


def lines(campaign: Campaign, planned: Extension) -> list[str]:
    """An extension in words: its runs by cell, how long they take, and what differs from the first part."""
    found, seconds = [], 0.0
    for cell in planned.cells:
        described = metadata.parse(cell.metadata) if cell.metadata else metadata.read_cell(Cell(campaign, *cell.place))
        first, count = cell.first_run, len(cell.positions)
        seconds += count * (described.load_s + sweep.RUN_S)
        runs = f"run {first}" if count == 1 else f"runs {first} to {first + count - 1}"
        found.append(f"  {cell.variant} at {load_text(cell.rate, described.load_model)}: {runs}")
    total = sum(len(cell.positions) for cell in planned.cells)
    return [
        f"part {planned.number + 1} of {campaign}: {total} runs, about {duration_text(seconds)}",
        *found,
        *(f"differs from part 1: {text}" for text in planned.differences),
    ]


def _extendable(config: Mapping[str, Any]) -> Campaign:
    """The newest complete campaign of the configured sweep. Raises LoadstoneError without one, or while one is open."""
    if "sweep" not in config:
        raise LoadstoneError("the configuration declares no sweep (see docs/load.md)")
    root, key = Path(config["archive"]), (config["sweep"]["app"], config["host"])
    found = [each for each in archive.campaigns(root) if (each.app, each.host) == key] if root.is_dir() else []
    for campaign in reversed(found):
        if broken := unreadable(campaign):
            raise LoadstoneError(f"{campaign}: {', '.join(broken)} can't be read")
        if not has_plan(archive.scan_campaign(campaign)):
            continue
        if campaign.is_abandoned and not campaign.is_completed:
            continue
        if campaign.is_abandoned:
            raise LoadstoneError(
                f"{campaign} was abandoned; delete its {archive.ABANDONED} file, or start a new campaign"
            )
        if campaign.is_completed or unwritten(campaign):
            return campaign
        raise LoadstoneError(f"{campaign} is still open; `snakemake --cores all` finishes it first")
    raise LoadstoneError(f"there is no complete campaign of {'/'.join(key)} to extend; `open` begins one")


def plan(
    config: Mapping[str, Any], campaign: Campaign, tools: Mapping[str, str], script_files: Sequence[str]
) -> Extension | None:
    """The extension that brings a campaign up to the configuration; None when nothing is missing.

    Raises LoadstoneError when it would be measured in another way.
    """
    listing = archive.scan_campaign(campaign)
    held = {(cell.cell.rate, cell.cell.variant_dir): metadata.read_cell(cell.cell) for cell in listing.cells}
    declared = sweep.planned(config, tools, campaign, script_files)
    wanted = {(number_text(rate), variant): content for (rate, variant), content in declared.items()}
    runs = config["sweep"]["runs"]
    needed = {place: runs - (held[place].runs or 0 if place in held else 0) for place in wanted}
    needed = {place: count for place, count in needed.items() if count > 0}
    if not needed:
        return None
    _check_plan(campaign, listing, wanted)
    differences = list(dict.fromkeys(_differences(config, listing, held, tools)))
    if differences and config["sweep"].get("extend") != ANYWAY:
        raise LoadstoneError(
            f"{campaign} was measured differently:\n"
            + "".join(f"  {text}\n" for text in differences)
            + "Undo these changes, measure a new campaign (`open`), or set `extend: anyway` in sweep: verdicts "
            "across the parts then have a caveat"
        )
    first = next(iter(held.values()))
    positions = _positions(config["sweep"], held, needed, first)
    new = {place: wanted[place] for place in needed if place not in held}
    for place, content in new.items():
        content |= {"seed": first.seed, "runs": runs}
        content["order"]["positions"] = positions[place]
    return Extension(
        number=len(read(campaign)) + 1,
        time=datetime.now().astimezone().isoformat(timespec="seconds"),
        loadstone=__version__,
        declaration=sweep.declarations(config)[0],
        identities={variant: identity_digest(config["target"], variant) for variant in config["sweep"]["variants"]},
        redact=redact.names().fields(),
        differences=differences,
        tools=dict(tools),
        cells=[FurtherRuns(*place, runs - needed[place] + 1, own, new.get(place)) for place, own in positions.items()],
    )


def _positions(
    declared: Mapping[str, Any], held: Mapping[Place, Metadata], needed: Mapping[Place, int], first: Metadata
) -> dict[Place, list[int]]:
    """Positions of the further runs, block after block, after all that were planned before."""
    before = max(described.runs or 0 for described in held.values())
    blocks = max(needed.values())
    kind, seed = first.order or "blocks", first.seed or 0
    drawn = order(declared["variants"], loads(declared), before + blocks, kind, seed)
    places = {(number_text(rate), variant): own[before:] for (rate, variant), own in drawn.items()}
    last = max((position for described in held.values() for position in described.positions), default=0)
    found: dict[Place, list[int]] = {place: [] for place in needed}
    for block in range(blocks):
        for place in sorted(needed, key=lambda place: places[place][block]):
            if needed[place] > block:
                last += 1
                found[place].append(last)
    return found


def _check_plan(campaign: Campaign, listing: CampaignListing, wanted: Mapping[Place, Any]) -> None:
    """Raise LoadstoneError when the load differs: such runs are never pooled."""
    was = {(cell.cell.rate, cell.cell.variant_dir): sweep.content_of(cell.cell) for cell in listing.cells}
    phrases = plan_changes(was, wanted, _EXTENDED)
    scripts = [next(iter(each.values())).get("script") or {} for each in (was, wanted)]
    phrases += script_changes(*scripts)
    if not was.keys() & wanted.keys():
        phrases = ["none of its variants and rates is configured"]
    phrases += sorted({problem for cell in listing.cells for problem in metadata.read_cell(cell.cell).problems})
    senders = {(each.get("generator") or {}).get("program") for each in was.values()}
    if any((each.get("generator") or {}).get("name") == "vegeta" for each in was.values()) and None in senders:
        phrases = ["its runs were sent by `vegeta attack`, and would now be sent by `paced`, which are not comparable"]
    if not any(content.get("order", {}).get("positions") for content in was.values()):
        phrases = ["it has no plan (metadata before version 5, or imported)"]
    if phrases:
        raise LoadstoneError(f"{campaign} can't be extended:\n" + "\n".join(f"  {text}" for text in phrases))


def _differences(
    config: Mapping[str, Any], listing: CampaignListing, held: Mapping[Place, Metadata], tools: Mapping[str, str]
) -> Iterator[str]:
    """How the target, the machine and the tools differ from those of the campaign."""
    for (_, variant), described in held.items():
        if variant in config["target"]["variants"]:
            for phrase in changes(described, config["target"], variant):
                yield f"target variant {variant}: {phrase}"
        for name, version in described.tools.items():
            if name in tools and name not in _OWN and tools[name] != version:
                yield f"{name}: {version or 'unknown'} became {tools[name] or 'unknown'}"
    yield from _other_machine(listing)


def _other_machine(listing: CampaignListing) -> Iterator[str]:
    """How this machine differs from that of the campaign's first run that has a record."""
    records = (cell.cell.path / file.name for cell in listing.cells for file in cell.files if file.kind == "run")
    record = next(map(read_run_record, records), RunRecord())
    if record.system not in (None, platform.platform()):
        yield f"the machine's system: {record.system} became {platform.platform()}"
    if record.cpus not in (None, os.cpu_count()):
        yield f"the machine's number of CPUs: {record.cpus:g} became {os.cpu_count()}"


def _write_cells(campaign: Campaign) -> None:
    """Write the folders of the newest extension's new cells, each in one step."""
    for cell, content in unwritten(campaign):
        if archive.leads_out(cell.path, campaign.root):
            raise LoadstoneError(f"{cell.path.parent} {archive.LEADS_OUT}; {cell} was not written")
        with new_folder(cell.path) as staged:
            write_new(staged / archive.METADATA, (json.dumps(content, indent=2) + "\n").encode())
