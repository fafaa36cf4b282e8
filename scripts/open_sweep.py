"""Entry point of the rule open."""

from loadstone.collect.sweep import open_checked
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    open_checked(snakemake.params.config, log)
