"""What all pages load: the library that draws charts, and the site's own scripts and styles."""

import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from loadstone.report import site_layout
from loadstone.report.output import asset, ends_with, write_text


def shared_assets() -> list[str]:
    """The names of the assets of all pages; those of the query page alone are written by its own job."""
    names = (entry.name for entry in files("loadstone.report").joinpath("assets").iterdir() if entry.is_file())
    return sorted(name for name in names if not name.startswith("ask"))


def assets_digest() -> str:
    """A digest of these assets and of the version of the library that draws charts."""
    content = [(name, asset(name)) for name in shared_assets()]
    return hashlib.sha256(repr((content, version("vl-convert-python"))).encode()).hexdigest()[:32]


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
