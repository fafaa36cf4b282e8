"""Entry point of the rule trace."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.archive.trace_dumps import Dump
from loadstone.tables import layout
from loadstone.tables.traces import convert_dump
from loadstone.workflow.state import mark_done, record

with job(snakemake.log[0]) as log:
    params = snakemake.params
    dump = Dump(Path(params.folders["archive"]), **params.dump)
    tables = Path(params.folders["tables"])
    convert_dump(dump, tables, log)
    mark_done(Path(snakemake.output[0]), record(dump.digest(), layout.dump_digest(tables, dump)))
