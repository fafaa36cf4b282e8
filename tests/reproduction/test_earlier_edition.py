"""An archive and tables of the version before tables had version 11 give the same figures, to the last digit.

`before/first-edition.tar.zst` was collected and analysed by commit dcaacd6: two campaigns of the demo (three variants,
three rates, three runs), one run tagged FAILED, one comparison of both. `expected/` holds the tables of then.
"""

import math
import tarfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
import zstandard
from support.checkout import Checkout

PACKED = Path(__file__).parent / "before/first-edition.tar.zst"
KEYS = {
    "cells": ("timestamp", "variant", "rate", "stream"),
    "effects": ("comparison", "timestamps", "rate", "baseline", "variant", "statistic"),
    "comparisons": ("comparison", "variant", "rate"),
    "knees": ("comparison", "timestamps", "variant"),
    "layers": ("comparison", "timestamps", "rate", "below", "variant", "statistic"),
    "history": ("variant", "rate", "statistic", "timestamp"),
    "runs": ("timestamp", "variant", "rate", "run"),
    "summaries": ("timestamp", "variant", "rate", "run", "stream"),
}
# Sentences may be worded anew; what they rest on is in other columns.
TEXTS = {"why", "note", "warning", "problem", "problems", "exclusion_reason"}
RENAMED_VALUES = {
    "cannot tell": "inconclusive",
    "open load by paced, 1 replica": "open load by vegeta (paced), 1 replica",
}
# Two runs of a variant decide nothing any more, so the other figures of their page are corrected for fewer tests.
DECIDED = {"n_compared", "p_adjusted", "p_equivalent_adjusted", "verdict", "runs_needed"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("before")
    with zstandard.open(PACKED, "rb") as file, tarfile.open(fileobj=file, mode="r|") as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)  # absent before Python 3.11.4
        tar.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def upgraded(pristine: Path, unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The tables of then beside the archive of then, brought up to date by today's `snakemake tables`."""
    checkout = Checkout(pristine, tmp_path_factory.mktemp("upgraded") / "checkout")
    for name in ("archive", "tables"):
        (checkout.path / "results" / name).parent.mkdir(exist_ok=True)
        (unpacked / name).rename(checkout.path / "results" / name)
    for file in (unpacked / "config").iterdir():
        (checkout.path / "config" / file.name).write_bytes(file.read_bytes())
    checkout.configure(tags={"exclude": ["FAILED"]})
    checkout.run("--cores", "all", "tables")
    return checkout


def rows(connection: duckdb.DuckDBPyConnection, source: str, columns: list[str]) -> list[dict[str, Any]]:
    quoted = ", ".join(f'"{name}"' for name in columns)
    selected = connection.sql(f"SELECT {quoted} FROM {source}")
    return [dict(zip(columns, row, strict=True)) for row in selected.fetchall()]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other or RENAMED_VALUES.get(one if isinstance(one, str) else "") == other


@pytest.mark.parametrize("table", KEYS)
def test_figures_are_those_of_the_version_before(upgraded: Checkout, unpacked: Path, table: str) -> None:
    expected = unpacked / "expected" / f"{table}.parquet"
    with duckdb.connect() as memory:
        columns = [row[0] for row in memory.sql(f"DESCRIBE SELECT * FROM '{expected}'").fetchall()]
        before = rows(memory, f"'{expected}'", columns)
    with duckdb.connect(str(upgraded.path / "results/loadstone.duckdb"), read_only=True) as database:
        database.sql(f"SET file_search_path = '{upgraded.path}'")
        after = rows(database, table, columns)

    def key(row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in KEYS[table])

    def page(row: dict[str, Any]) -> str:
        return str((row.get("comparison"), row.get("timestamps")))

    few = {page(row) for row in before if min(row.get("n_runs") or 3, row.get("baseline_n_runs") or 3) < 3}
    found = {key(row): row for row in after}
    assert len(found) == len(after) == len(before)
    differing = [
        (key(row), name, row[name], found[key(row)][name])
        for row in before
        for name in columns
        if name not in TEXTS and not same(row[name], found[key(row)][name])
        if not (table == "effects" and name in DECIDED and page(row) in few)
    ]
    assert differing == []
    if table == "effects":
        undecided = [row for row in after if min(row["n_runs"], row["baseline_n_runs"]) < 3]
        assert undecided and all(row["verdict"] in ("inconclusive", None) for row in undecided)


def test_nothing_was_attacked_and_nothing_of_the_archive_changed(upgraded: Checkout, unpacked: Path) -> None:
    assert len(upgraded.results()) == 54
    assert "0 changed, 0 vanished" in upgraded.run("--cores", "1", "verify")
