"""What a bundle holds: which files of archive, tables, site and configuration, under which names.

The same archive gives the same bytes of all of these anywhere. What does not is named here, once: the database
``loadstone.duckdb`` (DuckDB numbers its entries at random; it holds no figure, only views of the tables), folders of
the tables whose names begin with a dot (what was read when, by mtimes) and ``progress.html`` (how sweeps of this
machine go). None of them is part of a bundle.
"""

import json
import platform
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from loadstone import __version__
from loadstone.archive import Campaign, encode
from loadstone.archive.trace_dumps import Dump
from loadstone.config import SETTINGS
from loadstone.errors import LoadstoneError
from loadstone.publish.site import files as site_files
from loadstone.report import navigation
from loadstone.report.slugs import slug
from loadstone.tables import VERSION, layout, verify
from loadstone.tables.schema import PLAIN, SCOPED

FORMAT = 1  # of bundles; raised when an older Loadstone would misread a newer one
PROVENANCE = "provenance.json"
ARCHIVE, TABLES, SITE, CONFIG = "archive/", "tables/", "site/", "config/"
# What people say about the archive. The rest of the configuration may hold credentials and is nobody's business.
CONFIGURATION = ("catalogue.yaml", "comparisons.yaml", "variants.yaml")
LIBRARIES = ("diptest", "duckdb", "ijson", "msgspec", "numpy", "pyarrow", "ruptures", "scipy")
_OF_COMPARISONS = (*(table for table in PLAIN if table not in ("generators", "history")), *SCOPED)
_PROGRESS = next(entry.path for entry in navigation.ENTRIES if entry.name == "progress")
_WHOLE_SITE = ("assets/", "methods.html")


@dataclass(frozen=True)
class Member:
    """One file of a bundle: its name there and where its content is, on the disk or in memory."""

    name: str
    content: Path | bytes


@dataclass(frozen=True)
class Selection:
    """What a bundle is about. Unless `whole`: only these, without what lies above campaigns."""

    campaigns: tuple[Campaign, ...]
    comparisons: tuple[str, ...]
    dumps: tuple[Dump, ...]
    whole: bool


def select(
    present: Sequence[Campaign],
    comparisons: Mapping[str, Sequence[Campaign]],
    found: Sequence[Dump],
    declared: Mapping[str, Any],
) -> Selection:
    """What the configuration's ``bundle`` asks for: all, unless it names `campaigns` or `comparisons`.

    `comparisons` are those with campaigns in the archive; the campaigns of a chosen one come with it. Raises
    LoadstoneError for names that are not there.
    """
    names, ids = declared.get("campaigns"), declared.get("comparisons")
    if names is None and ids is None:
        return Selection(tuple(present), tuple(comparisons), tuple(found), whole=True)
    by_name = {str(campaign): campaign for campaign in present}
    unknown = [f"campaign {name}" for name in names or () if name not in by_name]
    unknown += [f"comparison {name}" for name in ids or () if name not in comparisons]
    if unknown:
        raise LoadstoneError(
            f"the configuration's bundle names what the archive does not hold: {', '.join(unknown)}; a campaign is "
            "named app/host/timestamp, as its folders are"
        )
    chosen = {by_name[name] for name in names or ()} | {each for name in ids or () for each in comparisons[name]}
    owned = tuple(dump for dump in found if dump.campaign in chosen)
    return Selection(tuple(sorted(chosen)), tuple(sorted(ids or ())), owned, whole=False)


def gather(
    selection: Selection, archive: Path, tables: Path, reports: Path, settings: Mapping[str, Any]
) -> list[Member]:
    """Everything of a bundle, sorted by name. `settings`: what tables depend on besides `CONFIGURATION`."""
    found = [*_raw(selection, archive), *_tables(selection, tables), *_site(selection, reports)]
    for name in CONFIGURATION:
        path = Path("config") / name
        if path.is_file():
            found.append(Member(f"{CONFIG}{name}", path))
    found.append(Member(PROVENANCE, as_json(provenance(selection, settings))))
    return sorted(found, key=lambda member: member.name)


def provenance(selection: Selection, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What made a bundle, and what it takes to make its tables again."""
    return {
        "format": FORMAT,
        "tables": VERSION,
        "software": software(),
        "settings": {name: settings[name] for name in SETTINGS},
        "whole": selection.whole,
        "campaigns": sorted(layout.text(str(campaign)) for campaign in selection.campaigns),
        "comparisons": sorted(selection.comparisons),
    }


def software() -> dict[str, str]:
    """What tables may depend on, by name; the site's own crate names what pages were made with."""
    python = ".".join(platform.python_version_tuple()[:2])
    own = {"loadstone": __version__, "python": python, "processor": platform.machine()}
    return own | {name: version(name) for name in LIBRARIES}


def as_json(content: Any) -> bytes:
    """The same content is the same bytes."""
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def archive_name(path: str) -> str:
    """The name in a bundle of an archive's file; every part can be decoded (`archive.decode`), so no two meet."""
    return ARCHIVE + "/".join(map(encode, path.split("/")))


def _raw(selection: Selection, archive: Path) -> Iterator[Member]:
    folders = [campaign.path for campaign in selection.campaigns]
    sources = {dump.source for dump in selection.dumps}
    for path in verify.files(archive):
        if selection.whole or path in sources or any((archive / path).is_relative_to(folder) for folder in folders):
            yield Member(archive_name(path), archive / path)


def _tables(selection: Selection, tables: Path) -> Iterator[Member]:
    for path in of_tables(tables) if selection.whole else _of_selection(selection, tables):
        yield Member(TABLES + path.relative_to(tables).as_posix(), path)


def of_tables(tables: Path) -> Iterator[Path]:
    """The files below the tables' folder that are the same wherever they are made."""
    for path in tables.rglob("*.parquet"):
        if not any(part.startswith(".") for part in path.relative_to(tables).parts):
            yield path


def _of_selection(selection: Selection, tables: Path) -> Iterator[Path]:
    names = sorted(entry.name for entry in tables.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    for table in names:
        for campaign in selection.campaigns:
            folder = layout.partition(tables, table, campaign)
            yield from (path for path in folder.glob("*.parquet") if not path.name.startswith("."))
    for comparison in selection.comparisons:
        files = (layout.comparison_file(tables, comparison, table) for table in _OF_COMPARISONS)
        yield from filter(Path.is_file, files)


def _site(selection: Selection, reports: Path) -> Iterator[Member]:
    pages = {f"campaigns/{slug(campaign)}" for campaign in selection.campaigns}
    pages |= {f"comparisons/{name}" for name in selection.comparisons}
    pages |= {f"traces/{dump.slug}" for dump in selection.dumps}
    for name, file in site_files.of_site(reports).items():
        if name == _PROGRESS:
            continue
        if selection.whole or name.startswith(_WHOLE_SITE) or _is_of(name.removeprefix("figures/"), pages):
            yield Member(SITE + name, file.path)


def _is_of(name: str, pages: Collection[str]) -> bool:
    """Whether a file is a page, lies in its folder or beside it under its name."""
    parts = name.split("/")
    if len(parts) < 2:
        return False
    own = f"{parts[0]}/{parts[1]}"
    return own in pages or any(own.startswith(f"{page}{end}") for page in pages for end in (".html", ".sha256", "-ro"))
