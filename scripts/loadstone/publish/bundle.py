"""A bundle: one file of raw results, metadata, tables, site and provenance, which can be checked anywhere.

In: a selection of an archive, its tables and its site (`select`, `gather`). Out: a zip file in the layout of BagIt
(RFC 8493), so that other tools can check it too (`write`). The same content gives the same bytes anywhere: members are
sorted, have no times and are not compressed (raw results and tables are already, and compressors differ between
versions). A bundle omits what differs between machines: the database ``loadstone.duckdb`` (DuckDB numbers its entries
at random; it holds no figure, only views of the tables), folders of the tables whose names begin with a dot (records of
what was read, by mtimes) and ``progress.html`` (the progress of this machine's sweeps).
"""

import hashlib
import json
import os
import platform
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from io import FileIO
from pathlib import Path
from typing import Any

from loadstone import __version__
from loadstone.archive import LEADS_OUT, Campaign, encode
from loadstone.archive.durable import open_raw, sha256_of, sync
from loadstone.archive.trace_dumps import Dump
from loadstone.config import SETTINGS
from loadstone.errors import LoadstoneError
from loadstone.publish.site import files as site_files
from loadstone.report import site_layout
from loadstone.report.site_layout import slug
from loadstone.tables import COMPARED, VERSION, layout, verify
from loadstone.text import counted, megabytes

FORMAT = 1  # of bundles; raised when an older Loadstone would misread a newer one
PROVENANCE = "provenance.json"
ARCHIVE, TABLES, SITE, CONFIG = "archive/", "tables/", "site/", "config/"
# What people declare about the archive. The rest of the configuration may hold credentials.
CONFIGURATION = ("catalogue.yaml", "comparisons.yaml", "variants.yaml")
LIBRARIES = ("duckdb", "ijson", "msgspec", "numpy", "pyarrow", "scipy")
_PROGRESS = next(entry.path for entry in site_layout.ENTRIES if entry.name == "progress")
_ALWAYS_IN_SITE = ("assets/", "methods.html")


@dataclass(frozen=True)
class Member:
    """One file of a bundle: its name there and its content, on the disk or in memory."""

    name: str
    content: Path | bytes


@dataclass(frozen=True)
class BundleSelection:
    """The contents of a bundle. Unless `everything`: only these, without the files above all campaigns."""

    campaigns: tuple[Campaign, ...]
    comparisons: tuple[str, ...]
    dumps: tuple[Dump, ...]
    everything: bool


@dataclass(frozen=True)
class Provenance:
    """What made a bundle, and what is needed to make its tables again."""

    format: int
    tables: int
    software: dict[str, str]
    settings: dict[str, Any]
    whole: bool
    campaigns: Sequence[str] = ()
    comparisons: Sequence[str] = ()


def select(
    present: Sequence[Campaign],
    comparisons: Mapping[str, Sequence[Campaign]],
    found: Sequence[Dump],
    declared: Mapping[str, Any],
) -> BundleSelection:
    """The contents that the configuration's ``bundle`` declares: all, unless it names `campaigns` or `comparisons`.

    `comparisons` are those with campaigns in the archive; the campaigns of a chosen one are included. Raises
    LoadstoneError for names that are not there.
    """
    names, ids = declared.get("campaigns"), declared.get("comparisons")
    if names is None and ids is None:
        return BundleSelection(tuple(present), tuple(comparisons), tuple(found), everything=True)
    by_name = {str(campaign): campaign for campaign in present}
    unknown = [f"campaign {name}" for name in names or () if name not in by_name]
    unknown += [f"comparison {name}" for name in ids or () if name not in comparisons]
    if unknown:
        raise LoadstoneError(
            f"`bundle` in the configuration lists what the archive does not contain: {', '.join(unknown)}; a "
            "campaign is named app/host/timestamp, like its folders"
        )
    chosen = {by_name[name] for name in names or ()} | {each for name in ids or () for each in comparisons[name]}
    owned = tuple(dump for dump in found if dump.campaign in chosen)
    return BundleSelection(tuple(sorted(chosen)), tuple(sorted(ids or ())), owned, everything=False)


