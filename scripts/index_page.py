"""Entry point of the rule index."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.archive import campaigns, outside
from loadstone.archive.plan import unfinished
from loadstone.archive.trace_dumps import Dump
from loadstone.config import comparisons
from loadstone.config.variants import Variants
from loadstone.report.site import build_index
from loadstone.tables.database import left_out

SHOWN = 5  # things outside all campaigns on the terminal

with job(snakemake.log[0]) as log:
    params = snakemake.params
    archive, reports = Path(params.folders["archive"]), Path(params.folders["reports"])
    found = list(campaigns(archive)) if archive.exists() else []
    others = [*params.not_in_archive, *(f"{path} {why}" for path, why in outside(archive))]
    declared = [comparisons.from_config(entry) for entry in params.comparisons]
    build_index(
        found,
        Path(params.folders["tables"]),
        reports,
        Variants(**params.variants),
        params.options,
        comparisons=declared,
        purposes={tuple(key): purpose for *key, purpose in params.purposes},
        outside=others,
        dumps=[Dump(archive, **fields) for fields in params.dumps],
    )
    every = Path(snakemake.log[0]).with_name("outside.txt")
    every.write_text("\n".join(others) + "\n", encoding="utf-8", errors="backslashreplace")
    rest = [f"{len(others) - SHOWN} more belong to no campaign: {every}"] if len(others) > SHOWN else []
    for text in (*others[:SHOWN], *rest, *unfinished(found), *left_out(Path(params.folders["tables"]), found)):
        log(text)
    log(f"report: {reports / 'index.html'}")
