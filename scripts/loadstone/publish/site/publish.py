"""Publishes a site: first what is new at the destination, then what leads readers to it; removes old ones last.

Whenever a publication is killed, entry documents lead to complete publications, and the next call continues it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.publish.s3 import each
from loadstone.publish.site import files, publications
from loadstone.publish.site.branch import Branch
from loadstone.publish.site.destinations import Bucket, Destination, Folder, Write
from loadstone.publish.site.files import SIGNATURE, SiteFile
from loadstone.publish.site.publications import INDEX, RECORD, Publication, PublicationRecord, folder
from loadstone.text import counted, megabytes

Log = Callable[[str], None]


def publish(
    reports: Path,
    destination: Destination,
    *,
    keep: int | None = None,
    address: str | None = None,
    log: Log,
    now: datetime | None = None,
    dry_run: bool = False,
) -> bool:
    """Publish the site; False when the destination's current publication already is it, and nothing was written.

    Of all publications the last `keep` stay (None: all). `address` is the URL of the destination, for link previews.
    With `dry_run` the log says what would be done, and nothing is changed. Raises LoadstoneError.
    """
    site = files.of_site(reports)
    files.check_complete(site)
    try:
        with destination.opened(dry_run=dry_run):
            made = _Made(site, address, now or datetime.now(UTC))
            return _publish(made, destination, keep, log, dry_run=dry_run)
    except OSError as error:
        raise LoadstoneError(f"{destination.name}: {error}. The site published there before is unchanged") from None


def preview(reports: Path, destination: Destination, *, keep: int | None = None) -> list[str]:
    """What `publish` would do with the site as it is now, for people; changes nothing. Raises LoadstoneError."""
    lines: list[str] = []
    publish(reports, destination, keep=keep, log=lines.append, dry_run=True)
    return lines


@dataclass(frozen=True)
class _Made:
    """A site to publish now; `address` is the URL of the destination, if known."""

    site: dict[str, SiteFile]
    address: str | None
    now: datetime

    def entries(self, after: PublicationRecord) -> list[Write]:
        """The entry documents of this site's pages."""
        moment = after.publications[-1].moment
        return [
            Write(page, publications.entry(page, moment, files.link_preview(self.site[page]), self.address))
            for page, leads_to in after.entries.items()
            if leads_to == moment
        ]


def _publish(made: _Made, destination: Destination, keep: int | None, log: Log, *, dry_run: bool) -> bool:
    site = made.site
    found = destination.read(RECORD)
    if found is None and not destination.is_empty():
        raise LoadstoneError(
            f"{destination.name} holds files that Loadstone did not publish ({RECORD} is missing); nothing was "
            "changed. Choose an empty destination, or a folder (prefix) of this one"
        )
    record = PublicationRecord() if found is None else publications.read_record(found, destination.name)
    digest, current = files.digest(site), record.current
    # After a killed publication, entry documents may lead elsewhere.
    if current and current.site == digest and record.pending is None:
        if not dry_run and (record.removing or record.ended):
            destination.begin()
            _remove_old(destination, record)
            destination.finish("Remove old publications")
        log(f"{destination.name} already has this site, published as {current.moment}")
        return False
    publication = _publication(record, site, digest, made.now)
    pages = [name for name in site if name.endswith(".html")]
    _check_not_taken(destination, {*pages, INDEX} - record.entries.keys())
    begun = publications.begun(record, publication, pages)
    after = publications.switched(begun, publication, pages, keep)
    release = list(_release(site, destination, folder(publication.moment), folder(current.moment) if current else None))
    for line in _described(destination.name, publication, release, after, every_file=dry_run):
        log(line)
    if not dry_run:
        _carry_out(destination, found, begun, release, after, entries=made.entries(after))
        log(f"published as {publication.moment}")
    return True


def _publication(record: PublicationRecord, site: dict[str, SiteFile], digest: str, now: datetime) -> Publication:
    """The one that was being transferred, if it is of this site; else a new one."""
    if record.pending and record.pending.site == digest:
        return record.pending
    taken = [former.moment for former in record.publications] + ([record.pending.moment] if record.pending else [])
    moment = publications.new_moment([*taken, *record.removing], digest, now)
    return Publication(moment, digest, len(site), sum(file.size for file in site.values()))


