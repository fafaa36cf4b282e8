"""The files of a site: which files of the reports folder belong to it, and whether any of them is missing.

Only what Loadstone writes there belongs to a site, never what else lies in the folder.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import unquote

from loadstone.archive.durable import sha256_of
from loadstone.errors import LoadstoneError
from loadstone.report.site_layout import CONTENT_TYPES, CRATE, FOLDERS, INDEX, START, START_PICTURE

SIGNATURE = b"Made by Loadstone"  # in every page


@dataclass(frozen=True)
class SiteFile:
    """One file of a site."""

    path: Path
    sha256: str
    size: int


def of_site(reports: Path) -> dict[str, SiteFile]:
    """The files of the site by their name in it (with ``/``), sorted. Raises LoadstoneError when there is no site."""
    if not (reports / START).is_file():
        raise LoadstoneError(f"there is no site in {reports}; `snakemake --cores all report` builds it")
    return {
        path.relative_to(reports).as_posix(): SiteFile(path, sha256_of(path), path.stat().st_size)
        for path in sorted(_found(reports))
    }


def digest(site: dict[str, SiteFile]) -> str:
    """A digest of the names and bytes of a site's files."""
    stated = "".join(f"{file.sha256} {name}\n" for name, file in sorted(site.items()))
    return hashlib.sha256(stated.encode("utf-8", "surrogateescape")).hexdigest()


def _found(reports: Path) -> Iterator[Path]:
    for path in reports.iterdir():
        if path.name in FOLDERS and path.is_dir() and not path.is_symlink():
            yield from filter(_is_ours, path.rglob("*"))
        elif (path.suffix == ".html" or path.name in (CRATE, INDEX, START_PICTURE)) and _is_ours(path):
            yield path


def _is_ours(path: Path) -> bool:
    if path.suffix not in CONTENT_TYPES or path.name.startswith(".") or path.is_symlink() or not path.is_file():
        return False
    signed = path.suffix == ".html" or path.name in (CRATE, INDEX, START_PICTURE)
    return not signed or SIGNATURE in path.read_bytes()


_SHOWN_OF_LINKS = re.compile(
    r'<meta (?:name="(?:description|twitter:card)"|property="og:[a-z_:]+") content="[^"<>]*">\n'
)


def link_preview(file: SiteFile) -> str:
    """The markup of a page that says what other sites show of a link to it; empty if it has none."""
    return "".join(_SHOWN_OF_LINKS.findall(file.path.read_text("utf-8", "replace")))


_LOADED = re.compile(r'<(?:link|script|img)\b[^>]*?\b(?:href|src)="([^"#?]+)')
_QUERY_FILES = re.compile(r'"file":"(ask/[^"]+)"')  # of the query page
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_SHOWN = 3


def check_complete(site: Mapping[str, SiteFile]) -> None:
    """Raises LoadstoneError when a page loads a file that is not there, or is not the one that it was made with."""
    found = {missing: _page_of(name) for name in site for missing in _missing(name, site)}
    if not found:
        return
    named = "; ".join(f"{missing} (used by {page})" for missing, page in list(found.items())[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    changed = [missing for missing in found if missing in site]
    # Their sizes are those that they were made with, so that nobody else noticed.
    removing = f"Remove {' '.join(changed)} from the reports folder and run" if changed else "Run"
    raise LoadstoneError(
        f"the site is incomplete, so nothing was published. Missing or changed: {named}{more}. {removing} "
        "`snakemake --cores all report`, which rebuilds what is missing"
    )


def _missing(page: str, site: Mapping[str, SiteFile]) -> Iterator[str]:
    if page.endswith(".html"):
        text = site[page].path.read_text("utf-8", "replace")
        links = (unquote(unescape(link)) for link in _LOADED.findall(text) if not _ELSEWHERE.match(link))
        for name in dict.fromkeys([*(_resolved(page, link) for link in links), *_QUERY_FILES.findall(text)]):
            if name not in site:
                yield name
    elif page.endswith(f"-{CRATE}"):
        for part in json.loads(site[page].path.read_bytes())["@graph"]:
            if part.get("@type") == "File":
                name = _resolved(page, unquote(part["@id"]))
                if name not in site or site[name].sha256 != part["sha256"]:
                    yield name


def _page_of(name: str) -> str:
    """The page that a file of the site is or describes; building that page again builds its other files too."""
    return f"{name.removesuffix(f'-{CRATE}')}.html" if name.endswith(f"-{CRATE}") else name


def _resolved(page: str, link: str) -> str:
    return normpath(str(PurePosixPath(page).parent / link))
