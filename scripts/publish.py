"""Entry point of the rule publish."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.publish.site.publish import configured_destination, publish

with job(snakemake.log[0]) as log:
    to = snakemake.params.to
    reports = Folders(snakemake.params.folders).reports
    publish(reports, configured_destination(to), keep=to.get("keep"), address=to.get("address"), log=log)
