"""The figures that the archive's owners published come back: an archive that holds them, through the real pipeline."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from reproduction import campaigns, published
from reproduction.published import COLUMNS, RAW, Published
from support.checkout import Checkout

Rows = dict[tuple[str, str, float], dict[str, Any]]
# requests/s up to which figures of single requests are compared; without it at every rate.
LARGEST_RATE = float(os.environ.get("LOADSTONE_PUBLISHED_RATES", "2000"))


@pytest.fixture(scope="module")
def figures(shared: Path) -> list[Published]:
    return list(published.read(shared / "prose/aggregates.csv"))


def wrong(figures: list[Published], rows: Rows) -> list[str]:
    """Every figure that did not come back within 1e-6 relative, or else within the error with which it was read."""
    found = []
    for expected in figures:
        if expected.method == RAW and float(expected.rate) > LARGEST_RATE:
            continue
        row = rows.get((expected.comparison, expected.variant, float(expected.rate)), {})
        column = COLUMNS[expected.kind, expected.method]
        spread = column.replace("_mean_ns", "_std_ns") if column.endswith("_ns") else f"{column}_std"
        figure, unit = expected.figure, 1e9 if column.endswith("_ns") else 1.0
        for name, value, error in ((column, figure.mean, figure.mean_error), (spread, figure.std, figure.std_error)):
            if value is None:
                continue
            given = row.get(name)
            # A deviation of zero comes back as what is left of adding up in binary fractions.
            near = max(1e-6 * value, 1e-12, error if expected.kind.endswith("latency") else 0.0)
            if given is None or abs(given / unit - value) > near:
                found.append(
                    f"{expected.comparison} {expected.variant} {expected.rate} {name}: {given}, not {value * unit}"
                )
    return found


def rows_of(connection: duckdb.DuckDBPyConnection) -> Rows:
    rows = connection.sql("SELECT * FROM comparisons").to_arrow_table().to_pylist()
    return {(row["comparison"], row["variant"], row["rate"]): row for row in rows}


@pytest.fixture(scope="module")
def reproduced(figures, pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The whole archive through the real workflow."""
    checkout = Checkout(pristine, tmp_path_factory.mktemp("reproduced") / "checkout")
    campaigns.write_archive(checkout.archive, published.targets(figures), raw_rates=LARGEST_RATE)
    before = {file: file.stat().st_mtime_ns for file in checkout.archive.rglob("*")}
    checkout.run("--cores", "2", "tables", timeout=1800)
    assert {file: file.stat().st_mtime_ns for file in checkout.archive.rglob("*")} == before
    return checkout


@pytest.mark.slow
def test_every_figure_of_every_comparison_by_both_methods(
    figures, reproduced: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reproduced.path)
    with duckdb.connect("results/loadstone.duckdb", read_only=True) as connection:
        found = rows_of(connection)
        assert wrong(figures, found) == []
        kinds = Counter((figure.kind, figure.method) for figure in figures)
        assert kinds["latency", RAW] > 50 and kinds["latency", published.SUMMARIES] > 200
        assert {key[0] for key in found} >= {figure.comparison for figure in figures}
        assert connection.sql("SELECT DISTINCT exclusion_reason FROM runs").fetchall() == [(None,)]
        versions = connection.sql("SELECT DISTINCT metadata_version FROM runs ORDER BY 1").fetchall()
        assert [row[0] for row in versions] == ["1", "2", "3", "4"]


@pytest.mark.slow
def test_a_new_comparison_reads_no_raw_file_and_costs_itself_alone(reproduced: Checkout) -> None:
    file = reproduced.path / "config/comparisons.yaml"
    text = file.read_text()
    entry = text[text.index("- id: bookinfo_shiver_16\n") : text.index("- id: bookinfo_shiver_17\n")]
    file.write_text(f"{text}\n{entry.replace('bookinfo_shiver_16', 'again')}")
    assert reproduced.jobs("tables") == {"compare": 1, "database": 1, "tables": 1}
    output = reproduced.run("--cores", "1", "tables")
    assert "reading" not in output
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(reproduced.path)
        with duckdb.connect("results/loadstone.duckdb", read_only=True) as connection:
            query = "SELECT * EXCLUDE (comparison) FROM comparisons WHERE comparison = $name ORDER BY rate, variant"
            again, before = (
                connection.sql(query, params={"name": name}).to_arrow_table().to_pylist()
                for name in ("again", "bookinfo_shiver_16")
            )
    assert len(again) == len(before) == 90
    for row, same in zip(again, before, strict=True):
        # Intervals come from resampling with a seed of the comparison's own.
        figures = {name for name, value in same.items() if isinstance(value, float) and "_low_" not in name}
        figures -= {name for name in figures if "_high_" in name}
        assert {name: row[name] for name in figures} == pytest.approx({name: same[name] for name in figures}, rel=1e-9)
        assert [row[name] for name in ("variant", "timestamps", "n_runs")] == [
            same[name] for name in ("variant", "timestamps", "n_runs")
        ]
