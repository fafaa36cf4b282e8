"""Entry point of the rule verify."""

from pathlib import Path

from loadstone.entry import job
from loadstone.errors import LoadstoneError
from loadstone.verify import RECORDS, verify

with job(snakemake.log[0]) as log:
    archive, tables = (Path(snakemake.params.folders[name]) for name in ("archive", "tables"))
    found = verify(archive, tables, log)
    log(found.summary())
    if not found.is_intact:
        raise LoadstoneError(
            f"the archive {archive} is not what was recorded of it; the files are named above. Restore them from a "
            f"copy, or accept a campaign as it is by removing its file below {tables / RECORDS}"
        )
