"""Whether a site is whole before anybody sees it: pages may have lost what they load since they were made."""

import json
import re
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import PurePosixPath
from posixpath import normpath
from urllib.parse import unquote

from loadstone.errors import LoadstoneError
from loadstone.publish.site.files import CRATE, SiteFile

_LOADED = re.compile(r'<(?:link|script|img)\b[^>]*?\b(?:href|src)="([^"#?]+)')
_ASKED = re.compile(r'"file":"(ask/[^"]+)"')  # by the page on which readers ask
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_SHOWN = 3


def check(site: Mapping[str, SiteFile]) -> None:
    """Raises LoadstoneError when a page loads a file that is not there, or is not the one that it was made with."""
    found = {missing: _page(name) for name in site for missing in _lacking(name, site)}
    if not found:
        return
    named = "; ".join(f"{missing}, which {page} was made with" for missing, page in list(found.items())[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    changed = [missing for missing in found if missing in site]
    # Their sizes are those that they were made with, so that nobody else noticed.
    removing = f"Remove {' '.join(changed)} from the reports folder and run" if changed else "Run"
    raise LoadstoneError(
        f"the site is not whole, so nothing was published. Missing or changed: {named}{more}. {removing} "
        "`snakemake --cores all report`, which makes again what is missing"
    )


def _lacking(page: str, site: Mapping[str, SiteFile]) -> Iterator[str]:
    if page.endswith(".html"):
        text = site[page].path.read_text("utf-8", "replace")
        links = (unquote(unescape(link)) for link in _LOADED.findall(text) if not _ELSEWHERE.match(link))
        for name in dict.fromkeys([*(_beside(page, link) for link in links), *_ASKED.findall(text)]):
            if name not in site:
                yield name
    elif page.endswith(f"-{CRATE}"):
        for part in json.loads(site[page].path.read_bytes())["@graph"]:
            if part.get("@type") == "File" and not _is(part, _beside(page, unquote(part["@id"])), site):
                yield _beside(page, unquote(part["@id"]))


def _page(name: str) -> str:
    """The page that a file of the site is, or describes: making that one again makes all that lies beside it."""
    return f"{name.removesuffix(f'-{CRATE}')}.html" if name.endswith(f"-{CRATE}") else name


def _beside(page: str, link: str) -> str:
    return normpath(str(PurePosixPath(page).parent / link))


def _is(part: Mapping[str, str], name: str, site: Mapping[str, SiteFile]) -> bool:
    return name in site and site[name].sha256 == part["sha256"]
