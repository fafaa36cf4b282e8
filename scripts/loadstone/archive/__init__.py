"""The archive of raw results: its folders, file names, metadata and plans; durable writes, locks, records of runs.

In: a folder. Out: `Campaign`, `Cell` and listings of their files. The only package that knows where a raw file lies.

Layout: ``<root>/<app>/<host>/<timestamp>/<rate>/<variant_dir>/`` with ``metadata.json`` and files named
``<run>.<...>``; see `parse_name`. This module opens no result and writes no file.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count, groupby
from operator import attrgetter
from pathlib import Path
from urllib.parse import quote, unquote

CampaignKey = tuple[str, str, str]  # app, host and timestamp

# Environment variable, so that the processes of jobs inherit it: the folders outside archives that links may lead to.
LINKS = "LOADSTONE_ARCHIVE_LINKS"
LEADS_OUT = "is a link that leads out of the archive and was not followed; `archive_links` can allow the place"

METADATA = "metadata.json"
COMPLETION = "completion_time.txt"
ABANDONED = "abandoned.txt"

# Further runs that were planned after the campaign was complete (`loadstone.archive.extension`), and when each part of
# it was complete.
EXTENSION = re.compile(r"extension\.[1-9][0-9]{0,3}\.json")
COMPLETIONS = re.compile(r"completion_time(\.[1-9][0-9]{0,3})?\.txt")

MAIN_STREAM = "main"
# The columns of `<run>.resources.csv.zst`; ASKED_AT may follow.
RESOURCE_COLUMNS = ("sampled_at", "scope", "name", "cpu_millicores", "memory_mib")
ASKED_AT = "asked_at"
_NAME = re.compile(
    r"(?P<run>[1-9][0-9]*)"
    r"(?:\.(?P<part>req_\d+))?"
    r"(?:\.(?P<side>[a-z][a-z0-9-]*))??"
    r"\.(?P<format>(?P<kind>warmups|results|summary|resources)\.(?:json|csv|bin))(?:\.zst)?"
)
# Files of other tools keep their own name after the run's number: name -> `RawFile.kind`.
FOREIGN = {
    "artillery.json": "results",
    "k6.json": "results",
    "k6.csv": "results",
    "hey.csv": "results",
    "ab.tsv": "results",
    "k6.summary.json": "summary",
    "k6.txt": "summary",
    "vegeta.txt": "summary",
    "hdr.csv": "summary",
    "summary.csv": "summary",
    "resource-usage.log": "resources",
    "resource-summary.txt": "resources",
    "figures.csv": "resources",
}
_FOREIGN = re.compile(rf"(?P<run>[1-9][0-9]*)\.(?P<format>{'|'.join(map(re.escape, FOREIGN))})(?:\.zst)?")
_RUN_DIGITS = 9
_RECORD = re.compile(r"(?P<run>[1-9][0-9]*)\.(?P<kind>run\.json|sha256)")
_FAILURE = re.compile(r"(?P<run>[1-9][0-9]*)\.failure\.(?P<nth>[1-9][0-9]{0,8})\.json")


@dataclass(frozen=True, order=True)
class Campaign:
    """One sweep as opened at one moment. `root` is the archive's folder."""

    root: Path
    app: str
    host: str
    timestamp: str

    @property
    def key(self) -> CampaignKey:
        return self.app, self.host, self.timestamp

    @property
    def path(self) -> Path:
        return self.root.joinpath(*self.key)

    @property
    def instant(self) -> datetime:
        """When the campaign was opened; campaigns are sorted by this, never by the text of `timestamp`.

        A folder whose name is not a timestamp sorts before all others.
        """
        return parse_timestamp(self.timestamp) or datetime.min.replace(tzinfo=UTC)

    @property
    def is_open(self) -> bool:
        """Whether runs may still be collected: neither completed nor given up by its owner."""
        return not (self.is_completed or self.is_abandoned)

    @property
    def completions(self) -> list[Path]:
        """The files that say when each part of the campaign was complete: one, and one more for each extension."""
        extensions = (self.path / f"extension.{number}.json" for number in count(1))
        parts = next(part for part, path in enumerate(extensions, start=1) if not _exists(path))
        return [self.path / COMPLETION, *(self.path / f"completion_time.{part}.txt" for part in range(2, parts + 1))]

    @property
    def is_completed(self) -> bool:
        """Whether all planned runs were collected, or those of the first part and the rest was given up.

        False in a folder that may not be entered.
        """
        first, *others = map(_exists, self.completions)
        return first and (all(others) or self.is_abandoned)

    @property
    def is_abandoned(self) -> bool:
        """Whether its owner gave it up. False in a folder that may not be entered."""
        return _exists(self.path / ABANDONED)

    @property
    def give_up_command(self) -> str:
        """The shell command by which its owner gives it up."""
        return f"touch '{self.path / ABANDONED}'"

    def __str__(self) -> str:
        return "/".join(self.key)


