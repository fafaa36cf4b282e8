"""Entry point of the rule trace."""

from pathlib import Path

from loadstone.computing import job
from loadstone.dumps import Dump
from loadstone.state import mark_done, record
from loadstone.tables import whole
from loadstone.tables.traces import convert_dump

with job(snakemake.log[0]) as log:
    params = snakemake.params
    dump = Dump(Path(params.folders["archive"]), **params.dump)
    tables = Path(params.folders["tables"])
    convert_dump(dump, tables, log)
    mark_done(Path(snakemake.output[0]), record(dump.digest(), whole.traced(tables, dump)))
