"""Entry point of the rule bundle."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.archive import Campaign, decode
from loadstone.archive.trace_dumps import Dump
from loadstone.publish.bundle import bag, contents

with job(snakemake.log[0]) as log:
    params = snakemake.params
    archive, tables, reports = (Path(params.folders[name]) for name in ("archive", "tables", "reports"))

    def campaigns(keys: list[list[str]]) -> list[Campaign]:
        """Those of the archive by their wildcards."""
        return [Campaign(archive, *map(decode, key)) for key in keys]

    compared = {name: campaigns(keys) for name, keys in params.comparisons.items()}
    dumps = [Dump(archive, **fields) for fields in params.dumps]
    selection = contents.select(campaigns(params.campaigns), compared, dumps, params.declared)
    members = contents.gather(selection, archive, tables, reports, params.settings)
    log(bag.write(Path(params.declared["path"]), members).line())
