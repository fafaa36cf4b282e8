"""The catalogue of campaigns (config/catalogue.yaml): what people know about them that the archive does not hold.

Tags are rows of text: ``tag``, ``reason`` and patterns, which `loadstone.tables.exclusion` matches with runs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from loadstone.archive import parse_timestamp
from loadstone.config.yaml_files import read_yaml, validate
from loadstone.errors import LoadstoneError

Key = tuple[str, str, str]  # app, host and timestamp, as tables show them
TagRow = dict[str, Any]

_WILDCARDS = "*?["


class Catalogue:
    """The checked content of config/catalogue.yaml."""

    def __init__(self, declared: Mapping[str, Any]) -> None:
        self.tags: dict[str, str] = dict(declared["tags"])
        self.entries: dict[Key, dict[str, Any]] = {
            (app, host, timestamp): entry
            for app, hosts in (declared.get("campaigns") or {}).items()
            for host, timestamps in hosts.items()
            for timestamp, entry in timestamps.items()
        }
        self.tagged: list[TagRow] = list(declared.get("tagged") or ())
        self.apps = {app for app, _, _ in self.entries}

    def entry(self, key: Key) -> dict[str, Any]:
        """The entry of a campaign; empty when it has none."""
        return self.entries.get(key, {})

    def is_unlisted(self, key: Key) -> bool:
        """Whether a campaign has no entry although its app is catalogued."""
        return key[0] in self.apps and key not in self.entries

    def rows(self, key: Key) -> list[TagRow]:
        """The tags that may apply to runs of a campaign: its own, then those of parts of campaigns."""
        own = self.entry(key).get("tags", {})
        found = [{"tag": tag, "reason": reason} if reason else {"tag": tag} for tag, reason in own.items()]
        return found + [row for row in self.tagged if _may_apply(row, key)]

    def about(self, key: Key, excluding: Collection[str]) -> dict[str, Any]:
        """Everything that decides which runs of a campaign are valid; other entries of the catalogue change nothing."""
        rows = self.rows(key)
        return {
            "tags": rows,
            "excluding": sorted({row["tag"] for row in rows} & set(excluding)),
            "listed": not self.is_unlisted(key),
            "completion_file": self.entry(key).get("completion_file", True),
        }

    def excluding(self, options: Mapping[str, Any]) -> list[str]:
        """Tags that exclude runs: ``exclude`` without ``include`` of the configuration's ``tags``.

        Raises LoadstoneError for a tag that the catalogue does not declare.
        """
        for name in ("exclude", "include"):
            if unknown := [tag for tag in options.get(name, ()) if tag not in self.tags]:
                raise LoadstoneError(
                    f"tags.{name} in the configuration: unknown tag {unknown[0]!r}; config/catalogue.yaml defines "
                    f"{_listed(self.tags)}"
                )
        return sorted(set(options.get("exclude", ())) - set(options.get("include", ())))

    def absent(self, present: Collection[Key]) -> list[str]:
        """A sentence for each entry or tag of a campaign that the archive lacks, though it has others of the app."""
        apps = {app for app, _, _ in present}
        gone = [key for key in self.entries if key not in present]
        found = [f"{'/'.join(key)} is in the catalogue, but not in the archive" for key in gone if key[0] in apps]
        found += [
            f"the catalogue tags {_where(row)} as {row['tag']}, but {_where(row)} is not in the archive"
            for row in self.tagged
            if row["app"] in apps and not any(_may_apply(row, key) for key in present)
        ]
        return found


def load_catalogue(path: Path = Path("config/catalogue.yaml")) -> Catalogue:
    """Read and check the catalogue. Raises LoadstoneError that lists every fault.

    A missing file is an error, too: otherwise runs that its tags exclude would silently be valid again.
    """
    declared = read_yaml(path)
    validate(declared, "catalogue.schema.json", str(path))
    catalogue = Catalogue(declared)
    if faults := list(_faults(catalogue)):
        raise LoadstoneError(f"{path} is not valid:\n" + "\n".join(f"  {fault}" for fault in faults))
    return catalogue


def _faults(catalogue: Catalogue) -> Iterator[str]:
    moments: dict[tuple[object, ...], str] = {}
    for (app, host, timestamp), entry in catalogue.entries.items():
        where = f"campaigns.{app}.{host}.{timestamp}"
        if (instant := parse_timestamp(timestamp)) is None:
            yield f"{where}: is not an ISO 8601 time with an offset, such as 2024-04-09T20:14:12-04:00"
        elif (twin := moments.setdefault((app, host, instant), timestamp)) != timestamp:
            yield f"{where}: is the same moment as {twin}: one campaign has one entry"
        yield from _unknown(where, entry.get("tags", ()), catalogue.tags)
    for position, row in enumerate(catalogue.tagged):
        yield from _unknown(f"tagged.{position} ({_where(row)})", [row["tag"]], catalogue.tags)
        if row in catalogue.tagged[:position]:
            yield f"tagged.{position} ({_where(row)}): repeats an earlier line"


def _unknown(where: str, tags: Iterable[str], known: Collection[str]) -> Iterator[str]:
    for tag in tags:
        if tag not in known:
            yield f"{where}: {tag!r} is not among the tags ({_listed(known)}); add it under `tags` with its meaning"


def _listed(tags: Iterable[str]) -> str:
    return ", ".join(sorted(tags)) or "none"


def _where(row: Mapping[str, Any]) -> str:
    return "/".join([row["app"], row["host"], row.get("pattern") or row["timestamp"]])


def _may_apply(row: Mapping[str, Any], key: Key) -> bool:
    """Whether a row of ``tagged`` can match a run of a campaign, judging by the literal start of its pattern."""
    app, host, timestamp = key
    if (row["app"], row["host"]) != (app, host):
        return False
    if (pattern := row.get("pattern")) is None:
        return bool(row["timestamp"] == timestamp)
    literal = pattern[: next((at for at, letter in enumerate(pattern) if letter in _WILDCARDS), len(pattern))]
    folder = f"{timestamp}/"
    return literal.startswith(folder) or folder.startswith(literal)
