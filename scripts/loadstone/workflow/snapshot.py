"""A snapshot of archive and tables: what the archive holds, which runs are missing, which tables are up to date.

In: the checked configuration and both folders. Out: campaigns, missing runs and the markers to request from Snakemake
(`loadstone.workflow.markers`). Nothing here writes.

The tables of a campaign are ``<tables>/.done/<campaign>/<nth>``, the rows of a trace dump ``<tables>/.dumps/<dump>/
<nth>``; ``<tables>/.inventory/<nth>`` changes when campaigns are added or removed; a missing run is
``<campaign>/<rate>/<variant>/<run>.<nth>`` in a folder of such markers. Only the archive shows whether a run was
collected.
"""

import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from loadstone import archive
from loadstone.archive import Campaign, CampaignKey, CampaignListing, Cell, encode, plan, trace_dumps
from loadstone.archive.plan import MissingRun
from loadstone.archive.trace_dumps import Dump
from loadstone.errors import LoadstoneError
from loadstone.report.site_layout import slug
from loadstone.tables import VERSION, layout
from loadstone.workflow.markers import Requested, last_marker, next_marker, up_to_date_or_next

MARKERS = Path("results/.collected")  # of runs, of completed campaigns, and of clusters that were restored
_COMPLETE = "complete."

Key = tuple[str, str, str]  # encoded app, host and timestamp, as in wildcards


class Snapshot:
    """Taken once per command. `config` is the checked configuration.

    `dump_owners` are the campaigns of trace dumps outside a campaign's folder. In a job on another machine, `requested`
    are the markers of its command; anything added since is ignored.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        markers: Path = MARKERS,
        requested: Requested | None = None,
        dump_owners: Mapping[str, CampaignKey] | None = None,
    ) -> None:
        self.archive = Path(config["archive"])
        self.tables = Path(config["tables"])
        self.host = config["host"]
        self._only = plan.Selection.of(config["only"])
        self._markers, self.requested, self._dump_owners = markers, requested, dump_owners or {}
        self._check_folders()
        try:
            found = list(archive.campaigns(self.archive)) if self.archive.exists() else []
        except OSError as error:
            raise LoadstoneError(f"the archive {self.archive} cannot be read: {error}") from None
        self.listings: dict[Key, CampaignListing] = {}
        for campaign in found:
            if requested is None or "/".join(key_of(campaign)) in requested.tables:
                self.listings[key_of(campaign)] = archive.scan_campaign(campaign)
        self.slugs = {slug(listing.campaign): key for key, listing in self.listings.items()}

    def _check_folders(self) -> None:
        if self.archive.exists() and not self.archive.is_dir():
            raise LoadstoneError(f"the archive {self.archive} is not a folder")
        layout.check_database_owner(self.tables)
        if not self.archive.exists() and any(self.tables.glob(".done/*/*/*/*")):
            raise LoadstoneError(
                f"the archive {self.archive} does not exist, but the tables in {self.tables} were made from one: is it "
                "mounted, and is the name right? To start again, remove those tables"
            )

    # --- what the archive holds ---

    def campaign(self, key: Key) -> Campaign:
        """Raises LoadstoneError for a campaign that the archive does not hold."""
        if key not in self.listings:
            raise LoadstoneError(f"the archive {self.archive} holds no campaign {'/'.join(key)}")
        return self.listings[key].campaign

    @cached_property
    def dumps(self) -> dict[str, Dump]:
        """Every trace dump by its `key`."""
        campaigns = (listing.campaign for listing in self.listings.values())
        found = {dump.key: dump for dump in trace_dumps.find(self.archive, campaigns, self._dump_owners)}
        return {key: dump for key, dump in found.items() if not self.requested or key in self.requested.traces}

    @cached_property
    def missing(self) -> dict[Key, list[MissingRun]]:
        """The missing runs, in order, of each open campaign of this host with a plan; none if it only needs closing."""
        found = {}
        for key, listing in self.listings.items():
            if listing.campaign.host == self.host and listing.campaign.is_open and plan.has_plan(listing):
                found[key] = plan.missing(listing, self._only)
        return found

    @cached_property
    def missing_cells(self) -> list[Cell]:
        """The cells with missing runs, each once."""
        return list(dict.fromkeys(run.cell for runs in self.missing.values() for run in runs))

    @cached_property
    def ranks(self) -> dict[tuple[str, str, str, str, str, int], int]:
        """Priority of each missing run by campaign, rate, variant and run: the first to attack has the highest.

        Runs of older campaigns come first.
        """
        ordered = [
            (*key, planned.cell.rate, encode(planned.cell.variant_dir), planned.run)
            for key in sorted(self.missing, key=lambda key: self.listings[key].campaign.instant)
            for planned in self.missing[key]
        ]
        return {run: rank for rank, run in enumerate(reversed(ordered), 1)}

    # --- markers of what changes archive or cluster ---

    def run_markers(self, key: Key) -> list[str]:
        """The markers that request a campaign's missing runs."""
        return [
            next_marker(self._folder(key) / run.cell.rate / encode(run.cell.variant_dir), f"{run.run}.")
            for run in self.missing.get(key, ())
        ]

    def completion_marker(self, key: Key) -> str:
        """The marker that requests the completion of an open campaign."""
        return next_marker(self._folder(key), _COMPLETE)

    def last_completion(self, key: Key) -> str | None:
        """The marker of a campaign's last completion here, if any."""
        return last_marker(self._folder(key), _COMPLETE)

    def put_back_marker(self) -> str:
        """The marker that requests to restore a cluster that was left changed."""
        return next_marker(self._markers, "put_back.")

    def _folder(self, key: Key) -> Path:
        return self._markers / Path(*key_of(self.campaign(key)))

    # --- markers of tables ---

    def tables_marker(self, key: Key, *, pending: bool) -> str:
        """The marker of a campaign's tables: the newest while they are up to date, else the next.

        `pending`: whether missing runs will be collected first.
        """
        if self.requested:
            return self.requested.tables["/".join(key)]
        campaign, folder = self.campaign(key), self.tables / ".done" / Path(*key)
        if pending or not layout.manifest_file(self.tables, campaign).exists():
            return next_marker(folder)
        return up_to_date_or_next(folder, tables_fingerprint(self.tables, self.listings[key]))

    def traces_marker(self, dump: Dump) -> str:
        """The same for the rows of one trace dump."""
        if self.requested:
            return self.requested.traces[dump.key]
        return up_to_date_or_next(self.tables / ".dumps" / dump.key, traces_fingerprint(self.tables, dump))

    def inventory_marker(self, *more: object) -> str:
        """The same for what the database shows: campaigns, trace dumps and `more`."""
        if self.requested:
            return self.requested.inventory
        return up_to_date_or_next(self.tables / ".inventory", self.inventory_fingerprint(*more))

    def inventory_fingerprint(self, *more: object) -> str:
        """The content of that marker."""
        held = repr((sorted(self.listings), *more, sorted(self.dumps)))
        return hashlib.sha256(held.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def key_of(campaign: Campaign) -> Key:
    """The key of a campaign as in wildcards."""
    return encode(campaign.app), encode(campaign.host), encode(campaign.timestamp)


def tables_fingerprint(tables: Path, listing: CampaignListing) -> str:
    """Fingerprint of a campaign's tables: its archived files, the tables' version, and the sizes of their files."""
    return f"{listing.digest()} {VERSION} {layout.converted_digest(tables, listing.campaign)}"


def traces_fingerprint(tables: Path, dump: Dump) -> str:
    """The same for one trace dump."""
    return f"{dump.digest()} {layout.dump_digest(tables, dump)}"
