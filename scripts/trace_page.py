"""Entry point of the rule trace_page."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.report.trace_page import build_trace_page

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    build_trace_page(folders.dump(params.dump), folders.tables, folders.reports, params.options)
