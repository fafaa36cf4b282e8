"""Makes the site, one file after another: each appears complete or not at all, the start page last.

``index.html``, ``comparisons/<id>.html``, ``traces/<slug>.html``, ``campaigns/<slug>.html``, the data that a page loads
when a rate is chosen (``campaigns/<slug>/<rate>.js``) and ``assets/``. Everything works from a file and from any
static server.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import vl_convert

from loadstone.archive import Campaign, slug
from loadstone.comparisons import Comparison
from loadstone.dumps import Dump
from loadstone.report import campaign_page, comparison_page, index_page, rate_data
from loadstone.report.numbers import rate_name
from loadstone.report.output import about_site, as_json, asset, write_page, write_text
from loadstone.report.queries import asking
from loadstone.tables import layout
from loadstone.variants import Variants

_NOTICE = """\
/*! Vega, Vega-Lite, Vega-Embed: (c) University of Washington Interactive Data Lab and contributors, BSD-3-Clause.
    D3: (c) Mike Bostock, ISC. Bundled by vl-convert. */
"""


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

    `options` is the configuration's ``report`` section; ``title`` names the site; `entry` is the catalogue's, if any.
    Data files of rates that the campaign no longer has are removed.
    """
    name = slug(campaign)
    folder = reports / "campaigns" / name
    with asking(tables, [campaign]) as questions:
        page = campaign_page.gather(questions, campaign, variants)
        written = set()
        requests = _requests_by_rate(tables, campaign)
        for rate in page.loadable_rates:
            target = folder / f"{rate_name(rate)}.js"
            runs = [run for run in page.runs if run["rate"] == rate]
            made_of = f"// {rate_data.identity(requests.get(rate, ()), runs, page.unit)}\n"
            if not _ends_with(target, made_of):
                content = rate_data.gather(questions, rate, page.unit)
                write_text(target, f"loadstone.receive({as_json(rate_name(rate))},{as_json(content)});\n{made_of}")
            written.add(target.name)
    _remove_others(folder, written)
    path = reports / "campaigns" / f"{name}.html"
    write_page(
        path, "campaign.html", campaign_page.context(page, name, variants, entry or {}) | about_site(options, tables)
    )
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
    with asking(tables, list(campaigns)) as questions:
        page = comparison_page.gather(questions, comparison, campaigns, variants)
    path = reports / "comparisons" / f"{comparison.id}.html"
    write_page(path, "comparison.html", comparison_page.context(page) | about_site(options, tables))
    return path


def build_index(
    campaigns: Sequence[Campaign],
    tables: Path,
    reports: Path,
    variants: Variants,
    options: Mapping[str, Any],
    *,
    comparisons: Sequence[Comparison] = (),
    purposes: Mapping[index_page.Key, str] | None = None,
    outside: Sequence[str] = (),
    dumps: Sequence[Dump] = (),
) -> Path:
    """Write the start page, ``index.html``, over these campaigns; pages of other campaigns are removed.

    Campaigns that the tables don't hold yet are listed as such, and so are declared `comparisons` of none of them,
    which have no page. `purposes` are the catalogue's, by campaign; `outside` says what belongs to no campaign of the
    archive or of the catalogue.
    """
    names = {slug(campaign) for campaign in campaigns}
    with asking(tables, list(campaigns)) as questions:
        content = index_page.context(questions, campaigns, variants)
    path = reports / "index.html"
    content |= {"purposes": purposes or {}, "outside": outside[: index_page.SHOWN], "n_outside": len(outside)}
    compared = index_page.compared(comparisons, campaigns)
    write_page(
        path,
        "index.html",
        content | {"comparisons": compared, "dumps": index_page.traced(dumps)} | about_site(options, tables),
    )
    _remove_others(reports / "comparisons", {f"{entry['id']}.html" for entry in compared if entry["n_held"]})
    _remove_others(reports / "traces", {f"{dump.slug}.html" for dump in dumps})
    _remove_others(reports / "campaigns", names | {f"{name}.html" for name in names})
    return path


def write_assets(reports: Path) -> None:
    """Write what all pages share: the charts' library as one classic script, the site's own scripts and style."""
    # The bundle is an ES module without imports or exports; modules can't be loaded from file://, so it becomes a
    # classic script whose names stay inside a function. vegaEmbed, which brings all else, is its one name outside.
    # Bundling takes a second, hence the version at the end: files of the site appear complete or not at all.
    made_by = f"// vl-convert {version('vl-convert-python')}, {hashlib.sha256(_NOTICE.encode()).hexdigest()[:16]}\n"
    if not _ends_with(reports / "assets" / "vega.js", made_by):
        bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        script = f'{_NOTICE}(function () {{\n"use strict";\n{bundle}\n}})();\n{made_by}'
        write_text(reports / "assets" / "vega.js", script)
    for name in ("figures.js", "site.js", "site.css"):
        write_text(reports / "assets" / name, asset(name))


def _requests_by_rate(tables: Path, campaign: Campaign) -> dict[float, list[Path]]:
    """The files of table `requests`; each is one cell's and named by its rate first."""
    found: dict[float, list[Path]] = {}
    for file in layout.partition(tables, "requests", campaign).glob("*.parquet"):
        found.setdefault(float(file.name.partition("_")[0]), []).append(file)
    return found


def _ends_with(path: Path, text: str) -> bool:
    """Whether a file's last line is this one: what a data file was made from is written behind its content."""
    try:
        with path.open("rb") as file:
            file.seek(-len(text.encode()), os.SEEK_END)
            return file.read() == text.encode()
    except OSError:
        return False


def _remove_others(folder: Path, wanted: set[str]) -> None:
    """Remove what an earlier site left in a folder; what no site wrote stays."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name in wanted or entry.name.startswith(".") or entry.is_symlink():
            continue
        for file in entry.iterdir() if entry.is_dir() else (entry,):
            if file.suffix in _MADE_HERE and _MADE_HERE[file.suffix] in file.read_text("utf-8", "replace"):
                file.unlink()
        if entry.is_dir() and not any(entry.iterdir()):
            entry.rmdir()


# Text that every file of a site holds, by its suffix.
_MADE_HERE = {".html": "Made by Loadstone", ".js": "loadstone.receive("}
