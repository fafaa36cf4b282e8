"""Raw files of a gigabyte within bounded memory, as told by the kernel of a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import loadstone
import pytest
import zstandard
from loadstone.readers import vegeta_raw
from loadstone.readers.base import Problems
from support import samples

LIMIT_MIB = 400
SIZE = 1 << 30

_CHILD = """
import sys
from pathlib import Path
from loadstone.readers import FORMATS, Problems
known = FORMATS[sys.argv[1]]
problems = Problems()
rows = sum(batch.num_rows for batch in known.requests(Path(sys.argv[2]), problems))
report = known.report and known.report(Path(sys.argv[2]), Problems())
print(rows)
print("; ".join(problems.texts()))
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def read(name: str, path: Path) -> tuple[int, str, float]:
    """Rows, problems and peak memory in MiB of a process that reads a file and its report."""
    environment = os.environ | {"PYTHONPATH": str(Path(loadstone.__file__).parents[1])}
    command = [sys.executable, "-c", _CHILD, name, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    rows, problems, peak_kib = done.stdout.splitlines()
    return int(rows), problems, int(peak_kib) / 1024


def write(path: Path, head: bytes, block: bytes, tail: bytes, size: int = SIZE) -> int:
    """Head, as many blocks as fill the size, and tail; returns how many blocks."""
    times = size // len(block)
    with path.open("wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as writer:
        writer.write(head)
        for _ in range(times):
            writer.write(block)
        writer.write(tail)
    return times


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_a_gigabyte_of_k6(tmp_path, suffix):
    path = tmp_path / f"1.k6.{suffix}.zst"
    head, _, block = samples.content(f"open.k6.{suffix}").partition(b"\n")
    requests = block.count(b'"http_req_duration","type":"Point"' if suffix == "json" else b"\nhttp_req_duration,")
    times = write(path, head + b"\n", block, b"")
    rows, problems, peak_mib = read(f"k6.{suffix}", path)
    assert (rows, problems) == (requests * times, "")
    assert peak_mib < LIMIT_MIB


def period(latencies: int) -> bytes:
    """A period of Artillery 1.7, written as it writes them."""
    content = {"timestamp": "2021-08-08T16:24:44.732Z", "scenariosCreated": 1, "codes": {"200": latencies}}
    return json.dumps(content | {"latencies": [3000000] * latencies}, indent=4).encode()


@pytest.mark.slow
def test_a_gigabyte_of_artillery(tmp_path):
    path = tmp_path / "1.artillery.json.zst"
    block = period(50_000)
    times = write(path, b'{"aggregate": {"latency": {}}, "intermediate": [', block + b",\n", block + b"]}")
    rows, problems, peak_mib = read("artillery.json", path)
    assert (rows, problems) == (50_000 * (times + 1), "")
    assert peak_mib < LIMIT_MIB


def test_very_many_periods(tmp_path):
    path = tmp_path / "1.artillery.json.zst"
    block = period(1)
    times = write(path, b'{"aggregate": {"latency": {}}, "intermediate": [', block + b",\n", block + b"]}", 8 << 20)
    rows, problems, peak_mib = read("artillery.json", path)
    assert (rows, problems) == (times + 1, "")
    assert peak_mib < LIMIT_MIB


@pytest.mark.slow
def test_one_period_of_a_quarter_of_a_gigabyte(tmp_path):
    path = tmp_path / "1.artillery.json.zst"
    head = b'{"aggregate": {"latency": {}}, "intermediate": [{"scenariosCreated": 1, "latencies": [1'
    times = write(
        path,
        head,
        b'\n, [1520869180404, "90f75f92-4874-423b-8050-7cbeeb633c43", 152957780, 201]' * 1000,
        b"]}]}",
        size=SIZE // 4,
    )
    rows, problems, peak_mib = read("artillery.json", path)
    assert (rows, problems) == (times * 1000 + 1, "")
    assert peak_mib < LIMIT_MIB


@pytest.mark.parametrize("name", ["artillery.json", "k6.json", "k6.csv"])
@pytest.mark.parametrize(
    "head", [b"", b'{"aggregate": "', b'{"aggregate": {"x": "', b'{"intermediate": [{"latencies": ["']
)
def test_a_text_without_end(tmp_path, name, head):
    path = tmp_path / "1.endless.zst"
    write(path, head, b"x" * (1 << 20), b"")
    rows, problems, peak_mib = read(name, path)
    assert rows == 0
    assert problems
    assert peak_mib < LIMIT_MIB


@pytest.mark.parametrize("block", [b"1" * (1 << 20), b"[" * (1 << 20), b'{"a":' * (1 << 18), b'{"a":[],' * (1 << 17)])
def test_nothing_else_without_end(tmp_path, block):
    path = tmp_path / "1.endless.zst"
    write(path, b'{"intermediate": [{"x": ', block, b"")
    rows, problems, peak_mib = read("artillery.json", path)
    assert (rows, bool(problems)) == (0, True)
    assert peak_mib < LIMIT_MIB


def test_requests_that_all_have_long_errors(tmp_path):
    path = tmp_path / "1.k6.json.zst"
    data = {"time": "2026-11-21T12:00:00Z", "value": 1, "tags": {"error": "e" * 100_000}}
    line = json.dumps({"metric": "http_req_duration", "type": "Point", "data": data}).encode()
    times = write(path, b"", line + b"\n", b"", 700 << 20)
    rows, problems, peak_mib = read("k6.json", path)
    assert (rows, problems) == (times, "")
    assert peak_mib < LIMIT_MIB


def test_last_words_of_those_who_lacked_memory():
    """As 120 runs at a limit of 256 MiB ended."""
    seen = (
        b"fatal error: runtime: cannot allocate memory",
        b"fatal error: fatal error: runtime: cannot allocate memory",
        b"fatal error: runtime: out of memory",
        b"SIGSEGV: segmentation violation",
    )
    assert all(vegeta_raw.lacked_memory(said) for said in seen)
    assert not vegeta_raw.lacked_memory(b"2026/11/24 02:03:00 encode: can't detect encoding of results")


def test_binary_results_that_are_none(tmp_path, monkeypatch):
    """Vegeta takes what is no gob for a line, however long: its memory ends at a limit."""
    path = tmp_path / "1.results.bin.zst"
    write(path, b"", bytes(1 << 20), b"")
    monkeypatch.setattr(vegeta_raw, "MOST_BYTES", 256 << 20)
    assert list(vegeta_raw.read_gob(path, problems := Problems())) == []
    assert problems.texts() == ["is damaged: it takes more than 0.25 GiB of memory to decode"]
