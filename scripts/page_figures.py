"""Entry point of the rule page_figures."""

from pathlib import Path

from loadstone.entry import job
from loadstone.report.figures import build

with job(snakemake.log[0]) as log:
    made = build(Path(snakemake.input[0]), Path(snakemake.output[0]), snakemake.params.figures)
    log(f"{len(made)} files in {snakemake.output[0]}")
