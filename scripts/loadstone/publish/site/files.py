"""Which files of the reports folder are the site: only what Loadstone writes there, never what else lies beside it."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadstone.errors import LoadstoneError

# Folders of a site, and the kinds of files in them. Anything else in the reports folder is its user's.
FOLDERS = ("ask", "assets", "campaigns", "comparisons", "figures", "traces", "variants")
CONTENT_TYPES = {
    ".arrow": "application/vnd.apache.arrow.file",
    ".css": "text/css; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".sha256": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
}
START = "index.html"
CRATE = "ro-crate-metadata.json"
_MARK = b"Made by Loadstone"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class SiteFile:
    """One file of a site."""

    path: Path
    sha256: str
    size: int


def content_type(name: str) -> str:
    """What a server has to call a file of this name."""
    return CONTENT_TYPES.get(Path(name).suffix, "application/octet-stream")


def of_site(reports: Path) -> dict[str, SiteFile]:
    """The files of the site by their name in it (with ``/``), sorted. Raises LoadstoneError when there is no site."""
    if not (reports / START).is_file():
        raise LoadstoneError(f"there is no site in {reports}: `snakemake --cores all report` makes it")
    return {path.relative_to(reports).as_posix(): _described(path) for path in sorted(_found(reports))}


def digest(site: dict[str, SiteFile]) -> str:
    """The same for two sites of the same content."""
    stated = "".join(f"{file.sha256} {name}\n" for name, file in sorted(site.items()))
    return hashlib.sha256(stated.encode("utf-8", "surrogateescape")).hexdigest()


def _found(reports: Path) -> Iterator[Path]:
    for path in reports.iterdir():
        if path.name in FOLDERS and path.is_dir() and not path.is_symlink():
            yield from filter(_is_ours, path.rglob("*"))
        elif (path.suffix == ".html" or path.name == CRATE) and _is_ours(path):
            yield path


def _is_ours(path: Path) -> bool:
    if path.suffix not in CONTENT_TYPES or path.name.startswith(".") or path.is_symlink() or not path.is_file():
        return False
    return (path.suffix != ".html" and path.name != CRATE) or _MARK in path.read_bytes()


def _described(path: Path) -> SiteFile:
    hashed, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            hashed.update(chunk)
            size += len(chunk)
    return SiteFile(path, hashed.hexdigest(), size)
