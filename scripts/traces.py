"""Entry point of the rule trace."""

from pathlib import Path

from loadstone.workflow.deterministic import Folders, job
from loadstone.tables.traces import convert_dump
from loadstone.workflow.markers import write_marker
from loadstone.workflow.snapshot import traces_fingerprint

with job(snakemake.log[0]) as log:
    folders = Folders(snakemake.params.folders)
    dump = folders.dump(snakemake.params.dump)
    convert_dump(dump, folders.tables, log)
    write_marker(Path(snakemake.output[0]), traces_fingerprint(folders.tables, dump))