@dataclass(frozen=True, order=True)
class Cell:
    """What one ``metadata.json`` describes. `rate` is the folder's own text (``"100"``, ``"0.5"``), in requests/s."""

    campaign: Campaign
    rate: str
    variant_dir: str

    @property
    def path(self) -> Path:
        return self.campaign.path / self.rate / self.variant_dir

    def results(self, run: int) -> Path:
        """Where a run collected by Loadstone has its main results. This file makes the run collected."""
        return self.path / f"{run}.results.json.zst"

    def failure(self, run: int, nth: int) -> Path:
        """The record of the `nth` failed attempt at a run (from 1)."""
        return self.path / f"{run}.failure.{nth}.json"

    def __str__(self) -> str:
        return f"{self.campaign}/{self.rate}/{self.variant_dir}"


@dataclass(frozen=True, order=True)
class RawFile:
    """One file of a run.

    `kind` is ``results`` (single requests, or the file that a tool leaves instead), ``warmups``, ``summary`` (the
    tool's own figures), ``resources``, ``run``, ``sha256`` or ``failure`` (the record of a failed attempt). `format`
    is the name after run and stream without ``.zst``: ``results.json``, ``k6.summary.json``.
    """

    run: int
    stream: str
    kind: str
    format: str
    name: str
    size: int = 0
    mtime_ns: int = 0


@dataclass
class CellListing:
    """The files of one cell as `scan_campaign` found them. `strays` are names of no known form.

    `unread` are files of runs that are links out of the archive: the runs were collected, but nothing opens the files.
    """

    cell: Cell
    files: list[RawFile] = field(default_factory=list)
    unread: list[RawFile] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    metadata: tuple[int, int] | None = None  # size and mtime_ns of metadata.json

    def runs(self) -> list[int]:
        """Numbers of the runs that left any file of their own, ascending."""
        kinds = {"results", "summary", "warmups", "resources"}
        return sorted({file.run for file in (*self.files, *self.unread) if file.kind in kinds})

    def collected(self) -> set[int]:
        """Numbers of the runs with main results, in whatever format; a tool's own summary is not enough."""
        files = (*self.files, *self.unread)
        return {file.run for file in files if file.kind == "results" and file.stream == MAIN_STREAM}

    def failures(self) -> dict[int, list[RawFile]]:
        """Run -> the records of its failed attempts, oldest first."""
        records = [file for file in self.files if file.kind == "failure"]
        records.sort(key=lambda file: (file.run, failure_number(file.name)))
        return {run: list(files) for run, files in groupby(records, attrgetter("run"))}


@dataclass
class CampaignListing:
    """One campaign's cells, and what could not be read or understood in it: (path relative to the archive, why)."""

    campaign: Campaign
    cells: list[CellListing] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)  # those of `problems` that hide what is there
    completed: bool = False
    extensions: list[tuple[str, int, int]] = field(default_factory=list)  # name, size and mtime_ns of their files

    def add_problem(self, path: str | Path, why: str) -> None:
        self.problems.append((_relative(path, self.campaign.root), why))

    def add_unreadable(self, path: str | Path, error: OSError) -> None:
        self.add_problem(path, f"cannot be read: {error.strerror}")
        self.unreadable.append(self.problems[-1])

    def digest(self) -> str:
        """Fingerprint of the campaign's files by name, size and mtime."""
        state = (self.completed, sorted(self.problems), *([self.extensions] if self.extensions else ()))
        digest = hashlib.sha256(repr(state).encode())
        for listing in self.cells:
            entries = [(file.name, file.size, file.mtime_ns) for file in listing.files]
            entries += [(file.name, -1, -1) for file in listing.unread]
            state = (listing.cell.rate, listing.cell.variant_dir, listing.metadata, entries, listing.strays)
            digest.update(repr(state).encode("utf-8", "surrogateescape"))
        return digest.hexdigest()[:32]


def parse_timestamp(text: str) -> datetime | None:
    """The instant of a campaign's folder name, or None when it is not an ISO 8601 time with an offset.

    Seconds may be absent (js-joda leaves them out when they are zero).
    """
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else None


