"""Entry point of the rule analyse."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.analysis.campaign import analyse_campaign
from loadstone.analysis.scope import settings
from loadstone.analysis.suggested_tags import told

with job(snakemake.log[0]) as log:
    names, params = snakemake.wildcards, snakemake.params
    folders = Folders.of(params.folders)
    campaign = folders.campaign((names.app, names.host, names.timestamp))
    suggestions = analyse_campaign(campaign, folders.tables, **params.known, settings=settings(params.settings))
    for text in told(suggestions, campaign):
        log(text)
