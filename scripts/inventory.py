"""Entry point of the rule inventory."""

from pathlib import Path

from loadstone.workflow.job import job
from loadstone.workflow.markers import write_marker

with job(snakemake.log[0]):
    write_marker(Path(snakemake.output[0]), snakemake.params.fingerprint)
