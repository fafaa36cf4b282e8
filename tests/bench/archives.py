"""Archives as large as real ones: from raw results to the site, one run more, and nothing to do at all.

Each archive is made from one real attack on the demo's application, whose results are linked as many times as the
archive has runs.
"""

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.measuring import Row, Took, timed
from loadstone import archive
from loadstone.archive import Campaign, Cell
from loadstone.report import site_layout
from loadstone.report.output import shared_assets
from loadstone.report.site_layout import Part, variant_slug
from loadstone.tables import ANALYSED, layout
from loadstone.workflow.markers import write_marker
from loadstone.workflow.snapshot import Snapshot, tables_fingerprint
from support import rawfiles
from support.checkout import PROJECT, copy_project, free_ports

# The largest sweep of the archive that this is built for: 27 rates, 5 variants, 10 runs of 10 s, 5.5 million requests.
RATES = [10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, *range(250, 1001, 50)]
VARIANTS = ["plain", "istio", "passthrough-filter", "tooling-filter", "prose-filter"]
RUNS = 10
DURATION_S = 10

_TOOLS = {"PATH": f"{PROJECT}/.venv/bin:{PROJECT}/.tools/bin:{os.environ['PATH']}"}


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


def snakemake(checkout: Path, folder: Path, *arguments: str, through: Sequence[str] = ()) -> tuple[Took, str]:
    """What one Snakemake over the archive in `folder` took, and what it printed; `through` is a program to run it."""
    overrides = [f"{name}={folder / name}" for name in ("archive", "tables", "reports")]
    command = [*through, PROJECT / ".venv/bin/snakemake", *arguments, "--config", *overrides]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with timed() as took:
        done = subprocess.run(command, check=False, cwd=checkout, env=os.environ | _TOOLS, **output)
    if done.returncode:
        raise RuntimeError(done.stdout[-5000:])
    return took, done.stdout


def decompress(files: Sequence[Path]) -> Took:
    """``zstd -dc`` of all files, as many at once as there are processors."""
    names = "\0".join(map(str, files))
    command = ["xargs", "-0", "-n", "50", "-P", str(os.cpu_count()), "sh", "-c", 'zstd -dc "$@" >/dev/null', "sh"]
    with timed() as took:
        subprocess.run(command, input=names, text=True, check=True)
    return took


def large_campaign(folder: Path) -> Iterator[Row]:
    """A campaign of 1,350 runs to tables and report, then with one run more."""
    checkout = copy_project(folder / "checkout")
    campaign, originals, json_bytes = build_campaign(folder)
    files = sorted(campaign.path.glob("*/*/*.results.json.zst"))
    requests = sum(RATES) * DURATION_S * len(VARIANTS) * RUNS
    yield Row("input", f"{len(files):,} runs, {requests / 1e6:.2f} million requests, {json_bytes / 1e9:.0f} GB of JSON")
    took, _ = snakemake(checkout, folder, "--cores", "all", "report")
    yield Row("raw results to tables and report", str(took), "under 120 s", took.clock_s < 120)
    if shutil.which("zstd"):
        peer = decompress(files)
        yield Row("zstd -dc of the same files", str(peer))
        yield Row("times its CPU", f"{took.cpu_s / peer.cpu_s:.2f}")
    link(originals[max(RATES)], Cell(campaign, str(max(RATES)), VARIANTS[-1]), RUNS + 1)
    took, _ = snakemake(checkout, folder, "--cores", "all", "report")
    yield Row("one run added", str(took), "under 15 s", took.clock_s < 15)
    peer, _ = snakemake(checkout, folder, "--cores", "all", "report")
    yield Row("times the CPU of the same with nothing to do", f"{took.cpu_s / peer.cpu_s:.1f}")


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


_OVER_ALL = (site_layout.CRATE, site_layout.INDEX, *site_layout.OVER_ALL)


def _pretend(folder: Path, checkout: Path) -> None:
    """Everything that `report` makes, in the order in which it is made, as empty files; then Snakemake's records."""
    folders = {name: str(folder / name) for name in ("archive", "tables")}
    snapshot = Snapshot({**folders, "host": "here", "only": {}}, folder / "none")
    keys = list(snapshot.listings)
    wanted = [Path(snapshot.tables_marker(key, pending=False)) for key in keys]
    for path, key in zip(wanted, keys, strict=True):
        path.parent.mkdir(parents=True)
        listing = snapshot.listings[key]
        path.write_text(tables_fingerprint(folder / "tables", listing))
    later = [
        folder / f"tables/{table}/app_dir={app}/host_dir={host}/timestamp_dir={timestamp}/part.parquet"
        for app, host, timestamp in keys
        for table in ANALYSED
    ]
    later += [layout.manifest_file(folder / "tables", listing.campaign) for listing in snapshot.listings.values()]
    later += [folder / f"reports/campaigns/{slug}.html" for slug in snapshot.slugs]
    later += [folder / "tables/history/part.parquet", folder / "loadstone.duckdb"]
    later += [folder / f"reports/variants/{variant_slug('bookinfo', name)}.html" for name in VARIANTS[:2]]
    later += [folder / f"reports/assets/{name}" for name in ("vega.js", *shared_assets())]
    later += [folder / "reports" / entry.path for entry in site_layout.ENTRIES if entry.path != "index.html"]
    over_all = [folder / "reports" / name for name in _OVER_ALL]
    for path in [*later, *over_all]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    _record(folder / "reports", [*(f"campaigns/{slug}" for slug in snapshot.slugs), "ask"])
    inventory = folder / "tables/.inventory/1"
    inventory.parent.mkdir()
    write_marker(inventory, snapshot.inventory_fingerprint([]))
    snakemake(checkout, folder, "--cores", "1", "--touch", "report")


def _record(reports: Path, pages: Sequence[str]) -> None:
    """What the finished parts of the site consist of: of `pages` each, and of the parts that are several files."""
    parts = {name: [f"{name}.html"] for name in pages}
    parts["assets"] = [f"assets/{name}" for name in ("vega.js", *shared_assets())]
    parts["variants"] = ["variants.html", *(f"variants/{path.name}" for path in (reports / "variants").iterdir())]
    parts["index"] = list(_OVER_ALL)
    for name, files in parts.items():
        Part(reports, name).begin().finish(reports / file for file in files)


def nothing_to_do(folder: Path, campaigns: int, limit_s: int) -> Iterator[Row]:
    """How long a dry run takes that finds nothing to do."""
    checkout = copy_project(folder / "checkout")
    build_finished(folder, checkout, campaigns)
    (folder / "empty").mkdir()
    peer, _ = snakemake(checkout, folder / "empty", "-n", "report")
    yield Row("snakemake -n over an empty archive", str(peer))
    for target in ("report", "all"):
        took, output = snakemake(checkout, folder, "-n", target)
        if "Nothing to be done" not in output:
            raise RuntimeError(f"there was something to do:\n{output[-3000:]}")
        what = f"-n {target} with nothing to do, {100 * campaigns:,} runs in {campaigns:,} campaigns"
        yield Row(what, str(took), f"under {limit_s} s", took.clock_s < limit_s)
        yield Row("times its CPU over an empty archive", f"{took.cpu_s / peer.cpu_s:.1f}")


def ten_thousand(folder: Path) -> Iterator[Row]:
    """10,000 runs."""
    return nothing_to_do(folder, 100, 5)


def hundred_thousand(folder: Path) -> Iterator[Row]:
    """100,000 runs."""
    return nothing_to_do(folder, 1000, 30)


BENCHMARKS = [large_campaign, ten_thousand, hundred_thousand]
