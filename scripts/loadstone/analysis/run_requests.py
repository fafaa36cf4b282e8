"""The requests of selected runs, in the Parquet files of their cells: read as arrays, or by queries.

``sql/measured_requests.sql`` says what a measured request is and what it took; queries read its macro. A `Cache` keeps
what was computed from the requests of cells, so that one more run costs its own cell, not the campaign.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from loadstone import sql
from loadstone.analysis import Row, by_key
from loadstone.archive import MAIN_STREAM
from loadstone.archive.durable import replace
from loadstone.errors import LoadstoneError
from loadstone.tables import database, layout

_KEY = ("app", "host", "timestamp", "variant", "rate", "run", "variant_dir")
_CELL = ("host", "timestamp", "rate", "variant_dir")  # columns that requests are selected by, with the run
_POSITIONS = ("series", "pool")
_SELECTED = pa.schema(
    [
        *((name, pa.int32()) for name in _POSITIONS),
        *((name, pa.string()) for name in ("host", "timestamp", "variant_dir")),
        ("rate", pa.float64()),
        ("run", pa.int32()),
        ("timeout_s", pa.float64()),
        ("excluded", pa.bool_()),
    ]
)

# Requests of several cells that are read at once: few enough for their memory not to matter.
_BATCH = 200_000
# Bytes, 4 to 8 a request: runs of larger files of requests are read one by one.
_LARGE = 2_000_000
NO_GENERATOR = -1  # of requests of a run with one generator
_COLUMNS = ("seq", "times_ns", "latency_ns", "outcome")
_HAS_CODE, _FAILED, _TIMED_OUT, _OK, _MEASURED, _DATED, _TIMED = 1, 2, 4, 8, 16, 32, 64


def digest(content: object) -> str:
    """Equal for equal content."""
    return hashlib.sha256(repr(content).encode("utf-8", "backslashreplace")).hexdigest()[:32]


# What every figure of requests depends on, other than its own query.
CODE = digest((sql.load("measured_requests"), sql.load("run_requests"), Path(__file__).read_text("utf-8")))


class Cache:
    """Rows computed from the requests of cells: the entries of the file at `path`; `save` keeps those that were used.

    The key of an entry is a hash of everything that its rows depend on: queries, values and Parquet files. There is one
    file per campaign and per comparison, next to the tables. It can be removed at any time and is then computed again.
    """

    def __init__(self, tables: Path, path: Path) -> None:
        self._tables = tables
        self._path = path
        self._used: dict[str, list[Row]] = {}
        try:
            content = json.loads(self._path.read_bytes())
            self._entries: dict[str, Any] = content if isinstance(content, dict) else {}
        except (OSError, ValueError):
            self._entries = {}

    def key(self, depends_on: object, files: Iterable[str]) -> str:
        """The key of rows over `files`, relative to the tables' folder; `depends_on` has all queries and values.

        Files are identified by size and mtime, since they are always replaced as a whole.
        """
        versions = []
        for file in sorted(files):
            status = (self._tables / file).stat()
            versions.append((file, status.st_size, status.st_mtime_ns))
        return digest((depends_on, versions))

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __setitem__(self, key: str, rows: Iterable[Row]) -> None:
        self._entries[key] = [_encoded(row) for row in rows]

    def __getitem__(self, key: str) -> list[Row]:
        self._used[key] = self._entries[key]
        return [_decoded(row) for row in self._entries[key]]

    def save(self) -> None:
        """Write the entries that were used; all others are outdated. Raises LoadstoneError when it can't be written."""
        layout.prepare_folder(self._tables, self._path.parent)
        try:
            replace(self._path, json.dumps(self._used, separators=(",", ":")).encode())
        except OSError as error:
            raise LoadstoneError(f"{self._path} cannot be written: {error.strerror or error}") from None


def _encoded(row: Row) -> Row:
    """As JSON: times are text, with ``@`` after their names; maps are lists of pairs already."""
    return {
        f"{name}@" if isinstance(value, datetime) else name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in row.items()
    }


def _decoded(row: Row) -> Row:
    found: Row = {}
    for name, value in row.items():
        if name.endswith("@"):
            found[name.removesuffix("@")] = datetime.fromisoformat(value)
        elif isinstance(value, list):
            found[name] = [tuple(item) if isinstance(item, list) else item for item in value]
        else:
            found[name] = value
    return found


