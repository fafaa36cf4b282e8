"""Entry point of the rule database."""

from pathlib import Path

from loadstone.workflow.deterministic import Folders, job
from loadstone.analysis import history
from loadstone.tables import layout
from loadstone.tables.database import build_database, prune, prune_comparisons
from loadstone.tables.traces import prune_dumps
from loadstone.workflow.markers import write_marker

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    campaigns, tables = folders.campaigns(params.campaigns), folders.tables
    prune(tables, campaigns)
    prune_comparisons(tables, params.comparisons)
    prune_dumps(tables, [folders.dump(fields) for fields in params.dumps])
    history.write(campaigns, tables, {tuple(key): note for *key, note in params.notes}, **params.settings)
    build_database(tables, Path(snakemake.output[0]), project_root=Path.cwd())
    layout.claim_database(tables)
    write_marker(Path(snakemake.output[2]), params.fingerprint)
