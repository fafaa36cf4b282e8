"""The order in which a sweep declared its variants, found again in its plan.

Metadata hold no list of variants, but each cell's positions: as the plan is made from the declaration and the seed
alone (`sweep.order`), the same plan of as many rates and variants tells which variant of the declaration a cell is of.
"""

from collections.abc import Iterable

from loadstone import metadata, sweep
from loadstone.archive import METADATA, Campaign, scan_campaign
from loadstone.metadata import Metadata


def of_campaign(campaign: Campaign) -> list[str]:
    """Folders of a campaign's variants as its sweep declared them; empty where that can't be told."""
    cells = (listing.cell for listing in scan_campaign(campaign).cells)
    return of_cells((cell.variant_dir, float(cell.rate), metadata.read(cell.path / METADATA)) for cell in cells)


def of_cells(cells: Iterable[tuple[str, float, Metadata]]) -> list[str]:
    """The same from folder, rate and metadata of every cell."""
    found = {(rate, folder): described for folder, rate, described in cells}
    rates, folders = {rate for rate, _ in found}, {folder for _, folder in found}
    plans = {(described.order, described.seed) for described in found.values()}
    firsts = {cell: described.positions[0] for cell, described in found.items() if described.positions}
    if len(firsts) != len(rates) * len(folders) or len(plans) != 1:
        return []
    ((kind, seed),) = plans
    if kind not in ("blocks", "fixed") or (kind == "blocks" and seed is None):
        return []
    numbers = [str(number) for number in range(len(folders))]
    plan = sweep.order(numbers, [float(number) for number in range(len(rates))], 1, kind, seed or 0)
    declared = {position: int(number) for (_, number), (position,) in plan.items()}
    places = {folder: {declared.get(firsts[rate, folder], -1) for rate in rates} for folder in folders}
    numbered = {numbers.pop(): folder for folder, numbers in places.items() if len(numbers) == 1}
    is_told = sorted(numbered) == list(range(len(folders)))
    return [folder for _, folder in sorted(numbered.items())] if is_told else []
