"""Archives as large as real ones: from raw results to the site, one run more, and nothing to do at all.

Each archive is made from one real attack on the demo's application, whose results are linked as many times as the
archive has runs. `BENCHMARKS` are functions that take an empty folder and yield `Row`s; run this file for them alone.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "scripts")]

from loadstone import archive  # noqa: E402 - found by the line above
from loadstone.archive import Campaign, Cell  # noqa: E402
from loadstone.state import State  # noqa: E402
from support import rawfiles  # noqa: E402
from support.checkout import PROJECT, copy_project, free_ports  # noqa: E402

# The largest sweep of the archive that this is built for: 27 rates, 5 variants, 10 runs of 10 s, 5.5 million requests.
RATES = [10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, *range(250, 1001, 50)]
VARIANTS = ["plain", "istio", "passthrough-filter", "tooling-filter", "prose-filter"]
RUNS = 10
DURATION_S = 10

_TOOLS = {"PATH": f"{PROJECT}/.venv/bin:{PROJECT}/.tools/bin:{os.environ['PATH']}"}
# Without compiled modules every process of the workflow would compile all that it imports.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | _TOOLS


@dataclass(frozen=True)
class Row:
    """One line of the result. `met` is None where there is no target."""

    what: str
    measured: str
    target: str = ""
    met: bool | None = None


# --- one real attack -------------------------------------------------------------------------------------------------


def attack(folder: Path, rate: int, duration_s: int) -> list[bytes]:
    """Lines of a real attack on the demo's application (an Envoy on loopback), in the order of sending."""
    (port,) = free_ports(1)
    config = folder / "app.yaml"
    config.write_text((PROJECT / "config/demo/app.yaml").read_text().replace("18080", str(port)))
    options = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]
    with subprocess.Popen([PROJECT / ".venv/bin/envoy", "--config-path", config, *options]) as envoy:
        try:
            _wait(port)
            target = f"GET http://127.0.0.1:{port}/\n".encode()
            results = rawfiles.vegeta("attack", f"-rate={rate}", f"-duration={duration_s}s", stdin=target)
        finally:
            envoy.terminate()
    lines = rawfiles.vegeta("encode", "--to", "json", stdin=results).splitlines(keepends=True)
    return sorted(lines, key=lambda line: int(line[: line.index(b',"code"')].rpartition(b":")[2]))


def _wait(port: int) -> None:
    limit = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
                return
        except OSError:
            if time.monotonic() > limit:
                raise
        time.sleep(0.05)


def link(originals: dict[str, Path], cell: Cell, run: int) -> None:
    """One run more in a cell: `originals` are its files by what follows the run's number."""
    for suffix, original in originals.items():
        os.link(original, cell.path / f"{run}{suffix}")


def plan(cell: Cell, runs: int, duration_s: int) -> None:
    """The cell's folder and its metadata."""
    cell.path.mkdir(parents=True)
    fields = rawfiles.metadata(
        cell,
        testOptions={"rate": cell.rate, "duration": f"{duration_s}s"},
        runs=runs,
        order={"kind": "fixed", "positions": list(range(1, runs + 1))},
    )
    (cell.path / archive.METADATA).write_text(json.dumps(fields))


# --- one large campaign ----------------------------------------------------------------------------------------------


def build_campaign(folder: Path) -> tuple[Campaign, dict[int, dict[str, Path]], int]:
    """The large campaign below ``folder/archive``; the files of one run of each rate; how many bytes of JSON."""
    campaign = Campaign(folder / "archive", "bookinfo", "shiver", "2025-03-31T20:08:07-04:00")
    lines = attack(folder, max(RATES), DURATION_S)
    originals: dict[int, dict[str, Path]] = {}
    json_bytes = 0
    for rate in RATES:
        content = b"".join(lines[: rate * DURATION_S])
        files = {".results.json.zst": rawfiles.compress(content)}
        files[".summary.json"] = rawfiles.vegeta("report", "-type=json", stdin=content)
        originals[rate] = {suffix: folder / f"{rate}{suffix}" for suffix in files}
        for suffix, data in files.items():
            originals[rate][suffix].write_bytes(data)
        json_bytes += len(content) * len(VARIANTS) * RUNS
        for variant in VARIANTS:
            cell = Cell(campaign, str(rate), variant)
            plan(cell, RUNS, DURATION_S)
            for run in range(1, RUNS + 1):
                link(originals[rate], cell, run)
    (campaign.path / archive.COMPLETION).touch()
    return campaign, originals, json_bytes


