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
    "labels requests expected_requests complete tags excluded exclusion_reason exclusions source problems inferred "
    "generator_cpus resolution_ns users description timeout_s plan_order load_1min",
    "requests": "stream phase seq sent_at offset_ns latency_ns code error error_class bytes_out bytes_in answered_by",
    "summaries": "stream requests success mean_ns min_ns p50_ns p90_ns p95_ns p99_ns max_ns throughput status_codes "
    "std_ns p75_ns p999_ns source preferred problems",
    "figures": "variant_dir source section metric statistic value unit text",
    "histograms": "variant_dir stream source lower_ns upper_ns count",
    "resources": "sampled_at scope name cpu_millicores memory_mib asked_at",
    "resource_usage": "scope name n_samples cpu_min_millicores cpu_mean_millicores cpu_max_millicores memory_min_mib "
    "memory_mean_mib memory_max_mib",
    "incidents": "kind object container reason text count",
    "error_causes": "variant_dir stream cause side code error count n_texts",
    "history": "statistic timestamp started_at way value low high n_runs level change differs note",
    "failures": "variant_dir nth failed_at phase error evidence collected source",
    "spans": "trace_id span_id parent_id service operation started_at duration_ns dump",
    "comparisons": "comparison n_runs n_excluded evidence generator timestamps "
    "vegeta_summaries_mean_ns vegeta_summaries_std_ns all_raw_data_mean_ns all_raw_data_std_ns "
    "all_raw_data_ok_mean_ns all_raw_data_ok_std_ns error_fraction "
    "error_503_fraction error_0_fraction error_other_fraction p50_ns p99_ns p99_low_ns p99_high_ns",
    "effects": "comparison timestamps baseline statistic baseline_value value shift shift_low shift_high ratio "
    "ratio_low ratio_high n_runs baseline_n_runs n_pairs verdict why p_adjusted n_compared margin runs_needed",
    "claims": "comparison app host timestamps claim weight rate variant statistic n n_of counted text remedy",
    "run_shapes": "variant_dir shape shapes requests half_ratio trend_share trend_p warmup_requests warmup_s "
    "warmup_share change_seqs levels_ns period_requests period_s period_p period_share dip dip_p noise",
    "run_figures": "variant_dir n_requests n_timeouts mean_ns p50_ns p50_censored p90_ns p99_ns ok_mean_ns ok_p99_ns "
    "shares latencies_ns least_from_share",
    "time_bins": "comparison timestamps load_model generator from_s to_s n_runs n_requests n_timeouts mean_ns p50_ns "
    "p90_ns p99_ns p99_censored",
    "percentile_curves": "comparison timestamps n_runs n_requests n_timeouts shares latencies_ns least_from_share",
    "sending": "variant_dir refused requests asked_rate achieved_rate lag_p50_ns lag_p99_ns lag_max_ns lag_max_seq "
    "lag_max_due_s observed_p50_ns observed_p90_ns observed_p99_ns observed_p999_ns corrected_p50_ns corrected_p90_ns "
    "corrected_p99_ns corrected_p999_ns lag_limit_ns judged_by judged_lag_ns limited",
    "senders": "variant_dir generator place requests lag_p50_ns lag_p99_ns lag_max_ns start_lag_ns clock_offset_ns "
    "clock_uncertainty_ns clock_drift_ns",
    "cells": "stream n_runs n_requests throughput throughput_low throughput_high error_fraction_low "
    "error_fraction_high mean_censored p99_censored n_timeouts "
    "mean_ns std_ns run_mean_ns run_std_ns p50_ns p90_ns p95_ns p99_ns p999_ns "
    "ok_mean_ns ok_std_ns ok_run_mean_ns ok_run_std_ns error_fractions error_fraction_stds",
}
_EMPTY = {"incidents", "senders", "failures", "spans", "comparisons", "figures", "histograms", "error_causes"}
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
    of_scope = {"run", "timestamp"}
    without = {
        "cells": {"run"},
        "history": {"run"},
        "comparisons": of_scope,
        "effects": of_scope,
        "time_bins": of_scope,
        "percentile_curves": of_scope,
        "claims": of_scope,
    }.get(table, set())
    keys = {name: kind for name, kind in KEYS.items() if name not in without}
    assert keys.items() <= found.items()
    for (of, column), kind in TYPES.items():
        assert of != table or found[column] == kind


