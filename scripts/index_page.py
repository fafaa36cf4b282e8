"""Entry point of the rule index."""

from pathlib import Path

from loadstone.workflow.deterministic import Folders, job
from loadstone.archive import campaigns, outside
from loadstone.archive.plan import unfinished
from loadstone.config import comparisons
from loadstone.config.variants import Variants
from loadstone.report.figure_drawing import chart_library
from loadstone.report.output import write_assets
from loadstone.report.overview_pages import build_index
from loadstone.report.query_page import build_query_page
from loadstone.report.variant_page import build_variants
from loadstone.tables.database import excluded_runs

SHOWN = 5  # files outside campaigns that are listed on the terminal

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    found = list(campaigns(folders.archive)) if folders.archive.exists() else []
    listed = folders.campaigns(params.campaigns)
    variants = Variants(**params.variants)
    names = [(app, variant) for app, variant in params.names]
    packages = Path(params.packages) if params.packages else None
    write_assets(folders.reports, chart_library)
    build_variants(names, listed, folders.tables, folders.reports, variants, options=params.options)
    build_query_page(listed, folders.tables, folders.reports, packages, params.options)
    others = [*params.not_in_archive, *(f"{path} {why}" for path, why in outside(folders.archive))]
    build_index(
        found,
        folders.tables,
        folders.reports,
        variants,
        params.options,
        comparisons=[comparisons.from_config(entry) for entry in params.comparisons],
        purposes={tuple(key): purpose for *key, purpose in params.purposes},
        outside=others,
        dumps=[folders.dump(fields) for fields in params.dumps],
    )
    full_list = Path(snakemake.log[0]).with_name("outside.txt")
    full_list.write_text("\n".join(others) + "\n", encoding="utf-8", errors="backslashreplace")
    rest = [f"{len(others) - SHOWN} more belong to no campaign: {full_list}"] if len(others) > SHOWN else []
    for text in (*others[:SHOWN], *rest, *unfinished(found), *excluded_runs(folders.tables, found)):
        log(text)
    log(f"report: {folders.reports / 'index.html'}")
