"""Entry point of the rule bundle."""

from pathlib import Path

from loadstone.workflow.deterministic import Folders, job
from loadstone.publish import bundle

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    campaigns, dumps = folders.campaigns(params.campaigns), [folders.dump(fields) for fields in params.dumps]
    compared = {name: folders.campaigns(keys) for name, keys in params.comparisons.items()}
    selection = bundle.select(campaigns, compared, dumps, params.declared)
    members = bundle.gather(selection, folders.archive, folders.tables, folders.reports, params.settings)
    log(bundle.write(Path(params.declared["path"]), members))
