"""Entry point of the rule extend."""

from loadstone.collect.extend import extend
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    extend(snakemake.params.config, log)