def parse_name(name: str) -> RawFile | None:
    """A file name inside a cell, parsed from the left; None when it is not a file of a run.

    ``1.results.json.zst`` is the main stream, ``1.presidio.results.json.zst`` a side attack and
    ``1.req_0.presidio.results.json.zst`` its first part (stream ``presidio.req_0``). Other tools' files exist once per
    run: ``1.k6.summary.json``.
    """
    if len(name.partition(".")[0]) > _RUN_DIGITS:
        return None
    if record := _RECORD.fullmatch(name):
        kind = "run" if record["kind"] == "run.json" else "sha256"
        return RawFile(int(record["run"]), MAIN_STREAM, kind, record["kind"], name)
    if failure := _FAILURE.fullmatch(name):
        return RawFile(int(failure["run"]), MAIN_STREAM, "failure", "json", name)
    match = _NAME.fullmatch(name)
    if (match is None or match["side"]) and (foreign := _FOREIGN.fullmatch(name)):
        return RawFile(int(foreign["run"]), MAIN_STREAM, FOREIGN[foreign["format"]], foreign["format"], name)
    if match is None or (match["part"] and not match["side"]):
        return None
    stream = ".".join(part for part in (match["side"], match["part"]) if part) or MAIN_STREAM
    return RawFile(int(match["run"]), stream, match["kind"], match["format"], name)


def failure_number(name: str) -> int:
    """The number of a failure record among those of its run, from 1."""
    match = _FAILURE.fullmatch(name)
    return int(match["nth"]) if match else 0


def parse_rate(name: str) -> float | None:
    """A rate folder's name in requests/s, or None when it is not a plain positive decimal number."""
    return float(name) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", name) and float(name) > 0 else None


def campaigns(root: Path) -> Iterator[Campaign]:
    """All campaigns of an archive, oldest first within each app and host; `outside` lists everything else.

    Raises OSError when the archive's own folder can't be read.
    """
    for app in _folders(root, root):
        for host in _readable_folders(root / app, root):
            names = _readable_folders(root / app / host, root)
            found = [campaign for name in names if _is_campaign(campaign := Campaign(root, app, host, name))]
            yield from sorted(found, key=lambda campaign: (campaign.instant, campaign.timestamp))


def _is_campaign(folder: Campaign) -> bool:
    """Whether the folder's name is a timestamp, or metadata were found in it."""
    if parse_timestamp(folder.timestamp) is not None:
        return True
    rates = [folder.path / name for name in _readable_folders(folder.path, folder.root) if parse_rate(name) is not None]
    cells = (rate / name for rate in rates for name in _readable_folders(rate, folder.root))
    return any(_exists(cell / METADATA) and not leads_out(cell / METADATA, folder.root) for cell in cells)


def allow_links(folders: Iterable[str]) -> None:
    """Let links of archives lead to these folders too, in this process and in those that it starts."""
    os.environ[LINKS] = json.dumps([os.path.realpath(Path(folder).expanduser()) for folder in folders])


def leads_out(path: str | Path, root: Path) -> bool:
    """Whether a path in the archive `root` leads, by a link, neither to a place in it nor to one of `allow_links`."""
    place = Path(os.path.realpath(path))
    return not any(map(place.is_relative_to, (os.path.realpath(root), *json.loads(os.environ.get(LINKS, "[]")))))


def outside(root: Path) -> Iterator[tuple[str, str]]:
    """What an archive holds besides campaigns: (path relative to the archive, why it is not one)."""
    folders = [root] if root.exists() else []
    for kind in ("an app's", "a host's", "a campaign's"):
        below = []
        for folder in folders:
            try:
                entries, links = _visible(folder, root)
            except OSError as error:
                yield _relative(folder, root), f"cannot be read: {error.strerror}"
                continue
            yield from ((_relative(link, root), LEADS_OUT) for link in links)
            for entry in entries:
                if _is_dir(entry):
                    below.append(Path(entry.path))
                else:
                    yield _relative(entry.path, root), f"is not {kind} folder"
        folders = below
    for folder in folders:
        if not _is_campaign(Campaign(root, *folder.relative_to(root).parts)):
            yield (
                _relative(folder, root),
                "is not a campaign: its name is not a timestamp, and there is no metadata.json in it",
            )


def scan_campaign(campaign: Campaign) -> CampaignListing:
    """List one campaign: one stat per file, nothing opened. What can't be read is named in `problems`."""
    listing = CampaignListing(campaign, completed=campaign.is_completed)

    def entries(folder: Path) -> list[os.DirEntry[str]]:
        try:
            found, links = _visible(folder, campaign.root)
        except OSError as error:
            listing.add_unreadable(folder, error)
            return []
        for link in links:
            listing.add_problem(link, LEADS_OUT)
        return found

    for rate in entries(campaign.path):
        if rate.name == ABANDONED or COMPLETIONS.fullmatch(rate.name):
            continue
        if EXTENSION.fullmatch(rate.name):
            _add_extension(rate, listing)
            continue
        if not _is_dir(rate) or parse_rate(rate.name) is None:
            listing.add_problem(rate.path, "is neither a rate nor a known file")
            continue
        for variant in entries(Path(rate.path)):
            if not _is_dir(variant):
                listing.add_problem(variant.path, "is not a variant's folder")
                continue
            cell = CellListing(Cell(campaign, rate.name, variant.name))
            _add_files(cell, listing)
            listing.cells.append(cell)
    listing.cells.sort(key=lambda cell: (float(cell.cell.rate), cell.cell.variant_dir))
    return listing


