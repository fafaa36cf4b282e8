"""Entry point of the rule push."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.publish.bucket.push import push

with job(snakemake.log[0]) as log:
    folders = snakemake.params.folders
    push(Path(folders["archive"]), Path(folders["tables"]), snakemake.params.storage, log)
