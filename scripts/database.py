"""Entry point of the rule database."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.analysis import history
from loadstone.archive import Campaign, decode
from loadstone.archive.trace_dumps import Dump
from loadstone.tables import layout
from loadstone.tables.database import build_database, prune, prune_comparisons
from loadstone.tables.traces import prune_dumps

with job(snakemake.log[0]) as log:
    params = snakemake.params
    tables = Path(params.folders["tables"])
    campaigns = [Campaign(Path(params.folders["archive"]), *map(decode, key)) for key in params.campaigns]
    prune(tables, campaigns)
    prune_comparisons(tables, params.comparisons)
    prune_dumps(tables, [Dump(Path(params.folders["archive"]), **fields) for fields in params.dumps])
    history.write(campaigns, tables, {tuple(key): note for *key, note in params.notes}, **params.settings)
    build_database(tables, Path(snakemake.output[0]), project_root=Path.cwd())
    layout.claim_database(tables)
