"""Entry point of the rule trace_page."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.archive.trace_dumps import Dump
from loadstone.report.trace_page import build_trace_page

with job(snakemake.log[0]) as log:
    params = snakemake.params
    dump = Dump(Path(params.folders["archive"]), **params.dump)
    build_trace_page(dump, Path(params.folders["tables"]), Path(params.folders["reports"]), params.options)
