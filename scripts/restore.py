"""Entry point of the rule restore."""

from loadstone.collect.kubernetes.keeper import restore
from loadstone.entry import job

with job(snakemake.log[0]) as log:
    restore(snakemake.params.config, log)
