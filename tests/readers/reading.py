"""Reading a whole file at once, for tests."""

from pathlib import Path

import pyarrow as pa
from loadstone.readers import READERS, SCHEMA, Problems
from support import arrow


def read(path: Path) -> tuple[pa.Table, Problems]:
    """All rows and all problems of a file named ``<run>.results.<suffix>``."""
    problems = Problems()
    batches = list(READERS[path.name.partition(".results.")[2]](path, problems))
    assert all(batch.schema == SCHEMA for batch in batches)
    return pa.Table.from_batches(batches, SCHEMA), problems


def rows(path: Path) -> list[dict]:
    """The rows of a file without problems."""
    table, problems = read(path)
    assert problems.texts() == []
    return arrow.rows(table)
