"""Entry point of the rule variant_pages."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.archive import Campaign, decode
from loadstone.config.variants import Variants
from loadstone.report.site import build_variants

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = {name: Path(folder) for name, folder in params.folders.items()}
    build_variants(
        [(app, variant) for app, variant in params.names],
        [Campaign(folders["archive"], *map(decode, key)) for key in params.campaigns],
        folders["tables"],
        folders["reports"],
        Variants(**params.variants),
        options=params.options,
    )
