"""Entry point of the rule page_figures."""

from pathlib import Path

from loadstone.report.figures import build
from loadstone.report.site_layout import Part
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    folder, reports = Path(snakemake.output[0]), Path(snakemake.params.folders["reports"])
    part = Part(reports, folder.relative_to(reports).as_posix()).begin()
    files = build(Path(snakemake.input[0]), folder, snakemake.params.figures)
    part.finish(files)
    log(f"{len(files)} files in {folder}")
