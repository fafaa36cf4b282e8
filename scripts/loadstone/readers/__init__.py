"""Raw files of every format as the same record batches.

A format is one module with one function, `Reader`; registering it is one line in `READERS`. A reader takes a path and
a `Problems` to fill in, yields batches with the columns of `SCHEMA` within bounded memory, and raises LoadstoneError
only for what the user has to mend on the machine (a missing program), never for what a file holds.
"""

from loadstone.readers import vegeta_csv, vegeta_gob, vegeta_json
from loadstone.readers.base import SCHEMA, Problems, Reader

# Suffix behind `<run>.<...>.results.` or `.warmups.` -> reader; every reader also takes its format compressed by zstd.
_FORMATS: dict[str, Reader] = {
    "json": vegeta_json.read,
    "csv": vegeta_csv.read,
    "bin": vegeta_gob.read,
}
READERS: dict[str, Reader] = _FORMATS | {f"{suffix}.zst": reader for suffix, reader in _FORMATS.items()}

__all__ = ["READERS", "SCHEMA", "Problems", "Reader"]
