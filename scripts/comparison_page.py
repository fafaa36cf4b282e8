"""Entry point of the rule comparison_page."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.archive import Campaign, decode
from loadstone.config import comparisons
from loadstone.config.variants import Variants
from loadstone.report.site import build_comparison

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = {name: Path(folder) for name, folder in params.folders.items()}
    campaigns = [Campaign(folders["archive"], *map(decode, key)) for key in params.campaigns]
    build_comparison(
        comparisons.from_config(params.comparison),
        campaigns,
        folders["tables"],
        folders["reports"],
        Variants(**params.variants),
        options=params.options,
    )
