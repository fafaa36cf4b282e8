"""Entry point of the rule plan."""

from loadstone.collect.targets.kubernetes.plan import explain
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    explain(snakemake.params.config, log)
