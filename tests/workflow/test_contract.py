"""What other tools rely on: the layout, the tables and their columns, and figures that equal independent ones."""

import html
import json
import re
import subprocess

import duckdb
import numpy as np
import pytest
import zstandard
from conftest import PROJECT

KEYS = {
    "app": "VARCHAR",
    "host": "VARCHAR",
    "timestamp": "VARCHAR",
    "variant": "VARCHAR",
    "rate": "DOUBLE",
    "run": "INTEGER",
}
COLUMNS = {
    "runs": "started_at variant_dir load_model generator metadata_version evidence duration_s warmup_rate replicas "
    "labels requests expected_requests complete tags excluded exclusion_reason source problems inferred",
    "requests": "stream phase seq sent_at latency_ns code error error_class bytes_out bytes_in",
    "summaries": "stream requests success mean_ns min_ns p50_ns p90_ns p95_ns p99_ns max_ns throughput status_codes",
    "resources": "sampled_at scope name cpu_millicores memory_mib",
    "spans": "trace_id span_id parent_id service operation started_at duration_ns dump",
    "comparisons": "comparison n_runs n_excluded evidence timestamps vegeta_summaries_mean_ns vegeta_summaries_std_ns "
    "all_raw_data_mean_ns all_raw_data_std_ns all_raw_data_ok_mean_ns all_raw_data_ok_std_ns error_fraction "
    "error_503_fraction error_0_fraction error_other_fraction p50_ns p99_ns p99_low_ns p99_high_ns",
    "cells": "stream n_runs n_requests mean_ns std_ns run_mean_ns run_std_ns p50_ns p90_ns p95_ns p99_ns p999_ns "
    "ok_mean_ns ok_std_ns ok_run_mean_ns ok_run_std_ns error_fractions error_fraction_stds",
}
TYPES = {
    ("runs", "started_at"): "TIMESTAMP WITH TIME ZONE",
    ("runs", "complete"): "BOOLEAN",
    ("runs", "labels"): "MAP(VARCHAR, VARCHAR)",
    ("runs", "tags"): "VARCHAR[]",
    ("runs", "problems"): "VARCHAR[]",
    ("requests", "sent_at"): "TIMESTAMP_NS",
    ("summaries", "status_codes"): "MAP(VARCHAR, BIGINT)",
}


@pytest.fixture(scope="module")
def database(collected) -> duckdb.DuckDBPyConnection:
    # Relative paths in the views count from the project's folder.
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(collected.path)
        with duckdb.connect("results/loadstone.duckdb", read_only=True) as connection:
            yield connection


@pytest.mark.parametrize("table", COLUMNS)
def test_every_table_has_its_columns(database, table: str) -> None:
    found = dict(row[:2] for row in database.sql(f"DESCRIBE {table}").fetchall())
    assert set(COLUMNS[table].split()) <= set(found)
    # A comparison joins campaigns.
    without = {"cells": {"run"}, "comparisons": {"run", "timestamp"}}.get(table, set())
    keys = {name: kind for name, kind in KEYS.items() if name not in without}
    assert keys.items() <= found.items()
    for (of, column), kind in TYPES.items():
        assert of != table or found[column] == kind


@pytest.mark.parametrize("table", COLUMNS)
def test_rows_come_out_as_python_values(database, table: str) -> None:
    rows = database.sql(f"SELECT * FROM {table}").fetchall()
    assert bool(rows) == (table not in {"resources", "spans", "comparisons"})


