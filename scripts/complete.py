"""Entry point of the rule complete."""

from pathlib import Path

from loadstone.archive import Campaign, decode
from loadstone.archive.plan import complete
from loadstone.collect.attempt import Attempts
from loadstone.collect.targets.kubernetes import session
from loadstone.report.progress_page import ProgressPage
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    names, params = snakemake.wildcards, snakemake.params
    key = [decode(part) for part in (names.app, names.host, names.timestamp)]
    campaign = Campaign(Path(params.folders["archive"]), *key)
    page = ProgressPage(Path(params.folders["reports"]), **params.page, log=log)
    attempts = Attempts(campaign.root, **params.sweep, show=page.show, log=log)
    try:
        attempts.retry(campaign, Path(snakemake.log[0]).with_suffix(""))
    finally:
        session.tries_over(f"{names.app}/{names.host}/{names.timestamp}")
    complete(campaign, log)
    Path(snakemake.output[0]).touch()
