"""How cost grows with the archive: clock, processor and memory of each stage. What they tell is in docs/scale.md.

``LOADSTONE_RUNS="1000 10000 100000" make bench NAME=growth`` goes from a thousand runs to as many as asked; without it
to 4,000. Archives grow by campaigns of a thousand runs, whose results are links to those of a few real attacks: what
is read and computed is all there, what is stored is not. ``make bench NAME=dimensions``: a thousand runs, otherwise
made up. ``LOADSTONE_REQUESTS=1000000000 make bench NAME=billion``: runs of a million requests each, as vegeta's CSV.
"""

import base64
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
from bench import archives
from bench.measuring import Row, Took, timed
from loadstone import archive
from loadstone.archive import Campaign, Cell
from support import rawfiles
from support.checkout import copy_project

RATES = (10, 200)  # the lowest and the highest
_FIRST = datetime(2020, 1, 1, 10, tzinfo=UTC)
# What is timed, each after those before it.
_STAGES = {
    "raw results to rows": ("tables", "--until", "convert"),
    "statistics of campaigns": ("tables", "--until", "analyse"),
    "what is over all campaigns": ("tables",),
    "pages": ("report",),
    "nothing to do": ("-n", "report"),
}
_PER_RUN = ("raw results to rows", "statistics of campaigns")  # the others are of all runs, or of pages
_RATIO = 1.2


@dataclass(frozen=True)
class Shape:
    """Of a campaign: how many there are of everything, and how long each run is."""

    variants: int = 5
    rates: int = 20
    runs: int = 10
    duration_s: int = 10
    lowest: int = RATES[0]
    highest: int = RATES[1]

    @property
    def all_rates(self) -> list[int]:
        """As far from each other as possible."""
        return [round(rate) for rate in np.linspace(self.lowest, self.highest, self.rates)]

    @property
    def all_variants(self) -> list[str]:
        """Those that are built upon each other, and others."""
        others = [f"variant-{number:02d}" for number in range(self.variants - len(archives.VARIANTS))]
        return [*archives.VARIANTS[: self.variants], *others]

    @property
    def of_campaign(self) -> int:
        """All its runs."""
        return self.variants * self.rates * self.runs

    @property
    def requests(self) -> int:
        """All requests of a campaign."""
        return sum(self.all_rates) * self.duration_s * self.variants * self.runs


@dataclass(frozen=True)
class Cost:
    """Of one stage over a whole archive; memory is that of the largest process."""

    took: Took
    peak_mib: float

    def __str__(self) -> str:
        return f"{self.took}, {self.peak_mib:.0f} MiB"


