"""Entry point of the rule variant_pages."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.config.variants import Variants
from loadstone.report.variant_page import build_variants

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    build_variants(
        [(app, variant) for app, variant in params.names],
        folders.campaigns(params.campaigns),
        folders.tables,
        folders.reports,
        Variants(**params.variants),
        options=params.options,
    )
