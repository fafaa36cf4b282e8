"""Loadstone: an archive of HTTP load tests -> Parquet tables -> DuckDB -> HTML reports. See README.md."""

import sys

from snakemake.utils import min_version

min_version("9.27")


# Where a git host has this file, the library is the one that is installed.
sys.path.insert(0, workflow.current_basedir.join("scripts").get_path_or_uri(secret_free=True))

from loadstone.config.yaml_files import readable


configfile: readable("config/config.yaml")


include: "rules/common.smk"


onstart:
    start_command()


onsuccess:
    end_command(success=True)


onerror:
    end_command(success=False)


rule all:
    """Collect the missing runs of this host's open campaigns, then analyse and report."""
    default_target: True
    input:
        cluster_to_put_back,
        completions,
        every_table,
        site,
        figures_reported,


include: "rules/collect.smk"
include: "rules/import.smk"
include: "rules/convert.smk"
include: "rules/analyse.smk"
include: "rules/pages.smk"
include: "rules/report.smk"
include: "rules/figures.smk"
include: "rules/publish.smk"
include: "rules/verify.smk"