def _check_not_taken(destination: Destination, names: Iterable[str]) -> None:
    """Raises LoadstoneError when one of these files is there and Loadstone has not written it."""
    taken = sorted(name for name, content in _contents(destination, names).items() if SIGNATURE not in content)
    if taken:
        raise LoadstoneError(
            f"{destination.name} has a file {taken[0]} that Loadstone did not publish at the address of a page; "
            "nothing was changed. Move that file away"
        )


def _contents(destination: Destination, names: Iterable[str]) -> dict[str, bytes]:
    """The contents of those of these files that are there."""
    read = each(lambda name: (name, destination.read(name)), names)
    return {name: content for name, content in read if content is not None}


def _release(site: dict[str, SiteFile], destination: Destination, new: str, old: str | None) -> Iterator[Write]:
    """The files that the folder of a publication still misses; unchanged ones are copied there from the last one."""
    there = destination.sizes(new)
    known = publications.read_files(destination.read(f"{old}/{publications.FILES}")) if old else {}
    for name, file in site.items():
        target = f"{new}/{name}"
        if there.get(target) == file.size:
            continue
        if old and known.get(name) == file.sha256:
            yield Write(target, copy_of=f"{old}/{name}")
        else:
            yield Write(target, file.path)
    listed = publications.write_files({name: file.sha256 for name, file in site.items()})
    yield Write(f"{new}/{publications.FILES}", listed)


def _described(
    where: str, publication: Publication, release: Sequence[Write], after: PublicationRecord, *, every_file: bool
) -> Iterator[str]:
    """What will be done, for people."""
    sent = [write for write in release if write.copy_of is None]
    yield f"{where}: a publication of {counted(publication.files, 'file')} as {publication.moment}"
    yield (
        f"  {counted(len(sent), 'file')} to transfer ({megabytes(sum(write.size for write in sent))}), "
        f"{counted(len(release) - len(sent), 'file')} to copy from the last publication"
    )
    if every_file:
        yield from (f"    {write.name.removeprefix(f'{folder(publication.moment)}/')}" for write in sent)
    yield from (f"  {folder(moment)} to remove" for moment in after.removing)


def _carry_out(
    destination: Destination,
    found: bytes | None,
    begun: PublicationRecord,
    release: Sequence[Write],
    after: PublicationRecord,
    *,
    entries: Sequence[Write],
) -> None:
    """Transfer, make current with these `entries`, remove; `found` is the record there, as it was read."""
    destination.begin()
    if destination.read(RECORD) != found:
        raise LoadstoneError(f"somebody else has just published to {destination.name}; try again")
    pending = publications.write_record(begun)
    if found != pending:
        destination.write([Write(RECORD, pending)])
    destination.write(release)
    if destination.read(RECORD) != pending:
        raise LoadstoneError(
            f"somebody else is publishing to {destination.name}, so this publication was not made current; try again"
        )
    publication = after.publications[-1]
    destination.write([*entries, Write(INDEX, publications.index(after.publications))])
    destination.write([Write(RECORD, publications.write_record(after))])
    _remove_old(destination, after)
    destination.finish(f"Publish {counted(publication.files, 'file')} as {publication.moment}")


def _remove_old(destination: Destination, record: PublicationRecord) -> None:
    """Remove what nothing leads to, also what a killed publication left."""
    if not (record.removing or record.ended):
        return
    ended = _contents(destination, record.ended)
    destination.remove([], sorted(page for page, content in ended.items() if SIGNATURE in content))
    destination.remove(map(folder, record.removing), [])
    destination.write([Write(RECORD, publications.write_record(publications.settled(record)))])


def configured_destination(declared: Mapping[str, Any] | None) -> Destination:
    """Where to publish. Raises LoadstoneError when nothing is declared."""
    if not declared:
        raise LoadstoneError(
            "publish is missing in config/config.yaml, for example `publish: {to: folder, path: /srv/www}`; "
            "docs/report-and-publishing.md has every destination"
        )
    given = {key: value for key, value in declared.items() if key not in ("to", "keep", "address")}
    if declared["to"] == "folder":
        return Folder(Path(given["path"]).expanduser())
    return Branch(**given) if declared["to"] == "branch" else Bucket(**given)