def _add_extension(entry: os.DirEntry[str], listing: CampaignListing) -> None:
    try:
        status = entry.stat()
    except OSError as error:
        listing.add_unreadable(entry.path, error)
    else:
        listing.extensions.append((entry.name, status.st_size, status.st_mtime_ns))


def scan_cell(cell: Cell) -> CellListing:
    """List one cell, as `scan_campaign` does; empty when its folder can't be read."""
    listing = CellListing(cell)
    _add_files(listing, CampaignListing(cell.campaign))
    return listing


def _add_files(cell: CellListing, listing: CampaignListing) -> None:
    try:
        entries, links = _visible(cell.cell.path, listing.campaign.root)
    except OSError as error:
        listing.add_unreadable(cell.cell.path, error)
        return
    for entry in entries:
        _add_file(cell, entry, listing)
    for link in links:
        if (file := parse_name(Path(link).name)) is None or Path(link).parent != cell.cell.path:
            listing.add_problem(link, LEADS_OUT)
        else:
            cell.unread.append(file)
    cell.files.sort()


def _add_file(cell: CellListing, entry: os.DirEntry[str], listing: CampaignListing) -> None:
    try:
        status = entry.stat()
    except OSError as error:
        listing.add_unreadable(entry.path, error)
        # A link to storage that is not mounted at the moment is still a run that was collected.
        if (linked := parse_name(entry.name)) is not None and entry.is_symlink():
            cell.files.append(linked)
        return
    if entry.name == METADATA:
        cell.metadata = (status.st_size, status.st_mtime_ns)
    elif (parsed := parse_name(entry.name)) is not None and entry.is_file():
        cell.files.append(replace(parsed, size=status.st_size, mtime_ns=status.st_mtime_ns))
    else:
        cell.strays.append(entry.name)
        listing.add_problem(entry.path, "is not a file of a run")


def encode(name: str) -> str:
    """A folder name from the archive as one safe path part (percent-encoded; ordinary names are unchanged).

    ``{}<>`` mean something to Snakemake, and ``%=`` and glob characters to DuckDB; names in an archive may hold them.
    The last character of a name that ends with 20 repetitions is encoded too, because Snakemake refuses such wildcards.
    """
    if name in (".", ".."):
        return name.replace(".", "%2E")
    part = _quoted(name)
    if not is_repeated(part):
        return part
    return _quoted(name[:-1]) + "".join(f"%{byte:02x}" for byte in name[-1].encode("utf-8", "surrogateescape"))


def _quoted(name: str) -> str:
    # Letters of any script are kept: percent-encoded, a long name would be longer than file systems allow.
    return re.sub(r"[^\w:+\-.~@ ]", lambda found: quote(found[0], safe="", errors="surrogateescape"), name)


def is_repeated(name: str) -> bool:
    """Whether a name ends with 20 repetitions."""
    return len(name) >= 20 and re.search(r"(.+?)\1{19}$", name) is not None


def decode(part: str) -> str:
    """Inverse of `encode`."""
    return unquote(part, errors="surrogateescape")


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises PermissionError in a folder that may not be entered


def _folders(path: Path, root: Path) -> list[str]:
    return [entry.name for entry in _visible(path, root)[0] if _is_dir(entry)]


def _readable_folders(path: Path, root: Path) -> list[str]:
    try:
        return _folders(path, root)
    except OSError:
        return []


def _visible(path: Path, root: Path) -> tuple[list[os.DirEntry[str]], list[str]]:
    """What a folder of the archive holds, and its links that lead out; also those in its folders that begin with _."""
    found, links = [], []
    with os.scandir(path) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.startswith("."):
                continue
            if entry.is_symlink() and leads_out(entry.path, root):
                links.append(entry.path)
            elif not entry.name.startswith("_"):
                found.append(entry)
            elif entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    links += _visible(Path(entry.path), root)[1]
    return found, links


def _is_dir(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder or a link to one, but not to a folder that contains the link."""
    try:
        if not entry.is_dir():
            return False
    except OSError:
        return False
    return not (entry.is_symlink() and Path(entry.path).parent.resolve().is_relative_to(Path(entry.path).resolve()))


def _relative(path: str | Path, root: Path) -> str:
    return Path(path).relative_to(root).as_posix()
