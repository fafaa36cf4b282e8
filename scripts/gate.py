"""Entry point of the rule gate."""

from loadstone.workflow.deterministic import Folders, job
from loadstone.analysis import gate
from loadstone.analysis.gate_outcome import Options
from loadstone.errors import LoadstoneError

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    campaigns, candidates = folders.campaigns(params.campaigns), folders.campaigns(params.candidates)
    outcome = gate.judge(campaigns, candidates, folders.tables, Options.from_config(params.gate, **params.settings))
    outcome.write(folders.reports)
    if outcome.fails:
        raise LoadstoneError("\n".join(outcome.lines()))
    log("\n".join(outcome.lines()))
