"""Files of the site: names of pages, header, scripts, and which files each part consists of.

Imports nothing that builds pages, since the workflow imports it before any job runs.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.archive import Campaign, is_repeated
from loadstone.archive.durable import remove_temporary, replace

# --- names of pages ---------------------------------------------------------------------------------------------------


_USUAL_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)", re.ASCII
)  # seconds may be absent: see parse_timestamp


def slug(campaign: Campaign) -> str:
    """A campaign's name in file names and addresses of the site: letters, digits, ``.``, ``_`` and ``-`` only.

    Names with other characters or with capitals (some file systems ignore case), and unusual timestamps, add a short
    hash, so that no two campaigns share a name.
    """
    names, timestamp = (campaign.app, campaign.host), campaign.timestamp
    is_usual = _USUAL_TIMESTAMP.fullmatch(timestamp) is not None and _is_plain(names)
    shown = [*map(_plain, names), _plain(timestamp.replace(":", ""))]
    return _page_name(shown, (*names, timestamp), is_usual)


def variant_slug(app: str, variant: str) -> str:
    """The name of a variant of an app in file names and addresses, made in the same way."""
    names = (app, variant)
    return _page_name(list(map(_plain, names)), names, _is_plain(names))


def _plain(part: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", part).strip(".-")[:60]


def _is_plain(names: tuple[str, ...]) -> bool:
    return all(
        name and name == _plain(name).lower() and not set("_+") & set(name) and not is_repeated(name) for name in names
    )


def _page_name(shown: list[str], names: tuple[str, ...], is_unique: bool) -> str:
    text = "_".join(shown).replace("+", "p")
    if is_unique:
        return text
    return f"{text}_{hashlib.sha256(chr(0).join(names).encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


CHECKSUMS_SUFFIX = ".sha256"
MADE_HERE = "# Made by Loadstone: SHA-256 of the results behind a page, to be checked in the archive's folder"


# --- what every page links to and loads -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One entry of the header: `name` is what a template sets ``here`` to; `path` is relative to the site's folder."""

    name: str
    title: str
    path: str


ENTRIES = (
    Entry("start", "Start", "index.html"),
    Entry("campaigns", "Campaigns", "campaigns.html"),
    Entry("comparisons", "Comparisons", "comparisons.html"),
    Entry("variants", "Variants", "variants.html"),
    Entry("quality", "Data quality", "quality.html"),
    Entry("ask", "Query", "ask.html"),
    Entry("methods", "Methods", "methods.html"),
    Entry("progress", "Progress", "progress.html"),
)

# Pages over all campaigns; the start page is the last of them to be written.
OVER_ALL = ("campaigns.html", "comparisons.html", "compare.html", "quality.html", "methods.html", "index.html")

# Scripts of a page with charts, in their order.
CHART_SCRIPTS = (
    "vega.js",
    "dom.js",
    "parquet.js",
    "downloads.js",
    "choices.js",
    "chart.js",
    "figures.js",
    "inspector.js",
    "page.js",
)

# What a page may do: show and run the site's own files, nothing else. Pictures made in the page are data: addresses.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'"
)


def present_entries(reports: Path) -> list[Entry]:
    """The entries whose page exists."""
    return [entry for entry in ENTRIES if (reports / entry.path).is_file()]


# --- kinds of files ---------------------------------------------------------------------------------------------------

# Folders of a site, and the kinds of files in them. Anything else in the reports folder is its user's.
FOLDERS = ("ask", "assets", "campaigns", "comparisons", "figures", "summaries", "traces", "variants")
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
START_PICTURE = "index.png"  # what other sites show of a link to the start page
INDEX = "index.json"  # what the start page says, for programs


def content_type(name: str) -> str:
    """The content type of a file of this name."""
    return CONTENT_TYPES.get(Path(name).suffix, "application/octet-stream")


# --- parts of the site ------------------------------------------------------------------------------------------------

# Parts are ``campaigns/<slug>``, ``comparisons/<id>``, ``traces/<slug>``, ``figures/<kind>/<slug>``, each with a job
# of its own, ``variants``, ``index``, ``ask``, ``assets``, of one. ``<reports>/.made/<part>/files`` has the size in
# bytes of each of its files by name (JSON; null: any). A part is requested again by a marker that does not exist yet,
# ``<reports>/.made/<part>/<nth>``, as tables are (`loadstone.workflow.markers`).
#
# Outputs of rules can't replace this. Snakemake only checks that a ``directory()`` exists, and removes it before its
# job, so one new run would rebuild the data of all loads. ``update(directory())`` keeps it, but fails forever after a
# kill, because the backup that Snakemake made prevents the next one. A parameter with the missing files would build
# the part twice, because it changes back.

