"""Entry point of the rule inventory."""

from pathlib import Path

from loadstone.entry import job
from loadstone.state import mark_done

with job(snakemake.log[0]):
    mark_done(Path(snakemake.output[0]), snakemake.params.held)
