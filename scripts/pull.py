"""Entry point of the rule pull."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.publish.bucket.transfer import pull

with job(snakemake.log[0]) as log:
    folders = Folders(snakemake.params.folders)
    pull(folders.archive, folders.tables, snakemake.params.storage, log)
