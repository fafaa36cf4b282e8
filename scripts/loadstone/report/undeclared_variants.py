"""Which undeclared variants an archive holds: they get colours and marks as the declared ones do."""

from collections.abc import Iterable, Mapping, Sequence

from loadstone.archive import CampaignListing
from loadstone.config.variants import Variants, natural
from loadstone.tables.layout import text


def first_seen(variants: Variants, listings: Iterable[CampaignListing]) -> dict[str, list[str]]:
    """The undeclared variants of each app, in the order of the times at which campaigns that hold them began.

    So one that a newer campaign brings changes the looks of none before it. Older results that are imported later do
    change looks, where they bring undeclared variants: an archive does not know when a campaign came into it, for times
    of files do not survive a copy. Variants that are declared keep theirs whatever comes.
    """
    found: dict[str, dict[str, None]] = {}
    for listing in sorted(listings, key=lambda each: (each.campaign.instant, str(each.campaign))):
        app = listing.campaign.app
        names = {text(variants.canonical(app, cell.cell.variant_dir)) for cell in listing.cells}
        for name in sorted(names.difference(variants.declared.get(app, ())), key=natural):
            found.setdefault(text(app), {})[name] = None
    return {app: list(names) for app, names in found.items()}


def seen_by(
    variants: Variants, seen: Mapping[str, Sequence[str]], listings: Iterable[CampaignListing]
) -> dict[str, list[str]]:
    """Of what was `seen`, up to the last one that these campaigns hold: all that decides how theirs look."""
    held = first_seen(variants, listings)
    return {app: list(seen[app][: 1 + max(map(seen[app].index, names))]) for app, names in held.items()}
