"""Entry point of the rule restore."""

from loadstone.collect.targets.external import keeper as external
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    config = snakemake.params.config
    kind = config.get("target", {}).get("kind")
    if kind == "kubernetes" or (kind != "external" and not external.has_any()):
        from loadstone.collect.targets.kubernetes.keeper import restore  # its client library takes a second to load

        restore(config, log)
    external.restore(log)
