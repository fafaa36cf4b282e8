"""The project's documents, and the examples, links and names in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from conftest import PROJECT

DOCUMENTS = [
    *(PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "config/README.md", "profiles/README.md")),
    *sorted((PROJECT / "docs").glob("*.md")),
]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


class Example(NamedTuple):
    """A code block: the document that has it, its language, its text, and its number in the document."""

    document: str
    language: str
    text: str
    number: int

    def __str__(self) -> str:
        return f"{self.document}-{self.number}"


def text(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def examples(*languages: str) -> list[Example]:
    """Every code block in one of these languages."""
    return [example for document in DOCUMENTS for example in _examples(document) if example.language in languages]


def _examples(document: Path) -> Iterator[Example]:
    name = document.relative_to(PROJECT).as_posix()
    for number, match in enumerate(_BLOCK.finditer(text(document)), 1):
        yield Example(name, match[1], match[2], number)


def prose(document: Path) -> str:
    """The text of a document without its code blocks."""
    return _BLOCK.sub("", text(document))


def anchors(document: Path) -> set[str]:
    """The names that links to headings of a document may have, as GitHub makes them."""
    headings = _HEADING.findall(_BLOCK.sub("", text(document)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