def test_counts_and_figures_equal_what_vegeta_says_of_the_same_files(collected, database) -> None:
    for results in collected.results():
        with zstandard.open(results) as file:
            raw = file.read()
        command = [PROJECT / ".tools/bin/vegeta", "report", "-type=json"]
        report = json.loads(subprocess.run(command, input=raw, capture_output=True, check=True).stdout)
        run, rate, variant = int(results.name.partition(".")[0]), float(results.parts[-3]), results.parts[-2]
        where = "WHERE variant = ? AND rate = ? AND run = ? AND phase = 'test' AND stream = 'main'"
        rows = database.execute(
            f"SELECT code, latency_ns, bytes_in FROM requests {where}",
            [variant, rate, run],
        ).fetchall()
        assert len(rows) == report["requests"]
        assert {str(code): sum(row[0] == code for row in rows) for code in {row[0] for row in rows}} == report[
            "status_codes"
        ]
        assert sum(row[1] for row in rows) == report["latencies"]["total"]
        assert max(row[1] for row in rows) == report["latencies"]["max"]
        assert sum(row[2] for row in rows) == report["bytes_in"]["total"]
        summary = database.execute(
            "SELECT requests, success, max_ns, status_codes FROM summaries WHERE variant = ? AND rate = ? AND run = ?",
            [variant, rate, run],
        ).fetchall()
        assert summary == [(report["requests"], report["success"], report["latencies"]["max"], report["status_codes"])]


def test_cells_equal_numpy_on_the_same_requests(database) -> None:
    cells = database.sql("SELECT * FROM cells").fetchdf()
    assert len(cells) == 2
    for cell in cells.itertuples():
        rows = database.execute(
            "SELECT run, latency_ns FROM requests WHERE variant = ? AND rate = ? AND phase = 'test'",
            [cell.variant, cell.rate],
        ).fetchnumpy()
        latency = rows["latency_ns"].astype(float)
        assert cell.n_requests == len(latency)
        for column, quantile in {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}.items():
            assert getattr(cell, f"{column}_ns") == pytest.approx(np.quantile(latency, quantile), rel=1e-12)
        means = [latency[rows["run"] == run].mean() for run in np.unique(rows["run"])]
        expected = [latency.mean(), latency.std(), np.mean(means), np.std(means)]
        assert [cell.mean_ns, cell.std_ns, cell.run_mean_ns, cell.run_std_ns] == pytest.approx(expected, rel=1e-9)


def test_every_run_is_complete_and_its_record_tells_when(collected, database) -> None:
    runs = database.sql("SELECT requests, expected_requests, complete, excluded, problems, tags FROM runs").fetchall()
    assert runs == [(15, 15, True, False, [], [])] * 4
    for file in collected.archive.rglob("*.run.json"):
        record = json.loads(file.read_text())
        phases = [phase["phase"] for phase in record["phases"]]
        assert phases == ["warmup", "test"]
        assert record["started"] < record["ready"] < record["phases"][0]["started"] < record["ended"]
        assert record["identity"]["headers"] == {"x-variant": file.parts[-2]}


def test_the_archive_has_its_layout(collected) -> None:
    campaign = collected.campaign
    assert (campaign / "completion_time.txt").read_text().endswith("\n")
    files = {str(file.relative_to(campaign)) for file in campaign.rglob("*") if file.is_file()}
    suffixes = ["results.json.zst", "warmups.json.zst", "summary.json", "run.json", "sha256"]
    expected = {
        f"50/{variant}/{run}.{suffix}" for variant in ("plain", "envoy") for run in (1, 2) for suffix in suffixes
    }
    expected |= {f"50/{variant}/metadata.json" for variant in ("plain", "envoy")}
    assert files == expected | {"completion_time.txt"}


def test_declared_comparisons_of_other_archives_do_no_harm(collected) -> None:
    declared = (collected.path / "config/comparisons.yaml").read_text()
    assert "- id: bookinfo_shiver_1\n" in declared
    assert not (collected.path / "reports/comparisons").exists()
    assert "bookinfo_shiver_1" in (collected.path / "reports/index.html").read_text()


def test_the_commands_at_the_end_of_a_page_work_when_pasted(collected) -> None:
    (page,) = (collected.path / "reports/campaigns").glob("*.html")
    commands = html.unescape(re.search(r"<footer>.*<pre[^>]*><code>(.*?)</code>", page.read_text(), re.DOTALL)[1])
    assert len(commands.splitlines()) == 2
    for command in commands.splitlines():
        done = subprocess.run(["sh", "-c", command], cwd=collected.path, capture_output=True, text=True, check=True)
    assert "envoy" in done.stdout and "p99_ns" in done.stdout
    named = re.findall(r"<code>(\w+\.sql)</code>", page.read_text())
    assert len(named) > 8
    assert all((collected.path / "scripts/loadstone/sql" / name).is_file() for name in named)
