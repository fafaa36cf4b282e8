"""Entry point of the rule complete."""

from pathlib import Path

from loadstone.archive.plan import complete
from loadstone.collect.attempt import Attempts
from loadstone.collect.targets import session
from loadstone.report.progress_page import ProgressPage
from loadstone.workflow.job import Folders, job

with job(snakemake.log[0]) as log:
    wildcards, params = snakemake.wildcards, snakemake.params
    folders = Folders(params.folders)
    campaign = folders.campaign((wildcards.app, wildcards.host, wildcards.timestamp))
    page = ProgressPage(folders.reports, **params.page, log=log)
    attempts = Attempts(campaign.root, **params.sweep, show=page.show, log=log)
    try:
        attempts.retry(campaign, Path(snakemake.log[0]).with_suffix(""))
    finally:
        session.campaign_finished(f"{wildcards.app}/{wildcards.host}/{wildcards.timestamp}")
    complete(campaign, log, attempts.only)
    Path(snakemake.output[0]).touch()