def gather(
    selection: BundleSelection, archive: Path, tables: Path, reports: Path, settings: Mapping[str, Any]
) -> list[Member]:
    """All files of a bundle, sorted by name. `settings`: what tables depend on besides `CONFIGURATION`.

    Raises LoadstoneError when a link in the archive that leads out of it would be missing.
    """
    found = [*_raw(selection, archive), *_tables(selection, tables), *_site(selection, reports)]
    for name in CONFIGURATION:
        path = Path("config") / name
        if path.is_file():
            found.append(Member(f"{CONFIG}{name}", path))
    provenance = Provenance(
        format=FORMAT,
        tables=VERSION,
        software=software(),
        settings={name: settings[name] for name in SETTINGS},
        whole=selection.everything,
        campaigns=sorted(layout.text(str(campaign)) for campaign in selection.campaigns),
        comparisons=sorted(selection.comparisons),
    )
    found.append(Member(PROVENANCE, as_json(asdict(provenance))))
    return sorted(found, key=lambda member: member.name)


def software() -> dict[str, str]:
    """Versions of what tables may depend on, by name; the site's own crate names what pages were made with."""
    python = ".".join(platform.python_version_tuple()[:2])
    own = {"loadstone": __version__, "python": python, "processor": platform.machine()}
    return own | {name: version(name) for name in LIBRARIES}


def as_json(content: Any) -> bytes:
    """JSON that is the same to the byte for the same content."""
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _raw(selection: BundleSelection, archive: Path) -> Iterator[Member]:
    campaigns = set(map(str, selection.campaigns))
    sources = {dump.source for dump in selection.dumps}
    links: list[str] = []
    found = [*verify.files(archive, links), *links]
    chosen = [
        path for path in found if selection.everything or path in sources or "/".join(path.split("/")[:3]) in campaigns
    ]
    if missing := sorted(set(chosen) & set(links)):
        shown = "".join(f"\n  {layout.text(path)} {LEADS_OUT}" for path in missing)
        raise LoadstoneError(f"the archive can't be bundled, since what these lead to would be missing:{shown}")
    for path in chosen:
        # Every part can be decoded (`archive.decode`), so no two names are the same.
        yield Member(ARCHIVE + "/".join(map(encode, path.split("/"))), archive / path)


def _tables(selection: BundleSelection, tables: Path) -> Iterator[Member]:
    partitions = {layout.partition(Path(), "", campaign).parts for campaign in selection.campaigns}
    compared = {
        layout.comparison_file(tables, comparison, table) for comparison in selection.comparisons for table in COMPARED
    }
    for path in table_files(tables):
        name = path.relative_to(tables)
        if selection.everything or name.parts[1:-1] in partitions or path in compared:
            yield Member(TABLES + name.as_posix(), path)


def table_files(tables: Path) -> Iterator[Path]:
    """The files below the tables' folder that are the same on every machine."""
    for path in tables.rglob("*.parquet"):
        if not any(part.startswith(".") for part in path.relative_to(tables).parts):
            yield path


def _site(selection: BundleSelection, reports: Path) -> Iterator[Member]:
    pages = {f"campaigns/{slug(campaign)}" for campaign in selection.campaigns}
    pages |= {f"comparisons/{name}" for name in selection.comparisons}
    pages |= {f"traces/{dump.slug}" for dump in selection.dumps}
    for name, file in site_files.of_site(reports).items():
        if name == _PROGRESS:
            continue
        if selection.everything or name.startswith(_ALWAYS_IN_SITE) or _is_of(name.removeprefix("figures/"), pages):
            yield Member(SITE + name, file.path)


def _is_of(name: str, pages: Collection[str]) -> bool:
    """Whether a file is a page, is in its folder or is next to it under its name."""
    parts = name.split("/")
    if len(parts) < 2:
        return False
    own = f"{parts[0]}/{parts[1]}"
    return own in pages or any(own.startswith(f"{page}{end}") for page in pages for end in (".html", ".sha256", "-ro"))


