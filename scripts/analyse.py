"""Entry point of the rule analyse."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.analysis.campaign import analyse_campaign
from loadstone.analysis.scope import settings
from loadstone.analysis.suggested_tags import told
from loadstone.archive import Campaign, decode

with job(snakemake.log[0]) as log:
    names, folders, known = snakemake.wildcards, snakemake.params.folders, snakemake.params.known
    key = [decode(part) for part in (names.app, names.host, names.timestamp)]
    campaign = Campaign(Path(folders["archive"]), *key)
    suggestions = analyse_campaign(
        campaign, Path(folders["tables"]), **known, settings=settings(snakemake.params.settings)
    )
    for text in told(suggestions, campaign):
        log(text)