def snakemake(checkout: Path, folder: Path, *arguments: str) -> tuple[float, float, str]:
    """Seconds of clock and of processor that one Snakemake took over the archive in `folder`, and what it printed."""
    overrides = [f"{name}={folder / name}" for name in ("archive", "tables", "reports")]
    command = [PROJECT / ".venv/bin/snakemake", *arguments, "--config", *overrides]
    before, started = _cpu_s(), time.perf_counter()
    done = subprocess.run(
        command,
        check=False,
        cwd=checkout,
        env=_ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    took_s = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(done.stdout[-5000:])
    return took_s, _cpu_s() - before, done.stdout


def _cpu_s() -> float:
    """Processor time of all programs that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def decompress(files: Sequence[Path]) -> tuple[float, float]:
    """Seconds of processor and of clock for ``zstd -dc`` of all files, as many at once as there are processors."""
    before, started = _cpu_s(), time.perf_counter()
    names = "\0".join(map(str, files))
    command = ["xargs", "-0", "-n", "50", "-P", str(os.cpu_count()), "sh", "-c", 'zstd -dc "$@" >/dev/null', "sh"]
    subprocess.run(command, input=names, text=True, check=True)
    return _cpu_s() - before, time.perf_counter() - started


def large_campaign(folder: Path) -> Iterator[Row]:
    """A campaign of 1,350 runs to tables and report, then with one run more."""
    checkout = copy_project(folder / "checkout")
    campaign, originals, json_bytes = build_campaign(folder)
    files = sorted(campaign.path.glob("*/*/*.results.json.zst"))
    requests = sum(RATES) * DURATION_S * len(VARIANTS) * RUNS
    yield Row("input", f"{len(files):,} runs, {requests / 1e6:.2f} million requests, {json_bytes / 1e9:.0f} GB of JSON")
    if shutil.which("zstd"):
        cpu_s, took_s = decompress(files)
        yield Row("zstd -dc of the same files", f"{took_s:.0f} s, {cpu_s:.0f} s of CPU")
    took_s, cpu_s, _ = snakemake(checkout, folder, "--cores", "all", "report")
    shown = f"{took_s:.0f} s, {cpu_s:.0f} s of CPU"
    yield Row("raw results to tables and report", shown, "under 120 s", took_s < 120)
    link(originals[max(RATES)], Cell(campaign, str(max(RATES)), VARIANTS[-1]), RUNS + 1)
    took_s, cpu_s, _ = snakemake(checkout, folder, "--cores", "all", "report")
    yield Row("one run added", f"{took_s:.1f} s, {cpu_s:.1f} s of CPU", "under 15 s", took_s < 15)


# --- nothing to do ---------------------------------------------------------------------------------------------------


def build_finished(folder: Path, checkout: Path, campaigns: int) -> None:
    """`campaigns` of 100 runs each, with tables and pages as if all were made."""
    small = folder / "small"
    small.mkdir()
    content = b"".join(attack(small, 10, 1))
    files = {".results.json.zst": rawfiles.compress(content), ".warmups.json.zst": rawfiles.compress(content)}
    files[".summary.json"] = rawfiles.vegeta("report", "-type=json", stdin=content)
    for number in range(campaigns):
        timestamp = f"20{10 + number // 360}-{number // 30 % 12 + 1:02d}-{number % 30 + 1:02d}T10:00:00+00:00"
        campaign = Campaign(folder / "archive", "bookinfo", "shiver", timestamp)
        originals = {suffix: folder / "small" / f"{number}{suffix}" for suffix in files}
        for suffix, data in files.items():
            originals[suffix].write_bytes(data)
        for rate in (10, 20, 40, 60, 80):
            for variant in VARIANTS[:2]:
                cell = Cell(campaign, str(rate), variant)
                plan(cell, 10, 1)
                for run in range(1, 11):
                    link(originals, cell, run)
        (campaign.path / archive.COMPLETION).touch()
    _pretend(folder, checkout)


def _pretend(folder: Path, checkout: Path) -> None:
    """Everything that `report` makes, in the order in which it is made, as empty files; then Snakemake's records."""
    state = State({name: str(folder / name) for name in ("archive", "tables")} | {"host": "here"}, folder / "none")
    keys = list(state.listings)
    wanted = [Path(state.done(key, pending=False)) for key in keys]
    for path, key in zip(wanted, keys, strict=True):
        path.parent.mkdir(parents=True)
        path.write_text(state.listings[key].digest())
    later = [
        folder / f"tables/{table}/app={app}/host={host}/timestamp={timestamp}/part.parquet"
        for app, host, timestamp in keys
        for table in ("runs", "cells", "cells_all", "suggestions")
    ]
    later += [folder / f"reports/campaigns/{slug}.html" for slug in state.slugs]
    for path in [*later, folder / "loadstone.duckdb", folder / "reports/index.html"]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    snakemake(checkout, folder, "--cores", "1", "--touch", "report")


def nothing_to_do(folder: Path, campaigns: int, limit_s: int) -> Iterator[Row]:
    """How long a dry run takes that finds nothing to do."""
    checkout = copy_project(folder / "checkout")
    build_finished(folder, checkout, campaigns)
    times, cpus = [], []
    for target in ("report", "all"):
        took_s, cpu_s, output = snakemake(checkout, folder, "-n", target)
        if not re.search("Nothing to be done", output):
            raise RuntimeError(f"there was something to do:\n{output[-3000:]}")
        times.append(took_s)
        cpus.append(cpu_s)
    shown = f"{times[0]:.1f} s and {times[1]:.1f} s, {cpus[0]:.1f} s and {cpus[1]:.1f} s of CPU"
    what = f"snakemake -n with nothing to do, {100 * campaigns:,} runs in {campaigns:,} campaigns"
    yield Row(what, shown, f"under {limit_s} s", max(times) < limit_s)


def ten_thousand(folder: Path) -> Iterator[Row]:
    """10,000 runs."""
    return nothing_to_do(folder, 100, 5)


def hundred_thousand(folder: Path) -> Iterator[Row]:
    """100,000 runs."""
    return nothing_to_do(folder, 1000, 30)


BENCHMARKS = [large_campaign, ten_thousand, hundred_thousand]


def main() -> int:
    """Run those named on the command line, or all, and print what they found."""
    missed = False
    for benchmark in BENCHMARKS:
        if sys.argv[1:] and benchmark.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for row in benchmark(Path(folder)):
                verdict = {None: "", True: "met", False: "MISSED"}[row.met]
                print(f"{row.what:<75} {row.measured:<50} {row.target:<14} {verdict}", flush=True)
                missed |= row.met is False
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
