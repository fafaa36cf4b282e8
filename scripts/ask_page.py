"""Entry point of the rule ask_page."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.archive import Campaign, decode
from loadstone.report.query_page import build_ask

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = {name: Path(folder) for name, folder in params.folders.items()}
    build_ask(
        [Campaign(folders["archive"], *map(decode, key)) for key in params.campaigns],
        folders["tables"],
        folders["reports"],
        Path(params.packages) if params.packages else None,
        params.options,
    )