class Grown:
    """An archive that grows by campaigns of one shape. `contents` has a run's results by rate, those of an attack."""

    def __init__(
        self, folder: Path, shape: Shape = Shape(), contents: dict[int, bytes] | None = None, suffix: str = "json"
    ) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self._shape, self._campaigns, self._suffix = folder, shape, 0, suffix
        self._checkout = copy_project(folder / "checkout")
        if contents is None:
            lines = archives.attack(folder, shape.highest, shape.duration_s)
            contents = {rate: b"".join(lines[: rate * shape.duration_s]) for rate in shape.all_rates}
        self._contents = contents

    @property
    def file(self) -> Path:
        """One of its raw results."""
        return next((self._folder / "archive").rglob(f"*.results.{self._suffix}.zst"))

    @property
    def runs(self) -> int:
        """How many there are."""
        return self._campaigns * self._shape.of_campaign

    @property
    def requests(self) -> int:
        """How many all of them have."""
        return self._campaigns * self._shape.requests

    def grow(self, runs: int) -> None:
        """To at least so many runs. Each campaign has files of its own, for a file takes only so many links."""
        shape = self._shape
        while self.runs < runs:
            when = (_FIRST + timedelta(days=self._campaigns)).isoformat()
            campaign = Campaign(self._folder / "archive", "bookinfo", "shiver", when)
            for rate, content in self._contents.items():
                originals = self._written(rate, content)
                for variant in shape.all_variants:
                    cell = Cell(campaign, str(rate), variant)
                    archives.plan(cell, shape.runs, shape.duration_s)
                    for run in range(1, shape.runs + 1):
                        archives.link(originals, cell, run)
            (campaign.path / archive.COMPLETION).touch()
            self._campaigns += 1

    def _written(self, rate: int, content: bytes) -> dict[str, Path]:
        files = {f".results.{self._suffix}.zst": rawfiles.compress(content)}
        files[".summary.json"] = rawfiles.vegeta("report", "-type=json", stdin=content)
        made = {suffix: self._folder / f"{self._campaigns}-{rate}{suffix}" for suffix in files}
        for suffix, data in files.items():
            made[suffix].write_bytes(data)
        return made

    def cost(self, *arguments: str) -> Cost:
        """Of one Snakemake over the archive."""
        took, output = archives.snakemake(
            self._checkout, self._folder, *arguments, through=(sys.executable, "-c", _PEAK)
        )
        return Cost(took, int(output.splitlines()[-1]) / 1024)

    def questions(self) -> Iterator[tuple[str, Took]]:
        """One over a campaign, one over all."""
        database = self._folder / "loadstone.duckdb"
        newest = (_FIRST + timedelta(days=self._campaigns - 1)).isoformat()
        asked = {
            "p99 of each cell of one campaign, asked of its requests": "SELECT variant, rate, "
            f"quantile_cont(latency_ns, 0.99) FROM requests WHERE timestamp = '{newest}' GROUP BY ALL",
            "runs that count, asked of all campaigns": "SELECT timestamp, count(*) FROM runs "
            "WHERE NOT excluded GROUP BY ALL",
        }
        for what, query in asked.items():
            with duckdb.connect(str(database), read_only=True) as connection, timed() as took:
                before = resource.getrusage(resource.RUSAGE_SELF)
                connection.sql(query).fetchall()
                after = resource.getrusage(resource.RUSAGE_SELF)
            took.cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            yield what, took


def growth(folder: Path) -> Iterator[Row]:
    """Each stage per run at each size, beside the smallest; then questions, and a campaign more."""
    sizes = sorted(map(int, os.environ.get("LOADSTONE_RUNS", "1000 4000").split()))
    grown, first = Grown(folder), {}
    for size in sizes:
        before = grown.runs
        grown.grow(size)
        if not (new := grown.runs - before):
            raise SystemExit(f"LOADSTONE_RUNS: sizes must be {Shape().of_campaign:,} runs apart")
        yield Row("runs, requests", f"{grown.runs:,}, {grown.requests:,}")
        for what, arguments in _STAGES.items():
            cost = grown.cost("--cores", "all", *arguments)
            per_run_ms = cost.took.cpu_s / new * 1e3
            ratio = per_run_ms / first.setdefault(what, per_run_ms)
            is_per_run = what in _PER_RUN
            yield Row(f"  {what}", str(cost))
            yield Row(
                "    ms of CPU per new run, times that of the first size",
                f"{per_run_ms:.1f}, {ratio:.2f}",
                f"at most {_RATIO}" if is_per_run else "",
                ratio <= _RATIO if is_per_run else None,
            )
        for what, took in grown.questions():
            yield Row(f"  {what}", str(took))
        grown.grow(grown.runs + 1)
        yield Row("  a campaign more, to tables and pages", str(grown.cost("--cores", "all", "report")))


_SHAPES = {
    "one campaign: 5 variants, 20 rates, 10 runs of 10 s": (1, Shape()),
    "10 campaigns, with one run of everything": (10, Shape(runs=1)),
    "20 variants, 5 rates": (1, Shape(variants=20, rates=5)),
    "2 rates, 100 runs": (1, Shape(rates=2, runs=100)),
    "runs of 100 s": (1, Shape(duration_s=100)),
}


