"""Entry point of the rule gate."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.analysis import gate, gate_options
from loadstone.archive import Campaign, decode
from loadstone.errors import LoadstoneError

with job(snakemake.log[0]) as log:
    params = snakemake.params
    campaigns, candidates = (
        [Campaign(Path(params.folders["archive"]), *map(decode, key)) for key in keys]
        for keys in (params.campaigns, params.candidates)
    )
    options = gate_options.options(params.gate, **params.settings)
    judged = gate.judge(campaigns, candidates, Path(params.folders["tables"]), options)
    judged.write(Path(params.folders["reports"]))
    if judged.fails:
        raise LoadstoneError("\n".join(judged.lines()))
    log("\n".join(judged.lines()))
