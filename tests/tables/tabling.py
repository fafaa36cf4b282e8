"""Converting and analysing a small archive, for tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone import archive
from loadstone.analysis.campaign import analyse_campaign
from loadstone.tables import database
from loadstone.tables.convert import convert_campaign
from support import arrow

ALIASES = {"envoy": "istio"}


class Project:
    """An archive and its tables below one folder; `log` holds what the last conversion said."""

    def __init__(self, folder: Path) -> None:
        self.archive = folder / "archive"
        self.tables = folder / "tables"
        self.log: list[str] = []
        self.aliases = dict(ALIASES)

    def convert(self, workers: int = 1) -> list[str]:
        """Convert every campaign; which cells were read, as ``<rate>/<variant_dir>``."""
        self.log = []
        for campaign in archive.campaigns(self.archive):
            convert_campaign(
                campaign, self.tables, lambda _, name: self.aliases.get(name, name), workers, self.log.append
            )
        read = [line.removeprefix("reading ").partition(" (")[0] for line in self.log if line.startswith("reading ")]
        return ["/".join(path.split("/")[3:]) for path in read]

    def analyse(self, tags: Sequence[Mapping[str, Any]] = (), excluding: Sequence[str] = (), **known: Any) -> None:
        """Analyse every campaign; `known` is what else people say of each."""
        for campaign in archive.campaigns(self.archive):
            analyse_campaign(campaign, self.tables, tags, excluding, **known)

    def make(self) -> None:
        """Both."""
        self.convert()
        self.analyse()

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The answer to a query on the views."""
        with database.connect(self.tables) as connection:
            return arrow.rows(connection.sql(query).to_arrow_table())

    def row(self, query: str) -> dict[str, Any]:
        """The same for one row."""
        (found,) = self.rows(query)
        return found
