"""Entry point of the rule gate."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.analysis import gate
from loadstone.analysis.gate_outcome import Options
from loadstone.archive import Campaign, decode
from loadstone.errors import LoadstoneError

with job(snakemake.log[0]) as log:
    params = snakemake.params
    campaigns, candidates = (
        [Campaign(Path(params.folders["archive"]), *map(decode, key)) for key in keys]
        for keys in (params.campaigns, params.candidates)
    )
    options = Options.from_config(params.gate, **params.settings)
    outcome = gate.judge(campaigns, candidates, Path(params.folders["tables"]), options)
    outcome.write(Path(params.folders["reports"]))
    if outcome.fails:
        raise LoadstoneError("\n".join(outcome.lines()))
    log("\n".join(outcome.lines()))
