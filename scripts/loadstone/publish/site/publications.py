"""What a destination holds: each publication in a folder of its own, and one entry document per page.

    loadstone-publication.json         the publication record: what was published here, and what is the current one
    releases/<moment>/...              a site as it was published then; never changed afterwards
    releases/<moment>/files.json       its files with their SHA-256
    releases/index.html                all publications, by date
    index.html, campaigns/<slug>.html  entry documents: each leads to its page in the newest publication that has it

A reader is always inside one publication, whose pages and data fit each other. An entry document is one small file, so
it leads either to the old site or to the new one.

The record names everything that a killed publication may leave before it is written (`begun`), so that the next one
needs no listing. `pending` and the digest of the site say which files there can be kept.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import jinja2
import msgspec
from markupsafe import Markup

from loadstone.errors import LoadstoneError

RECORD = "loadstone-publication.json"
RELEASES = "releases"
FILES = "files.json"
INDEX = f"{RELEASES}/index.html"
_MADE_BY = "Loadstone"
_FORMAT = 1
_MOMENT = "%Y-%m-%dT%H-%M-%SZ"  # no colon: not every file system and server takes one
_LETTERS = 8
_IMAGE = 'property="og:image" content="'
_NAME = re.compile(rf"[0-9T-]+Z-[0-9a-f]{{{_LETTERS}}}")


@dataclass(frozen=True)
class Publication:
    """One site as it was published; `moment` names its folder, `site` is the digest of its files."""

    moment: str
    site: str
    files: int
    bytes: int


@dataclass(frozen=True)
class PublicationRecord:
    """What a destination holds, by its own record."""

    publications: tuple[Publication, ...] = ()  # the oldest first; the last is the current one
    pending: Publication | None = None  # being transferred; nothing leads there yet
    removing: tuple[str, ...] = ()  # moments of publications to remove
    ended: tuple[str, ...] = ()  # entry documents that may lead to those
    entries: Mapping[str, str] = field(default_factory=dict)  # page -> moment of the publication to which it leads

    @property
    def current(self) -> Publication | None:
        return self.publications[-1] if self.publications else None


def folder(moment: str) -> str:
    """The folder of a publication."""
    return f"{RELEASES}/{moment}"


def new_moment(taken: Iterable[str], site: str, now: datetime) -> str:
    """The name of a publication begun `now`, later than all that are `taken`.

    It ends with the first letters of the site's digest: two who publish in the same second never share a folder.
    """
    moment, latest = now.astimezone(UTC).replace(microsecond=0), max(map(instant, taken), default=None)
    if latest and moment <= latest:
        moment = latest + timedelta(seconds=1)
    return f"{moment:{_MOMENT}}-{site[:_LETTERS]}"


def instant(moment: str) -> datetime:
    """When a publication was begun. Raises ValueError when this names none."""
    if not _NAME.fullmatch(moment):
        raise ValueError(f"{moment!r} is not the name of a publication")
    return datetime.strptime(moment[: -_LETTERS - 1], _MOMENT).replace(tzinfo=UTC)


def write_record(record: PublicationRecord) -> bytes:
    """The record as a file."""
    content = {"made_by": _MADE_BY, "format": _FORMAT, **asdict(record)}
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def read_record(content: bytes, where: str) -> PublicationRecord:
    """The record of a destination; `where` names it in errors. Raises LoadstoneError when it is not a valid one."""
    try:
        found = msgspec.json.decode(content, type=dict[str, object])
        if (found.get("made_by"), found.get("format")) != (_MADE_BY, _FORMAT):
            raise ValueError("it was written by another version")
        record = msgspec.convert(found, PublicationRecord)
        _check_names(record)
    except (ValueError, msgspec.MsgspecError) as error:
        raise LoadstoneError(
            f"{where} has a {RECORD} that cannot be understood ({error}); nothing was changed there"
        ) from None
    return record


def _check_names(record: PublicationRecord) -> None:
    """Raises ValueError unless all names are of publications and pages: they are written to and removed."""
    named = [*record.publications, *([record.pending] if record.pending else [])]
    for moment in (*(each.moment for each in named), *record.removing, *record.entries.values()):
        instant(moment)
    for page in (*record.ended, *record.entries):
        if not page.endswith(".html") or not all(part.strip(".") for part in page.split("/")):
            raise ValueError(f"{page!r} is not a page")


def write_files(sha256: Mapping[str, str]) -> bytes:
    """The list of a publication's files."""
    return (json.dumps(dict(sorted(sha256.items())), indent=0) + "\n").encode()


def read_files(content: bytes | None) -> dict[str, str]:
    """SHA-256 by name; empty when there is no list that can be read, so that everything is transferred again."""
    try:
        return msgspec.json.decode(content or b"{}", type=dict[str, str])
    except (msgspec.MsgspecError, ValueError):
        return {}


def begun(record: PublicationRecord, publication: Publication, pages: Iterable[str]) -> PublicationRecord:
    """The record while `publication` is being transferred: it names everything that a killed one may leave."""
    abandoned = {record.pending.moment} - {publication.moment} if record.pending else set()
    return replace(
        record,
        pending=publication,
        removing=tuple(sorted({*record.removing, *abandoned})),
        ended=tuple(sorted({*record.ended, *pages} - record.entries.keys())),
    )


def switched(
    record: PublicationRecord, publication: Publication, pages: Iterable[str], keep: int | None
) -> PublicationRecord:
    """The record, as it was `begun`, with `publication` as the current one; the last `keep` stay (None: all)."""
    publications = (*record.publications, publication)
    staying = publications[-keep:] if keep else publications
    moments = {each.moment for each in staying}
    led = {**record.entries, **dict.fromkeys(pages, publication.moment)}
    entries = {page: moment for page, moment in sorted(led.items()) if moment in moments}
    return PublicationRecord(
        publications=staying,
        removing=tuple(sorted({*record.removing, *(each.moment for each in publications)} - moments)),
        ended=tuple(sorted({*record.ended, *led} - entries.keys())),
        entries=entries,
    )


def settled(record: PublicationRecord) -> PublicationRecord:
    """The record after the removal."""
    return replace(record, removing=(), ended=())


_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("loadstone.publish.site"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    keep_trailing_newline=True,
)


def entry(page: str, moment: str, preview: str = "", address: str | None = None) -> bytes:
    """The document at the address of a page, which leads to it in a publication and keeps what the address chose.

    `preview` is markup of the page (`files.link_preview`) that says what other sites show of a link: they don't follow
    this document. They need the picture's complete URL, which is known if `address`, that of the destination, is.
    """
    up = "../" * page.count("/")
    site = f"{up}{folder(moment)}"
    base = f"{address.rstrip('/')}/{folder(moment)}" if address else site
    image = quote(f"{base}/{page.rpartition('/')[0]}".rstrip("/"), safe="/:%?=&@+,;~[]")
    shown = Markup(preview.replace(_IMAGE, f"{_IMAGE}{image}/"))  # noqa: S704 - `image` has no quotes
    return _rendered("entry.html", page=page, site=site, moment=moment, index=f"{up}{INDEX}", preview=shown)


def index(publications: Sequence[Publication]) -> bytes:
    """The page that lists all publications, the newest first."""
    return _rendered("publications.html", publications=publications[::-1])


def _rendered(template: str, **values: object) -> bytes:
    return _TEMPLATES.get_template(template).render(values, when=_when).encode()


def _when(moment: str) -> str:
    began = instant(moment)
    return f"{began.day} {began:%B %Y, %H:%M} UTC"
