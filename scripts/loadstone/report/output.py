"""How data, templates and assets become files of the site: escaped, and each replaced in one step."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from importlib.resources import files
from importlib.util import cache_from_source
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

from loadstone import __version__
from loadstone import text as load_words
from loadstone.archive import durable
from loadstone.config import variants
from loadstone.report import numbers, site_layout
from loadstone.text import counted

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./-]+")
# Characters that reverse the text after them (Unicode's Bidi_Control) or that no SVG may hold.
_CONTROLS = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]")
# Any JSON escape, so that none is looked for within another; group 1 is the escape of such a character.
_IN_JSON = re.compile(r"\\(?:(u(?:00(?:0[0-8be-f]|1[0-9a-f]|7f)|061c|200[ef]|202[a-e]|206[6-9])|[bf])|.)")
_SHORT = {"b": "u0008", "f": "u000c"}
# No line breaks between a number and its unit or within an interval, except in markup, scripts and code.
_UNITS = "%|[nµm]?s|min|h|pp|(?:% |percentage )?points|requests?/s|users?|millicores|[KMG]iB|[kMG]?B|CPUs?"
_BREAKS = re.compile(
    r"<(?:script|style|pre|code|title)\b.*?</(?:script|style|pre|code|title)>|<[^>]*>"
    rf"| (?:(?<=\d )|(?<=</span> ))(?=(?:{_UNITS})(?![\w/]))| (?<=\d, )(?=[−+]?[\d.,]+\])",
    re.DOTALL,
)


def unbroken(html: str) -> str:
    """The page with non-breaking spaces where a line must not end (as `unbroken` of assets/dom.js)."""
    return _BREAKS.sub(lambda found: "\u00a0" if found[0] == " " else found[0], html)


def visible(value: Any) -> Any:
    """Text with control characters escaped as in JSON, the same in pages and charts; other values are unchanged."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", value)


_CODE = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()  # the options of the environment are part of templates


class _Compiled(jinja2.FileSystemBytecodeCache):
    """Compiled templates, kept with compiled modules: compiling takes longer than rendering."""

    def get_cache_key(self, name: str, filename: str | None = None) -> str:  # noqa: ARG002
        return super().get_cache_key(f"{name} {jinja2.__version__} {_CODE}")  # the same wherever the checkout is

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):  # nothing may be written there
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)


_COMPILED = Path(cache_from_source(__file__)).with_name("templates")
_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("loadstone.report"),
    bytecode_cache=_Compiled(str(_COMPILED), "%s"),
    autoescape=True,
    finalize=visible,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def as_json(value: Any) -> str:
    """Compact ASCII JSON without ``<``, ``>`` and ``&``: nothing in it can end or open an element or a comment.

    Its texts are `visible`, so that names are the same as elsewhere in the page.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    text = _IN_JSON.sub(lambda found: f"\\\\{_SHORT.get(found[1], found[1])}" if found[1] else found[0], text)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _json_filter(value: Any) -> Markup:
    return Markup(as_json(value))  # noqa: S704 - as_json leaves no character that means anything to HTML


_ENVIRONMENT.filters.update(
    json=_json_filter,
    share=numbers.share,
    significant=numbers.significant,
    duration=numbers.duration,
    listed=numbers.listed,
    minute=numbers.minute,
    moment=numbers.moment,
    slug=site_layout.slug,
    rate=load_words.rate_text,
    light_dark=variants.light_dark,
)
_ENVIRONMENT.globals.update(
    version=__version__,
    counted=counted,
    navigation=site_layout.ENTRIES,
    policy=site_layout.POLICY,
    chart_scripts=site_layout.CHART_SCRIPTS,
)


def site_context(options: Mapping[str, Any], tables: Path) -> dict[str, str]:
    """The variables of all pages; `options` is the configuration's ``report``, `tables` the folder of the tables.

    `database` is part of a command to be pasted: a plain path below the project's folder is shown as it is. Other paths
    are private: PARENT_OF_TABLES stands for the folder that contains the configured `tables`.
    """
    database = tables.parent / "loadstone.duckdb"
    if database.is_relative_to(Path.cwd()):
        database = database.relative_to(Path.cwd())
    plain = _PLAIN_PATH.fullmatch(str(database)) and not database.is_absolute()
    return {
        "site_title": str(options.get("title", "Load-test results")),
        "database": str(database) if plain else "PARENT_OF_TABLES/loadstone.duckdb",
    }


def write_page(path: Path, template: str, context: Mapping[str, Any]) -> None:
    """Render a template of this package into `path`."""
    write_text(path, unbroken(_ENVIRONMENT.get_template(template).render(context)))


def write_text(path: Path, text: str) -> None:
    """Write a file of the site, unless it already has this content (so that publishing finds no change)."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))  # names of folders that are not UTF-8: lone surrogates


