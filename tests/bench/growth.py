"""How cost grows with the archive: clock, processor and memory of each stage, from a thousand runs to as many as asked.

``LOADSTONE_RUNS="1000 10000 100000" make bench NAME=growth``; without it 1,000 and 4,000. Archives grow by campaigns of
a thousand runs, whose results are links to those of a few real attacks: what is read and computed is all there, what is
stored is not.
"""

import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
from bench import archives
from bench.measuring import Row, Took, timed
from loadstone import archive
from loadstone.archive import Campaign, Cell
from support import rawfiles
from support.checkout import copy_project

VARIANTS = ["plain", "istio", "passthrough-filter", "tooling-filter", "prose-filter"]
RATES = range(10, 201, 10)
RUNS = 10
OF_CAMPAIGN = len(VARIANTS) * len(RATES) * RUNS
DURATION_S = 10
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
class Cost:
    """Of one stage over a whole archive; memory is that of the largest process."""

    took: Took
    peak_mib: float

    def __str__(self) -> str:
        return f"{self.took}, {self.peak_mib:.0f} MiB"


class Grown:
    """An archive that grows by campaigns."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._campaigns = folder, 0
        self._checkout = copy_project(folder / "checkout")
        lines = archives.attack(folder, max(RATES), DURATION_S)
        self._contents = {rate: b"".join(lines[: rate * DURATION_S]) for rate in RATES}
        self._originals: dict[int, dict[str, Path]] = {}

    @property
    def runs(self) -> int:
        """How many there are."""
        return self._campaigns * OF_CAMPAIGN

    def grow(self, runs: int) -> None:
        """To at least so many runs. Each campaign has files of its own, for a file takes only so many links."""
        while self.runs < runs:
            when = (_FIRST + timedelta(days=self._campaigns)).isoformat()
            campaign = Campaign(self._folder / "archive", "bookinfo", "shiver", when)
            for rate, content in self._contents.items():
                originals = self._written(rate, content)
                for variant in VARIANTS:
                    cell = Cell(campaign, str(rate), variant)
                    archives.plan(cell, RUNS, DURATION_S)
                    for run in range(1, RUNS + 1):
                        archives.link(originals, cell, run)
            (campaign.path / archive.COMPLETION).touch()
            self._campaigns += 1

    def _written(self, rate: int, content: bytes) -> dict[str, Path]:
        files = {".results.json.zst": rawfiles.compress(content)}
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
    """Each stage per run at each size, beside the smallest; then a campaign more, and questions."""
    sizes = sorted(map(int, os.environ.get("LOADSTONE_RUNS", "1000 4000").split()))
    grown, first = Grown(folder), {}
    for size in sizes:
        before = grown.runs
        grown.grow(size)
        if not (new := grown.runs - before):
            raise SystemExit(f"LOADSTONE_RUNS: sizes must be {OF_CAMPAIGN:,} runs apart")
        yield Row("runs, requests", f"{grown.runs:,}, {grown.runs * sum(RATES) * DURATION_S / len(RATES):,.0f}")
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


_PEAK = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
raise SystemExit(code)
"""
