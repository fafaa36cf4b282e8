"""Entry point of the rule campaign_page."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.config.variants import Variants
from loadstone.report.campaign_page import build_campaign

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    build_campaign(
        folders.campaign(params.campaign),
        folders.tables,
        folders.reports,
        Variants(**params.variants),
        params.options,
        entry=params.catalogue_entry,
    )
