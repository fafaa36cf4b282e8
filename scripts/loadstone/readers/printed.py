"""Small files of text, and figures as programs print them, read without losing a digit."""

import re
from fractions import Fraction
from pathlib import Path

from loadstone.readers.base import Problems
from loadstone.readers.stream import explain, open_bytes

LARGEST_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 20
_LONGEST_NS = (1 << 63) - 1  # Go's longest duration: 292 years

_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")
_PART = re.compile("([0-9]{1,19})(?:[.]([0-9]{0,18}))?(h|ms|us|\u00b5s|\u03bcs|ns|m|s)")  # micro sign, Greek mu
_UNITS_NS = {"h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
_MICRO = str.maketrans("\u00b5\u03bc", "uu")

_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}  # as PowerShell redirects


def read_bytes(path: Path, problems: Problems, largest_bytes: int = LARGEST_BYTES) -> bytes | None:
    """A file's bytes, decompressed, up to where they can be read. None when there is nothing to look at."""
    content = bytearray()
    try:
        with open_bytes(path) as stream:
            while len(content) <= largest_bytes and (chunk := stream.read(_CHUNK_BYTES)):
                content += chunk
    except OSError as error:
        explain(error, problems)
    if not content:
        problems.truncated = problems.truncated or ("" if problems.damaged else "it is empty")
        return None
    if len(content) > largest_bytes:
        problems.damaged = f"it is larger than {largest_bytes >> 20} MiB"
        return None
    return bytes(content)


def read_text(path: Path, problems: Problems) -> str | None:
    """The same as text with line feeds only: UTF-8, or UTF-16 with its mark. What is neither becomes U+FFFD."""
    content = read_bytes(path, problems)
    return None if content is None else decode(content)


def decode(content: bytes) -> str:
    """The text of these bytes, as `read_text` gives it."""
    text = content.decode(_MARKS.get(content[:2], "utf-8-sig"), "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def number(text: str, unit: str = "") -> Fraction | None:
    """Exactly the number printed, without a sign and with `unit` right behind it; None when it is none."""
    figure = text.removesuffix(unit)
    if (unit and figure == text) or _NUMBER.fullmatch(figure) is None:
        return None
    return Fraction(figure)


def duration_ns(text: str) -> Fraction | None:
    """Exactly the nanoseconds of a duration as Go prints it (``1m0.043536637s``, ``588.001µs``); None when it is none.

    Parts may repeat and be in any order, as Go's ParseDuration has it.
    """
    position, total = 0, Fraction(0)
    while part := _PART.match(text, position):
        whole, decimals, unit = part[1], part[2] or "", part[3].translate(_MICRO)
        total += Fraction(int(whole + decimals) * _UNITS_NS[unit], 10 ** len(decimals))
        position = part.end()
    return total if text and position == len(text) and total <= _LONGEST_NS else None
