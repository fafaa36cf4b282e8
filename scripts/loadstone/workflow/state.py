"""What the workflow has to do, read off the archive and the tables; nothing here changes anything.

Work is asked for under names that do not exist yet, so that neither mtimes nor the workflow engine's own records decide
about it: the tables of a campaign are ``<tables>/.done/<campaign>/<nth>``, a file that holds the digest of what they
were made from; that campaigns came or went is ``<tables>/.inventory/<nth>``; the collection of a missing run is
``<campaign>/<rate>/<variant>/<run>.<nth>``, below a folder of such markers. ``nth`` is one more than the last that
exists, as long as there is work to do. A marker that exists means that the run was tried; whether it was collected,
the archive alone says.
"""

import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from loadstone import archive
from loadstone.archive import Campaign, CampaignListing, Cell, encode, plan
from loadstone.archive.durable import replace
from loadstone.archive.plan import PlannedRun
from loadstone.archive.trace_dumps import Dump
from loadstone.errors import LoadstoneError
from loadstone.report.slugs import slug
from loadstone.tables import VERSION, layout
from loadstone.workflow.plan import Plan

_COMPLETE = "complete."

Key = tuple[str, str, str]  # encoded app, host and timestamp, as wildcards carry them


class State:
    """One look at an archive and its tables. `config` is the checked configuration.

    In a job on another machine `planned` is what its command saw: nothing else is there, whatever came since.
    """

    def __init__(self, config: Mapping[str, Any], markers: Path, planned: Plan | None = None) -> None:
        self.root = Path(config["archive"])
        self.tables = Path(config["tables"])
        self.markers = markers
        self.host = config["host"]
        self.planned = planned
        self.listings: dict[Key, CampaignListing] = {}
        if self.root.exists() and not self.root.is_dir():
            raise LoadstoneError(f"the archive {self.root} is not a folder")
        layout.check_database_owner(self.tables)
        if not self.root.exists() and any(self.tables.glob(".done/*/*/*/*")):
            raise LoadstoneError(
                f"the archive {self.root} does not exist, but the tables in {self.tables} were made from one: is it "
                "mounted, and the name right? To start anew, remove those tables"
            )
        try:
            found = list(archive.campaigns(self.root)) if self.root.exists() else []
        except OSError as error:
            raise LoadstoneError(f"the archive {self.root} cannot be read: {error}") from None
        for campaign in found:
            if planned is None or "/".join(key_of(campaign)) in planned.done:
                self.listings[key_of(campaign)] = archive.scan_campaign(campaign)
        self.slugs = {slug(listing.campaign): key for key, listing in self.listings.items()}

    def listing(self, key: Key) -> CampaignListing:
        """Raises LoadstoneError for a campaign that the archive does not hold."""
        if key not in self.listings:
            raise LoadstoneError(f"the archive {self.root} holds no campaign {'/'.join(key)}")
        return self.listings[key]

    @cached_property
    def lacking(self) -> dict[Key, list[PlannedRun]]:
        """Per open campaign of this host that has a plan: its missing runs in order; empty when only to be closed."""
        found = {}
        for key, listing in self.listings.items():
            if listing.campaign.host == self.host and listing.campaign.is_open and plan.has_plan(listing):
                found[key] = plan.missing(listing)
        return found

    @cached_property
    def _ranks(self) -> dict[tuple[str, str, str, str, str, int], int]:
        """Missing runs -> rank, the first to attack having the highest; older campaigns come first."""
        ordered = [
            (*key, planned.cell.rate, encode(planned.cell.variant_dir), planned.run)
            for key in sorted(self.lacking, key=lambda key: self.listings[key].campaign.instant)
            for planned in self.lacking[key]
        ]
        return {run: len(ordered) - index for index, run in enumerate(ordered)}

    def rank(self, key: Key, rate: str, variant: str, run: int) -> int:
        """Priority of a run's collection; 0 when it is not missing."""
        return self._ranks.get((*key, rate, variant, run), 0)

    def cell(self, key: Key, rate: str, variant: str) -> Cell:
        return Cell(self.listing(key).campaign, rate, archive.decode(variant))

    def collection(self, planned: PlannedRun) -> str:
        """The marker under which the collection of a missing run is asked for."""
        folder = self._marker_folder(planned.cell.campaign) / planned.cell.rate / encode(planned.cell.variant_dir)
        return _fresh(folder, f"{planned.run}.")

    def completion(self, key: Key) -> str:
        """The marker under which the end of an open campaign is asked for."""
        return _fresh(self._marker_folder(self.listing(key).campaign), _COMPLETE)

    def completed(self, key: Key) -> str | None:
        """The marker that the last end of a campaign left here, if any."""
        folder = self._marker_folder(self.listing(key).campaign)
        last = _last(folder, _COMPLETE)
        return str(folder / f"{_COMPLETE}{last}") if last else None

    def put_back(self) -> str:
        """The marker under which a cluster that was left changed is put back."""
        return _fresh(self.markers, "put_back.")

    def done(self, key: Key, *, pending: bool) -> str:
        """Where the tables of a campaign are asked for: as they are when still true, else under a new name.

        `pending` says that missing runs will be collected first.
        """
        if self.planned:
            return self.planned.done["/".join(key)]
        folder = self.tables / ".done" / Path(*key)
        campaign = self.listing(key).campaign
        if pending or not layout.manifest_file(self.tables, campaign).exists():
            return _fresh(folder, "")
        return _true_or_fresh(
            folder, record(made_from(self.listing(key)), layout.converted_digest(self.tables, campaign))
        )

    def traced(self, dump: Dump) -> str:
        """The same for the rows of one trace dump."""
        if self.planned:
            return self.planned.traced[dump.key]
        return _true_or_fresh(
            self.tables / ".dumps" / dump.key, record(dump.digest(), layout.dump_digest(self.tables, dump))
        )

    def inventory(self, *more: object) -> str:
        """The record of what archive and configuration hold: of the campaigns, and of whatever `more` names."""
        if self.planned:
            return self.planned.inventory
        return _true_or_fresh(self.tables / ".inventory", self.holding(*more))

    def holding(self, *more: object) -> str:
        """What stands in that record."""
        return hashlib.sha256(repr((sorted(self.listings), *more)).encode("utf-8", "surrogateescape")).hexdigest()[:32]

    def _marker_folder(self, campaign: Campaign) -> Path:
        return self.markers / Path(*key_of(campaign))


