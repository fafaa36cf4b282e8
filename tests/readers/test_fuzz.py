"""Readers of foreign files against bytes that nobody chose: no crash, and no figure that the file does not hold.

With LOADSTONE_FUZZ_S=60 in the environment each of them runs for so many seconds.
"""

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loadstone.readers import Problems, figures, hdr, hey_csv, markdown, resource_usage, vegeta_text
from loadstone.readers.base import Report
from readers import test_figures, test_hdr, test_hey_csv, test_markdown, test_resource_log, test_vegeta_text

DURATION_S = float(os.environ.get("LOADSTONE_FUZZ_S", "0"))

DOCUMENT = f"# A\n\n- b\n\n{test_markdown.fenced(test_vegeta_text.NEW)}\nB\n=\n    {test_resource_log.ALIGNED}\n~~~\n"


def whole(rows: Iterator[Any]) -> None:
    list(rows)


def report(found: Report | None) -> None:
    for figure in found.figures if found else []:
        assert figure.value >= 0
        assert figure.value < 1e30


# How a file is read, and what such files look like.
READERS: dict[str, tuple[Callable[[Path, Problems], None], list[str]]] = {
    "vegeta.txt": (
        lambda path, problems: report(vegeta_text.report(path, problems)),
        [test_vegeta_text.OLD, test_vegeta_text.NEW],
    ),
    "resource-usage.log": (
        lambda path, problems: whole(resource_usage.read(path, problems, UTC)),
        [test_resource_log.LOG],
    ),
    "resource-summary.txt": (
        lambda path, problems: report(resource_usage.report(path, problems)),
        [test_resource_log.ALIGNED, test_resource_log.COMMAS],
    ),
    "figures.csv": (lambda path, problems: report(figures.report(path, problems)), [test_figures.TEXT]),
    "hey.csv": (lambda path, problems: whole(hey_csv.read(path, problems)), [test_hey_csv.TEXT]),
    "hdr.csv": (
        lambda path, problems: report(hdr.report(path, problems)),
        [test_hdr.COMPUTED, test_hdr.COUNTED, test_hdr.COMMAS],
    ),
    "md": (lambda path, problems: whole(iter(markdown.blocks(path, problems))), [DOCUMENT]),
}

TOKENS = [
    "\n",
    "\r",
    "\r\n",
    ",",
    ", ",
    " ",
    "\t",
    "\0",
    '"',
    "'",
    "[",
    "]",
    "(",
    "%",
    ":",
    "-",
    ".",
    "#[",
    "```",
    "~~~",
]
TOKENS += [
    "NaN",
    "Infinity",
    "-1",
    "1e999",
    "9" * 30,
    "0" * 30,
    "1,5",
    "\u00b5s",
    "\u2028",
    "\u0661",
    "\ufeff",
    "h",
    "m",
]
SHARES = st.floats(0, 1, exclude_max=True)
INSERTED = st.sampled_from([token.encode() for token in TOKENS]) | st.binary(max_size=8)
EDITS = st.lists(st.tuples(SHARES, st.sampled_from([0, 0, 1, 2, 20, 10**9]), INSERTED, st.integers(1, 3)), max_size=6)


def edited(content: bytes, edits: list[tuple[float, int, bytes, int]]) -> bytes:
    """At each share of the content, so many bytes replaced by others, some times over."""
    for share, removed, inserted, times in edits:
        position = int(share * len(content))
        content = content[:position] + inserted * times + content[position + removed :]
    return content


@pytest.mark.parametrize("name", READERS)
def test_no_bytes_crash_a_reader(tmp_path, name) -> None:
    reader, samples = READERS[name]
    path = tmp_path / f"1.{name}"

    @settings(max_examples=150 if not DURATION_S else 2000, database=None)
    @given(st.sampled_from(samples), EDITS, st.booleans())
    def try_one(sample: str, edits: list[tuple[float, int, bytes, int]], from_nothing: bool) -> None:
        path.write_bytes(edited(b"" if from_nothing else sample.encode(), edits))
        problems = Problems()
        reader(path, problems)
        assert all(text.isprintable() for text in problems.texts())

    end = time.monotonic() + DURATION_S
    try_one()
    while time.monotonic() < end:
        try_one()
