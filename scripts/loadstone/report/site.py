"""Writes the site: each file appears complete or not at all, the start page last.

``campaigns/<slug>.html`` with the data that it loads when a rate is chosen (``campaigns/<slug>/<rate>.js``),
``comparisons/<id>.html``, both with the checksums of their inputs (``….sha256``) and an RO-Crate
(``…-ro-crate-metadata.json``; that of the site is ``ro-crate-metadata.json``), ``variants/<slug>.html``,
``traces/<slug>.html``, the pages over all of these (``campaigns.html``, ``comparisons.html``, ``variants.html``,
``quality.html``, ``methods.html``, ``index.html``)
and ``assets/``. Everything works from a file and from any static server. ``progress.html`` is written during a sweep;
the start page links to it while a campaign is open.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from loadstone.archive import METADATA, Campaign, metadata, scan_campaign
from loadstone.archive.trace_dumps import Dump
from loadstone.config.comparisons import Comparison
from loadstone.config.variants import Variants
from loadstone.report import (
    campaign_page,
    comparison_page,
    overview_pages,
    progress_page,
    rate_data,
    reproducibility,
    site_layout,
    variant_page,
)
from loadstone.report.numbers import rate_name
from loadstone.report.output import about_site, as_json, asset, ends_with, shared_assets, write_page, write_text
from loadstone.report.queries import Questions, Row, asking
from loadstone.report.site_layout import slug
from loadstone.tables import database, layout, schema


def build_campaign(
    campaign: Campaign,
    tables: Path,
    reports: Path,
    variants: Variants,
    options: Mapping[str, Any],
    *,
    entry: Mapping[str, Any] | None = None,
) -> Path:
    """Write the page of one campaign and the data files of its rates; returns the page's path.

    `options` is the configuration's ``report`` section; ``title`` names the site,
    ``confidence`` is that of intervals; `entry` is the catalogue's, if any.
    Data files of rates that the campaign no longer has are removed.
    """
    name = slug(campaign)
    folder = reports / "campaigns" / name
    part = site_layout.Part(reports, f"campaigns/{name}").begin()
    with asking(tables, [campaign]) as questions:
        page = campaign_page.gather(questions, campaign, variants, _confidence(options), entry or {})
        written = set()
        read = _files_by_rate(tables, campaign)
        for rate in page.loadable_rates:
            target = folder / f"{rate_name(rate)}.js"
            runs = [run for run in page.runs if run["rate"] == rate]
            stated = [*runs, *page.run_findings.at(rate)]
            made_of = f"// {rate_data.identity(read.get(rate, ()), stated, page.unit, page.styles)}\n"
            if not ends_with(target, made_of):
                content = rate_data.gather(questions, rate, page.unit, page.run_findings, page.styles)
                write_text(target, f"loadstone.receive({as_json(rate_name(rate))},{as_json(content)});\n{made_of}")
            written.add(target.name)
        inputs = _inputs(questions, tables, [campaign])
    _remove_others(folder, written)
    path = reports / "campaigns" / f"{name}.html"
    content = {**campaign_page.context(page, name), **about_site(options, tables)}
    title = f"{layout.text(str(campaign))}: load-test results"
    about = reproducibility.About(title, "Latency and errors of a sweep.", [campaign], options)
    evidence = reproducibility.Evidence(inputs, _tables_of(tables, [campaign]), page.metadata)
    part.finish(_write_with_evidence(path, "campaign.html", content, about, evidence))
    return path


def build_comparison(
    comparison: Comparison,
    campaigns: Sequence[Campaign],
    tables: Path,
    reports: Path,
    variants: Variants,
    *,
    options: Mapping[str, Any],
) -> Path:
    """Write the page of one comparison; returns its path. `campaigns` are those of its own that the archive holds."""
    part = site_layout.Part(reports, f"comparisons/{comparison.id}").begin()
    with asking(tables, list(campaigns)) as questions:
        page = comparison_page.gather(questions, comparison, campaigns, variants, _confidence(options))
        inputs = _inputs(questions, tables, campaigns, comparison_page.among(page.runs))
    path = reports / "comparisons" / f"{comparison.id}.html"
    cells = [listing.cell for campaign in campaigns for listing in scan_campaign(campaign).cells]
    described = [metadata.read(cell.path / METADATA) for cell in cells]
    content = {**comparison_page.context(page), **about_site(options, tables)}
    about = reproducibility.About(comparison.title, "A comparison of load-test results.", campaigns, options)
    evidence = reproducibility.Evidence(inputs, _tables_of(tables, campaigns, comparison), described)
    part.finish(_write_with_evidence(path, "comparison.html", content, about, evidence))
    return path


def _tables_of(
    tables: Path, campaigns: Sequence[Campaign], comparison: Comparison | None = None
) -> list[tuple[str, Path]]:
    """The tables of campaigns and of a comparison, by their names."""
    named = sorted(schema.TABLES.keys() - {"spans", "trace_shares"})  # those of dumps are no part of its page
    folders = [layout.partition(tables, table, campaign) for campaign in campaigns for table in named]
    paths = [path for folder in folders for path in sorted(folder.glob("*.parquet"))]
    if comparison:
        compared = [table for table in (*schema.PLAIN, *schema.SCOPED) if table not in ("generators", "history")]
        files = (layout.comparison_file(tables, comparison.id, table) for table in compared)
        paths += [path for path in files if path.is_file()]
    return [(path.relative_to(tables).as_posix(), path) for path in paths]


def _inputs(
    questions: Questions,
    tables: Path,
    campaigns: Sequence[Campaign],
    takes: Callable[[Row], bool] = lambda _: True,
) -> list[tuple[str, str]]:
    database.add_view(questions.connection, tables, "facts", campaigns)
    return reproducibility.inputs(questions, takes)


def _write_with_evidence(
    path: Path,
    template: str,
    content: Mapping[str, Any],
    about: reproducibility.About,
    evidence: reproducibility.Evidence,
) -> list[Path]:
    """Write a page of figures and, next to it, checksums of its inputs and its RO-Crate; returns its files."""
    checksums = path.with_suffix(reproducibility.CHECKSUMS_SUFFIX)
    if evidence.inputs:
        write_text(checksums, evidence.checksums)
    else:
        checksums.unlink(missing_ok=True)
    write_page(path, template, {**content, **reproducibility.context(path.stem, evidence)})
    return reproducibility.write_page_crate(path, about, evidence)


def build_variants(
    names: Sequence[tuple[str, str]],
    campaigns: Sequence[Campaign],
    tables: Path,
    reports: Path,
    variants: Variants,
    *,
    options: Mapping[str, Any],
) -> Path:
    """Write the page of every variant (app, variant) through time and the list of them; returns the list's path.

    Of tables they read `history` alone; the pages of other variants are removed.
    """
    with database.open_memory() as connection:
        database.add_view(connection, tables, "history", None)
        rows = Questions(connection).rows("page_history")
    linked = {
        overview_pages.key_of(layout.campaign_key(campaign)): f"campaigns/{slug(campaign)}.html"
        for campaign in campaigns
    }
    part = site_layout.Part(reports, "variants").begin()
    about, pages = about_site(options, tables), variant_page.histories(rows, names, linked)
    for page in pages:
        content = variant_page.context(page, variants)
        write_page(reports / "variants" / f"{page.slug}.html", "variant.html", {**content, **about})
    entries = [variant_page.entry(page, variants) for page in pages]
    path = reports / "variants.html"
    write_page(path, "variants.html", {"entries": entries, **about})
    _remove_others(reports / "variants", {f"{page.slug}.html" for page in pages})
    _remove_others(reports / "figures" / "variants", {page.slug for page in pages}, are_figures=True)
    part.finish([path, *(reports / "variants" / f"{page.slug}.html" for page in pages)])
    return path


def build_index(
    campaigns: Sequence[Campaign],
    tables: Path,
    reports: Path,
    variants: Variants,
    options: Mapping[str, Any],
    *,
    comparisons: Sequence[Comparison] = (),
    purposes: Mapping[overview_pages.Key, str] | None = None,
    outside: Sequence[str] = (),
    dumps: Sequence[Dump] = (),
) -> Path:
    """Write the pages over all campaigns, ``index.html`` last; pages of other campaigns are removed.

    Campaigns that are not in the tables yet are listed as such. `comparisons` are all declared ones; those without any
    of these campaigns have no page. `purposes` are the catalogue's, by campaign; `outside` names what belongs to no
    campaign of the archive or of the catalogue.
    """
    about, part = about_site(options, tables), site_layout.Part(reports, "index").begin()
    with asking(tables, list(campaigns)) as questions:
        entries = overview_pages.entries(questions, campaigns, variants, purposes or {})
        quality = overview_pages.quality_context(questions, entries, outside)
    compared = overview_pages.compared(comparisons, campaigns)
    is_open = any(campaign.is_open for campaign in campaigns) and progress_page.is_of_a_sweep(reports)
    shared = {
        **quality,
        "entries": entries,
        "comparisons": [entry for entry in compared if entry["n_held"]],
        "absent": [entry for entry in compared if not entry["n_held"]],
        "dumps": overview_pages.traced(dumps),
        "n_requests": sum(entry["held"]["n_requests"] for entry in entries if entry["held"]),
        "newest": overview_pages.NEWEST,
        "progress": progress_page.NAME if is_open else None,
        **about,
    }
    progress_page.write_placeholder(reports, about)
    write_page(reports / "methods.html", "methods.html", {**overview_pages.methods_context(about), **about})
    for name in ("quality", "campaigns", "comparisons"):
        write_page(reports / f"{name}.html", f"{name}.html", shared)
    path = reports / "index.html"
    present = {
        "campaigns": {entry["slug"] for entry in entries},
        "comparisons": {entry["declared"].id for entry in shared["comparisons"]},
        "traces": {dump.slug for dump in dumps},
    }
    for kind, names in present.items():
        _remove_others(reports / kind, names | _files(names))
        _remove_others(reports / "figures" / kind, names, are_figures=True)
    summary = reproducibility.About(
        about["site_title"], "Load-test results with their evidence and conclusions.", campaigns, options
    )
    found = filter(_is_marked, (page for folder in _PAGES for page in (reports / folder).glob("*.html")))
    reproducibility.write_site_crate(reports, summary, (page.relative_to(reports).as_posix() for page in found))
    write_page(path, "index.html", shared)
    own = [reports / name for name in (*site_layout.OVER_ALL, site_layout.CRATE)]
    part.finish(own, growing=[reports / progress_page.NAME])
    return path


_NOTICE = """\
/*! Vega, Vega-Lite, Vega-Embed: (c) University of Washington Interactive Data Lab and contributors, BSD-3-Clause.
    D3: (c) Mike Bostock, ISC. Bundled by vl-convert. */
