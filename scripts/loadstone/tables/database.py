"""DuckDB over the tables: a connection with one view per table, and the database file that holds the same views."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from loadstone.archive import Campaign
from loadstone.errors import LoadstoneError
from loadstone.tables import layout
from loadstone.tables.schema import TABLES
