"""Entry point of the rule compare."""

from pathlib import Path

from loadstone import comparisons
from loadstone.archive import Campaign, decode
from loadstone.entry import job
from loadstone.tables.compare import compare

with job(snakemake.log[0]) as log:
    params = snakemake.params
    campaigns = [Campaign(Path(params.folders["archive"]), *map(decode, key)) for key in params.campaigns]
    comparison = comparisons.from_config(params.comparison)
    for refusal in compare(comparison, campaigns, Path(params.folders["tables"])).refusals:
        log(f"{comparison.id} has no figures: {refusal}")
