"""What all pages load: the library that draws their charts, and the site's own scripts and style.

Apart from `output`, which jobs import that have no library of charts.
"""

import hashlib
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path

from loadstone.report.output import asset, shared_assets, write_text
from loadstone.report.site_layout import Part

_NOTICE = """\
/*! Vega, Vega-Lite, Vega-Embed: (c) University of Washington Interactive Data Lab and contributors, BSD-3-Clause.
    D3: (c) Mike Bostock, ISC. Bundled by vl-convert. */
"""


def write_assets(reports: Path) -> None:
    """Write what all pages share: the charts' library as one classic script, the site's own scripts and style."""
    # The bundle is an ES module without imports or exports; modules can't be loaded from file://, so it becomes a
    # classic script whose names stay inside a function. vegaEmbed, which brings all else, is its one name outside.
    # Bundling takes seconds, hence the version at the end: files of the site appear complete or not at all.
    part = Part(reports, "assets").begin()
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


def ends_with(path: Path, text: str) -> bool:
    """Whether a file's last line is this one: what a file was made from is written behind its content."""
    try:
        with path.open("rb") as file:
            file.seek(-len(text.encode()), os.SEEK_END)
            return file.read() == text.encode()
    except OSError:
        return False
