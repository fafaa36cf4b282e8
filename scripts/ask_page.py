"""Entry point of the rule ask_page."""

from pathlib import Path

from loadstone.workflow.deterministic import Folders, job
from loadstone.report.query_page import build_query_page

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    packages = Path(params.packages) if params.packages else None
    build_query_page(folders.campaigns(params.campaigns), folders.tables, folders.reports, packages, params.options)
