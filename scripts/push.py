"""Entry point of the rule push."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.publish.bucket.transfer import push

with job(snakemake.log[0]) as log:
    folders = Folders(snakemake.params.folders)
    push(folders.archive, folders.tables, snakemake.params.storage, log)
