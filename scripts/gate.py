"""Entry point of the rule gate."""

import os
import sys
from pathlib import Path

from loadstone.workflow.deterministic import Folders, job
from loadstone.analysis import gate, gate_reports
from loadstone.analysis.gate_outcome import Options
from loadstone.errors import LoadstoneError

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    campaigns, candidates = folders.campaigns(params.campaigns), folders.campaigns(params.candidates)
    outcome = gate.judge(campaigns, candidates, folders.tables, Options.from_config(params.gate, **params.settings))
    outcome.write(folders.reports)
    gate_reports.write(outcome, folders.reports)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(gate_reports.markdown(outcome))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        sys.stdout.write("".join(f"{line}\n" for line in gate_reports.annotations(outcome)))
        sys.stdout.flush()
    if outcome.fails:
        raise LoadstoneError("\n".join(outcome.lines()))
    log("\n".join(outcome.lines()))