FOLDER = "loadstone-bundle/"  # all members of a bundle are in it, whatever the name of the file
DATA = "data/"
DECLARATION, INFO = "bagit.txt", "bag-info.txt"
MANIFEST, TAG_MANIFEST = "manifest-sha256.txt", "tagmanifest-sha256.txt"
_BAGIT = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can hold
_CHUNK = 1 << 20
_NAME_AT = 30  # of the first member's name in a zip file

Log = Callable[[str], None]


def write(path: Path, members: Iterable[Member]) -> str:
    """Write a bundle; it appears complete or not at all. Replaces an older bundle and nothing else.

    Returns a summary in one line: how many files, how large, and the SHA-256 of the bundle.

    Memory does not grow with the size of files. Raises LoadstoneError when it can't be written, `path` is another
    file, or a file changed in the meantime.
    """
    temporary = path.with_name(f".{path.name}.part")  # always the same, so that the file of a killed command is reused
    try:
        if path.exists() and not is_bundle(path):
            raise LoadstoneError(f"{path} exists and is not a bundle; choose another file or remove it")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            count = _fill(temporary, members)
            sync(temporary)
            size, digest = megabytes(temporary.stat().st_size), sha256_of(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync(path.parent)
    except OSError as error:
        raise LoadstoneError(f"the bundle {path} cannot be written: {error.strerror or error}") from None
    return f"{path}: {counted(count, 'file')}, {size}, SHA-256 {digest}"


def is_bundle(path: Path) -> bool:
    """Whether a file begins as every bundle does."""
    first = f"{FOLDER}{DECLARATION}".encode()
    try:
        with path.open("rb") as file:
            return file.read(_NAME_AT + len(first))[_NAME_AT:] == first
    except OSError:
        return False


def _fill(temporary: Path, members: Iterable[Member]) -> int:
    sums: dict[str, str] = {}
    size = 0
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED, allowZip64=True) as bundle:
        tags = {DECLARATION: _add(bundle, DECLARATION, _BAGIT)[0]}
        for member in members:
            sums[f"{DATA}{member.name}"], length = _add(bundle, f"{DATA}{member.name}", member.content)
            size += length
        about = f"Bag-Software-Agent: Loadstone bundle {FORMAT}\nPayload-Oxum: {size}.{len(sums)}\n".encode()
        tags[INFO] = _add(bundle, INFO, about)[0]
        tags[MANIFEST] = _add(bundle, MANIFEST, manifest(sums))[0]
        _add(bundle, TAG_MANIFEST, manifest(tags))
    return len(sums)


def manifest(sums: dict[str, str]) -> bytes:
    """Lines as sha256sum writes them; BagIt escapes three characters of names."""
    lines = (f"{digest}  {escaped(name)}\n" for name, digest in sorted(sums.items()))
    return "".join(lines).encode()


def escaped(name: str) -> str:
    """A name as manifests write it."""
    return name.replace("%", "%25").replace("\n", "%0A").replace("\r", "%0D")


def unescaped(name: str) -> str:
    """Inverse of `escaped`."""
    return name.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def _add(bundle: zipfile.ZipFile, name: str, content: Path | bytes) -> tuple[str, int]:
    """Add one member; returns its SHA-256 and size."""
    info = zipfile.ZipInfo(FOLDER + name, _EPOCH)
    info.create_system = 3  # Unix, wherever it is written
    info.external_attr = 0o100644 << 16
    if isinstance(content, bytes):
        bundle.writestr(info, content)
        return hashlib.sha256(content).hexdigest(), len(content)
    digest = hashlib.sha256()
    with _opened(content) as source:
        info.file_size = size = os.fstat(source.fileno()).st_size
        with bundle.open(info, "w") as target:
            left = size
            while chunk := source.read(min(_CHUNK, left)):
                digest.update(chunk)
                target.write(chunk)
                left -= len(chunk)
        if left or source.read(1):
            raise LoadstoneError(f"{content} changed while it was bundled; run again")
    return digest.hexdigest(), size


def _opened(content: Path) -> FileIO:
    try:
        return open_raw(content)
    except OSError as error:
        raise LoadstoneError(f"{content} cannot be read, so it cannot be bundled: {error.strerror or error}") from None
