"""The benchmarks, each beside a peer of the same run: `python tests/bench/run.py [NAME...]`, all without a name.

Absolute times mean little on a shared machine; ratios and processor times say more. Exit status 1 when a target is
missed. A further benchmark is a function that takes an empty folder and yields `Row`s, named in `BENCHMARKS`.
"""

import json
import shutil
import subprocess
import sys
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import zstandard

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "scripts")]

from bench import archives, collecting, growth, opening, sampling, starting  # noqa: E402 - found by the line above
from bench.measuring import Row, best_s, show  # noqa: E402
from loadstone import archive  # noqa: E402
from loadstone.tables.convert import read_cell  # noqa: E402
from support import bigfiles  # noqa: E402
from support.rawfiles import compress, write_cell  # noqa: E402

_REQUESTS = 10_000
_DUCKDB = """
COPY (
    SELECT * FROM read_json(
        $file,
        format = 'newline_delimited',
        columns = {
            seq: 'BIGINT', code: 'INTEGER', timestamp: 'TIMESTAMPTZ', latency: 'BIGINT', bytes_out: 'BIGINT',
            bytes_in: 'BIGINT', error: 'VARCHAR'
        }
    )
) TO 'out.parquet' (COMPRESSION zstd)
"""


def machine(_: Path) -> Iterator[Row]:
    """How fast this machine is: limits in seconds were set where this takes 0.5 to 0.8 s."""
    took_s = min(timeit.repeat("for i in range(10_000_000): total += i", "total = 0", repeat=3, number=1))
    yield Row("10 million additions in Python", f"{took_s:.2f} s", "0.5 to 0.8 s where the limits were set")


# --- reading ---------------------------------------------------------------------------------------------------------


def step(root: Path, tables: Path) -> Callable[[], object]:
    """Raw file to Parquet as the rule does it: hashing, reading, judging its problems, writing."""
    listing = archive.scan_campaign(next(archive.campaigns(root))).cells[0]
    return lambda: read_cell(listing, "plain", tables)


def predecessor(file: Path) -> tuple[str, Callable[[], object]]:
    """``zstd -dc | jq --slurp`` into Python's json, or without these programs the same work in Python."""
    if shutil.which("zstd") and shutil.which("jq"):

        def pipe() -> object:
            with subprocess.Popen(["zstd", "-dc", str(file)], stdout=subprocess.PIPE) as unpack:
                slurp = subprocess.run(["jq", "--slurp"], stdin=unpack.stdout, capture_output=True, check=True)
                return json.loads(slurp.stdout)

        return "zstd -dc | jq --slurp | json.loads", pipe

    def emulate() -> object:
        records = [json.loads(line) for line in zstandard.open(file, "rb")]
        return json.loads(json.dumps(records))

    return "emulated slurp (no zstd and jq here)", emulate


def decompressing(file: Path) -> tuple[str, Callable[[], object]]:
    """``zstd -dc``, or without that program the same library called from here."""
    if shutil.which("zstd"):
        command = ["zstd", "-dc", str(file)]
        return "zstd -dc", lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)

    def unpack() -> None:
        stream, buffer = pa.CompressedInputStream(pa.OSFile(str(file)), "zstd"), bytearray(1 << 20)
        while stream.readinto(buffer):
            pass

    return "decompressing alone (no zstd here)", unpack


def duckdb_json(file: Path, folder: Path, threads: int) -> Callable[[], object]:
    """DuckDB's read_json with explicit columns, into Parquet."""
    connection = duckdb.connect(config={"threads": threads})
    query = _DUCKDB.replace("out.parquet", str(folder / f"duckdb{threads}.parquet"))
    return lambda: connection.execute(query, {"file": str(file)})


def reading(folder: Path) -> Iterator[Row]:
    """10,000 requests with bodies of 5 kB."""
    cell = write_cell(folder / "archive", {}, rate="1000", testOptions={"rate": "1000", "duration": "10s"})
    content = bigfiles.lines(_REQUESTS)
    file = cell.path / "1.results.json.zst"
    file.write_bytes(compress(content))
    yield Row("input", f"{len(content) / 1e6:.0f} MB of JSON, {file.stat().st_size / 1e3:.0f} kB compressed")
    before, pipe = predecessor(file)
    alone, unpack = decompressing(file)
    whole = step(folder / "archive", folder / "tables")
    # Apart from the others: it leaves so much memory to be freed that whatever comes next is slower for it.
    slow = best_s({"predecessor": pipe, "step": whole}, 3)
    duckdbs = {"duckdb": duckdb_json(file, folder, 1), "duckdb2": duckdb_json(file, folder, 2)}
    found = best_s({"step": whole, "zstd": unpack, **duckdbs}, 25)
    own = found["step"]
    yield Row("raw to Parquet, whole step", f"{own * 1e3:.1f} ms")
    ratio = slow["predecessor"] / slow["step"]
    yield Row(f"times faster than {before}", f"{ratio:.1f}", "at least 8", ratio >= 8)
    ratio = own / found["zstd"]
    yield Row(f"times the time of {alone}", f"{ratio:.2f}", "at most 3.5", ratio <= 3.5)
    ratio = own / found["duckdb"]
    yield Row("times DuckDB's read_json to Parquet, one thread as the step", f"{ratio:.2f}", "at most 1", ratio <= 1)
    yield Row("the same with two threads for DuckDB", f"{own / found['duckdb2']:.2f}")


def memory(folder: Path) -> Iterator[Row]:
    """A file ten times as large."""
    cell = write_cell(folder / "large", {}, rate="1000")
    bigfiles.write_repeated(cell.path / "1.results.json.zst", bigfiles.lines(1000), 10 * _REQUESTS // 1000)
    peak = bigfiles.peak_memory_mib(folder / "large", folder / "tables-of-large")
    yield Row("peak memory of the step over 700 MB of JSON", f"{peak:.0f} MiB", "under 400", peak < 400)


# --- collecting ------------------------------------------------------------------------------------------------------


def attacking(_: Path) -> Iterator[Row]:
    """A small sweep at 1,000 requests/s against a real Envoy; the peer is the clock of each run's own record."""
    found = collecting.measure()
    overhead_s, lag_ms = found["overhead_s"], found["send_lag_p99_ms"]
    text = "s per run besides readiness, warm-up and attack"
    yield Row(text, f"{overhead_s:.2f}", "under 0.5", overhead_s < 0.5)
    share = found["requests_per_planned"]
    yield Row("requests sent / (rate x duration)", f"{share:.4f}", "1", share == 1)
    yield Row(
        "ms of send lag, p99, at 1,000 requests/s", f"{lag_ms:.2f}", "under 1.2 on an idle machine (Go: steps of 1)"
    )


def undisturbed(_: Path) -> Iterator[Row]:
    """The peer is the same run without sampling, in turns."""
    found = sampling.measure()
    for name, what in (("lag", "send lag"), ("latency", "latency")):
        own, peer = found[f"{name}_with_ms"], found[f"{name}_without_ms"]
        yield Row(f"ms of {what}, p99, while CPU and memory are sampled", f"{own:.3f}, {peer:.3f} without")


BENCHMARKS = [
    machine,
    reading,
    memory,
    attacking,
    undisturbed,
    starting.starting,
    opening.opening_pages,
    *archives.BENCHMARKS,
    growth.growth,
    growth.dimensions,
    growth.billion,
]


if __name__ == "__main__":
    raise SystemExit(show(BENCHMARKS, sys.argv[1:]))
