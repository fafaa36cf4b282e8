"""docs/tables.md, the data dictionary, from the schema and the meanings of columns: ``make docs``."""

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "scripts"))

from loadstone.tables import schema  # noqa: E402

DOCUMENT = PROJECT / "docs/tables.md"
TABLES = {**schema.TABLES, **schema.VIEWS}
KEYS = [list(key) for key in (schema.KEY, schema.CELL_KEY, schema.CAMPAIGN_KEY)]

_UNITS = {"_ns": "ns", "_s": "s", "_mib": "MiB", "_millicores": "millicores"}
_RATES = ("rate", "throughput")
_HEAD = """# Tables: the data dictionary

This page is generated: `make docs` writes it from `scripts/loadstone/tables/columns.yaml`. Each table is a view of the
same name in `results/loadstone.duckdb`, over Parquet files below `results/tables`. Open the database from the checkout,
read-only:

```sh
.venv/bin/python -c "import duckdb; print(duckdb.connect('results/loadstone.duckdb', read_only=True).sql('FROM runs'))"
```

```sql
SELECT variant, rate, p99_ns / 1e6 AS p99_ms, p99_low_ns / 1e6 AS low, p99_high_ns / 1e6 AS high
FROM cells WHERE stream = 'main' ORDER BY ALL;
```

Take figures from `cells`, which are of valid runs. Those of single runs, excluded or not, are in `run_figures`; `runs`
says which are excluded. Both leave out warm-ups, and a request that timed out took at least its time limit. In
`requests` its latency is as recorded, which may be less. Put `by`, `left` and `right` in double quotes: DuckDB reserves
these words.

Units are in the names: `_ns` nanoseconds, `_s` seconds, `_mib` MiB, `_millicores` thousandths of a processor. Shares
and fractions go from 0 to 1. Times are UTC. Null means that a value is unknown or has no meaning. An interval has the
configured confidence. A column that starts with `ok_` covers only requests with code 200 (gRPC: 0,
WebSocket: 101).

## Reading the files without the database

DuckDB, pandas and pyarrow read the files of a table without any option, and get the columns of its view:

```python
import duckdb
import pandas as pd

duckdb.sql("SELECT DISTINCT app, host, timestamp FROM read_parquet('results/tables/runs/**/*.parquet')").show()
print(pd.read_parquet("results/tables/runs")[["app", "host", "timestamp", "variant", "rate", "run"]])
```

The folders `app_dir=`, `host_dir=` and `timestamp_dir=` become three more columns. A condition on them skips the files
of other campaigns; use them for nothing else, since readers guess their types: DuckDB takes `timestamp_dir` for a time
without its zone. `hive_partitioning = false` (DuckDB) and `partitioning=None` (pandas, pyarrow) leave them out.

## Key columns

Tables begin with the key of a run (`app`, `host`, `timestamp`, `variant`, `rate`, `run`), of a cell (without `run`)
or of a campaign (`app`, `host`, `timestamp`).
"""


def unit(column: str) -> str:
    """By the end of its name."""
    if column in _RATES or column.endswith("_rate"):
        return "requests/s"
    return next((unit for end, unit in _UNITS.items() if column.endswith(end)), "")


def types(columns: pa.Schema) -> dict[str, str]:
    """The type of each column as DuckDB calls it."""
    view = duckdb.from_arrow(columns.empty_table())
    found = zip(view.columns, map(str, view.types), strict=True)
    return {name: type_.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ") for name, type_ in found}


def _key(columns: pa.Schema) -> list[str]:
    """The key that the columns start with, if any."""
    return next((key for key in KEYS if columns.names[: len(key)] == key), [])


def _rows(table: str, columns: pa.Schema) -> Iterator[str]:
    """Rows of the table in the document. Columns of one type, unit and meaning share a row."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for name, type_ in types(columns).items():
        if name in _key(columns):
            continue
        shared.setdefault((type_, unit(name), schema.COLUMNS[table][name][1]), []).append(f"`{name}`")
    for (type_, of, meaning), names in shared.items():
        yield f"| {', '.join(names)} | {type_} | {of} | {meaning} |"


def document() -> str:
    """The text of docs/tables.md."""
    parts = [_HEAD, "| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
    for name in schema.KEY:
        type_, meaning = schema.COLUMNS["requests"][name]
        parts.append(f"| `{name}` | {type_} | {unit(name)} | {meaning} |")
    parts += ["", "## Tables", "", "| table | one row per |", "| --- | --- |"]
    parts += [f"| [`{table}`](#{table}) | {schema.ROWS[table]} |" for table in TABLES]
    for table, columns in TABLES.items():
        parts += ["", f"## `{table}`", "", f"One row per {schema.ROWS[table]}."]
        if key := _key(columns):
            parts[-1] += f" Key: {', '.join(f'`{name}`' for name in key)}."
        parts[-1] += f" Made by {', '.join(f'`{name}`' for name in schema.MADE_BY[table])}."
        parts += ["", "| column | type | unit | meaning |", "| --- | --- | --- | --- |", *_rows(table, columns)]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
    print(f"{DOCUMENT} written")