@dataclass(frozen=True)
class RunRequests:
    """The measured requests of one stream of a run, ordered by number; all arrays have their number as length.

    Or those of every phase, if they were asked for. `times_ns` are nanoseconds since 1970, or since the start of the
    run if the tool records no time of day; 0 if it records neither. `latency_ns` of requests that timed out are lower
    bounds. `outcome` has the bits of ``sql/run_requests.sql``. `also` are the columns of ``sql/measured_requests.sql``
    that were asked for, by name; masked arrays if any value is null.
    """

    seq: NDArray[np.int64]
    times_ns: NDArray[np.int64]
    latency_ns: NDArray[np.int64]
    outcome: NDArray[np.uint8]
    also: Mapping[str, NDArray[Any]]

    @property
    def sent_ns(self) -> NDArray[np.int64] | None:
        """The times of all requests; None if any has none."""
        return self.times_ns if self._marked(_TIMED).all() else None

    @property
    def dated(self) -> NDArray[np.bool_]:
        """Which requests have a time of day."""
        return self._marked(_DATED)

    def by_generator(self) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Each generator, and the places of its requests that have a time of day; `also` has ``generator``."""
        places = np.flatnonzero(self.dated)
        generators = self.also["generator"][places]
        order = np.argsort(generators, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(generators[order])) + 1):
            if part.size:
                yield int(generators[part[0]]), places[part]

    @property
    def has_code(self) -> NDArray[np.bool_]:
        return self._marked(_HAS_CODE)

    @property
    def failed(self) -> NDArray[np.bool_]:
        return self._marked(_FAILED)

    @property
    def timed_out(self) -> NDArray[np.bool_]:
        return self._marked(_TIMED_OUT)

    @property
    def ok(self) -> NDArray[np.bool_]:
        return self._marked(_OK)

    @property
    def measured(self) -> NDArray[np.bool_]:
        return self._marked(_MEASURED)

    def _marked(self, bit: int) -> NDArray[np.bool_]:
        """Read-only. Takes no memory where all requests are alike, which is most often."""
        marked = (self.outcome & bit) > 0
        alike = marked.size and (marked == marked[0]).all()
        return np.broadcast_to(marked[0], marked.shape) if alike else marked


@dataclass(frozen=True)
class Pool:
    """Runs with requests in `files` (relative to the tables' folder): those of a cell, or of a row of comparisons."""

    files: Sequence[str]
    runs: Sequence[Row]


@dataclass(frozen=True)
class Source:
    """A connection to the requests below `tables`, with a cache of what was computed from them.

    Queries are over several pools at once, since planning a query takes longer than running it over a few thousand
    requests.
    """

    connection: duckdb.DuckDBPyConnection
    tables: Path
    cache: Cache

    def of_pools(
        self,
        pools: Sequence[Pool],
        compute: Callable[[Sequence[Pool], list[str]], Iterable[tuple[int, Row]]],
        depends_on: Callable[[Pool], object],
    ) -> list[list[Row]]:
        """The rows of each of `pools`, from the cache if possible.

        `compute` returns rows of some pools, each with the position of its pool; their runs are selected, and their
        files are its second argument, as patterns. Raises LoadstoneError when a table's file is damaged.
        """
        keys = [self.cache.key((depends_on(pool), identity(pool.runs)), pool.files) for pool in pools]
        for batch in self._batches([n for n, key in enumerate(keys) if key not in self.cache], pools):
            chosen = [pools[n] for n in batch]
            select(self.connection, chosen)
            files = sorted({layout.pattern(self.tables / file) for pool in chosen for file in pool.files})
            found = defaultdict(list)
            with database.reading([self.tables / file for pool in chosen for file in pool.files]):
                for position, row in compute(chosen, files):
                    found[position].append(row)
            for position, n in enumerate(batch):
                self.cache[keys[n]] = found[position]
        return [self.cache[key] for key in keys]

    def _batches(self, numbers: Iterable[int], pools: Sequence[Pool]) -> Iterator[list[int]]:
        """Pools of up to `_BATCH` requests together; a larger one is alone.

        Two files of one cell (of folders like ``100`` and ``100.0``) are only together in a pool that has both, since
        their runs have the same names.
        """
        batch: list[int] = []
        files: dict[tuple[Any, ...], Sequence[str]] = {}
        total = 0
        for number in numbers:
            pool = pools[number]
            requests = sum(_n_requests(self.tables / file) for file in pool.files)
            cells = {tuple(run[name] for name in _CELL) for run in pool.runs}
            if batch and (
                total + requests > _BATCH or any(files.get(cell, pool.files) != pool.files for cell in cells)
            ):
                yield batch
                batch, files, total = [], {}, 0
            batch.append(number)
            files |= dict.fromkeys(cells, pool.files)
            total += requests
        if batch:
            yield batch

    def requests(
        self,
        pools: Sequence[Pool],
        files: list[str],
        *,
        stream: str = MAIN_STREAM,
        with_excluded: bool = False,
        also: Sequence[str] = (),
    ) -> Iterator[tuple[int, int, RunRequests]]:
        """The requests of each run that has any: the position of its pool, its own in that pool, its requests.

        `pools` and their `files` are what `of_pools` selected; `also` are further columns.
        """
        places = positions(pools)
        is_large = sum((self.tables / file).stat().st_size for pool in pools for file in pool.files) > _LARGE
        parts = [[series] for series in range(len(places))] if is_large else [None]
        for series, found in read(self.connection, files, parts, stream, with_excluded=with_excluded, also=also):
            yield *places[series], found

    def of_runs(self, query: str, facts: Sequence[Row], *, also: object = None, **values: Any) -> list[list[Row]]:
        """The rows of ``sql/<query>.sql`` for each of the runs `facts`: those with its ``series``.

        `values` are bound to the query's parameters other than `$files`; `also` is what else the rows depend on.
        """
        text = sql.load(query)

        def compute(pools: Sequence[Pool], files: list[str]) -> Iterator[tuple[int, Row]]:
            places = positions(pools)
            for row in database.rows(self.connection, text, files=files, **values):
                pool, run = places[row["series"]]
                yield pool, row | {"series": run}

        return self.of_cells(facts, compute, lambda _: (text, values, also))

    def of_cells(
        self,
        facts: Sequence[Row],
        compute: Callable[[Sequence[Pool], list[str]], Iterable[tuple[int, Row]]],
        depends_on: Callable[[Pool], object],
    ) -> list[list[Row]]:
        """As `of_pools` for each of the runs `facts`; rows have ``series``, the position of a run in its pool.

        There is a pool per cell, or per run of a large cell.
        """
        with_requests = [n for n, fact in enumerate(facts) if fact["requests_file"]]
        cells = by_key(with_requests, lambda n: facts[n]["requests_file"])
        parts = [
            (file, part)
            for file, numbers in cells.items()
            for part in ([[n] for n in numbers] if (self.tables / file).stat().st_size > _LARGE else [numbers])
        ]
        pools = [Pool([file], [facts[n] for n in numbers]) for file, numbers in parts]
        found: list[list[Row]] = [[] for _ in facts]
        for (_, numbers), rows in zip(parts, self.of_pools(pools, compute, depends_on), strict=True):
            for row in rows:
                found[numbers[row.pop("series")]].append(row)
        return found


def _n_requests(file: Path) -> int:
    """0 for a file that can't be read: the query will say so."""
    try:
        return int(pq.read_metadata(file).num_rows)
    except (OSError, pa.ArrowException, ValueError):
        return 0


def read(
    connection: duckdb.DuckDBPyConnection,
    files: list[str],
    parts: Iterable[Sequence[int] | None],
    stream: str = MAIN_STREAM,
    *,
    with_excluded: bool = False,
    every_phase: bool = False,
    also: Sequence[str] = (),
) -> Iterator[tuple[int, RunRequests]]:
    """The requests of each selected run that has any, in the order of their ``series``.

    Each of `parts`, runs by their ``series`` (None: all), is read at once. `also` are columns beside `_COLUMNS`.
    """
    values = {"files": files, "stream": stream, "with_excluded": with_excluded, "every_phase": every_phase}
    values["columns"] = ["series", *_COLUMNS, *also]
    for part in parts:
        columns = _ordered(connection.execute(sql.load("run_requests"), values | {"series": part}).fetchnumpy())
        found = columns.pop("series")
        edges = np.flatnonzero(np.diff(found, prepend=-1, append=-1))
        for low, high in pairwise(edges.tolist()):
            own = {name: column[low:high] for name, column in columns.items()}
            further = {name: own.pop(name) for name in also}
            yield int(found[low]), RunRequests(**own, also=further)


def _ordered(columns: dict[str, Any]) -> dict[str, Any]:
    """By run and number; equal numbers in an order that depends on nothing else.

    Much faster than sorting in a query, since large parts are in order already.
    """
    series, seq = np.diff(columns["series"]), np.diff(columns["seq"])
    if ((series > 0) | ((series == 0) & (seq > 0))).all():
        return columns
    order = np.argsort(columns["seq"], kind="stable")
    order = order[np.argsort(columns["series"][order], kind="stable")]
    if ((np.diff(columns["seq"][order]) == 0) & (np.diff(columns["series"][order]) == 0)).any():
        order = np.lexsort([columns[name] for name in ("outcome", "latency_ns", "times_ns", "seq", "series")])
    return {name: column[order] for name, column in columns.items()}


def select(connection: duckdb.DuckDBPyConnection, pools: Sequence[Pool]) -> None:
    """Select the runs whose requests queries of the connection read, by columns of ``selected_runs``.

    `pool` is the position of a run's pool, `series` that of the run among those of all pools. A run without
    `excluded` is not excluded.
    """
    runs = [{"excluded": False} | run | {"pool": n} for n, pool in enumerate(pools) for run in pool.runs]
    rows = [run | {"series": n} for n, run in enumerate(runs)]
    columns = {name: [row[name] for row in rows] for name in _SELECTED.names}
    connection.register("selected_runs", pa.table(columns, schema=_SELECTED))


def positions(pools: Sequence[Pool]) -> list[tuple[int, int]]:
    """By `series`: the position of its pool, and of its run within that."""
    return [(n, position) for n, pool in enumerate(pools) for position in range(len(pool.runs))]


def identity(runs: Sequence[Row]) -> tuple[Any, ...]:
    """What measured requests of these runs depend on, other than their files."""
    names = [*(name for name in _SELECTED.names if name not in _POSITIONS), "clock_set_back_s"]
    return CODE, [tuple(run.get(name) for name in names) for run in runs]


def key(fact: Mapping[str, Any]) -> Row:
    """The columns that identify a run."""
    return {name: fact[name] for name in _KEY}
