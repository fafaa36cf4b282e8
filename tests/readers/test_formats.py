"""Vegeta's CSV and binary formats, and that all three give the same rows."""

import os
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadstone import process
from loadstone.errors import LoadstoneError
from loadstone.readers import FORMATS, Problems, stream, vegeta_raw
from readers.reading import read, rows
from support import rawfiles


@pytest.fixture
def three(tmp_path, attack):
    """One attack in each format, plain and compressed, by suffix."""
    contents = {"json": attack.json, "csv": attack.csv, "bin": attack.binary}
    paths = {}
    for suffix, content in contents.items():
        for name, stored in ((suffix, content), (f"{suffix}.zst", rawfiles.compress(content))):
            paths[name] = tmp_path / f"1.results.{name}"
            paths[name].write_bytes(stored)
    return paths


def test_every_format_gives_the_same_rows(three):
    expected = rows(three["json"])
    assert len(expected) == 100
    assert {row["code"] for row in expected} == {200, 204, 404, 503, 0}
    for suffix, path in three.items():
        assert rows(path) == expected, suffix
    assert {suffix.removesuffix(".zst") for suffix in three} == {
        name.removeprefix("results.") for name in FORMATS if name.startswith("results.")
    }


def test_the_counts_are_those_of_vegetas_own_report(three, attack):
    found = rows(three["bin"])
    codes = [str(row["code"]) for row in found]
    assert {code: codes.count(code) for code in set(codes)} == attack.report["status_codes"]
    assert sum(row["bytes_in"] for row in found) == attack.report["bytes_in"]["total"]
    latencies_ns = [row["latency_ns"] for row in found]
    reported = attack.report["latencies"]
    assert (min(latencies_ns), max(latencies_ns)) == (reported["min"], reported["max"])
    assert sum(latencies_ns) == reported["total"]


# --- CSV -------------------------------------------------------------------------------------------------------------


def test_csv_with_windows_line_ends(tmp_path, three, attack):
    path = tmp_path / "2.results.csv"
    path.write_bytes(attack.csv.replace(b"\n", b"\r\n"))
    assert rows(path) == rows(three["csv"])


def test_csv_of_vegeta_before_12_8_has_nine_columns(tmp_path):
    path = tmp_path / "1.results.csv"
    path.write_bytes(b'1795262400123456789,200,1000,1,2,"a ""quoted"" error",Ym9keQ==,name,41\n')
    assert rows(path)[0] | {"sent_at": None} == {
        "seq": 41,
        "sent_at": None,
        "latency_ns": 1000,
        "code": 200,
        "error": 'a "quoted" error',
        "bytes_out": 1,
        "bytes_in": 2,
        "answered_by": None,
    }


@pytest.mark.parametrize(
    "record",
    [
        b"1,2,3",
        b"1795262400123456789,200,1000,0,2,,,,41",
        b"1795262400123456789,200,1.5,0,2,,,,41,GET,/,",
        b"1795262400123456789,200,-1,0,2,,,,41,GET,/,",
        b"99999999999999999999,200,1,0,2,,,,41,GET,/,",
        b"1795262400123456789,99999999999,1,0,2,,,,41,GET,/,",
        b"1795262400123456789,200,1,0,2,caf\xe9,,,41,GET,/,",
        b'1795262400123456789,200,1,0,2,"a"b,,,41,GET,/,',
        b"timestamp,code,latency,bytes_out,bytes_in,error,body,attack,seq,method,url,headers",
    ],
)
def test_a_corrupt_csv_record_is_counted_and_the_others_are_read(tmp_path, record, attack):
    lines = attack.csv.splitlines(keepends=True)
    path = tmp_path / "1.results.csv"
    path.write_bytes(lines[0] + record + b"\n" + lines[1])
    table, problems = read(path)
    assert table.num_rows == 2
    assert problems.texts() == ["holds 1 corrupt record (line 2)"]


