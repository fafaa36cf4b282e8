"""Readers of Artillery's and k6's files against bytes that nobody chose.

With LOADSTONE_FUZZ_S=60 in the environment each of them runs for so many seconds.
"""

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loadstone.readers import artillery, k6_csv, k6_json, k6_summary, k6_text
from loadstone.readers.base import Problems, Report
from support import samples

DURATION_S = float(os.environ.get("LOADSTONE_FUZZ_S", "0"))


def requests(read: Callable) -> Callable[[Path], None]:
    """Reads all rows and checks that each could be one."""

    def reading(path: Path) -> None:
        problems = Problems()
        for batch in read(path, problems):
            batch.validate(full=True)
            assert batch.num_rows > 0
            latency_ns = batch.column("latency_ns").to_numpy()
            assert latency_ns.min() >= 0
            sent_at = batch.column("sent_at").cast(pa.int64()).drop_null().to_numpy()
            assert not len(sent_at) or sent_at.min() >= 0
            assert all(code is None or code >= 0 for code in batch.column("code").to_pylist())
        problems.texts()

    return reading


def report(read: Callable) -> Callable[[Path], None]:
    """Reads a report and checks that each figure could be one."""

    def reading(path: Path) -> None:
        problems = Problems()
        found: Report | None = read(path, problems)
        assert found is not None or problems.texts() or read is k6_csv.report
        for figure in found.figures if found else []:
            assert math.isfinite(figure.value)
            (figure.section + figure.metric + figure.statistic + figure.text).encode()
        for value in found.said.values() if found else []:
            value.encode()

    return reading


# What reads which samples.
READERS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "artillery-requests": (requests(artillery.read), ["one.artillery.json", "two.artillery.json"]),
    "artillery-report": (report(artillery.report), ["one.artillery.json", "two.artillery.json"]),
    "k6-json": (requests(k6_json.read), ["open.k6.json", "closed.k6.json"]),
    "k6-csv": (requests(k6_csv.read), ["open.k6.csv", "micro.k6.csv"]),
    "k6-csv-report": (report(k6_csv.report), ["open.k6.csv", "micro.k6.csv"]),
    "k6-summary": (report(k6_summary.report), [f"{run}.k6.summary.json" for run in ("open", "legacy", "full")]),
    "k6-text": (report(k6_text.report), [f"{run}.k6.txt" for run in ("open", "closed", "full", "legacy")]),
}

TOKENS = ["\n", "\r", "\r\n", ",", " ", "\t", "\0", '"', "\\", "'", "[", "]", "{", "}", ":", "=", "/", "%", "-", "."]
TOKENS += [
    "NaN",
    "Infinity",
    "null",
    "true",
    "-1",
    "1e999",
    "9" * 30,
    "9" * 5000,
    "1,5",
    "µs",
    "\u2028",
    "\ufeff",
    "\\ud800",
]
TOKENS += [
    "█",
    "✓",
    "✗",
    "↳",
    "...: ",
    "\x1b[36m",
    '"latencies": [',
    '"http_req_duration"',
    "http_req_duration,",
    "{" * 500,
]
SHARES = st.floats(0, 1, exclude_max=True)
INSERTED = st.sampled_from([token.encode() for token in TOKENS]) | st.binary(max_size=8)
EDITS = st.lists(st.tuples(SHARES, st.sampled_from([0, 0, 1, 2, 20, 300, 10**9]), INSERTED), min_size=1, max_size=6)


def edited(content: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    """At each share of the content, so many bytes replaced by others."""
    for share, removed, inserted in edits:
        position = int(share * len(content))
        content = content[:position] + inserted + content[position + removed :]
    return content


@pytest.mark.parametrize("name", READERS)
def test_no_bytes_crash_a_reader(tmp_path, name):
    reader, names = READERS[name]
    contents = [samples.content(sample) for sample in names]
    path = tmp_path / "1.fuzzed"

    @settings(max_examples=100 if not DURATION_S else 2000, database=None)
    @given(st.sampled_from(contents), EDITS, st.sampled_from([False, False, False, True]))
    def try_one(content: bytes, edits: list[tuple[float, int, bytes]], from_nothing: bool) -> None:
        path.write_bytes(edited(b"" if from_nothing else content, edits))
        reader(path)

    end = time.monotonic() + DURATION_S
    try_one()
    while time.monotonic() < end:
        try_one()
