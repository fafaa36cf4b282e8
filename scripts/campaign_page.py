"""Entry point of the rule campaign_page."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.archive import Campaign, decode
from loadstone.config.variants import Variants
from loadstone.report.site import build_campaign

with job(snakemake.log[0]) as log:
    params = snakemake.params
    campaign = Campaign(Path(params.folders["archive"]), *map(decode, params.campaign))
    tables, reports = Path(params.folders["tables"]), Path(params.folders["reports"])
    build_campaign(campaign, tables, reports, Variants(**params.variants), params.options, entry=params.catalogued)
