"""The plan of a campaign, as its metadata hold it: which runs it consists of, in which order, and which are missing.

A plan depends only on the declaration and a seed (`order`). So the order in which a sweep declared its variants, which
is not in the metadata, can be reconstructed from the positions of its cells (`declared_variants`).

If `order`, or the way Python shuffles, ever changes, the declared order of older campaigns is lost; their variants are
then sorted by name.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from loadstone.archive import ABANDONED, COMPLETION, Campaign, CampaignListing, Cell, extension, metadata, scan_campaign
from loadstone.archive.durable import write_new
from loadstone.archive.metadata import Metadata
from loadstone.archive.staging import Staging
from loadstone.errors import LoadstoneError

BLOCKS, GROUPED = "blocks", "grouped"
RANDOM = (BLOCKS, GROUPED)  # orders in which every variant has its run in every block, at random


@dataclass(frozen=True)
class Selection:
    """The cells of which missing runs are collected; empty `variants` (folders) or `rates` stand for all."""

    variants: frozenset[str] = frozenset()
    rates: frozenset[float] = frozenset()

    @classmethod
    def of(cls, declared: Mapping[str, Any]) -> Self:
        """From the configuration's key ``only``."""
        return cls(frozenset(declared.get("variants", ())), frozenset(map(float, declared.get("rates", ()))))

    def has(self, rate: str, variant_dir: str) -> bool:
        return (not self.variants or variant_dir in self.variants) and (not self.rates or float(rate) in self.rates)


ALL = Selection()


@dataclass(frozen=True)
class MissingRun:
    """One run of a plan; `position` counts from 1 in the order in which the sweep attacks."""

    cell: Cell
    run: int
    position: int


def order(
    variants: Sequence[str], rates: Sequence[float], runs: int, kind: str, seed: int
) -> dict[tuple[float, str], list[int]]:
    """Positions (from 1) of each cell's runs 1..`runs`.

    ``blocks``: run n of every cell forms block n, shuffled within the block by `seed` (a randomised complete block
    design). ``grouped``: the same, but the variants of a block are shuffled, and within each its rates, so that a block
    switches variants as rarely as possible; every second block is the one before in reverse, so that a steady drift
    favours no variant. ``fixed``: the predecessor's order, run, then rate, then variant.
    """
    cells = [(rate, variant) for rate in rates for variant in variants]
    positions: dict[tuple[float, str], list[int]] = {cell: [] for cell in cells}
    shuffle = random.Random(seed)  # noqa: S311 - an order, not a secret
    arranged = cells
    for block in range(runs):
        if kind == BLOCKS:
            arranged = shuffle.sample(cells, len(cells))
        elif kind == GROUPED and block % 2:
            arranged = arranged[::-1]
        elif kind == GROUPED:
            groups = shuffle.sample(variants, len(variants))
            arranged = [(rate, variant) for variant in groups for rate in shuffle.sample(rates, len(rates))]
        for index, cell in enumerate(arranged):
            positions[cell].append(block * len(cells) + index + 1)
    return positions


def missing(listing: CampaignListing, only: Selection = ALL) -> list[MissingRun]:
    """Planned runs without a result, in the plan's order; none without a plan (before version 5)."""
    missing_runs = []
    for cell in listing.cells:
        if not only.has(cell.cell.rate, cell.cell.variant_dir):
            continue
        described = metadata.read_cell(cell.cell)
        collected = cell.collected()
        for run, position in enumerate(described.positions[: described.runs or 0], start=1):
            if run not in collected:
                missing_runs.append(MissingRun(cell.cell, run, position))
    return sorted(missing_runs, key=lambda planned: planned.position)


def unfinished(campaigns: Iterable[Campaign]) -> list[str]:
    """A sentence for every campaign with missing runs."""
    found = []
    for campaign in campaigns:
        listing = scan_campaign(campaign)
        if missing_runs := len(missing(listing)):
            remedy = "`snakemake --cores all` on its host collects them"
            if campaign.is_abandoned:
                remedy = f"given up by its {ABANDONED}"
            elif listing.completed:
                remedy = f"its {COMPLETION} says it is complete: remove that file to have them collected"
            failed = sum(run not in cell.collected() for cell in listing.cells for run in cell.failures())
            tried = f" ({failed} of them failed)" if failed else ""
            found.append(
                f"{campaign}: {missing_runs} of {planned_runs(listing)} planned runs not collected{tried}; {remedy}"
            )
    return found


