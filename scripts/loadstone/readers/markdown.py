"""Results that people pasted into a Markdown document: its code blocks and tables, and the headings they stand under.

Whether a block of code is a result, its text says. What is within a quotation (``>``) is not looked at.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from pathlib import Path

from markdown_it import MarkdownIt

from loadstone.readers import summary_table
from loadstone.readers.base import Problems
from loadstone.readers.stream import read_bytes

_LARGEST_BYTES = 4 << 20
# What stands within a line does not matter.
_MARKDOWN = MarkdownIt("commonmark").enable("table").disable(["inline", "reference"])

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
    for code in _parts(content, ("fence", "code_block")):
        for kind, patterns in _PATTERNS.items():
            if all(pattern.search(code.text) for pattern in patterns):
                numbers[kind, code.headings] += 1
                number = numbers[kind, code.headings]
                found.append(Block(kind, code.headings, number, code.text, code.start, code.line))
                if not code.closed:
                    problems.truncated = f"the code block that begins in line {code.line - 1} is not closed"
    return found


def rows(content: bytes, kind: str) -> Iterator[Block]:
    """Every row of a table of latencies outside of blocks of code; `kind` is that of such a block."""
    numbers: Counter[tuple[str, ...]] = Counter()
    for table in _parts(content, ("table_open",)):
        for row in summary_table.rows(table.text):
            numbers[table.headings] += 1
            place = table.start + row.start, table.line + row.line - 1
            yield Block(kind, table.headings, numbers[table.headings], row.text, *place, row.head, row.labels)


@dataclass(frozen=True)
class _Part:
    """A block of code without its fences, or a table; places as in `Block`. `closed`: it has the fence at its end."""

    headings: tuple[str, ...]
    text: bytes
    start: int
    line: int
    closed: bool


def _parts(content: bytes, kinds: tuple[str, ...]) -> Iterator[_Part]:
    """All parts of some kinds, by the parser's names, with their headings."""
    lines = content.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    front = _front_matter(lines)
    tokens = _MARKDOWN.parse((b"\n" * front + content[starts[front] :]).decode("utf-8", "replace"))
    headings: list[tuple[str, str]] = []
    quotations = 0
    for place, token in enumerate(tokens):
        if token.type in ("blockquote_open", "blockquote_close"):
            quotations += token.nesting
        elif token.type == "heading_open" and token.level == 0:
            title = re.sub(r"\s*\n\s*", " ", tokens[place + 1].content)
            headings = [*(above for above in headings if above[0] < token.tag), (token.tag, title)]
        elif token.type in kinds and not quotations and token.map:
            first, end = token.map
            closed = True
            if token.type == "fence":
                last = lines[end - 1].strip().decode("utf-8", "replace")
                closed = end - 1 > first and last.startswith(token.markup) and not last.strip(token.markup[0])
                first, end = first + 1, end - closed
            elif token.type == "table_open":  # without text right behind it
                end = first + sum(1 for _ in takewhile(lambda line: line.lstrip().startswith(b"|"), lines[first:end]))
            texts = tuple(text for _, text in headings)
            yield _Part(texts, content[starts[first] : starts[end]], starts[first], first + 1, closed)


def _front_matter(lines: list[bytes]) -> int:
    """How many lines of metadata come before the document."""
    if not lines or lines[0].rstrip() != b"---":
        return 0
    ends = (count for count, line in enumerate(lines[1:], 2) if line.rstrip() in (b"---", b"..."))
    return next(ends, 0)
