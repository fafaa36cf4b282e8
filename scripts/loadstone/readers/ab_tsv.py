"""ApacheBench's data for gnuplot (``ab -g FILE``): a line per completed request, the fastest first.

``ttime`` is the latency, in whole milliseconds (`RESOLUTION_NS`): from before the connection is opened, or, when one is
kept alive, before the request is written, to the last byte. ``seconds`` is the start in whole seconds since 1970;
``starttime`` is the same in the unknown time zone of the machine. (httpd's source, support/ab.c.)

What is not in the file:

- status codes: `code` is null, and ab counts answers that are not 2xx, or of another length, among the others.
- requests that failed without an answer. ab writes no file when none completed.
- the order in which requests were sent within a second. The file's own is that of latency: a run would seem to slow
  down in every second, or all the time. So `seq` follows the seconds, in a random but reproducible order within
  one; a corrupt line has no number.
- how long the run took, more exactly than to a second. A run shorter than `LEAST_SECONDS` gets no `sent_at`: its
  throughput, and its course over time, would be those of the clock.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from loadstone.readers.base import BODY, NS_PER_MS, SCHEMA, Format, Generator, Problems, batches
from loadstone.readers.stream import matched_lines

RESOLUTION_NS = 1_000_000
LEAST_SECONDS = 50  # so that a second is at most 2 % of it
NS_PER_S = 1_000_000_000

_HEADER = "starttime\tseconds\tctime\tdtime\tttime\twait"
_DATE = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [0-9 ][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4}"
_LINE = re.compile(_DATE + r"\t([0-9]{1,10})\t[0-9]{1,9}\t-?[0-9]{1,9}\t([0-9]{1,9})\t[0-9]{1,9}")
_COLUMNS = ("seq", "sent_at", "latency_ns", "error")


def read(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `SCHEMA` from ``.tsv`` or ``.tsv.zst``, in the file's order; `seq` is that of sending.

    The file is read twice. Memory grows by a few bytes per request, which ab itself held in memory too.
    """
    return batches(_rows(path, problems), _COLUMNS, SCHEMA)


def _rows(path: Path, problems: Problems) -> Iterator[tuple[Any, ...]]:
    counts = Counter(second for second, _ in _requests(path, Problems()))
    is_long = bool(counts) and max(counts) - min(counts) >= LEAST_SECONDS
    numbers = _numbers(counts)
    for second, latency_ms in _requests(path, problems):
        yield next(numbers[second]), second * NS_PER_S if is_long else None, latency_ms * NS_PER_MS, ""


def _numbers(counts: Counter[int]) -> dict[int, Iterator[int]]:
    """For each second the numbers of its requests, in a random but reproducible order."""
    numbers, first = {}, 0
    for second in sorted(counts):
        drawn = np.random.default_rng(second).permutation(counts[second])
        numbers[second] = iter((drawn + first).astype(np.uint32))
        first += counts[second]
    return numbers


def _requests(path: Path, problems: Problems) -> Iterator[tuple[int, int]]:
    """Of each request the second in which it was sent, and its latency in milliseconds."""
    for found in matched_lines(path, problems, {_HEADER: _LINE}, "that of ab -g"):
        if found:
            yield int(found[1]), int(found[2])


FORMATS = {
    "ab.tsv": Format("ab", requests=read, resolution_ns=RESOLUTION_NS, begins=_HEADER.encode()),
}

GENERATORS = (
    Generator(
        generator="ab",
        load_models=("closed",),
        starts_at="a connection is about to be opened; of one kept alive (-k), the request is about to be written",
        ends_at=BODY,
        connecting="included: TCP and TLS of a new connection; the name is looked up once, before the first request",
        stamp="start",
        resolution_ns=1e6,
        source="source of httpd: support/ab.c, write_request, close_connection and output_results (ap_round_ms; the "
        "start is written in whole seconds)",
        home="https://httpd.apache.org/docs/current/programs/ab.html",
    ),
)