@pytest.mark.parametrize("table", COLUMNS)
def test_rows_come_out_as_python_values(database, table: str) -> None:
    rows = database.sql(f"SELECT * FROM {table}").fetchall()
    assert bool(rows) == (table not in _EMPTY)


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
    runs = database.sql("SELECT expected_requests, complete, excluded, problems, tags FROM runs").fetchall()
    assert runs == [(15, True, False, [], [])] * 4
    told = dict(database.sql("SELECT source, requests FROM runs").fetchall())
    counted = {}
    for file in collected.results():
        with zstandard.open(file) as lines:
            counted[str(file.relative_to(collected.archive))] = lines.read().count(b"\n")
    assert told == counted
    assert set(counted.values()) == {15}
    loads = database.sql("SELECT rate, variant, run, load_1min FROM runs").fetchall()
    busy = {(f"{rate:g}", variant, str(run)): load for rate, variant, run, load in loads}
    for file in collected.archive.rglob("*.run.json"):
        record = json.loads(file.read_text())
        assert busy[*file.parts[-3:-1], file.name.partition(".")[0]] == record["machine"]["load_1min"]
        phases = [phase["phase"] for phase in record["phases"]]
        assert phases == ["warmup", "test"]
        assert record["started"] < record["ready"] < record["phases"][0]["started"] < record["ended"]
        assert record["identity"]["headers"] == {"x-variant": file.parts[-2]}


def test_the_archive_has_its_layout(collected) -> None:
    campaign = collected.campaign
    assert (campaign / "completion_time.txt").read_text().endswith("\n")
    files = {str(file.relative_to(campaign)) for file in campaign.rglob("*") if file.is_file()}
    suffixes = ["results.json.zst", "warmups.json.zst", "summary.json", "resources.csv.zst", "run.json", "sha256"]
    expected = {
        f"50/{variant}/{run}.{suffix}" for variant in ("plain", "envoy") for run in (1, 2) for suffix in suffixes
    }
    expected |= {f"50/{variant}/metadata.json" for variant in ("plain", "envoy")}
    assert files == expected | {"completion_time.txt"}


def test_declared_comparisons_of_other_archives_do_no_harm(collected) -> None:
    declared = (collected.path / "config/comparisons.yaml").read_text()
    assert "- id: bookinfo_shiver_1\n" in declared
    assert not (collected.path / "reports/comparisons").exists()
    assert "bookinfo_shiver_1" not in (collected.path / "reports/index.html").read_text()
    assert "bookinfo_shiver_1" in (collected.path / "reports/comparisons.html").read_text()


def test_the_commands_at_the_end_of_a_page_work_when_pasted(collected) -> None:
    (page,) = (collected.path / "reports/campaigns").glob("*.html")
    commands = html.unescape(
        re.search(r'id="reproduce".*?<pre[^>]*><code>(.*?)</code>', page.read_text(), re.DOTALL)[1]
    )
    assert len(commands.splitlines()) == 2
    for command in commands.splitlines():
        done = subprocess.run(["sh", "-c", command], cwd=collected.path, capture_output=True, text=True, check=True)
    assert "envoy" in done.stdout and "p99_ns" in done.stdout
    (checksums,) = (collected.path / "reports/campaigns").glob("*.sha256")
    check = ["sha256sum", "--check", "--strict", checksums]
    done = subprocess.run(check, cwd=collected.archive, capture_output=True, text=True, check=True)
    assert done.stdout.count(": OK\n") == len(collected.results()) and checksums.name in page.read_text()
    named = re.findall(r"<code>(\w+\.sql)</code>", page.read_text())
    assert len(named) > 8
    assert all((collected.path / "scripts/loadstone/sql" / name).is_file() for name in named)
