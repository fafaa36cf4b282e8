"""A site -> a destination: what is new there first, then what leads to it, and what nothing leads to last.

Whatever is killed and whenever, entry documents lead to whole publications, and the next call goes on from there.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.publish.site import completeness, files, layout
from loadstone.publish.site.destination import Destination, Place, Write
from loadstone.publish.site.files import SiteFile
from loadstone.publish.site.layout import Mark, Publication

Log = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What a publication takes; `release` is what its folder still lacks. None of it is there yet."""

    seen: bytes | None  # the mark there, as it was read
    begun: Mark
    publication: Publication
    release: Sequence[Write]
    entries: Sequence[Write]
    after: Mark

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
            *(f"    {write.name.removeprefix(layout.folder(self.publication.moment) + '/')}" for write in sent),
            f"  taken over from what is there: {counted(len(self.release) - len(sent), 'file')}",
            f"  entry documents: {len(self.entries)}",
            *(f"  removed: {layout.folder(moment)}" for moment in gone),
        ]


def publish(
    reports: Path, destination: Destination, *, keep: int | None = None, log: Log, now: datetime | None = None
) -> bool:
    """Publish the site; False when the destination's current publication already is it, and nothing was written.

    Of all publications the last `keep` stay (None: all). Raises LoadstoneError.
    """
    site = files.of_site(reports)
    completeness.check(site)
    try:
        with destination.opened(looking=False) as place:
            plan = _plan(site, place, destination.name, keep, now or datetime.now(UTC))
            if isinstance(plan, Mark):
                _finish_clearing(place, plan)
                log(f"{destination.name} already has this site, published as {_current(plan).moment}")
                return False
            log(_summary(plan, destination.name))
            _carry_out(plan, place, destination.name)
    except OSError as error:
        raise LoadstoneError(f"{destination.name}: {error}. What was published there before is as it was") from None
    log(f"published as {plan.publication.moment}")
    return True


def preview(reports: Path, destination: Destination, *, keep: int | None = None) -> list[str]:
    """What `publish` would do with the site as it is now, for people; changes nothing. Raises LoadstoneError."""
    site = files.of_site(reports)
    completeness.check(site)
    try:
        with destination.opened(looking=True) as place:
            plan = _plan(site, place, destination.name, keep, datetime.now(UTC))
    except OSError as error:
        raise LoadstoneError(f"{destination.name}: {error}") from None
    if isinstance(plan, Mark):
        return [f"{destination.name}: nothing, it already has this site, published as {_current(plan).moment}"]
    return plan.lines(destination.name)


def _current(mark: Mark) -> Publication:
    assert mark.current is not None
    return mark.current


def _plan(site: dict[str, SiteFile], place: Place, where: str, keep: int | None, now: datetime) -> Plan | Mark:
    """What is to be done; the mark when nothing is."""
    content = place.read(layout.MARK)
    if content is None and not place.is_empty():
        raise LoadstoneError(
            f"{where} holds files that Loadstone did not publish ({layout.MARK} is not there); nothing was changed. "
            "Name an empty one, or a folder (prefix) of it"
        )
    mark = layout.read_mark(content, where) if content is not None else Mark()
    digest, current = files.digest(site), mark.current
    # After one that was killed, entry documents may lead elsewhere.
    if current and current.site == digest and mark.pending is None:
        return mark
    publication = _publication(mark, site, digest, now)
    folder = layout.folder(publication.moment)
    pages = [name for name in site if name.endswith(".html")]
    _refuse_taken(place, where, {*pages, layout.INDEX} - mark.entries.keys())
    begun = layout.begun(mark, publication, pages)
    return Plan(
        seen=content,
        begun=begun,
        publication=publication,
        release=list(_release(site, place, folder, layout.folder(current.moment) if current else None)),
        entries=[Write(page, layout.entry(page, publication.moment)) for page in pages],
        after=layout.switched(begun, publication, pages, keep),
    )


def _publication(mark: Mark, site: dict[str, SiteFile], digest: str, now: datetime) -> Publication:
    """The one that was being transferred, if it is of this site; else a new one."""
    if mark.pending and mark.pending.site == digest:
        return mark.pending
    taken = [each.moment for each in mark.publications] + ([mark.pending.moment] if mark.pending else [])
    moment = layout.new_moment([*taken, *mark.removing], digest, now)
    return Publication(moment, digest, len(site), sum(file.size for file in site.values()))


def _refuse_taken(place: Place, where: str, names: Collection[str]) -> None:
    """What lies at a name that we are about to write, without our having put it there, is somebody else's."""
    if taken := sorted(place.present(names) - _ours(place, names)):
        raise LoadstoneError(
            f"{where} has a file {taken[0]} that Loadstone did not publish, where a page belongs; nothing was changed. "
            "Move it away"
        )


def _ours(place: Place, names: Collection[str]) -> set[str]:
    """Those of these files that are there and that a publication has written."""
    return {name for name in place.present(names) if b"Made by Loadstone" in (place.read(name) or b"")}


def _release(site: dict[str, SiteFile], place: Place, folder: str, old: str | None) -> Iterator[Write]:
    """The files of a publication that its folder lacks; unchanged ones are copied there from the former one."""
    there = place.sizes(folder)
    known = layout.read_files(place.read(f"{old}/{layout.FILES}")) if old else {}
    for name, file in site.items():
        target = f"{folder}/{name}"
        if there.get(target) == file.size:
            continue
        if old and known.get(name) == file.sha256:
            yield Write(target, copy_of=f"{old}/{name}")
        else:
            yield Write(target, file.path)
    yield Write(f"{folder}/{layout.FILES}", layout.write_files({name: file.sha256 for name, file in site.items()}))


def _carry_out(plan: Plan, place: Place, where: str) -> None:
    place.begin()
    if place.read(layout.MARK) != plan.seen:
        raise LoadstoneError(f"somebody else has just published to {where}; try again")
    pending = layout.write_mark(plan.begun)
    if plan.seen != pending:
        place.write([Write(layout.MARK, pending)])
    place.write(plan.release)
    if place.read(layout.MARK) != pending:
        raise LoadstoneError(f"somebody else is publishing to {where}; nothing leads to this publication. Try again")
    place.write([*plan.entries, Write(layout.INDEX, layout.index(plan.after.publications))])
    place.write([Write(layout.MARK, layout.write_mark(plan.after))])
    _clear(place, plan.after)
    place.finish(f"Publish {counted(plan.publication.files, 'file')} as {plan.publication.moment}")


def _finish_clearing(place: Place, mark: Mark) -> None:
    if mark.removing or mark.ended:
        place.begin()
        _clear(place, mark)
        place.finish("Remove old publications")


def _clear(place: Place, mark: Mark) -> None:
    """Remove what nothing leads to, also after one that was killed while doing so."""
    if not (mark.removing or mark.ended):
        return
    place.remove([], sorted(_ours(place, mark.ended)))
    place.remove([layout.folder(moment) for moment in mark.removing], [])
    place.write([Write(layout.MARK, layout.write_mark(layout.settled(mark)))])


def _summary(plan: Plan, where: str) -> str:
    sent = plan.transferred
    return (
        f"{where}: {counted(len(sent), 'file')} to transfer ({megabytes(sum(write.size for write in sent))}), "
        f"{counted(len(plan.release) - len(sent), 'file')} as they are there"
    )


def counted(number: int, noun: str) -> str:
    """``1 file``, ``1,350 files``."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def megabytes(size: int) -> str:
    """Of bytes."""
    return f"{size / 1e6:,.1f} MB"
