"""How data and templates become files: escaped, and each replaced in one step."""

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from loadstone import __version__, durable
from loadstone.report import numbers

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./-]+")

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("loadstone.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def as_json(value: Any) -> str:
    """Compact ASCII JSON without ``<``, ``>`` and ``&``: nothing in it can end or open an element or a comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _json_filter(value: Any) -> Markup:
    return Markup(as_json(value))  # noqa: S704 - as_json leaves no character that means anything to HTML


def _markup_free(text: object) -> str:
    """Text that can be encoded: folder names that are no UTF-8 hold lone surrogates."""
    return str(text).encode("utf-8", "backslashreplace").decode()


_ENVIRONMENT.filters.update(
    json=_json_filter,
    share=numbers.share,
    significant=numbers.significant,
    duration=numbers.duration,
    listed=numbers.listed,
    rate=numbers.rate_text,
)
_ENVIRONMENT.globals.update(version=__version__, counted=numbers.counted)


def about_site(options: Mapping[str, Any], tables: Path) -> dict[str, str]:
    """What every page says of the site; `options` is the configuration's ``report``, `tables` where the tables are.

    `database` is part of a command to be pasted: only a plain path below the project's folder is shown as it is.
    """
    database = tables.parent / "loadstone.duckdb"
    plain = _PLAIN_PATH.fullmatch(str(database)) and not database.is_absolute()
    return {
        "site_title": str(options.get("title", "Load-test results")),
        "database": str(database) if plain else "results/loadstone.duckdb",
    }


def write_page(path: Path, template: str, context: Mapping[str, Any]) -> None:
    """Render a template of this package into `path`."""
    write_text(path, _ENVIRONMENT.get_template(template).render(context))


def write_text(path: Path, text: str) -> None:
    """Write a file of the site, unless it already says the same (so that publishing finds no change)."""
    content = _markup_free(text).encode()
    if not (path.is_file() and path.read_bytes() == content):
        durable.replace(path, content)


def asset(name: str) -> str:
    """The text of a file under ``assets/`` of this package."""
    return files("loadstone.report").joinpath("assets", name).read_text("utf-8")
