"""What config/*.yaml declares about the campaigns of a snapshot, as parameters of jobs.

In: the checked configuration, variants, catalogue and comparisons; a `Snapshot`. Out: plain values. Each has only
what its job depends on, so that a change about one campaign does not rerun jobs of another.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from loadstone import config as configuration
from loadstone.archive import CampaignListing, allow_links, plan, trace_dumps
from loadstone.config import catalogue, comparisons, redact
from loadstone.config.variants import Variants, natural
from loadstone.errors import LoadstoneError
from loadstone.report.site_layout import variant_slug
from loadstone.tables.layout import campaign_key, text
from loadstone.workflow.job import Confidential
from loadstone.workflow.markers import Requested
from loadstone.workflow.snapshot import MARKERS, Key, Snapshot, key_of

JOURNAL = "results/.collected/.sweep.jsonl"  # what a command has tried

Names = tuple[str, str, str]  # app, host and timestamp, as tables and catalogue have them


class Declarations:
    """Everything that is declared, and the snapshot of archive and tables. Raises LoadstoneError for faults.

    In a job on another machine, `requested` are the markers of its command.
    """

    def __init__(self, config: Mapping[str, Any], requested: Requested | None = None) -> None:
        self.config = configuration.check(config)
        allow_links(self.config["archive_links"])
        redact.configure(self.config["redact"])
        self.variants = configuration.load_variants()
        self.comparisons = {comparison.id: comparison for comparison in comparisons.load()}
        self._catalogue = catalogue.load_catalogue()
        self._excluding = self._catalogue.excluding(self.config["tags"])
        owners = trace_dumps.owners(self._catalogue.entries)
        self.snapshot = Snapshot(self.config, MARKERS, requested, owners)

    # --- one campaign ---

    def _names(self, key: Key) -> Names:
        app, host, timestamp = campaign_key(self.snapshot.campaign(key)).values()
        return app, host, timestamp

    def of_campaign(self, key: Key) -> dict[str, Any]:
        """Everything that decides which runs of a campaign are valid."""
        names = self._names(key)
        about = {"folders": self.variants.folders(names[0]), "lag_limit": configuration.lag_limit(self.config)}
        return self._catalogue.about(names, self._excluding) | about

    def settings_of_campaign(self, key: Key) -> dict[str, Any]:
        """The settings of its conclusions."""
        return self.settings(self._names(key)[0])

    def catalogue_entry(self, key: Key) -> dict[str, Any]:
        return self._catalogue.entry(self._names(key))

    def settings(self, app: str) -> dict[str, Any]:
        """The settings of conclusions about an app's variants."""
        return self.history_settings | {
            "order": list(self.variants.declared.get(app, {})),
            "over": {name: list(over) for name, over in self.variants.over(app).items()},
        }

    # --- all campaigns ---

    @property
    def history_settings(self) -> dict[str, Any]:
        """The settings of verdicts between campaigns."""
        analysis = self.config["analysis"]
        return {"margin": configuration.share(analysis["margin"]), "confidence": analysis["confidence"]}

    def _entries(self) -> Iterable[tuple[Names, dict[str, Any]]]:
        names = map(self._names, self.snapshot.listings)
        return ((name, entry) for name in names if (entry := self._catalogue.entry(name)))

    def purposes(self) -> list[list[str]]:
        """App, host, timestamp and purpose of each campaign in the catalogue."""
        return [[*name, entry["purpose"]] for name, entry in self._entries()]

    def notes(self) -> list[list[str]]:
        """The same with the catalogue's notes, as annotations of the history."""
        return [[*name, " ".join([entry["purpose"], *entry.get("notes", ())])] for name, entry in self._entries()]

    def not_in_archive(self) -> list[str]:
        """A sentence for each entry of the catalogue whose campaign the archive does not hold."""
        return self._catalogue.absent([self._names(key) for key in self.snapshot.listings])

    def gate_candidates(self) -> list[list[str]]:
        """The complete campaigns, of which the gate judges one per app and host."""
        return [
            list(key)
            for key, listing in self.snapshot.listings.items()
            if listing.campaign.is_completed or self.catalogue_entry(key).get("completion_file") is False
        ]

    # --- comparisons ---

    def comparison(self, name: str) -> dict[str, Any]:
        """The declaration of one comparison. Raises LoadstoneError where there is none."""
        if name not in self.comparisons:
            raise LoadstoneError(f"config/comparisons.yaml declares no comparison {name}")
        return dict(self.comparisons[name].declared)

    def campaigns_of(self, name: str) -> list[Key]:
        """Those of its campaigns that the archive holds."""
        self.comparison(name)
        named = map(key_of, self.comparisons[name].campaigns(self.snapshot.archive))
        return [key for key in named if key in self.snapshot.listings]

    @cached_property
    def compared(self) -> dict[str, list[list[str]]]:
        """Every comparison -> those of its campaigns that the archive holds, without comparisons that have none."""
        found = {name: [list(key) for key in self.campaigns_of(name)] for name in self.comparisons}
        return {name: keys for name, keys in found.items() if keys}

    # --- variants on pages ---

    @cached_property
    def _undeclared(self) -> dict[str, list[str]]:
        return first_seen(self.variants, self.snapshot.listings.values())

    def appearance(self, keys: Iterable[Key] | None = None) -> dict[str, Any]:
        """The fields of `Variants` for a page of these campaigns, or of all."""
        seen = self._undeclared
        if keys is not None:
            seen = undeclared_in(self.variants, seen, [self.snapshot.listings[key] for key in keys])
        return {"declared": self.variants.declared, "seen": seen}

    @cached_property
    def variant_pages(self) -> dict[str, tuple[str, str]]:
        """Name of a variant's page -> app and variant, for all in the archive, in declared order."""
        listings = self.snapshot.listings.values()
        cells = {(item.campaign.app, cell.cell.variant_dir) for item in listings for cell in item.cells}
        names = {(text(app), text(self.variants.canonical(app, folder))) for app, folder in cells}
        declared = [(app, variant) for app, variants in self.variants.declared.items() for variant in variants]
        order = {name: position for position, name in enumerate(declared)}
        ordered = sorted(names, key=lambda name: (name[0], order.get(name, len(order)), name[1]))
        return {variant_slug(*name): name for name in ordered}

    # --- pages ---

    @property
    def page_options(self) -> dict[str, Any]:
        """Options of pages of campaigns and comparisons."""
        return {**self.config.get("report", {}), "confidence": self.config["analysis"]["confidence"]}

    @property
    def progress_options(self) -> dict[str, Any]:
        """Options of the progress page."""
        return {
            "variants": self.variants.declared,
            "options": self.config.get("report", {}),
            "ready_timeout": self.config.get("target", {}).get("ready_timeout"),
        }

    @property
    def pages_with_charts(self) -> list[str]:
        """``<kind>/<name>`` of every page with charts."""
        return [
            *(f"campaigns/{slug}" for slug in self.snapshot.slugs),
            *(f"comparisons/{name}" for name in self.compared),
            *(f"variants/{slug}" for slug in self.variant_pages),
        ]

    @property
    def pages_drawn(self) -> list[str]:
        """Those of them whose charts were drawn as figures before."""
        figures = Path(self.config["reports"], "figures")
        return [page for page in self.pages_with_charts if (figures / page).is_dir()]

    # --- collecting ---

    @property
    def without_credentials(self) -> dict[str, Any]:
        """The configuration for all jobs: Snakemake writes it into ``.snakemake/scripts``."""
        return {key: value for key, value in self.config.items() if key not in ("sweep", "target")}

    @property
    def whole_config(self) -> Confidential:
        """All of it, for a job that opens a sweep or talks to its target."""
        return Confidential("CONFIG", self.config)

    @property
    def sweep_options(self) -> Confidential:
        """Arguments of `Attempts`."""
        options = {
            "target": self.config.get("target", {}),
            "host": self.config["host"],
            "limits": configuration.limits(self.config),
            "journal": JOURNAL,
            "script": self.config.get("sweep", {}).get("script"),
            "only": plan.Selection.of(self.config["only"]),
        }
        return Confidential("SWEEP", options)


def first_seen(variants: Variants, listings: Iterable[CampaignListing]) -> dict[str, list[str]]:
    """The undeclared variants of each app, in the order of the first campaigns that have them.

    So a new undeclared variant of a newer campaign does not change the styles of others. If older results are imported
    later, their undeclared variants do: an archive does not record when a campaign was added, since mtimes do not
    survive a copy. Declared variants always keep their styles.
    """
    found: dict[str, dict[str, None]] = {}
    for listing in sorted(listings, key=lambda each: (each.campaign.instant, str(each.campaign))):
        app = listing.campaign.app
        names = {text(variants.canonical(app, cell.cell.variant_dir)) for cell in listing.cells}
        for name in sorted(names.difference(variants.declared.get(app, ())), key=natural):
            found.setdefault(text(app), {})[name] = None
    return {app: list(names) for app, names in found.items()}


def undeclared_in(
    variants: Variants, undeclared: Mapping[str, Sequence[str]], listings: Iterable[CampaignListing]
) -> dict[str, list[str]]:
    """The `undeclared` variants up to the last one in these campaigns, which determine its style."""
    held = first_seen(variants, listings)
    return {app: list(undeclared[app][: 1 + max(map(undeclared[app].index, names))]) for app, names in held.items()}
