"""What config/imports.yaml declares, entry by entry."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone import config
from loadstone.errors import LoadstoneError

DECLARATION = Path("config/imports.yaml")
_GROUP = re.compile(r"\{(\w+)\}")


class Refusal(Exception):  # noqa: N818 - it becomes one line of a LoadstoneError
    """Why something is not imported, and what to do; a line of its own behind the file that it is about."""


@dataclass(frozen=True)
class Entry:
    """One entry, the `number`th from 1. `files` are patterns; `values` may hold ``{name}`` for a group of `match`."""

    number: int
    files: tuple[str, ...]
    format: str | None
    match: re.Pattern[str] | None
    values: Mapping[str, str]
    labels: Mapping[str, str]

    def expand(self, key: str, groups: Mapping[str, str | None]) -> str | None:
        """A declared value for one file, by the groups that `match` found; None when the entry has no such key."""
        return None if key not in self.values else _expanded(key, self.values[key], groups)

    def expand_labels(self, groups: Mapping[str, str | None]) -> dict[str, str]:
        """The same for all labels."""
        return {name: _expanded(f"labels.{name}", value, groups) for name, value in self.labels.items()}


def load(path: Path = DECLARATION) -> list[Entry]:
    """All entries in their order; none when there is no such file. Raises LoadstoneError."""
    if not path.exists():
        return []
    content = config.read_yaml(path) or []
    config.validate(content, "imports.schema.json", str(path))
    return [_entry(number, entry, path) for number, entry in enumerate(content, 1)]


def _entry(number: int, entry: Mapping[str, Any], path: Path) -> Entry:
    files = [entry["files"]] if isinstance(entry["files"], str) else entry["files"]
    match = None
    if "match" in entry:
        try:
            match = re.compile(entry["match"])
        except re.error as error:
            raise LoadstoneError(
                f"{path}, entry {number}: match is no regular expression: {error}. Groups are written (?P<name>...)"
            ) from None
    others = {key: _text(value) for key, value in entry.items() if key not in ("files", "format", "match", "labels")}
    labels = {str(name): _text(value) for name, value in entry.get("labels", {}).items()}
    return Entry(number, tuple(files), entry.get("format"), match, others, labels)


def _text(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _expanded(key: str, text: str, groups: Mapping[str, str | None]) -> str:
    def group(found: re.Match[str]) -> str:
        if found[1] not in groups:
            known = ", ".join(f"{{{name}}}" for name in groups) or "none"
            raise Refusal(f"{key} names {found[0]}, which is no group of match; there is {known}")
        value = groups[found[1]]
        if value is None:
            raise Refusal(f"{key} names {found[0]}, and that group of match took no part here")
        return value

    return _GROUP.sub(group, text)
