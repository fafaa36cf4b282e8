"""Entry point of the rule import."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.importing import copying, plan

with job(snakemake.log[0]) as log:
    copying.carry_out(plan.make(Path(snakemake.params.archive)), log)
