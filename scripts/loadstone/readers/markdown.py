"""Results that people pasted into a Markdown document: its code blocks, and the headings they stand under.

Whether a block is a result, its text says. So not all of CommonMark is needed, but fences and headings are taken as it
has them: a fence may be in a list, its info string may be anything, only a fence of the same character and at least
its length closes it, and what looks like a heading within is none. Code within a quotation (``>``) is not looked at.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.readers import summary_table
from loadstone.readers.base import Problems
from loadstone.readers.stream import read_bytes

_FENCE = re.compile(
    rb"((?:[ \t]*+(?:[-*+]|[0-9]{1,9}[.)])[ \t]++)*+)([ \t]*+)(?:(`{3,}+)[^`\r\n]*+|(~{3,}+)[^\r\n]*+)[\r\n]*+"
)
_CLOSING = re.compile(rb"[ \t]*+(`{3,}+|~{3,}+)[ \t\r\n]*+")
_HEADING = re.compile(rb" {0,3}(#{1,6})(?:[ \t]|[\r\n]*\Z)")
_UNDERLINE = re.compile(rb" {0,3}(=++|-++)[ \t\r\n]*+")
_NO_PARAGRAPH = re.compile(rb"(?: {4}| {0,3}(?:\t|[>|]|[-*+][ \t]|[0-9]{1,9}[.)][ \t]))")
_TAB_COLUMNS = 4
_LARGEST_BYTES = 4 << 20

# By the name that such a file has in the archive behind its run.
_KINDS = {
    "vegeta.txt": [rb"^[ \t]*Requests[ \t]+\[total"],
    "resource-summary.txt": [rb"^[ \t]*Namespace[ \t,]+CPU_min\b"],
    "k6.txt": [rb"^\W{0,20}data_received\.*[ \t]*:", rb"^\W{0,20}iterations\.*[ \t]*:"],
}
_PATTERNS = {kind: [re.compile(pattern, re.MULTILINE) for pattern in patterns] for kind, patterns in _KINDS.items()}


@dataclass(frozen=True)
class Block:
    """One result in a document.

    `kind` is ``vegeta.txt``, ``k6.txt`` or ``resource-summary.txt``; `headings` are those above it, the highest first.
    `number` counts the document's blocks of this kind under these headings from 1, so the three name a block. `text` is
    the document's bytes from `start` on, without the fences; its first line is line `line` of the document (from 1).
    A row of a table has its line of names in `head`, and in `labels` its texts in the columns that are no figures.
    """

    kind: str
    headings: tuple[str, ...]
    number: int
    text: bytes
    start: int
    line: int
    head: bytes = b""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        """The bytes that become the run's file."""
        return self.head + self.text


def blocks(path: Path, problems: Problems) -> list[Block]:
    """Every block of a document that is a result, in its order. A block that is two kinds at once comes as both."""
    content = read_bytes(path, problems, _LARGEST_BYTES)
    return [] if content is None else cut(content, problems)


def cut(content: bytes, problems: Problems) -> list[Block]:
    """The same of a document's bytes. A block with a result whose fence is never closed is named in `problems`."""
    numbers: Counter[tuple[str, tuple[str, ...]]] = Counter()
    found = []
    for code in _Document(content).codes():
        text = content[code.start : code.end]
        for kind, patterns in _PATTERNS.items():
            if all(pattern.search(text) for pattern in patterns):
                numbers[kind, code.headings] += 1
                number = numbers[kind, code.headings]
                found.append(Block(kind, code.headings, number, text, code.start, code.line))
                if not code.closed:
                    problems.truncated = f"the code block that begins in line {code.line - 1} is not closed"
    return found


@dataclass(frozen=True)
class _Code:
    headings: tuple[str, ...]
    start: int
    end: int
    line: int
    closed: bool


def rows(content: bytes, kind: str) -> Iterator[Block]:
    """Every row of a table of latencies outside of blocks of code; `kind` is that of such a block."""
    numbers: Counter[tuple[str, ...]] = Counter()
    for headings, start, line, table in _Document(content).tables():
        for row in summary_table.rows(table):
            numbers[headings] += 1
            place = start + row.start, line + row.line - 1
            yield Block(kind, headings, numbers[headings], row.text, *place, row.head, row.labels)


