"""Loadstone: an archive of HTTP load tests -> Parquet tables -> DuckDB -> HTML reports. See README.md."""

import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")


sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from loadstone.config import readable


configfile: readable("config/config.yaml")


include: "rules/common.smk"
include: "rules/dumps.smk"
include: "rules/outside.smk"
include: "rules/lost.smk"
include: "rules/looks.smk"


envvars:
    planned.VARIABLE,


pathvars:
    tables=config["tables"],
    reports=config["reports"],
    database=str(database_of(Path(config["tables"]))),


wildcard_constraints:
    app="[^/]+",
    host="[^/]+",
    timestamp="[^/]+",
    rate=r"[0-9.]+",
    variant="[^/]+",
    run=r"[1-9][0-9]*",
    nth=r"[1-9][0-9]*",
    dump="[^/]+",
    comparison=r"[A-Za-z0-9][A-Za-z0-9_.-]*",
    kind="campaigns|comparisons|variants",
    slug="[^/]+",


onstart:
    start_command()


onsuccess:
    end_command(success=True)


onerror:
    end_command(success=False)


rule all:
    """Collect what open campaigns of this host lack, then analyse and report."""
    default_target: True
    input:
        left_behind,
        completions,
        every_table,
        whole_site,
        pictures_reported,


rule attacks:
    """Only collect."""
    input:
        left_behind,
        completions,


rule tables:
    """Only the tables and the database."""
    input:
        every_table,


rule report:
    """Analysis and report of what is there; never attacks."""
    input:
        every_table,
        whole_site,
        pictures_reported,


include: "rules/collect.smk"
include: "rules/cluster.smk"
include: "rules/import.smk"
include: "rules/convert.smk"
include: "rules/analyse.smk"
include: "rules/compare.smk"
include: "rules/traces.smk"
include: "rules/ask.smk"
include: "rules/report.smk"
include: "rules/gate.smk"
include: "rules/publish.smk"
include: "rules/storing.smk"
include: "rules/bundle.smk"
include: "rules/verify.smk"
