"""Entry point of the rule compare."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.analysis.comparison import compare
from loadstone.analysis.scope import Settings
from loadstone.config import comparisons

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    comparison = comparisons.from_config(params.comparison)
    campaigns = folders.campaigns(params.campaigns)
    for refusal in compare(comparison, campaigns, folders.tables, Settings(**params.settings)).refusals:
        log(f"{comparison.id} has no figures: {refusal}")
