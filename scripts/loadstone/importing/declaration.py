"""What config/imports.yaml declares, entry by entry, and the files and Markdown blocks that it refers to.

In: the declaration. Out: every `Source`, with the name of its format in the archive: as declared, or as detected by the
file's name or else by how it begins.
"""

import glob
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from loadstone.archive import leads_out, parse_name
from loadstone.archive.durable import open_raw
from loadstone.config.yaml_files import read_yaml, validate
from loadstone.errors import LoadstoneError
from loadstone.readers import FORMATS, markdown, summary_table
from loadstone.readers.base import Block, Problems
from loadstone.readers.stream import open_bytes, read_bytes

MARKDOWN = "markdown"
DECLARATION = Path("config/imports.yaml")
_GROUP = re.compile(r"\{(\w+)\}")


class Refusal(Exception):  # noqa: N818 - it becomes one line of a LoadstoneError
    """Why a file is not imported, and what to do; it becomes a line after the file's name."""


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


def load_entries(path: Path = DECLARATION) -> list[Entry]:
    """All entries in their order; none when there is no such file. Raises LoadstoneError."""
    if not path.exists():
        return []
    content = read_yaml(path) or []
    validate(content, "imports.schema.json", str(path))
    return [_entry(number, entry, path) for number, entry in enumerate(content, 1)]


def _entry(number: int, entry: Mapping[str, Any], path: Path) -> Entry:
    if (named := entry.get("format")) not in (None, MARKDOWN, *FORMATS) or str(named).startswith("warmups."):
        known = ", ".join(name for name in FORMATS if not name.startswith("warmups."))
        raise LoadstoneError(f"{path}, entry {number}: the format {named!r} is none of {MARKDOWN}, {known}")
    files = [entry["files"]] if isinstance(entry["files"], str) else entry["files"]
    match = None
    if "match" in entry:
        try:
            match = re.compile(entry["match"])
        except re.error as error:
            raise LoadstoneError(
                f"{path}, entry {number}: match is not a regular expression: {error}. Groups are written (?P<name>...)"
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
            raise Refusal(f"{key} names {found[0]}, which is not a group of match; its groups: {known}")
        value = groups[found[1]]
        if value is None:
            raise Refusal(f"{key} names {found[0]}, and that group of match matched nothing here")
        return value

    return _GROUP.sub(group, text)


# --- the format of a file ---------------------------------------------------------------------------------------------

_MARKDOWN_NAMES = (".md", ".markdown")
_LOOKED_AT_BYTES = 1 << 18
_FENCE = re.compile(rb"(?m)^[ \t]*(?:```|~~~)")


def detect(path: Path) -> str | None:
    """The name that such a file has in the archive after the run's number, `MARKDOWN`, or None. Raises OSError."""
    name = path.name.removesuffix(".zst").lower()
    if name.endswith(_MARKDOWN_NAMES):
        return MARKDOWN
    for start in [0, *(found.end() for found in re.finditer(r"\.", name))]:
        parsed = parse_name(f"1.{name[start:]}")
        if parsed is not None and parsed.kind in ("results", "summary", "resources"):
            return parsed.format
    with open_bytes(path) as file:
        beginning = file.read(_LOOKED_AT_BYTES)
    beginning = beginning.removeprefix(b"\xef\xbb\xbf")
    for name, known in FORMATS.items():
        if known.begins and re.match(known.begins, beginning):
            return name
    for name, known in FORMATS.items():
        if known.contains and re.search(known.contains, beginning, re.MULTILINE):
            return MARKDOWN if _FENCE.search(beginning) else name
    return None


# --- the files that entries match -------------------------------------------------------------------------------------

ROWS = "summary.csv"  # each row of such a table is a run; only where the entry says so
_SHOWN, _LONGEST = 5, 300  # texts that are shown, and characters of each
_NON_WORD = re.compile(r"\W")


@dataclass(frozen=True)
class Source:
    """One result to import: the file at `path`, or one block of it.

    `format` is its name in the archive, after the run's number. `groups` are what `match` found in its path, or in the
    headings above a block, which look like ``Title > Section #2`` with the block's number under its heading.
    """

    entry: Entry
    path: Path
    format: str
    groups: Mapping[str, str | None]
    block: Block | None = None

    def __str__(self) -> str:
        return f"{_shown(self.path)}, line {self.block.line}" if self.block else _shown(self.path)

    @property
    def suffix(self) -> str:
        """What follows the format in its name."""
        return ".zst" if self.block is None and self.path.name.endswith(".zst") else ""


@dataclass
class Found:
    """`left` are notices about results that no entry matches; `refusals` say what can't be imported, and why."""

    sources: list[Source]
    refusals: list[str]
    left: list[str]


def refusal(entry: Entry, place: object, why: object) -> str:
    """One line of the error: where it is declared, what it is about, and what is wrong."""
    return f"{DECLARATION}, entry {entry.number}: {_shown(place)}: {why}"


def _shown(place: object) -> str:
    """A name on one line."""
    return str(place) if str(place).isprintable() else repr(str(place))


def find(entries: list[Entry]) -> Found:
    """All sources that the entries match, in their order. Opens files only as far as their format needs it."""
    found = Found([], [], [])
    documents: dict[Path, list[Block]] = {}
    taken: set[tuple[Path, int]] = set()
    for entry in entries:
        before = len(found.sources), len(found.refusals)
        rejected: list[str] = []
        for pattern in entry.files:
            for path in _matching(entry, pattern, found.refusals):
                for source in _sources(entry, path, documents, found.refusals):
                    if isinstance(source, Source):
                        found.sources.append(source)
                        if source.block is not None and path in documents:
                            taken.add((path, source.block.start))
                    else:
                        rejected.append(source)
        if (len(found.sources), len(found.refusals)) == before:
            what = (
                f"match matches none of {len(rejected)}" if rejected else "none of them holds a result of that format"
            )
            what += f" (it is applied to {_examples(rejected)})" if rejected else ""
            found.refusals.append(refusal(entry, ", ".join(entry.files), f"{what}; nothing would be imported"))
    for path, blocks in documents.items():
        left = [block for block in blocks if (path, block.start) not in taken]
        if left:
            lines = ", ".join(str(block.line) for block in left)
            subjects = _examples(dict.fromkeys(map(_subject, left)))
            found.left.append(
                f"{_shown(path)}: no entry matches the results at line {lines}; match is applied to {subjects}"
            )
    return found


def _examples(subjects: Iterable[str]) -> str:
    """The first of the texts that `match` is applied to, quoted."""
    listed = list(subjects)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(repr(subject[:_LONGEST]) for subject in listed[:_SHOWN]) + more


def _subject(block: Block) -> str:
    return f"{' > '.join(block.headings)} #{block.number}"


def _matching(entry: Entry, pattern: str, refusals: list[str]) -> Iterator[Path]:
    if glob.has_magic(pattern):
        names = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob takes no pattern from the root on
        paths = [Path(name) for name in names if not Path(name).is_dir()]
        if not paths:
            refusals.append(refusal(entry, pattern, "no file matches this pattern"))
        folder = Path(*takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts))
        links = set()
        for path in paths:
            if leads_out(path, folder):
                below = (each for each in reversed((path, *path.parents)) if each.is_relative_to(folder))
                links.add(next(each for each in below if leads_out(each, folder)))
            else:
                yield path
        why = f"is a link that leads out of {folder} and was not followed; `archive_links` can allow the place"
        refusals += [refusal(entry, link, why) for link in sorted(links)]
    else:
        yield Path(pattern)