_PIECES = st.sampled_from(
    [
        *(b"1795262400123456789,200,1000,0,2,,,,%d,GET,/,\n" % seq for seq in (0, 7, 10**18 - 1, 10**18)),
        b"1795262400123456789,503,2000,1,2,503 Service Unavailable,Ym9keQ==,name,41,GET,/,WC1BOiBiDQoNCg==\n",
        b'1795262400123456789,0,3,0,0,"Get ""http://a/"": dial tcp, refused\nagain",,,9,GET,/,\n',
        b"9223372036854775808,200,1000,0,2,,,,1,GET,/,\n",
        b"1795262400123456789,2147483648,1000,0,2,,,,1,GET,/,\n",
        b" 1795262400123456789,0x10,+1,0, 2,,,,1,GET,/,\n",
        b"1795262400123456789,200,1000,0,2,caf\xe9,\xe9,\xe9,1,GET,/,\n",
        b"1795262400123456789,200,1000,0,2,,,,1\n",
        "1795262400123456789,200,1000,0,2,größe,,,1,GET,/,\r\n".encode(),
        b"\xef\xbb\xbf1795262400123456789,200,1,0,2,,,,1,GET,/,\n",
        b'a "stray" quote\n',
        b'"',
        b"\r",
        b"\n",
        b"\0",
    ]
)


@given(pieces=st.lists(_PIECES, min_size=1, max_size=30), size=st.integers(60, 400))
def test_arrow_reads_csv_as_python_does(pieces, size):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "1.results.csv")
        path.write_bytes(b"".join(pieces))
        patch.setattr(stream, "_CHUNK_BYTES", size)
        found, problems = read(path)
        patch.setattr(vegeta_raw, "_csv_batch", lambda *_: None)
        by_python, its_problems = read(path)
    assert found.to_pylist() == by_python.to_pylist()
    assert problems == its_problems


def test_csv_without_quotes_is_read_by_arrow_alone(tmp_path, attack, monkeypatch):
    monkeypatch.setattr(vegeta_raw, "_csv_rows", None)
    path = tmp_path / "1.results.csv"
    path.write_bytes(b"".join(line for line in attack.csv.splitlines(keepends=True) if b'"' not in line))
    assert {row["code"] for row in rows(path)} == {200, 204, 404, 503}
    assert {row["answered_by"] for row in rows(path) if row["code"] < 400} == {None}


def test_csv_cut_in_a_record(tmp_path, attack):
    path = tmp_path / "1.results.csv"
    path.write_bytes(attack.csv[: -len(attack.csv.splitlines()[-1]) // 2])
    table, problems = read(path)
    assert table.num_rows == 99
    assert problems.corrupt_lines == [100]


# --- gob -------------------------------------------------------------------------------------------------------------


def test_a_truncated_binary_file_keeps_the_rows_before_its_end(tmp_path, attack):
    path = tmp_path / "1.results.bin"
    kept = []
    for size in range(len(attack.binary) // 3, len(attack.binary), len(attack.binary) // 7):
        path.write_bytes(attack.binary[:size])
        table, problems = read(path)
        assert problems.texts() == ["is truncated: it ends in the middle of a record"]
        kept.append(table.num_rows)
    assert kept == sorted(kept)
    assert kept[0] > 10


def test_a_truncated_compressed_binary_file(tmp_path, attack):
    path = tmp_path / "1.results.bin.zst"
    path.write_bytes(rawfiles.compress(attack.binary)[:-50])
    assert read(path)[1].texts() == ["is truncated: the compressed data end early"]


def test_the_real_binary_file(shared):
    path = shared / "uds/ambient-k3d/20_10/vegeta-results.bin"
    found = list(vegeta_raw.read_gob(path, problems := Problems()))
    codes = [code for batch in found for code in batch.column("code").to_pylist()]
    assert (len(codes), codes.count(200), codes.count(503)) == (173, 171, 2)
    assert problems.texts() == []


def test_without_vegeta_the_remedy_is_named(tmp_path, monkeypatch, attack):
    path = tmp_path / "1.results.bin"
    path.write_bytes(attack.binary)
    monkeypatch.setattr(process, "_PROJECT_TOOLS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(LoadstoneError, match=r"vegeta.*make setup"):
        read(path)
    for _ in range(100):  # the feeding thread ends on its own
        if len(os.listdir("/proc/self/fd")) <= descriptors:  # others may be closed meanwhile
            break
        time.sleep(0.1)
    else:
        pytest.fail("a pipe was left open")


def test_a_consumer_that_stops_leaves_no_process(tmp_path, attack):
    process.find("vegeta")
    path = tmp_path / "1.results.bin"
    path.write_bytes(attack.binary)
    descriptors, others = len(os.listdir("/proc/self/fd")), psutil.Process().children(recursive=True)
    reading = vegeta_raw.read_gob(path, Problems())
    next(reading)
    reading.close()
    assert psutil.Process().children(recursive=True) == others
    assert len(os.listdir("/proc/self/fd")) == descriptors
