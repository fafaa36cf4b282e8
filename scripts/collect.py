"""Entry point of the rule collect."""

from pathlib import Path

from loadstone.archive import Cell, decode
from loadstone.collect.attempt import Attempts
from loadstone.report.progress_page import ProgressPage
from loadstone.workflow.job import Folders, job

with job(snakemake.log[0]) as log:
    wildcards, params = snakemake.wildcards, snakemake.params
    folders = Folders(params.folders)
    campaign = folders.campaign((wildcards.app, wildcards.host, wildcards.timestamp))
    cell = Cell(campaign, wildcards.rate, decode(wildcards.variant))
    page = ProgressPage(folders.reports, **params.page, log=log)
    attempts = Attempts(campaign.root, **params.sweep, show=page.show, log=log)
    attempts.try_run(cell, int(wildcards.run), Path(snakemake.log[0]).with_suffix(""))
    Path(snakemake.output[0]).touch()