def _sources(
    entry: Entry, path: Path, documents: dict[Path, list[Block]], refusals: list[str]
) -> Iterator[Source | str]:
    """The sources that an entry finds in one file; of each that `match` rejects, the text it was applied to."""
    try:
        open_raw(path).close()
        kind = detect(path)
        kind = kind if entry.format is None or kind == MARKDOWN else entry.format
        if kind is None:
            raise Refusal("its format is not known; declare it: format: vegeta.txt (see docs/importing.md)")
        if entry.format == ROWS:
            yield from _rows(entry, path, kind == MARKDOWN)
            return
        if kind != MARKDOWN:
            groups = _groups(entry, str(path))
            yield str(path) if groups is None else Source(entry, path, kind, groups)
            return
        if path not in documents:
            problems = Problems()
            documents[path] = markdown.blocks(path, problems)
            if texts := problems.texts():
                raise Refusal("; ".join(texts))
        for block in documents[path]:
            if entry.format in (None, MARKDOWN, block.kind):
                groups = _groups(entry, _subject(block))
                yield _subject(block) if groups is None else Source(entry, path, block.kind, groups, block)
    except OSError as error:
        refusals.append(refusal(entry, path, f"it cannot be read: {error.strerror or error}"))
    except Refusal as why:
        refusals.append(refusal(entry, path, why))


def _rows(entry: Entry, path: Path, in_markdown: bool) -> Iterator[Source | str]:
    """Every row of a table that `match` accepts; columns that are not figures are groups too."""
    content = read_bytes(path, problems := Problems())
    if content is None or problems.texts():
        raise Refusal("; ".join(problems.texts()))
    for block in (markdown if in_markdown else summary_table).rows(content):
        columns = {_NON_WORD.sub("_", name): text for name, text in block.labels.items()}
        words = ", ".join(f"{name}={text}" for name, text in block.labels.items())
        subject = f"{' > '.join(block.headings) or path} #{block.number}: {words}"
        groups = _groups(entry, subject)
        yield subject if groups is None else Source(entry, path, ROWS, columns | groups, block)


def _groups(entry: Entry, subject: str) -> dict[str, str | None] | None:
    """Every named group of `match`; None when it does not match. An entry without `match` matches everything."""
    if entry.match is None:
        return {}
    found = entry.match.search(subject)
    return None if found is None else found.groupdict()
