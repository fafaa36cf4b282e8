"""Reading a whole file at once, for tests."""

from pathlib import Path

import pyarrow as pa
from loadstone import archive
from loadstone.readers import ANSWERED_SCHEMA, FORMATS, Problems, Reader
from support import arrow


def reader_of(path: Path) -> Reader:
    """Who reads the requests of a file named as in the archive."""
    parsed = archive.parse_name(path.name)
    assert parsed is not None
    reader = FORMATS[parsed.format].requests
    assert reader is not None
    return reader


def read(path: Path) -> tuple[pa.Table, Problems]:
    """All rows and all problems of a file named ``<run>.results.<suffix>``."""
    problems = Problems()
    batches = list(reader_of(path)(path, problems))
    assert all(batch.schema == ANSWERED_SCHEMA for batch in batches)
    return pa.Table.from_batches(batches, ANSWERED_SCHEMA), problems


def rows(path: Path) -> list[dict]:
    """The rows of a file without problems."""
    table, problems = read(path)
    assert problems.texts() == []
    return arrow.rows(table)