def key_of(campaign: Campaign) -> Key:
    """A campaign as wildcards carry it."""
    return encode(campaign.app), encode(campaign.host), encode(campaign.timestamp)


def made_from(listing: CampaignListing) -> str:
    """What stands for the tables of a campaign: its content, and the version of tables that are made from it."""
    return f"{listing.digest()} {VERSION}"


def record(made: str, there: str) -> str:
    """What is recorded of finished work: what it was `made` from, and what has to be `there` since."""
    return f"{made} {there}"


def mark_done(done: Path, digest: str) -> None:
    """Record that a campaign's tables were made from what `digest` stands for; older records go."""
    replace(done, digest.encode())
    for older in done.parent.iterdir():
        if older.name.isdigit() and int(older.name) < int(done.name):
            older.unlink()


def _last(folder: Path, prefix: str) -> int:
    try:
        names = [entry.name.removeprefix(prefix) for entry in folder.iterdir() if entry.name.startswith(prefix)]
    except FileNotFoundError:
        return 0
    return max((int(name) for name in names if name.isdigit()), default=0)


def _true_or_fresh(folder: Path, digest: str) -> str:
    """The last name when it holds what `digest` stands for, else a new one."""
    last = _last(folder, "")
    if last and (folder / str(last)).read_text() == digest:
        return str(folder / str(last))
    return _fresh(folder, "")


def _fresh(folder: Path, prefix: str) -> str:
    return str(folder / f"{prefix}{_last(folder, prefix) + 1}")
