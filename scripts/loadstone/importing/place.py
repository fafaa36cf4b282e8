"""One source's place in the archive: names that can't lead elsewhere, and what else its entry says of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadstone import archive
from loadstone.archive import Campaign, Cell, metadata
from loadstone.archive.plan import rate_text
from loadstone.importing.declared import Refusal
from loadstone.importing.sources import Source
from loadstone.readers import FORMATS
from loadstone.readers.base import UNITS_NS

# What is the same of all runs of a cell.
FACTS = ("generator", "version", "load_model", "duration", "measured_phase", "zone", "unit")
_LONGEST_NAME_BYTES = 200
_LARGEST_RUN = 10**9


@dataclass(frozen=True)
class Placed:
    """One source with its place. `facts` are its declared keys besides those of the place and the labels."""

    source: Source
    cell: Cell
    run: int
    facts: Mapping[str, str]
    labels: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"{self.run}.{self.source.format}{self.source.suffix}"


def place(source: Source, root: Path) -> Placed:
    """A source's place below the archive `root`, by what its entry says. Raises Refusal."""

    def value(key: str) -> str | None:
        return source.entry.expand(key, source.groups)

    timestamp = _name("timestamp", value("timestamp") or "")
    if archive.parse_timestamp(timestamp) is None:
        raise Refusal(f"the timestamp {timestamp!r} is no time with an offset; write it like 2023-09-27T14:43:27-07:00")
    campaign = Campaign(root, _name("app", value("app") or ""), _name("host", value("host") or ""), timestamp)
    cell = Cell(campaign, _rate(value("rate") or ""), _name("variant", value("variant") or ""))
    facts = {key: text for key in (*FACTS, "started", "description") if (text := value(key)) is not None}
    _check_facts(facts)
    if tool := FORMATS[source.format].generator:
        if facts.setdefault("generator", tool) != tool:
            raise Refusal(f"the generator is {facts['generator']!r}, but the file is one of {tool}")
    elif source.format == "summary.json" or source.format.startswith("results."):
        facts.setdefault("generator", "vegeta")
    return Placed(source, cell, _run(value("run") or "1"), facts, source.entry.expand_labels(source.groups))


def _name(key: str, text: str) -> str:
    """A folder's name in the archive: one that can't lead elsewhere, and that nobody has to fear."""
    why = ""
    if not text or text.strip() != text:
        why = "is empty, or begins or ends with a space"
    elif "/" in text or text in (".", ".."):
        why = "leads to another folder"
    elif text[0] in "._":
        why = "begins with a dot or an underscore; such folders are no part of an archive"
    elif not text.isprintable():
        why = "holds characters that can't be printed"
    elif len(text.encode("utf-8", "surrogateescape")) > _LONGEST_NAME_BYTES:
        why = f"is longer than {_LONGEST_NAME_BYTES} bytes"
    if why:
        raise Refusal(f"{key}: the name {text!r} {why}")
    return text


def _rate(text: str) -> str:
    rate = archive.parse_rate(text)
    if rate is None or rate > 1e12:
        raise Refusal(f"the rate {text!r} is no positive number: requests/s, or users of closed load")
    return rate_text(rate)


def _run(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < _LARGEST_RUN):
        raise Refusal(f"the run {text!r} is no whole number from 1 on")
    return int(text)


def _check_facts(facts: Mapping[str, str]) -> None:
    if "duration" in facts and not metadata.parse_duration(facts["duration"]):
        raise Refusal(f"the duration {facts['duration']!r} is none; write it like 60s, 5m or 1m30s")
    if "started" in facts and archive.parse_timestamp(facts["started"]) is None:
        raise Refusal(f"started: {facts['started']!r} is no time with an offset, like 2023-09-27T14:43:27-07:00")
    if "unit" in facts and facts["unit"] not in UNITS_NS:
        raise Refusal(f"the unit {facts['unit']!r} is none of latencies; it is one of s, ms, us, ns")
    if "zone" in facts and archive.parse_timestamp(f"2000-01-01T00:00:00{facts['zone']}") is None:
        raise Refusal(f"the zone {facts['zone']!r} is none; write the offset, like -07:00")