"""


def write_assets(reports: Path) -> None:
    """Write what all pages share: the charts' library as one classic script, the site's own scripts and styles."""
    # The bundle is an ES module without imports or exports. Modules can't be loaded from file://, so it becomes a
    # classic script whose names stay inside a function; vegaEmbed is the only global. Bundling takes seconds: the last
    # line names the version, so that it is done once.
    part = site_layout.Part(reports, "assets").begin()
    made_by = f"// vl-convert {version('vl-convert-python')}, {hashlib.sha256(_NOTICE.encode()).hexdigest()[:16]}\n"
    if not ends_with(reports / "assets" / "vega.js", made_by):
        script = f'{_NOTICE}(function () {{\n"use strict";\n{_bundle()}\n}})();\n{made_by}'
        write_text(reports / "assets" / "vega.js", script)
    for name in shared_assets():
        write_text(reports / "assets" / name, asset(name))
    part.finish(reports / "assets" / name for name in ("vega.js", *shared_assets()))


@cache
def _bundle() -> str:
    import vl_convert  # noqa: PLC0415 - mostly the script is there

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle


def _confidence(options: Mapping[str, Any]) -> float:
    return float(options.get("confidence", 0.95))


def _files(names: Iterable[str]) -> set[str]:
    """The files of pages of these names, with their checksums and crates."""
    return {
        f"{name}{suffix}"
        for name in names
        for suffix in (".html", reproducibility.CHECKSUMS_SUFFIX, reproducibility.CRATE_SUFFIX)
    }


def _files_by_rate(tables: Path, campaign: Campaign) -> dict[float, list[Path]]:
    """The files of tables `requests` and `resources`; each is one cell's and named by its rate first."""
    found: dict[float, list[Path]] = {}
    for table in ("requests", "resources"):
        for file in layout.partition(tables, table, campaign).glob("*.parquet"):
            found.setdefault(float(file.name.partition("_")[0]), []).append(file)
    return found


