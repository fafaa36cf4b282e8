"""How publications lie at a destination: each whole in a folder of its own, and one entry document per page.

    loadstone-publication.json         what was published here, and which publication is the current one
    releases/<moment>/...              a site as it was published then; never changed afterwards
    releases/<moment>/files.json       its files with their SHA-256
    releases/index.html                all publications, by date
    index.html, campaigns/<slug>.html  entry documents: each leads to its page in the publication that last had it

A reader is always inside one publication, whose pages and data fit each other. An entry document is one small file, so
it leads either to the old site or to the new one.

The mark names all that a killed publication may leave before it leaves it (`begun`), so that the next one needs no
listing. `pending` together with the site's digest makes it possible to keep what is already there.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from loadstone.errors import LoadstoneError

RECORD = "loadstone-publication.json"
RELEASES = "releases"
FILES = "files.json"
INDEX = f"{RELEASES}/index.html"
_MADE_BY = "Loadstone"
_FORMAT = 1
_MOMENT = "%Y-%m-%dT%H-%M-%SZ"  # no colon: not every file system and server takes one
_LETTERS = 8
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
    """What a destination holds, as it says itself."""

    publications: tuple[Publication, ...] = ()  # the oldest first; the last is the current one
    pending: Publication | None = None  # being transferred; nothing leads there yet
    removing: tuple[str, ...] = ()  # moments of publications that are to go
    ended: tuple[str, ...] = ()  # entry documents that may lead to those
    entries: Mapping[str, str] = field(default_factory=dict)  # page -> moment of the publication it leads to

    @property
    def current(self) -> Publication | None:
        return self.publications[-1] if self.publications else None


def folder(moment: str) -> str:
    """Where a publication lies."""
    return f"{RELEASES}/{moment}"


def new_moment(taken: Iterable[str], site: str, now: datetime) -> str:
    """The name of a publication of `now`, later than all that are there.

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


def write_record(mark: PublicationRecord) -> bytes:
    """The mark as a file."""
    content = {"made_by": _MADE_BY, "format": _FORMAT, **asdict(mark)}
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def read_record(content: bytes, where: str) -> PublicationRecord:
    """The mark of a destination; `where` names it in errors. Raises LoadstoneError when it is none."""
    try:
        found = json.loads(content)
        if (found["made_by"], found["format"]) != (_MADE_BY, _FORMAT):
            raise ValueError("it was written by another version")
        mark = PublicationRecord(
            tuple(Publication(**each) for each in found["publications"]),
            Publication(**found["pending"]) if found["pending"] else None,
            tuple(found["removing"]),
            tuple(found["ended"]),
            dict(found["entries"]),
        )
        _check_names(mark)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LoadstoneError(
            f"{where} has a {RECORD} that cannot be understood ({error}); nothing was changed there"
        ) from None
    return mark


def _check_names(mark: PublicationRecord) -> None:
    """What a mark names is written to and removed. Raises ValueError."""
    named = [*mark.publications, *([mark.pending] if mark.pending else [])]
    for moment in (*(each.moment for each in named), *mark.removing, *mark.entries.values()):
        instant(moment)
    for page in (*mark.ended, *mark.entries):
        if not page.endswith(".html") or not all(part.strip(".") for part in page.split("/")):
            raise ValueError(f"{page!r} is not a page")


def write_files(sha256: Mapping[str, str]) -> bytes:
    """The list of a publication's files."""
    return (json.dumps(dict(sorted(sha256.items())), indent=0) + "\n").encode()


def read_files(content: bytes | None) -> dict[str, str]:
    """SHA-256 by name; empty when there is no list that can be read, so that all is transferred again."""
    try:
        found: Any = json.loads(content or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and all(isinstance(each, str) for each in found.values()) else {}


def begun(mark: PublicationRecord, publication: Publication, pages: Iterable[str]) -> PublicationRecord:
    """The mark while `publication` is being transferred: it names all that a killed one may leave."""
    abandoned = {mark.pending.moment} - {publication.moment} if mark.pending else set()
    return replace(
        mark,
        pending=publication,
        removing=tuple(sorted({*mark.removing, *abandoned})),
        ended=tuple(sorted({*mark.ended, *pages} - mark.entries.keys())),
    )


def switched(
    mark: PublicationRecord, publication: Publication, pages: Iterable[str], keep: int | None
) -> PublicationRecord:
    """The mark, as it was `begun`, once `publication` is the current one; of all, the last `keep` stay (None: all)."""
    publications = (*mark.publications, publication)
    staying = publications[-keep:] if keep else publications
    moments = {each.moment for each in staying}
    led = {**mark.entries, **dict.fromkeys(pages, publication.moment)}
    entries = {page: moment for page, moment in sorted(led.items()) if moment in moments}
    return PublicationRecord(
        publications=staying,
        removing=tuple(sorted({*mark.removing, *(each.moment for each in publications)} - moments)),
        ended=tuple(sorted({*mark.ended, *led} - entries.keys())),
        entries=entries,
    )


def settled(mark: PublicationRecord) -> PublicationRecord:
    """The same when what was to be removed is gone."""
    return replace(mark, removing=(), ended=())


def entry(page: str, moment: str) -> bytes:
    """The document at the address of a page, which leads to it in a publication and keeps what the address chose."""
    up = "../" * page.count("/")
    site = f"{up}{folder(moment)}"
    target = html.escape(quote(f"{site}/{page}"))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; base-uri 'none'">
<title>Published {_when(moment)}</title>
<link rel="canonical" href="{target}">
<script src="{site}/assets/forward.js"></script>
<noscript><meta http-equiv="refresh" content="0; url={target}"></noscript>
</head>
<body>
<p><a href="{target}">This page as published on {_when(moment)}</a>; <a href="{up}{INDEX}">all publications</a>.</p>
<p>Made by Loadstone.</p>
</body>
</html>
""".encode()


def index(publications: Sequence[Publication]) -> bytes:
    """The page that lists all publications, the newest first."""
    rows = "".join(
        f'<tr><th scope="row"><a href="{each.moment}/index.html">{_when(each.moment)}</a></th>'
        f"<td>{each.files:,}</td><td>{each.bytes / 1e6:,.1f} MB</td></tr>\n"
        for each in reversed(publications)
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Publications</title>
<style>body {{ font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 45rem; padding: 0 1rem }}
td, th {{ padding: .2rem 2rem .2rem 0; text-align: right }}
th:first-child {{ text-align: left; font-weight: normal }}</style>
</head>
<body>
<main>
<h1>Publications</h1>
<p>Each is the whole site as it was published then. <a href="../index.html">The newest</a></p>
<table>
<thead><tr><th scope="col">Published</th><th scope="col">Files</th><th scope="col">Size</th></tr></thead>
<tbody>
{rows}</tbody>
</table>
</main>
<footer><p>Made by Loadstone.</p></footer>
</body>
</html>
""".encode()


def _when(moment: str) -> str:
    began = instant(moment)
    return f"{began.day} {began:%B %Y, %H:%M} UTC"
