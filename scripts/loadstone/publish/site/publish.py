"""Publishes a site: what is new at the destination first, then what leads to it; what nothing leads to is removed last.

Whenever a publication is killed, entry documents lead to complete publications, and the next call continues it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.publish.site import files, publications
from loadstone.publish.site.branch import Branch
from loadstone.publish.site.destinations import Bucket, Destination, Folder, OpenDestination, Write
from loadstone.publish.site.files import SiteFile
from loadstone.publish.site.publications import Publication, PublicationRecord
from loadstone.text import counted, megabytes

Log = Callable[[str], None]


@dataclass(frozen=True)
class PublicationPlan:
    """The writes that a publication takes; `release` are the files that its folder still misses."""

    read: bytes | None  # the record there, as it was read
    begun: PublicationRecord
    publication: Publication
    release: Sequence[Write]
    entries: Sequence[Write]
    after: PublicationRecord

    @property
    def transferred(self) -> list[Write]:
        return [write for write in self.release if write.copy_of is None]

    def lines(self, where: str) -> list[str]:
        """What would be done, for people."""
        sent = self.transferred
        gone = [moment for moment in self.after.removing if moment != self.publication.moment]
        return [
            f"{where}: a publication of {counted(self.publication.files, 'file')} as {self.publication.moment}",
            f"  transferred: {counted(len(sent), 'file')}, {megabytes(sum(write.size for write in sent))}",
            *(f"    {write.name.removeprefix(publications.folder(self.publication.moment) + '/')}" for write in sent),
            f"  copied from the last publication: {counted(len(self.release) - len(sent), 'file')}",
            f"  entry documents: {len(self.entries)}",
            *(f"  removed: {publications.folder(moment)}" for moment in gone),
        ]


def publish(
    reports: Path, destination: Destination, *, keep: int | None = None, log: Log, now: datetime | None = None
) -> bool:
    """Publish the site; False when the destination's current publication already is it, and nothing was written.

    Of all publications the last `keep` stay (None: all). Raises LoadstoneError.
    """
    site = files.of_site(reports)
    files.check_complete(site)
    try:
        with destination.opened(dry_run=False) as place:
            plan = _plan(site, place, destination.name, keep, now or datetime.now(UTC))
            if isinstance(plan, PublicationRecord):
                _finish_clearing(place, plan)
                log(f"{destination.name} already has this site, published as {_current(plan).moment}")
                return False
            log(_summary(plan, destination.name))
            _carry_out(plan, place, destination.name)
    except OSError as error:
        raise LoadstoneError(f"{destination.name}: {error}. The site published there before is unchanged") from None
    log(f"published as {plan.publication.moment}")
    return True


def preview(reports: Path, destination: Destination, *, keep: int | None = None) -> list[str]:
    """What `publish` would do with the site as it is now, for people; changes nothing. Raises LoadstoneError."""
    site = files.of_site(reports)
    files.check_complete(site)
    try:
        with destination.opened(dry_run=True) as place:
            plan = _plan(site, place, destination.name, keep, datetime.now(UTC))
    except OSError as error:
        raise LoadstoneError(f"{destination.name}: {error}") from None
    if isinstance(plan, PublicationRecord):
        return [f"{destination.name}: nothing, it already has this site, published as {_current(plan).moment}"]
    return plan.lines(destination.name)


def _current(mark: PublicationRecord) -> Publication:
    assert mark.current is not None
    return mark.current


def _plan(
    site: dict[str, SiteFile], place: OpenDestination, where: str, keep: int | None, now: datetime
) -> PublicationPlan | PublicationRecord:
    """The plan of a publication; the record at the destination when there is nothing to do."""
    content = place.read(publications.RECORD)
    if content is None and not place.is_empty():
        raise LoadstoneError(
            f"{where} holds files that Loadstone did not publish ({publications.RECORD} is missing); nothing was "
            "changed. Choose an empty destination, or a folder (prefix) of this one"
        )
    mark = publications.read_record(content, where) if content is not None else PublicationRecord()
    digest, current = files.digest(site), mark.current
    # After one that was killed, entry documents may lead elsewhere.
    if current and current.site == digest and mark.pending is None:
        return mark
    publication = _publication(mark, site, digest, now)
    folder = publications.folder(publication.moment)
    pages = [name for name in site if name.endswith(".html")]
    _refuse_taken(place, where, {*pages, publications.INDEX} - mark.entries.keys())
    begun = publications.begun(mark, publication, pages)
    return PublicationPlan(
        read=content,
        begun=begun,
        publication=publication,
        release=list(_release(site, place, folder, publications.folder(current.moment) if current else None)),
        entries=[Write(page, publications.entry(page, publication.moment)) for page in pages],
        after=publications.switched(begun, publication, pages, keep),
    )


def _publication(mark: PublicationRecord, site: dict[str, SiteFile], digest: str, now: datetime) -> Publication:
    """The one that was being transferred, if it is of this site; else a new one."""
    if mark.pending and mark.pending.site == digest:
        return mark.pending
    taken = [each.moment for each in mark.publications] + ([mark.pending.moment] if mark.pending else [])
    moment = publications.new_moment([*taken, *mark.removing], digest, now)
    return Publication(moment, digest, len(site), sum(file.size for file in site.values()))


def _refuse_taken(place: OpenDestination, where: str, names: Collection[str]) -> None:
    """What lies at a name that we are about to write, without our having put it there, is somebody else's."""
    if taken := sorted(place.present(names) - _written_by_us(place, names)):
        raise LoadstoneError(
            f"{where} has a file {taken[0]} that Loadstone did not publish at the address of a page; nothing was "
            "changed. Move that file away"
        )


