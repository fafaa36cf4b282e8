"""Entry point of the rule rights."""

from loadstone.collect.targets.kubernetes.plan import print_rights
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    print_rights(snakemake.params.config)