RECORDS = ".made"
_RECORD = "files"
_BEGUN = "begun"  # exists while the part is written; a killed job leaves it


@dataclass(frozen=True)
class Part:
    """One part of the site in `reports`."""

    reports: Path
    name: str

    @property
    def folder(self) -> Path:
        """The folder of its record and of the markers that request it again."""
        return self.reports / RECORDS / self.name

    @property
    def record(self) -> Path:
        """The list of its files."""
        return self.folder / _RECORD

    def begin(self) -> "Part":
        """Start writing the part. Files that no longer have their recorded size are removed: they are incomplete."""
        for name, size in (recorded_sizes(self.record) or {}).items():
            path = self.reports / name
            if size is not None and path.is_file() and not path.is_symlink() and path.stat().st_size != size:
                path.unlink()
        replace(self.folder / _BEGUN, b"")
        return self

    def finish(self, files: Iterable[Path], *, growing: Iterable[Path] = ()) -> None:
        """The part is written, with these files; those of `growing` are changed by others and may have any size."""
        sizes = {path: path.stat().st_size for path in files} | dict.fromkeys(growing)
        names = {path.relative_to(self.reports).as_posix(): size for path, size in sizes.items()}
        content = json.dumps(names, indent=0, sort_keys=True).encode()
        if not (self.record.is_file() and self.record.read_bytes() == content):
            replace(self.record, content)
        (self.folder / _BEGUN).unlink(missing_ok=True)
        markers = sorted((int(entry.name), entry) for entry in self.folder.iterdir() if entry.name.isdigit())
        for _, older in markers[:-1]:
            older.unlink()


def recorded_sizes(record: Path) -> dict[str, int | None] | None:
    """The sizes in bytes of a part's files by their names in the site (None: any size); None without a record."""
    try:
        found = json.loads(record.read_bytes())
    except (OSError, ValueError):  # none, or one of an older version
        return None
    return found if isinstance(found, dict) else None


@dataclass(frozen=True)
class SiteSnapshot:
    """Which parts of a site have missing files. `requested` keeps results, which must not change within a command."""

    reports: Path
    requested: dict[str, list[str]] = field(default_factory=dict)

    def markers(self, name: str, *pages: str) -> list[str]:
        """The last marker that requested the part again, if any; a new one if a file is missing or incomplete.

        If one of its `pages` is missing, Snakemake sees that anyway.
        """
        if name not in self.requested:
            folder = Part(self.reports, name).folder
            last = max((int(entry.name) for entry in folder.glob("*") if entry.name.isdigit()), default=0)
            nth = last if self._is_complete(folder, pages) else last + 1
            self.requested[name] = [str(folder / str(nth))] if nth else []
        return self.requested[name]

    def _is_complete(self, folder: Path, pages: Iterable[str]) -> bool:
        if any(self._size(page) is None for page in pages):
            return True
        made = recorded_sizes(folder / _RECORD)
        if made is None or (folder / _BEGUN).exists():
            return False
        found = ((self._size(name), size) for name, size in made.items())
        return all(here is not None and size in (here, None) for here, size in found)

    def _size(self, name: str) -> int | None:
        try:
            return os.lstat(os.path.join(self.reports, name)).st_size  # noqa: PTH118 - called for each file
        except OSError:
            return None


# --- pages that are no longer wanted ----------------------------------------------------------------------------------


def remove_others(folder: Path, wanted: set[str], *, are_figures: bool = False) -> None:
    """Remove what an earlier site left in a folder and in the folders there; what no site wrote stays.

    A folder of figures has a folder for each page, and nothing else that a site wrote.
    """
    remove_temporary(folder)
    is_ours = _is_figure if are_figures else is_of_site
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


def is_of_site(file: Path) -> bool:
    """Whether a file was written for a site."""
    return file.suffix in _SITE_MARKER and _SITE_MARKER[file.suffix] in file.read_text("utf-8", "replace")


_DRAWN = (".pdf", ".svg")
_STAMP = ".snakemake_timestamp"  # Snakemake's, in every folder that a rule makes

# Text that every file of a site holds, by its suffix.
_SITE_MARKER = {
    ".html": "Made by Loadstone",
    ".js": "loadstone.receive(",
    ".json": "Made by Loadstone",
    ".png": "Made by Loadstone",
    CHECKSUMS_SUFFIX: MADE_HERE,
}
