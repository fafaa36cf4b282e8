"""Whether what was made once still lies there: the record of finished work holds the sizes of the files it made."""

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from loadstone.archive import Campaign
from loadstone.archive.trace_dumps import Dump
from loadstone.tables import layout
from loadstone.tables.schema import OF_CELLS, OF_DUMPS, OF_LISTINGS


def converted(tables: Path, campaign: Campaign) -> str:
    """A digest of what conversion made of a campaign; a file that goes away or is cut short changes it."""
    files = [layout.scope_file(tables, table, campaign) for table in OF_LISTINGS]
    for table in OF_CELLS:
        files += layout.partition(tables, table, campaign).glob("*.parquet")
    return _sizes(tables, files)


def traced(tables: Path, dump: Dump) -> str:
    """The same of what was made of a dump."""
    return _sizes(tables, (layout.dump_file(tables, table, dump) for table in OF_DUMPS))


def _sizes(tables: Path, files: Iterable[Path]) -> str:
    digest, prefix = hashlib.sha256(), len(os.fsencode(tables))
    for file in sorted(files, key=os.fsencode):
        with suppress(FileNotFoundError, NotADirectoryError):
            digest.update(b"%s %d\n" % (os.fsencode(file)[prefix:], file.stat().st_size))
    return digest.hexdigest()[:16]