def dimensions(folder: Path) -> Iterator[Row]:
    """Each stage over a thousand runs, all campaigns together, by how they are made up."""
    for number, (name, (campaigns, shape)) in enumerate(_SHAPES.items()):
        grown = Grown(folder / str(number), shape)
        grown.grow(campaigns * shape.of_campaign)
        yield Row(name, f"{grown.runs:,} runs, {grown.requests:,} requests")
        for what, arguments in _STAGES.items():
            yield Row(f"  {what}", str(grown.cost("--cores", "all", *arguments)))


# A run's results as an analyst would take them: all columns to Parquet, three percentiles of the latencies.
_DUCKDB = """
import sys, duckdb
duckdb.sql("SET threads = 1")
duckdb.sql(f"COPY (FROM read_csv({sys.argv[1]!r}, header = false)) TO {sys.argv[2]!r} (COMPRESSION zstd)")
duckdb.sql(f"SELECT quantile_cont(column02, [0.5, 0.9, 0.99]) FROM {sys.argv[2]!r}").fetchall()
"""
_RUN_REQUESTS = 1_000_000
_MOST_US, _MOST_MIB = 3.0, 500
_TABLES = list(_STAGES)[:3]


def billion(folder: Path) -> Iterator[Row]:
    """``LOADSTONE_REQUESTS`` requests (10 million without it) to tables, in runs of a million."""
    requests = int(os.environ.get("LOADSTONE_REQUESTS", "10000000"))
    rate = 10_000
    shape = Shape(rates=1, runs=10, duration_s=_RUN_REQUESTS // rate, lowest=rate, highest=rate)
    if requests < 50 * _RUN_REQUESTS:
        shape = replace(shape, variants=2, runs=max(1, requests // _RUN_REQUESTS // 2))
    grown = Grown(folder, shape, {rate: _as_csv(_RUN_REQUESTS, rate)}, "csv")
    grown.grow(requests // _RUN_REQUESTS)
    yield Row("runs, requests", f"{grown.runs:,}, {grown.requests:,}")
    costs = {what: grown.cost("--cores", "all", *_STAGES[what]) for what in _TABLES}
    for what, cost in costs.items():
        yield Row(f"  {what}", f"{cost}, {cost.took.cpu_s / grown.requests * 1e6:.2f} us/request")
    per_request_us = sum(cost.took.cpu_s for cost in costs.values()) / grown.requests * 1e6
    with timed() as peer:
        subprocess.run([sys.executable, "-c", _DUCKDB, grown.file, folder / "peer.parquet"], check=True)
    times = per_request_us / (peer.cpu_s / _RUN_REQUESTS * 1e6)
    yield Row("times that of DuckDB: a run's CSV to Parquet, three percentiles", f"{times:.1f}")
    peak_mib = max(cost.peak_mib for cost in costs.values())
    yield Row("CPU per request, to tables", f"{per_request_us:.2f} us", f"{_MOST_US} us", per_request_us <= _MOST_US)
    yield Row("memory of the largest process", f"{peak_mib:.0f} MiB", f"{_MOST_MIB} MiB", peak_mib <= _MOST_MIB)
    for name in ("archive", "tables"):
        files = {path.stat().st_ino: path.stat().st_size for path in (folder / name).rglob("*") if path.is_file()}
        yield Row(f"disk of {name}", f"{sum(files.values()) / 2**30:.2f} GiB")


def _as_csv(requests: int, rate: int) -> bytes:
    """Results of vegeta as CSV with a small body, latencies of a lognormal distribution."""
    generator = np.random.default_rng(1)
    latencies = generator.lognormal(14.5, 0.4, requests).astype(np.int64).tolist()
    body = base64.b64encode(b"hello world\n").decode()
    headers = base64.b64encode(b"Content-Length: 12\r\nContent-Type: text/plain\r\nServer: envoy\r\n\r\n").decode()
    sent = range(rawfiles.START_NS, rawfiles.START_NS + requests * (10**9 // rate), 10**9 // rate)
    return "".join(
        f"{sent_ns},200,{latency_ns},0,12,,{body},,{seq},GET,http://127.0.0.1:8080/,{headers}\n"
        for seq, (sent_ns, latency_ns) in enumerate(zip(sent, latencies, strict=True))
    ).encode()


_PEAK = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
raise SystemExit(code)
"""