def _remove_others(folder: Path, wanted: set[str], *, are_figures: bool = False) -> None:
    """Remove what an earlier site left in a folder and in the folders there; what no site wrote stays.

    A folder of figures has a folder for each page, and nothing else that a site wrote.
    """
    is_ours = _is_figure if are_figures else _is_marked
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name in wanted or entry.name.startswith(".") or entry.is_symlink():
            continue
        if are_figures and not entry.is_dir():
            continue
        for file in filter(is_ours, entry.iterdir() if entry.is_dir() else (entry,)):
            file.unlink()
        if entry.is_dir() and not any(entry.iterdir()):
            entry.rmdir()


def _is_figure(file: Path) -> bool:
    return file.suffix in _DRAWN or file.name == _STAMP


def _is_marked(file: Path) -> bool:
    return file.suffix in _MADE_HERE and _MADE_HERE[file.suffix] in file.read_text("utf-8", "replace")


_DRAWN = (".pdf", ".svg")
_STAMP = ".snakemake_timestamp"  # Snakemake's, in every folder that a rule makes

# Text that every file of a site holds, by its suffix.
_MADE_HERE = {
    ".html": "Made by Loadstone",
    ".js": "loadstone.receive(",
    ".json": "Made by Loadstone",
    reproducibility.CHECKSUMS_SUFFIX: reproducibility.MADE_HERE,
}
_PAGES = ("campaigns", "comparisons", "variants", "traces")  # folders of pages with results
