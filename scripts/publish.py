"""Entry point of the rule publish."""

from pathlib import Path

from loadstone.computing import job
from loadstone.publishing import declared
from loadstone.publishing.publish import publish

with job(snakemake.log[0]) as log:
    reports, to = Path(snakemake.params.folders["reports"]), snakemake.params.to
    publish(reports, declared.destination(to), keep=to.get("keep"), log=log)
