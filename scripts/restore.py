"""Entry point of the rule restore."""

from loadstone.collect.targets.external import keeper as external
from loadstone.workflow.job import job

with job(snakemake.log[0]) as log:
    config = snakemake.params.config
    kind = config.get("target", {}).get("kind")
    restored = external.restore(log)
    if kind == "external" and not restored:
        log("there is nothing to clean up")
    if kind == "kubernetes" or (kind != "external" and not restored):
        from loadstone.collect.targets.kubernetes.keeper import restore  # its client library takes a second to load

        restore(config, log)
