"""A page's tables as a reader sees them, and what the digits that are printed allow."""

import math
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path


@dataclass
class Table:
    """A table by the name that it has for those who hear it; texts of its header, and of each row's cells.

    A cell is its main text, then that of each part that stands below (intervals, marks).
    """

    name: str
    header: list[str] = field(default_factory=list)
    rows: list[list[list[str]]] = field(default_factory=list)

    def records(self) -> list[dict[str, list[str]]]:
        """The rows by column."""
        return [dict(zip(self.header, row, strict=True)) for row in self.rows]


class Tables(HTMLParser):
    """All tables of a page by name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.found: dict[str, Table] = {}
        self._name = ""
        self._table: Table | None = None
        self._cell: list[str] | None = None
        self._in_head = False
        self._below = 0
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if (attributes.get("aria-label") or "").startswith("Table: "):
            self._name = str(attributes["aria-label"]).removeprefix("Table: ")
        if tag == "table":
            self._table = self.found.setdefault(self._name, Table(self._name))
        if self._table is None:
            return
        if tag in ("thead", "tbody"):
            self._in_head = tag == "thead"
        elif tag == "tr" and not self._in_head:
            self._table.rows.append([])
        elif tag in ("th", "td"):
            self._cell = [""]
        elif tag in ("span", "a") and self._cell is not None:
            self._below += 1
            self._cell.append("")
        elif tag == "br" and self._cell is not None:
            self._cell[-1] += " "

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell[-1 if self._below else 0] += data

    def handle_endtag(self, tag: str) -> None:
        if self._table is None:
            return
        if tag == "table":
            self._table = None
        elif tag in ("span", "a") and self._below:
            self._below -= 1
        elif tag in ("th", "td") and self._cell is not None:
            cell = [" ".join(part.split()) for part in self._cell]
            if self._in_head:
                self._table.header.append(cell[0])
            else:
                self._table.rows[-1].append(cell)
            self._cell = None


def plain(text: str) -> str:
    """A text of a page with plain spaces where its lines must not end."""
    return text.replace("\u00a0", " ")


_NUMBER = re.compile(r"[-−]?[0-9][0-9,]*(\.[0-9]+)?")


def number(text: str) -> float:
    """The number that a text begins with; a share (``6.67 %``) as a share of one."""
    found = _NUMBER.search(text)
    assert found, f"no number: {text}"
    value = float(found[0].replace(",", "").replace("−", "-").replace("−", "-"))
    return value / 100 if text[found.end() :].lstrip().startswith(("%", "points")) else value


def agrees(text: str, value: float, *, whole: bool = False) -> bool:
    """Whether a text is what three significant digits of the value give, or all of them where they are `whole`."""
    if text in ("–", ""):
        return math.isnan(value)
    shown = number(text)
    scale = 100 if "%" in text or "points" in text else 1
    at = abs(value) * scale
    if whole or at == 0:
        return shown == value
    step = 1.0 if at >= 1000 else 10.0 ** (math.floor(math.log10(at)) - 2)
    # Percentages from 99.95 on have more digits, so that they do not look complete.
    step = 1e-4 if scale == 100 and 99.95 <= at < 100 else step
    return abs(shown * scale - value * scale) <= step * 0.5 * (1 + 1e-3)
