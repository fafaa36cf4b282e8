"""Entry point of the rule pull."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.publish.bucket.pull import pull

with job(snakemake.log[0]) as log:
    folders = snakemake.params.folders
    pull(Path(folders["archive"]), Path(folders["tables"]), snakemake.params.storage, log)
