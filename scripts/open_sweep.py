"""Entry point of the rule open."""

from loadstone.collect.tools import versions
from loadstone.entry import job
from loadstone.sweep import open_sweep

with job(snakemake.log[0]) as log:
    config = snakemake.params.config
    open_sweep(config, versions(config), log)
