"""Entry point of the rule trace."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.archive.trace_dumps import Dump
from loadstone.tables.traces import convert_dump
from loadstone.workflow.markers import write_marker
from loadstone.workflow.snapshot import traces_fingerprint

with job(snakemake.log[0]) as log:
    params = snakemake.params
    dump = Dump(Path(params.folders["archive"]), **params.dump)
    tables = Path(params.folders["tables"])
    convert_dump(dump, tables, log)
    write_marker(Path(snakemake.output[0]), traces_fingerprint(tables, dump))
