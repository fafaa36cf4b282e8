"""Columns of every table, as `columns.yaml` declares them. The contract that queries, reports and other tools rely on.

Units are in the names; times are UTC. `requests.sent_at` has nanoseconds and therefore no zone (DuckDB's zoned
nanoseconds have no arithmetic); all other times are zoned microseconds.
"""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import yaml

Columns = dict[str, tuple[str, str]]  # type and meaning by name

CAMPAIGN_KEY = ("app", "host", "timestamp")
CELL_KEY = (*CAMPAIGN_KEY, "variant", "rate")
KEY = (*CELL_KEY, "run")

_TYPES = {
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "INTEGER": pa.int32(),
    "MAP(VARCHAR, BIGINT)": pa.map_(pa.string(), pa.int64()),
    "MAP(VARCHAR, DOUBLE)": pa.map_(pa.string(), pa.float64()),
    "MAP(VARCHAR, VARCHAR)": pa.map_(pa.string(), pa.string()),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
    "VARCHAR": pa.string(),
}


def _columns(declared: Mapping[str, str | None], common: Columns) -> Columns:
    found = {}
    for names, text in declared.items():
        for name in names.split(", "):
            type_, _, meaning = (text or "").partition(" · ")
            found[name] = (type_, meaning) if text else common[name]
    return found


def _type(name: str) -> pa.DataType:
    return pa.list_(_type(name[:-2])) if name.endswith("[]") else _TYPES[name]


def _schema(columns: Columns) -> pa.Schema:
    return pa.schema([(name, _type(type_)) for name, (type_, _) in columns.items()])


# In C, since every job starts with this.
_DECLARED = yaml.load(Path(__file__).with_name("columns.yaml").read_bytes(), yaml.CSafeLoader)
STRUCTS = {name: _columns(fields, {}) for name, fields in _DECLARED["structs"].items()}
for _name, _fields in STRUCTS.items():  # a struct may have those before it as fields
    _TYPES[_name] = pa.struct(list(_schema(_fields)))
_COMMON = _columns(_DECLARED["common"], {})
_ALL = _DECLARED["tables"] | _DECLARED["views"] | _DECLARED["internal"]

# What one row of a table is, the modules and SQL files that make it, and what its columns mean.
ROWS = {table: declared["row"] for table, declared in _ALL.items()}
MADE_BY = {table: list(declared["made_by"]) for table, declared in _ALL.items() if "made_by" in declared}
COLUMNS = {table: _columns(declared["columns"], _COMMON) for table, declared in _ALL.items()}

SCHEMAS = {table: _schema(columns) for table, columns in COLUMNS.items()}

# Every table with a view in the database; `facts` and `replicates` have none, since only Loadstone reads them.
TABLES = {table: SCHEMAS[table] for table in _DECLARED["tables"]}

# Views over these, each made by the SQL file of its name.
VIEWS = {table: SCHEMAS[table] for table in _DECLARED["views"]}


def sql_script() -> str:
    """DuckDB's statements that create every table, without rows."""

    def listed(columns: Columns) -> str:
        return ", ".join(f'"{name}" {type_}' for name, (type_, _) in columns.items())

    types = [f"CREATE TYPE {name} AS STRUCT({listed(columns)})" for name, columns in STRUCTS.items()]
    tables = [f"CREATE TABLE {table} ({listed(columns)})" for table, columns in COLUMNS.items() if table not in VIEWS]
    return ";\n".join(types + tables)
