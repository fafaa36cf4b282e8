"""Entry point of the rule restore."""

from loadstone.collect.targets.kubernetes.keeper import restore
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    restore(snakemake.params.config, log)
