"""Entry point of the rule push."""

from pathlib import Path

from loadstone.computing import job
from loadstone.storing.push import push

with job(snakemake.log[0]) as log:
    folders = snakemake.params.folders
    push(Path(folders["archive"]), Path(folders["tables"]), snakemake.params.storage, log)