def write_bytes(path: Path, content: bytes) -> None:
    """Write a binary file of the site, unless it already has this content."""
    if not (path.is_file() and path.read_bytes() == content):
        durable.replace(path, content)


def ends_with(path: Path, text: str) -> bool:
    """Whether a file's last line is this one, which names what the file was made from."""
    try:
        with path.open("rb") as file:
            file.seek(-len(text.encode()), os.SEEK_END)
            return file.read() == text.encode()
    except OSError:
        return False


def partials(folder: str) -> list[str]:
    """The templates in a folder of templates, as `include` takes them."""
    return sorted(name for name in _ENVIRONMENT.list_templates() if name.startswith(f"{folder}/"))


def compile_templates() -> None:
    """Compile those that are not, before anything is rendered."""
    for name in _ENVIRONMENT.list_templates():
        _ENVIRONMENT.get_template(name)


def template_text(name: str, context: Mapping[str, Any]) -> Markup:
    """A rendered template, as markup for another one."""
    return Markup(_ENVIRONMENT.get_template(name).render(context))  # noqa: S704 - templates escape what they show


def asset(name: str) -> str:
    """The text of a file under ``assets/`` of this package."""
    return files("loadstone.report").joinpath("assets", name).read_text("utf-8")


# --- assets: what all pages load --------------------------------------------------------------------------------------


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


def write_assets(reports: Path, chart_library: Callable[[], str]) -> None:
    """Write what all pages share: the charts' library as one classic script, the site's own scripts and styles.

    `chart_library` gives the library as an ES module: `figure_drawing` has it, which needs vl-convert.
    """
    # The bundle is an ES module without imports or exports. Modules can't be loaded from file://, so it becomes a
    # classic script whose names stay inside a function; vegaEmbed is the only global. Bundling takes seconds: the last
    # line names the version, so that it is done once.
    part = site_layout.Part(reports, "assets").begin()
    made_by = f"// vl-convert {version('vl-convert-python')}, {hashlib.sha256(_NOTICE.encode()).hexdigest()[:16]}\n"
    if not ends_with(reports / "assets" / "vega.js", made_by):
        script = f'{_NOTICE}(function () {{\n"use strict";\n{chart_library()}\n}})();\n{made_by}'
        write_text(reports / "assets" / "vega.js", script)
    for name in shared_assets():
        write_text(reports / "assets" / name, asset(name))
    part.finish(reports / "assets" / name for name in ("vega.js", *shared_assets()))


# --- the map of a campaign's runs -------------------------------------------------------------------------------------


Runs = Sequence[tuple[int, str]]  # number and state of each run of a cell


def run_map(
    cells: Mapping[tuple[float, str], Runs], labels: Mapping[str, str], marks: Mapping[str, str], *, is_drawn: bool
) -> dict[str, Any]:
    """The variables of the macro ``run_map``: `cells` by load and variant, the variants of `labels` as columns.

    `marks` are by state, in the order in which words name states. If not `is_drawn`, a cell has words alone.
    """
    rows = []
    for rate in sorted({rate for rate, _ in cells}):
        runs = [cells.get((rate, variant), ()) for variant in labels]
        rows.append(
            (
                load_words.rate_text(rate),
                [(_marks(each, marks) if is_drawn else "", _words(each, marks)) for each in runs],
            )
        )
    return {"variants": list(labels.values()), "rows": rows}


def _marks(runs: Runs, marks: Mapping[str, str]) -> Markup:
    """Neighbours in one state share an element."""
    groups = ((state, len(list(group))) for state, group in groupby(state for _, state in runs))
    elements = (f'<i class="{state.replace(" ", "-")}">{marks[state] * number}</i>' for state, number in groups)
    return Markup("".join(elements))  # noqa: S704 - made of `marks` alone


def _words(runs: Runs, states: Iterable[str]) -> str:
    """``runs 1–3 collected, run 4 failed``."""
    parts = []
    for state in states:
        own = [number for number, each in runs if each == state]
        if own:
            parts.append(f"{'run' if len(own) == 1 else 'runs'} {numbers.listed(own)} {state}")
    return ", ".join(parts) or "no run"
