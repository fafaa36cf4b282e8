"""Entry point of the rule inventory."""

from pathlib import Path

from loadstone.workflow.job import job
from loadstone.workflow.state import mark_done

with job(snakemake.log[0]):
    mark_done(Path(snakemake.output[0]), snakemake.params.held)
