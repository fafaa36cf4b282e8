"""Entry point of the rule compare."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.analysis.comparison import compare
from loadstone.analysis.scope import settings
from loadstone.archive import Campaign, decode
from loadstone.config import comparisons

with job(snakemake.log[0]) as log:
    params = snakemake.params
    campaigns = [Campaign(Path(params.folders["archive"]), *map(decode, key)) for key in params.campaigns]
    comparison = comparisons.from_config(params.comparison)
    tables = Path(params.folders["tables"])
    for refusal in compare(comparison, campaigns, tables, settings(params.settings)).refusals:
        log(f"{comparison.id} has no figures: {refusal}")
