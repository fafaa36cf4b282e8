"""Entry point of the rule publish."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.publish.site import settings
from loadstone.publish.site.publish import publish

with job(snakemake.log[0]) as log:
    to = snakemake.params.to
    reports = Folders.of(snakemake.params.folders).reports
    publish(reports, settings.destination(to), keep=to.get("keep"), log=log)
