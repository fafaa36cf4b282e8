"""Entry point of the rule publish."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.publish.site import settings
from loadstone.publish.site.publish import publish

with job(snakemake.log[0]) as log:
    reports, to = Path(snakemake.params.folders["reports"]), snakemake.params.to
    publish(reports, settings.destination(to), keep=to.get("keep"), log=log)
