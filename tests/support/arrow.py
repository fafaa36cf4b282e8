"""Rows of Arrow tables for tests."""

from typing import Any

import pyarrow as pa

_NANOSECONDS = pa.timestamp("ns")


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as dictionaries; times of nanoseconds, which Python has no type for, are numbers since 1970."""
    fields = [field.with_type(pa.int64()) if field.type == _NANOSECONDS else field for field in table.schema]
    return table.cast(pa.schema(fields)).to_pylist()
