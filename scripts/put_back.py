"""Entry point of the rule put_back."""

from pathlib import Path

from loadstone.collect.targets import session
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    session.wait_until_held()
    Path(snakemake.output[0]).touch()
