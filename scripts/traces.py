"""Entry point of the rule trace."""

from pathlib import Path

from loadstone.computing import job
from loadstone.dumps import Dump
from loadstone.state import mark_done
from loadstone.tables.traces import convert_dump

with job(snakemake.log[0]) as log:
    params = snakemake.params
    dump = Dump(Path(params.folders["archive"]), **params.dump)
    convert_dump(dump, Path(params.folders["tables"]), log)
    mark_done(Path(snakemake.output[0]), dump.digest())
