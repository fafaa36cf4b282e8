"""Entry point of the rule plan."""

from loadstone.collect.kubernetes.plan import explain
from loadstone.entry import job

with job(snakemake.log[0]) as log:
    explain(snakemake.params.config, log)
