"""Figures with a line for each row (forest plots): as high as their lines need, with names that are read in full.

A page shortens a long name, and a pointer shows it; on paper nobody points, so that a name goes on in the next line.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from loadstone.report import figure_font
from loadstone.report.figure_rows import Row

_ROOM = 0.4  # of the width, for names
# Marks as large as on a page would cover short intervals: areas in squares of a letter's size, on a page and here.
_AREAS = {46: 0.3, 60: 0.3, 26: 0.12}
_ABOVE = -0.61  # how far the first of two lines stands above the middle of them, in letters


def has_lines(spec: Mapping[str, Any]) -> bool:
    """Whether each row of such a chart has a line of its own."""
    return bool(spec["usermeta"].get("rows"))


def height(rows: list[Row], letter: float) -> float:
    """What rows, named by `fitted`, need at that size of letters; both in CSS pixels."""
    lines = 1 + max(str(row["key"]).count("\n") for row in rows)
    return (len(rows) + 4) * (0.4 + 1.1 * lines) * letter


def fitted(rows: list[Row], width: float, letter: float) -> list[Row]:
    """Rows whose names are broken between words where they are wider than there is room in a figure of that width."""
    return [row | {"key": "\n".join(_broken(row["key"], _ROOM * width, letter))} for row in rows]


def _broken(key: str, room: float, letter: float) -> Iterator[str]:
    """The lines of ``<place>:<name>``; the place is not shown."""
    place, _, name = key.partition(":")
    start = f"{place}:"
    for line in name.split("\n"):
        words = line.split(" ")
        held = words[0]
        for word in words[1:]:
            if figure_font.width(f"{held} {word}", letter) > room:
                yield start + held
                start, held = "", word
            else:
                held += f" {word}"
        yield start + held
        start = ""


def leave_room(spec: dict[str, Any], width: float, letter: float) -> None:
    """Change a specification so that names have their room, in as many lines as they have, and marks are small."""
    for layer in spec["layer"]:
        encoding = layer.get("encoding", {})
        axis = encoding.get("y", {}).get("axis", {})
        if "labelLimit" in axis:
            # What measures text there finds a line a little longer than it is.
            lines = "length(split(datum.value, '\\n')) - 1"
            axis |= {"labelLimit": 1.1 * _ROOM * width, "labelOffset": {"expr": f"{_ABOVE * letter} * ({lines})"}}
        mark = layer["mark"]
        if mark["type"] == "point" and "size" in mark:
            mark["size"] = _area(mark["size"], letter)
        size = encoding.get("size", {})
        for given in (size, size.get("condition", {})):
            if "value" in given:
                given["value"] = _area(given["value"], letter)


def _area(on_a_page: int, letter: float) -> float:
    return _AREAS[on_a_page] * letter**2