def planned_runs(listing: CampaignListing) -> int:
    """How many runs the campaign's plan holds; 0 without a plan."""
    return sum(metadata.read_cell(cell.cell).runs or 0 for cell in listing.cells)


def has_plan(listing: CampaignListing) -> bool:
    """Whether the campaign's metadata plan its runs."""
    return any(metadata.read_cell(cell.cell).positions for cell in listing.cells)


def complete(campaign: Campaign, log: Callable[[str], None], only: Selection = ALL) -> None:
    """Close a campaign whose planned runs are all collected: `Campaign.completions`.

    Where only others than those selected are missing, it stays open. Staging folders of collected runs, whose jobs were
    killed in their last moment, are removed. Raises LoadstoneError while runs are missing, a folder can't be read, or
    an extension was interrupted.
    """
    listing = scan_campaign(campaign)
    unreadable = [f"{path} {why}" for path, why in listing.unreadable]
    unreadable += [f"{name} can't be read" for name in extension.unreadable(campaign)]
    for cell in listing.cells:
        described = metadata.read_cell(cell.cell)
        if described.problems or len(described.positions) != described.runs:
            faults = "; ".join(described.problems) or "its plan has not one position per run"
            unreadable.append(f"{cell.cell}: {faults}")
    if extension.unwritten(campaign):
        raise LoadstoneError(f"{campaign}: its extension was interrupted; `snakemake --cores 1 extend` finishes it")
    missing_runs = missing(listing)
    if missing_runs and not unreadable and not missing(listing, only):
        log(f"{campaign} stays open: {len(missing_runs)} runs that `only` excludes are still planned")
        return
    if missing_runs or unreadable:
        raise LoadstoneError(f"{campaign} is not complete: {len(missing_runs)} runs missing; {'; '.join(unreadable)}")
    for cell in listing.cells:
        for run in cell.collected():
            Staging(cell.cell, run).discard()
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    written = [path for path in campaign.completions if write_new(path, f"{now}\n".encode())]
    if written:
        log(f"{campaign} is complete")


def declared_variants(campaign: Campaign) -> list[str]:
    """Folders of a campaign's variants in the order of its declaration; empty where that is unknown."""
    cells = (listing.cell for listing in scan_campaign(campaign).cells)
    return variants_of_cells((cell.variant_dir, float(cell.rate), metadata.read_cell(cell)) for cell in cells)


def variants_of_cells(cells: Iterable[tuple[str, float, Metadata]]) -> list[str]:
    """The same, given folder, rate and metadata of every cell; variants that were added later come last."""
    all_cells = {(rate, folder): described for folder, rate, described in cells}
    found = {place: described for place, described in all_cells.items() if described.part(1) == 1}
    added = sorted({folder for _, folder in all_cells} - {folder for _, folder in found})
    rates, folders = {rate for rate, _ in found}, {folder for _, folder in found}
    plans = {(described.order, described.seed) for described in found.values()}
    firsts = {cell: described.positions[0] for cell, described in found.items() if described.positions}
    if len(firsts) != len(rates) * len(folders) or len(plans) != 1:
        return []
    ((kind, seed),) = plans
    if kind not in (*RANDOM, "fixed") or (kind in RANDOM and seed is None):
        return []
    numbers = [str(number) for number in range(len(folders))]
    plan = order(numbers, [float(number) for number in range(len(rates))], 1, kind, seed or 0)
    declared = {position: int(number) for (_, number), (position,) in plan.items()}
    places = {folder: {declared.get(firsts[rate, folder], -1) for rate in rates} for folder in folders}
    numbered = {numbers.pop(): folder for folder, numbers in places.items() if len(numbers) == 1}
    is_known = sorted(numbered) == list(range(len(folders)))
    return [*(folder for _, folder in sorted(numbered.items())), *added] if is_known else []
