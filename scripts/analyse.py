"""Entry point of the rule analyse."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.analysis.campaign import analyse_campaign
from loadstone.analysis.campaign_checks import log_lines
from loadstone.analysis.scope import Settings

with job(snakemake.log[0]) as log:
    wildcards, params = snakemake.wildcards, snakemake.params
    folders = Folders(params.folders)
    campaign = folders.campaign((wildcards.app, wildcards.host, wildcards.timestamp))
    suggestions = analyse_campaign(campaign, folders.tables, **params.declared, settings=Settings(**params.settings))
    for text in log_lines(suggestions, campaign):
        log(text)
