"""The report's queries to the tables: each is one file under ``sql/page_*.sql``, its values bound as parameters."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from loadstone import sql
from loadstone.analysis import run_requests
from loadstone.analysis.run_requests import RunRequests
from loadstone.archive import Campaign
from loadstone.tables import database
from loadstone.tables.database import connect, table_files

Row = dict[str, Any]

# Tables about scopes, with the columns by which their rows are ordered; claims are in the order in which they weigh.
_SCOPED_BY = {
    "claims": (),
    "comparisons": ("rate", "variant"),
    "effects": ("rate", "load_model", "generator", "variant", "statistic"),
    "interactions": ("rate", "load_model", "generator", "bottom", "top", "statistic"),
    "knee_shares": ("share", "statistic", "load_model", "generator", "variant"),
    "knees": ("load_model", "generator", "variant"),
    "layers": ("rate", "load_model", "generator", "below", "variant", "statistic"),
    "percentile_curves": ("rate", "load_model", "generator", "variant"),
    "time_bins": ("rate", "load_model", "generator", "variant", "from_s"),
}

# The table without which a query has no rows, unless it is its value `table`. Looking for files takes less time than
# planning a query.
_NEEDED = {
    "page_error_causes": "error_causes",
    "page_failures": "failures",
    "page_incident_kinds": "incidents",
    "page_incidents": "incidents",
    "page_resources": "resources",
    "page_resources_over_time": "resources",
    "page_run_shapes": "run_shapes",
    "page_senders": "senders",
    "page_sending": "sending",
    "page_suggestions": "suggestions",
}


@dataclass(frozen=True)
class Distributions:
    """Rows of the tables `time_bins`, `percentile_curves` and `run_figures`; ``variant`` names the series."""

    bins: list[Row]
    curves: list[Row]
    runs: list[Row]

    @property
    def rates(self) -> list[float]:
        """Loads at which there is a distribution."""
        return sorted({row["rate"] for row in self.curves})


class Queries:
    """Queries over an open `connection` to `tables` of some campaigns (None: of all)."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, tables: Path, campaigns: Sequence[Campaign] | None
    ) -> None:
        self.connection = connection
        self._files = partial(table_files, tables, campaigns=campaigns)
        self._requests_files = self._files("requests")

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """The rows that ``sql/<name>.sql`` gives, as dictionaries by column name."""
        needed = _NEEDED.get(name, values.get("table"))
        if needed and not self._files(needed):
            return []
        cursor = self.connection.execute(sql.load(name), values)
        columns = [column[0] for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    def of_scope(self, table: str, comparison: str | None) -> list[Row]:
        """The rows of a table about a comparison or, without one, about the campaign asked about."""
        columns = _SCOPED_BY[table]

        def place(row: Row) -> list[tuple[bool, Any]]:
            return [(row[column] is None, row[column]) for column in columns]

        return sorted(self.rows("scope_rows", table=table, comparison=comparison), key=place)

    def distributions(
        self,
        comparison: str | None = None,
        *,
        counts: Callable[[Row], bool] = lambda _: True,
        named: Callable[[Row], Row] = lambda row: row,
    ) -> Distributions:
        """`counts` says whether the page uses a run, `named` gives a row the name of its series."""
        return Distributions(
            bins=[named(row) for row in self.of_scope("time_bins", comparison)],
            curves=[named(row) for row in self.of_scope("percentile_curves", comparison)],
            runs=[named(row) for row in self.rows("page_run_figures") if counts(row)],
        )

    def rows_of_requests(self, name: str, **values: Any) -> list[Row]:
        """The same for a query over requests (``$files``); none where the campaigns have none."""
        return self.rows(name, files=self._requests_files, **values) if self._requests_files else []

    def requests(self, parts: Iterable[Sequence[int]]) -> Iterator[tuple[int, RunRequests]]:
        """The requests of all phases of each run that has any, excluded or not.

        Each of `parts`, runs by their ``series`` in ``selected_runs.sql``, is read at once.
        """
        files = self._requests_files
        with database.reading([Path(file) for file in files]):
            if files:
                yield from run_requests.read(
                    self.connection, files, parts, with_excluded=True, every_phase=True, also=["phase"]
                )


def run_key(row: Row) -> tuple[Any, ...]:
    """Which run of all campaigns a row is about."""
    return tuple(row[name] for name in ("host", "timestamp", "rate", "variant_dir", "run"))


def in_order(rows: Iterable[Row], variants: Iterable[str]) -> list[Row]:
    """Rows by rate (those without one first) and then in the order of `variants`; otherwise in their own order."""
    places = {name: place for place, name in enumerate(variants)}

    def place(row: Row) -> tuple[float, int]:
        return -1.0 if row["rate"] is None else row["rate"], places.get(row["variant"], len(places))

    return sorted(rows, key=place)


@contextmanager
def querying(tables: Path, campaigns: list[Campaign] | None) -> Iterator[Queries]:
    """Queries about these campaigns alone (None: about all in the tables); the connection is closed at the end."""
    connection = connect(tables, campaigns)
    try:
        connection.execute(sql.load("selected_runs"))
        yield Queries(connection, tables, campaigns)
    finally:
        connection.close()
