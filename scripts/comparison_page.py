"""Entry point of the rule comparison_page."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.config import comparisons
from loadstone.config.variants import Variants
from loadstone.report.comparison_page import build_comparison

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    build_comparison(
        comparisons.from_config(params.comparison),
        folders.campaigns(params.campaigns),
        folders.tables,
        folders.reports,
        Variants(**params.variants),
        options=params.options,
    )
