"""Real requests of the archive, digitised from graphs, as raw files of their time: their statistics come back."""

import csv
from pathlib import Path

import duckdb
import numpy as np
import pytest
from loadstone import archive
from loadstone.analysis.campaign import analyse_campaign
from loadstone.tables import database
from loadstone.tables.convert import convert_campaign
from reproduction import campaigns
from support import shapes

WARMUPS = "warmups"


def metadata(file: str, timestamp: str, host: str, rate: str, variant: str) -> dict:
    """In the shape of its time; the runs on moone of May 2024 were serial."""
    if "presidio" in file:
        return (shapes.version_32 if "req_" in file else shapes.version_31)(timestamp, host, rate, variant)
    if timestamp >= "2024-04-28":
        return shapes.version_3(timestamp, host, rate, variant, "serial" if host == "moone" else "vegeta")
    shape = shapes.version_2 if timestamp >= "2024-04-17T23:03:57" else shapes.version_1b
    return shape(timestamp, host, rate, variant)


@pytest.fixture(scope="module")
def index(shared: Path) -> list[dict[str, str]]:
    with (shared / "prose/series-index.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def connection(shared: Path, index, tmp_path_factory: pytest.TempPathFactory):
    """The views over an archive of exactly these files."""
    folder = tmp_path_factory.mktemp("series")
    with duckdb.connect() as digitised:
        query = (
            "SELECT latency_ms FROM read_parquet($file) WHERE (host, timestamp, rate, variant, file) = "
            "($host, $timestamp, $rate, $variant, $name) ORDER BY seq"
        )
        for row in index:
            values = {"file": str(shared / "prose/series.parquet"), "name": row["file"], "rate": int(row["rate"])}
            values |= {name: row[name] for name in ("host", "timestamp", "variant")}
            latencies_ns = [round(latency * 1e6) for (latency,) in digitised.execute(query, values).fetchall()]
            assert len(latencies_ns) == int(row["n"])
            timestamp, rate, variant = row["timestamp"], row["rate"], row["variant"]
            cell = shapes.cell(folder / "archive", timestamp, rate, variant, app="bookinfo", host=row["host"])
            content = campaigns.results(timestamp, int(rate), latencies_ns, [200] * len(latencies_ns))
            shapes.write(cell, metadata(row["file"], timestamp, row["host"], rate, variant), {row["file"]: content})
    for campaign in archive.campaigns(folder / "archive"):
        convert_campaign(campaign, folder / "tables", lambda _, name: name, 1, lambda _: None)
        analyse_campaign(campaign, folder / "tables")
    with database.connect(folder / "tables") as connection:
        yield connection


def test_every_series_has_the_statistics_of_the_index(index, connection) -> None:
    for row in index:
        phase = "warmup" if WARMUPS in row["file"] else "test"
        stream = "presidio" if ".presidio." in row["file"] else "main"
        part = row["file"].split(".")[1]
        stream = f"{stream}.{part}" if part.startswith("req_") else stream
        key = [row["host"], row["timestamp"], row["variant"], float(row["rate"]), stream, phase]
        latencies = connection.execute(
            "SELECT latency_ns / 1e6 AS ms FROM requests "
            "WHERE (host, timestamp, variant_dir, rate, stream, phase) = (?, ?, ?, ?, ?, ?) ORDER BY seq",
            key,
        ).fetchnumpy()["ms"]
        half = len(latencies) // 2
        found = {
            "n": len(latencies),
            "mean_ms": latencies.mean(),
            **{f"p{q}_ms": np.quantile(latencies, q / 100) for q in (50, 90, 95, 99)},
            "min_ms": latencies.min(),
            "max_ms": latencies.max(),
            "first_half_mean_ms": latencies[:half].mean(),
            "second_half_mean_ms": latencies[half:].mean(),
        }
        for name, value in found.items():
            digits = len(row[name].partition(".")[2])
            assert float(value) == pytest.approx(float(row[name]), abs=0.5000001 * 10**-digits), (key, name)


def test_cells_give_the_same(index, connection) -> None:
    main = [row for row in index if row["file"] == "1.results.json.zst"]
    assert len(main) >= 9
    for row in main:
        cell = connection.execute(
            "SELECT mean_ns, p50_ns, p90_ns, p95_ns, p99_ns FROM cells "
            "WHERE (host, timestamp, variant, rate, stream) = (?, ?, ?, ?, 'main')",
            [row["host"], row["timestamp"], row["variant"], float(row["rate"])],
        ).fetchone()
        expected = [float(row[f"{name}_ms"]) * 1e6 for name in ("mean", "p50", "p90", "p95", "p99")]
        assert list(cell) == pytest.approx(expected, abs=501), row


def test_the_documents_own_sentences_hold(connection) -> None:
    """Prose at 60 requests/s: "average and median around 300 ms", which are 310 and 284."""
    (cell,) = connection.execute(
        "SELECT mean_ns, p50_ns, ok_mean_ns FROM cells "
        "WHERE timestamp = '2024-04-26T01:47:38-04:00' AND variant = 'filter' AND rate = 60"
    ).fetchall()
    assert [round(value / 1e6) for value in cell] == [310, 284, 310]


def test_the_serial_ones_are_serial_and_start_before_they_end(connection) -> None:
    models = connection.sql("SELECT host, load_model, count(*) FROM runs GROUP BY ALL ORDER BY ALL").fetchall()
    assert ("moone", "serial") in {row[:2] for row in models} and ("shiver", "open") in {row[:2] for row in models}
    assert ("moone", "open") not in {row[:2] for row in models}
    reasons = connection.sql("SELECT DISTINCT exclusion_reason FROM runs WHERE excluded").fetchall()
    assert reasons and all(reason.endswith("has no results") for (reason,) in reasons), "warm-up or side attacks alone"
    query = "SELECT min(latency_ns + epoch_ns(sent_at)) % 1000000000 FROM requests WHERE host = 'moone' AND seq = 0"
    assert connection.sql(query).fetchall() == [(0,)], "the file's own stamp, on the second, was the end"


def test_the_shapes_of_the_runs_are_those_that_people_saw(connection) -> None:
    """The prose run at 60 requests/s rose all the time, its neighbours did not; runs without a warm-up began slowly."""
    rows = connection.execute(
        "SELECT timestamp[:10], variant, rate, shape, half_ratio FROM run_shapes WHERE host = 'shiver' ORDER BY ALL"
    ).fetchall()
    shapes = {tuple(row[:3]): row[3] for row in rows}
    neighbours = {variant: shape for (day, variant, rate), shape in shapes.items() if (day, rate) == ("2024-04-26", 60)}
    assert neighbours.pop("filter") == "drifting up"
    assert len(neighbours) == 3 and set(neighbours.values()) <= {"flat", "several modes"}
    cold = {("2024-04-16", "filter", rate) for rate in (10, 60, 100)}
    cold |= {("2024-04-01", "envoy", 10), ("2024-04-01", "envoy", 60), ("2024-03-31", "envoy", 100)}
    assert {key for key, shape in shapes.items() if shape == "still warming up"} == cold
    assert all(3 < row[4] < 9 for row in rows if tuple(row[:3]) in cold)
    query = "SELECT timestamp[:10], variant, rate FROM suggestions WHERE tag = 'unsettled' ORDER BY ALL"
    assert set(connection.execute(query).fetchall()) == cold | {("2024-04-26", "filter", 60)}
