"""Entry point of the rule summary_sheet."""

from pathlib import Path

from loadstone.report.figures import build_summary
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    font = {"font": snakemake.params.font} if snakemake.params.font else {}
    log(str(build_summary(Path(snakemake.input[0]), Path(snakemake.output[0]), **font)))
