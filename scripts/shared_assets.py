"""Entry point of the rule shared_assets."""

from pathlib import Path

from loadstone.entry import job
from loadstone.report.shared_files import write_assets

with job(snakemake.log[0]) as log:
    write_assets(Path(snakemake.params.folders["reports"]))
