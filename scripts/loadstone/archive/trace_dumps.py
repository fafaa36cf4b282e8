"""Trace dumps in the archive: where they are, and to which campaign each belongs."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadstone.archive import Campaign, CampaignKey, encode, leads_out

FOLDER = "_trace_dumps"
_NAME = re.compile(r"traces-([0-9]{1,15})\.json(?:\.zst)?")
_LONGEST_NAME = 150
_VERSION = 1  # raise it to have all dumps read again


@dataclass(frozen=True, order=True)
class Dump:
    """One file ``_trace_dumps/traces-<epoch ms>.json.zst``; `source` is its path relative to the archive `root`.

    `app`, `host` and `timestamp` are empty where it is not known to what it belongs; the campaign may come from the
    catalogue.
    """

    root: Path
    source: str
    size: int
    mtime_ns: int
    app: str = ""
    host: str = ""
    timestamp: str = ""

    @property
    def path(self) -> Path:
        return self.root / self.source

    @property
    def name(self) -> str:
        return self.source.rpartition("/")[2]

    @property
    def saved_at(self) -> datetime | None:
        """When it was saved, by its name."""
        match = _NAME.fullmatch(self.name)
        try:
            return datetime.fromtimestamp(int(match[1]) / 1000, UTC) if match else None
        except (ValueError, OverflowError, OSError):
            return None

    @property
    def campaign(self) -> Campaign | None:
        return Campaign(self.root, self.app, self.host, self.timestamp) if self.timestamp else None

    @property
    def key(self) -> str:
        """The name of its derived files: one safe path part, different for every dump."""
        path = self.source.encode("utf-8", "surrogateescape")
        return f"{encode(self.name)[:_LONGEST_NAME].removesuffix('.zst')}~{hashlib.sha256(path).hexdigest()[:8]}"

    @property
    def slug(self) -> str:
        """The name of its page."""
        return re.sub(r"[^A-Za-z0-9.-]+", "-", self.key).replace(".json", "")

    def fields(self) -> dict[str, Any]:
        """Its fields without `root`, as plain values: ``Dump(root, **fields)`` is equal to it."""
        return {name: value for name, value in asdict(self).items() if name != "root"}

    def digest(self) -> str:
        """Fingerprint of its content and place: size, mtime and owner."""
        state = (_VERSION, *self.fields().values())
        return hashlib.sha256(repr(state).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def is_dump(name: str) -> bool:
    """Whether a file of this name in a `FOLDER` is a dump."""
    return _NAME.fullmatch(name) is not None


def owners(entries: Mapping[CampaignKey, Mapping[str, Any]]) -> dict[str, CampaignKey]:
    """File name of a dump -> the campaign whose catalogue entry lists it."""
    return {dump["file"]: key for key, entry in entries.items() for dump in entry.get("trace_dumps") or ()}


def find(root: Path, campaigns: Iterable[Campaign], owned: Mapping[str, CampaignKey]) -> list[Dump]:
    """All dumps of an archive: in its own folder, an app's, a host's or a campaign's.

    `owned` gives the campaigns of dumps outside a campaign's folder; campaigns that the archive does not hold are
    ignored. A folder that can't be listed holds none, and a link out of the archive is none.
    """
    places, present = {root}, set()
    for campaign in campaigns:
        present.add(campaign.key)
        places |= {campaign.path, campaign.path.parent, campaign.path.parent.parent}
    found = []
    for place in sorted(places):
        levels = place.relative_to(root).parts
        for name, status in _entries(place / FOLDER, root):
            owner = levels + ("",) * (3 - len(levels))
            given = owned.get(name)
            if given in present and all(level in ("", known) for level, known in zip(owner, given, strict=True)):
                owner = given
            source = "/".join([*levels, FOLDER, name])
            found.append(Dump(root, source, status.st_size, status.st_mtime_ns, *owner))
    return found


def _entries(folder: Path, root: Path) -> Iterator[tuple[str, os.stat_result]]:
    if leads_out(folder, root):
        return
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if is_dump(entry.name) and not leads_out(entry.path, root))
    except OSError:
        return
    for name in names:
        with suppress(OSError):
            status = (folder / name).stat()
            if stat.S_ISREG(status.st_mode):
                yield name, status
