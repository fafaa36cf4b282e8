"""What a campaign page says of CPU and memory: of whom, how spread, and when the load generator was the limit."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from loadstone.archive import Campaign, Cell
from loadstone.report import figures
from loadstone.report.site_layout import slug
from loadstone.sql import load
from loadstone.tables import layout
from loadstone.tables.database import connect, open_memory
from report.conftest import SCRIPT, VARIANTS
from report.printed import plain
from report.synthetic import Made, write
from support import site
from support.site import write_assets

RATES, RUNS = [100.0, 1000.0], 3
Use = Callable[[str, float, int, int], list[tuple[str, str, float | None, float | None]]]


def started(run: int) -> datetime:
    """As `synthetic` has it in table `runs`."""
    return datetime(2026, 11, 21, 11, 30, run % 60, tzinfo=UTC)


def build(root: Path, use: Use | None, variants: tuple[str, ...] = ("plain", "envoy")) -> tuple[Path, Path]:
    """A campaign whose runs used what `use(variant, rate, run, second)` says; its page and its tables."""
    campaign, tables = Campaign(root / "archive", "demo", "here", "2026-11-21T11:30:00+00:00"), root / "tables"
    write(tables, campaign, Made(variants, RATES, runs=RUNS, requests=400, excluded=(variants[0], 3)))
    for variant in variants if use else ():
        for rate in RATES:
            rows = []
            for run in range(1, RUNS + 1):
                for second in range(1, 5):
                    at = started(run) + timedelta(seconds=second)
                    key = {"variant": variant, "rate": rate, "run": run, "variant_dir": variant}
                    for scope, name, cpu, memory in use(variant, rate, run, second):
                        used = {"cpu_millicores": cpu, "memory_mib": memory, "scope": scope, "name": name}
                        rows.append(layout.campaign_key(campaign) | key | used | {"sampled_at": at, "asked_at": at})
            path = layout.cell_file(tables, "resources", Cell(campaign, f"{rate:g}", variant))
            layout.write_rows(tables, path, rows, "resources")
    write_assets(root / "reports")
    return site.build_campaign(campaign, tables, root / "reports", VARIANTS, {}), tables


def processes(variant: str, rate: float, run: int, second: int) -> list[tuple[str, str, float, float]]:
    """An excluded run (plain's third) used so much that it would be seen."""
    base = rate / 10 + run + second + (10_000 if (variant, run) == ("plain", 3) else 0)
    own = [("process", "app", base, 64.0)] + ([("process", "envoy", 3 * base, 32.0)] if variant == "envoy" else [])
    return [*own, ("process", "generator", rate, 20.0), ("node", "generator", 2000.0, 1000.0)]


def test_no_samples_no_section(tmp_path: Path, made_site) -> None:
    page, _ = build(tmp_path, None)
    assert "Resource usage" not in page.read_text()
    read = figures.read(page)
    assert read is not None and read.data["resources"] is None
    assert "Resource usage" not in made_site.page("good").read_text()


def test_means_are_over_the_runs_that_count(tmp_path: Path) -> None:
    page, tables = build(tmp_path, processes)
    read = figures.read(page)
    assert read is not None and read.data["resources"]["parts"] == {
        "total/TOTAL": "All of the target",
        "process/app": "app",
        "process/envoy": "envoy",
        "process/generator": "Load generator",
        "node/generator": "The load generator's machine",
    }

    def shown(what: str) -> dict[tuple[str, float, str], dict[str, Any]]:
        found = {part: read.rows(rows, what) for part, rows in read.charts["usage"].items()}
        return {(row["variant"], row["load"], part): row for part, rows in found.items() for row in rows}

    def band(row: dict[str, Any]) -> list[float]:
        return [row["value"], row["high"] - row["value"]]

    cells, memory = shown("cpu"), shown("memory")
    # Runs 1 and 2 of plain; each run's mean over four samples is rate / 10 + run + 2.5.
    assert band(cells["plain", 100.0, "process/app"]) == [14, 0.5]
    assert cells["plain", 100.0, "process/app"]["runs"] == 2
    assert band(cells["envoy", 1000.0, "total/TOTAL"]) == pytest.approx([4 * 104.5, 4 * (2 / 3) ** 0.5], rel=1e-4)
    assert band(memory["envoy", 1000.0, "total/TOTAL"]) == [96, 0]
    assert ("plain", 100.0, "process/envoy") not in cells
    with connect(tables) as database:
        query = "SELECT avg(cpu_mean_millicores) FROM resource_usage WHERE variant = 'envoy' AND name = 'envoy'"
        ((expected,),) = database.sql(f"{query} AND rate = 100").fetchall()
    assert cells["envoy", 100.0, "process/envoy"]["value"] == expected


def test_a_generator_that_had_no_cpu_left_is_named(tmp_path: Path) -> None:
    def busy(variant: str, rate: float, run: int, second: int) -> list[tuple[str, str, float, float]]:
        generator = 1900.0 if (variant, rate, run) == ("envoy", 1000.0, 2) else 300.0
        return [("process", "app", 100.0, 1.0), ("process", "generator", generator, 1.0)]

    page, _ = build(tmp_path, busy)
    (notice,) = re.findall(r'<p class="notice">(The load generator used.*?)</p>', page.read_text())
    assert plain(notice) == (
        "The load generator used nearly all its CPUs in 1 of 10 runs (at most 95.0 % of them on average: Envoy at "
        "1,000 requests/s, run 2). Latencies measured there include waiting for the generator itself."
    )
    quiet, _ = build(tmp_path / "quiet", processes)
    assert "nearly all its CPUs" not in quiet.read_text()
    assert "could use 2 CPUs" in plain(quiet.read_text())


def test_the_charts_follow_the_chosen_part_and_load(tmp_path: Path, watched) -> None:
    page, _ = build(tmp_path, processes)
    watched.open(page.as_uri())

    def rows(figure: str) -> dict[tuple[str, float], float]:
        found = watched.view(figure, "view.data('rows')")
        return {(row["variant"], row.get("load", row.get("time"))): row["value"] for row in found}

    assert rows("use-cpu")["envoy", 1000.0] == pytest.approx(418)
    assert set(rows("use-memory").values()) == {64, 96}
    watched.do(lambda: watched.page.locator("select[name=rate]").last.select_option("100"))
    over_time = rows("use-time-cpu")
    assert [over_time["plain", second] for second in (1, 2, 3, 4)] == [12.5, 13.5, 14.5, 15.5]
    assert over_time["envoy", 1] == pytest.approx(4 * 13)
    watched.do(lambda: watched.page.locator("select[name=part]").select_option("process/envoy"))
    assert rows("use-cpu") == {("envoy", 100.0): pytest.approx(43.5), ("envoy", 1000.0): pytest.approx(313.5)}
    assert "part=process" in watched.page.url
    assert watched.page.locator("#use-cpu figcaption [data-chosen=part]").inner_text() == "envoy"
    watched.do(lambda: watched.page.get_by_role("checkbox", name="Envoy").uncheck())
    assert (
        watched.page.locator("#use-cpu .empty-note").inner_text() == "None of the shown variants has samples of this."
    )
    watched.open(watched.page.url)
    assert watched.page.locator("select[name=part]").input_value() == "process/envoy"
    assert watched.complaints == []


def test_namespaces_and_hostile_names(tmp_path: Path, watched) -> None:
    def pods(variant: str, rate: float, run: int, second: int) -> list[tuple[str, str, float | None, float | None]]:
        odd = [("pod", f"{SCRIPT}/a", 5.0, 1.0), ("pod", f"{SCRIPT}/b", None, 1.0)]
        return [("pod", "shop/a", 1.0, 10.0), ("pod", "shop/b", 2.0, 20.0), ("process", "shop", 1.0, 1.0), *odd]

    page, _ = build(tmp_path, pods, variants=("plain", SCRIPT))
    assert "from the cluster" in page.read_text()
    read = figures.read(page)
    assert read is not None
    parts = read.data["resources"]["parts"]
    assert parts["namespace/shop"] == "shop (namespace)"
    assert parts["process/shop"] == "shop (process)"
    watched.open(page.as_uri())
    for part in parts:
        watched.do(lambda part=part: watched.page.locator("select[name=part]").select_option(part))
    assert watched.complaints == []


def test_new_samples_make_new_data_and_old_ones_do_not(tmp_path: Path) -> None:
    page, tables = build(tmp_path, processes)
    folder = page.parent / page.stem
    before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    campaign = Campaign(tmp_path / "archive", "demo", "here", "2026-11-21T11:30:00+00:00")
    assert page.stem == slug(campaign)
    site.build_campaign(campaign, tables, tmp_path / "reports", VARIANTS, {})
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == before
    layout.cell_file(tables, "resources", Cell(campaign, "100", "plain")).unlink()
    site.build_campaign(campaign, tables, tmp_path / "reports", VARIANTS, {})
    changed = {file.name for file in folder.iterdir() if file.stat().st_mtime_ns != before[file.name]}
    assert changed == {"100.js"}


def test_samples_are_shown_where_there_are_no_requests(tmp_path: Path) -> None:
    """As of results that tools only summarised, with a log of what the target used."""
    _, tables = build(tmp_path, processes)
    for path in (tables / "requests").rglob("*.parquet"):
        path.unlink()
    campaign = Campaign(tmp_path / "archive", "demo", "here", "2026-11-21T11:30:00+00:00")
    page = site.build_campaign(campaign, tables, tmp_path / "reports", VARIANTS, {})
    found = re.search(r"receive\(\"100\",(.*)\);", (page.with_suffix("") / "100.js").read_text())
    assert found
    loaded = json.loads(found[1])
    assert loaded["charts"]["time"]["n"] == 0 and loaded["charts"]["usage"]


@pytest.mark.parametrize("first", [-0.1, 0.1])
def test_samples_around_the_first_request_have_one_time(first: float) -> None:
    with open_memory() as database:
        database.execute(
            "CREATE TEMP TABLE sampled AS "
            "SELECT 100.0 AS rate, 'a' AS variant, 'a' AS variant_dir, run, 'process' AS scope, 'app' AS name, "
            "TIMESTAMPTZ '2026-11-21 11:30:00+00' AS started_at, "
            "started_at + to_microseconds((1e6 * if(run = 1, $first, -$first))::BIGINT + 1_000_000 * second) AS moment "
            "FROM range(1, 3) AS runs(run), range(3) AS samples(second)",
            {"first": first},
        )
        database.execute(
            "CREATE TEMP VIEW runs AS SELECT DISTINCT 'demo' AS app, 'here' AS host, 'then' AS timestamp, rate, "
            "variant, variant_dir, run, FALSE AS excluded, started_at FROM sampled"
        )
        database.execute(
            "CREATE TEMP VIEW resources AS SELECT 'demo' AS app, 'here' AS host, 'then' AS timestamp, "
            "* EXCLUDE (started_at, moment), moment AS asked_at, moment AS sampled_at, "
            "1.0 AS cpu_millicores, 1.0 AS memory_mib FROM sampled"
        )
        rows = database.execute(load("page_resources_over_time"), {"rates": [100.0], "bins": 60})
        assert [str(row[4]) for row in rows.fetchall() if row[2] == "process"] == ["0.0", "1.0", "2.0"]
