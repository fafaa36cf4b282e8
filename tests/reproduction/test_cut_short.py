"""The sweep of the bookinfo archive that was stopped inside run 8, as far as it is known.

Known are its variants, its rates, that ten runs were planned, and how many runs the error fractions of its graph fit:
eight at the higher rates, seven at the lower ones. Its figures are not known, so every cell here has the same.
"""

import csv
import re
from pathlib import Path

import pytest
from reproduction.campaigns import write_archive
from reproduction.published import SUMMARIES, Figure, Target
from tables.tabling import Project

TIMESTAMP = "2025-03-31T20:08:07-04:00"


@pytest.fixture
def told(shared: Path) -> dict[str, str]:
    """Its row of the catalogue."""
    with (shared / "prose/catalogue.csv").open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if (row["timestamp"], row["mention"]) == (TIMESTAMP, "entry")]
    return row


def test_the_sweep_stopped_inside_run_8_names_unbalanced_runs(
    tmp_path: Path, shared: Path, told: dict[str, str]
) -> None:
    notes = (shared / "prose/catalogue-irregularities.md").read_text()
    fits = r"fit (\d+) runs at (\d+)-(\d+) req/s and (\d+) runs at (\d+)-(\d+) req/s: it stopped inside run \*\*8\*\*"
    many, lowest, highest, fewer, *_ = map(int, re.search(fits, notes).groups())
    rates, variants = told["rates"].split(";"), told["variants"].split(";")
    assert (len(rates), len(variants), many, fewer, told["runs"], highest) == (27, 5, 8, 7, "10", max(map(int, rates)))
    project = Project(tmp_path)
    figures = {("latency", SUMMARIES): Figure(0.02, 0.001)}
    cells = {
        (TIMESTAMP, variant, rate): Target(many if int(rate) >= lowest else fewer, figures)
        for variant in variants
        for rate in rates
    }
    write_archive(project.archive, cells, raw_rates=0)
    project.convert()
    project.analyse()
    (found,) = project.rows("SELECT * FROM claims WHERE claim = 'unbalanced' AND comparison IS NULL")
    high = sum(int(rate) >= lowest for rate in rates)
    assert (found["weight"], found["n"], found["n_of"]) == ("limits", 5 * (27 - high), 5 * 27)
    assert found["text"] == (
        "The number of valid runs differs, from 7 to 8: 8 runs of every variant at 8 of 27 loads, from 650 to "
        "1,000 requests/s; 7 runs of every variant at 19 of 27 loads, from 10 to 600 requests/s."
    )
    assert "the same command resumes an open sweep" in found["remedy"]