def _written_by_us(place: OpenDestination, names: Collection[str]) -> set[str]:
    """Those of these files that are there and that a publication has written."""
    return {name for name in place.present(names) if b"Made by Loadstone" in (place.read(name) or b"")}


def _release(site: dict[str, SiteFile], place: OpenDestination, folder: str, old: str | None) -> Iterator[Write]:
    """The files of a publication that its folder lacks; unchanged ones are copied there from the former one."""
    there = place.sizes(folder)
    known = publications.read_files(place.read(f"{old}/{publications.FILES}")) if old else {}
    for name, file in site.items():
        target = f"{folder}/{name}"
        if there.get(target) == file.size:
            continue
        if old and known.get(name) == file.sha256:
            yield Write(target, copy_of=f"{old}/{name}")
        else:
            yield Write(target, file.path)
    yield Write(
        f"{folder}/{publications.FILES}", publications.write_files({name: file.sha256 for name, file in site.items()})
    )


def _carry_out(plan: PublicationPlan, place: OpenDestination, where: str) -> None:
    place.begin()
    if place.read(publications.RECORD) != plan.read:
        raise LoadstoneError(f"somebody else has just published to {where}; try again")
    pending = publications.write_record(plan.begun)
    if plan.read != pending:
        place.write([Write(publications.RECORD, pending)])
    place.write(plan.release)
    if place.read(publications.RECORD) != pending:
        raise LoadstoneError(
            f"somebody else is publishing to {where}, so this publication was not made current; try again"
        )
    place.write([*plan.entries, Write(publications.INDEX, publications.index(plan.after.publications))])
    place.write([Write(publications.RECORD, publications.write_record(plan.after))])
    _clear(place, plan.after)
    place.finish(f"Publish {counted(plan.publication.files, 'file')} as {plan.publication.moment}")


def _finish_clearing(place: OpenDestination, mark: PublicationRecord) -> None:
    if mark.removing or mark.ended:
        place.begin()
        _clear(place, mark)
        place.finish("Remove old publications")


def _clear(place: OpenDestination, mark: PublicationRecord) -> None:
    """Remove what nothing leads to, also after one that was killed while doing so."""
    if not (mark.removing or mark.ended):
        return
    place.remove([], sorted(_written_by_us(place, mark.ended)))
    place.remove([publications.folder(moment) for moment in mark.removing], [])
    place.write([Write(publications.RECORD, publications.write_record(publications.settled(mark)))])


def _summary(plan: PublicationPlan, where: str) -> str:
    sent = plan.transferred
    return (
        f"{where}: {counted(len(sent), 'file')} to transfer ({megabytes(sum(write.size for write in sent))}), "
        f"{counted(len(plan.release) - len(sent), 'file')} as they are there"
    )


def configured_destination(declared: Mapping[str, Any] | None) -> Destination:
    """Where to publish. Raises LoadstoneError when nothing is declared."""
    if not declared:
        raise LoadstoneError(
            "publish is missing in config/config.yaml, for example `publish: {to: folder, path: /srv/www}`; "
            "docs/report-and-publishing.md has every destination"
        )
    given = {key: value for key, value in declared.items() if key not in ("to", "keep")}
    if declared["to"] == "folder":
        return Folder(Path(given["path"]).expanduser())
    if declared["to"] == "branch":
        return Branch(**{"remote": "origin", "branch": "gh-pages"} | given)
    return Bucket(**given)
