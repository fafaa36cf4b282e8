"""Entry point of the rule collect."""

from pathlib import Path

from loadstone.archive import Campaign, Cell, decode
from loadstone.collect.attempt import Attempts
from loadstone.report.progress_page import ProgressPage
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    names, params = snakemake.wildcards, snakemake.params
    key = [decode(part) for part in (names.app, names.host, names.timestamp)]
    cell = Cell(Campaign(Path(params.folders["archive"]), *key), names.rate, decode(names.variant))
    page = ProgressPage(Path(params.folders["reports"]), **params.page, log=log)
    attempts = Attempts(cell.campaign.root, **params.sweep, show=page.show, log=log)
    attempts.try_run(cell, int(names.run), Path(snakemake.log[0]).with_suffix(""))
    Path(snakemake.output[0]).touch()
