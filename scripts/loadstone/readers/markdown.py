"""Results that were pasted into a Markdown document: its code blocks and tables, with their headings.

A block of code is recognized by its text. Quotations (``>``) are ignored.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, takewhile
from pathlib import Path

from markdown_it import MarkdownIt

from loadstone.readers import summary_table
from loadstone.readers.base import Block, Problems
from loadstone.readers.stream import read_bytes

_LARGEST_BYTES = 4 << 20
# Inline markup does not matter.
_MARKDOWN = MarkdownIt("commonmark").enable("table").disable(["inline", "reference"])

# By the name that such a file has in the archive, after the run's number.
_PATTERNS = {
    "vegeta.txt": [re.compile(rb"(?m)^[ \t]*Requests[ \t]+\[total")],
    "resource-summary.txt": [re.compile(rb"(?m)^[ \t]*Namespace[ \t,]+CPU_min\b")],
    "k6.txt": [re.compile(rb"(?m)^\W{0,20}%s\.*[ \t]*:" % name) for name in (b"data_received", b"iterations")],
}


def blocks(path: Path, problems: Problems) -> list[Block]:
    """Every block of a document that is a result, in its order. A block that is two kinds at once comes as both."""
    content = read_bytes(path, problems, _LARGEST_BYTES)
    return [] if content is None else cut(content, problems)


def cut(content: bytes, problems: Problems) -> list[Block]:
    """The same of a document's bytes. A block with a result whose fence is never closed is named in `problems`."""
    numbers: Counter[tuple[str, tuple[str, ...]]] = Counter()
    found = []
    for code, is_closed in _parts(content, ("fence", "code_block")):
        for kind, patterns in _PATTERNS.items():
            if all(pattern.search(code.text) for pattern in patterns):
                numbers[kind, code.headings] += 1
                found.append(replace(code, kind=kind, number=numbers[kind, code.headings]))
                if not is_closed:
                    problems.truncated = f"the code block that begins in line {code.line - 1} is not closed"
    return found


def rows(content: bytes) -> Iterator[Block]:
    """Every row of a table of latencies outside of blocks of code."""
    numbers: Counter[tuple[str, ...]] = Counter()
    for table, _ in _parts(content, ("table_open",)):
        for row in summary_table.rows(table.text):
            numbers[table.headings] += 1
            start, line = table.start + row.start, table.line + row.line - 1
            yield replace(row, headings=table.headings, number=numbers[table.headings], start=start, line=line)


def _parts(content: bytes, kinds: tuple[str, ...]) -> Iterator[tuple[Block, bool]]:
    """All parts of some kinds, by the parser's names, as blocks without a number, and whether the part is closed.

    A block of code comes without its fences; it is closed when it has the fence at its end.
    """
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
            yield Block(token.type, texts, 0, content[starts[first] : starts[end]], starts[first], first + 1), closed


def _front_matter(lines: list[bytes]) -> int:
    """How many lines of metadata come before the document."""
    if not lines or lines[0].rstrip() != b"---":
        return 0
    ends = (count for count, line in enumerate(lines[1:], 2) if line.rstrip() in (b"---", b"..."))
    return next(ends, 0)