class _Document:
    """A document line by line."""

    def __init__(self, content: bytes) -> None:
        self._lines = re.findall(rb"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++", content)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._headings: list[tuple[int, str]] = []
        self._paragraph: list[bytes] = []

    def codes(self) -> Iterator[_Code]:
        """Every block of code with its headings."""
        position = self._behind_front_matter()
        while position < len(self._lines):
            line = self._lines[position]
            fence = _FENCE.fullmatch(line)
            if fence is not None:
                end, closed = self._fenced(position + 1, fence)
                yield self._code(position + 1, end, closed)
                position = end + closed
            elif _columns(line) >= _TAB_COLUMNS and not self._paragraph and line.strip():
                end = self._indented(position)
                yield self._code(position, end, True)
                position = end
            else:
                self._text(line)
                position += 1

    def tables(self) -> Iterator[tuple[tuple[str, ...], int, int, bytes]]:
        """Every table with the headings above it, where it starts, its line (from 1) and its bytes."""
        inside = {line for code in self.codes() for line in range(code.line - 1, self._line_at(code.end))}
        self._headings, position = [], self._behind_front_matter()
        while position < len(self._lines):
            first = position
            while position < len(self._lines) and position not in inside and self._is_row(position):
                position += 1
            if position > first:
                headings = tuple(text for _, text in self._headings)
                table = b"".join(self._lines[first:position])
                yield headings, self._starts[first], first + 1, table
                continue
            if position not in inside:
                self._text(self._lines[position])
            position += 1

    def _line_at(self, start: int) -> int:
        return bisect_left(self._starts, start)

    def _is_row(self, position: int) -> bool:
        return bool(self._lines[position].lstrip().startswith(b"|"))

    def _code(self, first: int, end: int, closed: bool) -> _Code:
        self._paragraph = []
        headings = tuple(text for _, text in self._headings)
        return _Code(headings, self._starts[first], self._starts[end], first + 1, closed)

    def _behind_front_matter(self) -> int:
        if not self._lines or self._lines[0].rstrip() != b"---":
            return 0
        ends = (position for position, line in enumerate(self._lines[1:], 2) if line.rstrip() in (b"---", b"..."))
        return next(ends, 0)

    def _fenced(self, position: int, opening: re.Match[bytes]) -> tuple[int, bool]:
        """The line behind a fence's content, and whether that is the closing fence; else the list's item has ended."""
        fence = opening[3] or opening[4]
        nested = _columns(opening[1] + opening[2])
        for end in range(position, len(self._lines)):
            line = self._lines[end]
            closing = _CLOSING.fullmatch(line)
            if closing is not None and closing[1].startswith(fence):
                return end, True
            if (opening[1] or nested >= _TAB_COLUMNS) and line.strip() and not _columns(line):
                return end, False
        return len(self._lines), False

    def _indented(self, position: int) -> int:
        end = position
        for line in range(position, len(self._lines)):
            if _columns(self._lines[line]) >= _TAB_COLUMNS:
                end = line + 1 if self._lines[line].strip() else end
            elif self._lines[line].strip():
                break
        return end

    def _text(self, line: bytes) -> None:
        heading = _HEADING.match(line)
        underline = _UNDERLINE.fullmatch(line)
        if heading is not None:
            self._head(len(heading[1]), _title(line[heading.end(1) :]))
        elif underline is not None and self._paragraph:
            self._head(1 if underline[1].startswith(b"=") else 2, b" ".join(self._paragraph))
        elif not line.strip() or (not self._paragraph and _NO_PARAGRAPH.match(line)):
            self._paragraph = []
        else:
            self._paragraph.append(line.strip())

    def _head(self, level: int, title: bytes) -> None:
        self._headings = [above for above in self._headings if above[0] < level]
        self._headings.append((level, title.decode("utf-8", "replace")))
        self._paragraph = []


def _columns(line: bytes) -> int:
    """How far the line's text is indented; a list's marker counts as space."""
    columns = 0
    for byte in line:
        if byte == ord("\t"):
            columns += _TAB_COLUMNS - columns % _TAB_COLUMNS
        elif byte == ord(" "):
            columns += 1
        else:
            break
    return columns


def _title(text: bytes) -> bytes:
    """A heading's text without the number signs that may close it."""
    text = text.strip()
    without = text.rstrip(b"#")
    return without.rstrip() if not without or without[-1:] in b" \t" else text
