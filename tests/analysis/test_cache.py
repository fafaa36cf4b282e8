"""What an analysis computed once: the same figures again without computing, and anew when anything changed."""

import json

import pytest
from loadstone.analysis import replicates
from support import rawfiles
from support.rawfiles import write_cell


@pytest.fixture
def computed(monkeypatch) -> list[tuple[float, str]]:
    """Rate and variant of every cell that was computed since the list was emptied."""
    found: list[tuple[float, str]] = []
    compute = replicates.replicate

    def spy(runs, *rest):
        found.append((runs[0]["rate"], runs[0]["variant"]))
        return compute(runs, *rest)

    monkeypatch.setattr(replicates, "replicate", spy)
    return found


@pytest.fixture
def made(project, computed):
    """Two cells of three runs, the second with errors, analysed."""
    for rate in (100, 200):
        runs = {}
        for run in (1, 2, 3):
            lines = rawfiles.lines([run * 1000 + n for n in range(rate)], rate)
            failed = rawfiles.line(0, 5, code=503, error="503 Service Unavailable")
            runs[f"{run}.results.json"] = lines if rate == 100 else failed + b"\n".join(lines.split(b"\n")[1:])
        write_cell(project.archive, runs, rate=str(rate), testOptions={"rate": str(rate), "duration": "1s"})
    project.make()
    assert computed == [(100.0, "plain"), (200.0, "plain")]
    computed.clear()
    return project


def tables(project) -> str:
    return json.dumps({name: project.rows(f"FROM {name} ORDER BY ALL") for name in ("runs", "cells")}, default=str)


def test_nothing_changed_is_nothing_computed_and_the_same_figures(made, computed) -> None:
    before = tables(made)
    assert '"http_503"' in before
    made.make()
    assert computed == []
    assert tables(made) == before


def test_one_run_more_computes_its_own_cell(made, computed) -> None:
    cell = write_cell(made.archive, {"4.results.json": rawfiles.lines([7] * 100)}, runs=4)
    made.make()
    assert computed == [(100.0, "plain")]
    assert made.row("SELECT n_runs FROM cells WHERE rate = 100")["n_runs"] == 4
    (cell.path / "4.results.json").unlink()
    made.make()
    assert made.row("SELECT n_runs FROM cells WHERE rate = 100")["n_runs"] == 3


def test_a_tag_computes_the_cells_of_its_runs(made, computed) -> None:
    tag = {"tag": "FAILED", "reason": "no", "rate": "100", "variant": "plain", "run": "2"}
    made.analyse([tag], ["FAILED"])
    assert set(computed) == {(100.0, "plain")}
    assert made.row("SELECT n_runs FROM cells WHERE rate = 100")["n_runs"] == 2


def test_what_was_kept_equals_what_is_computed_anew(made, computed) -> None:
    made.make()
    kept = tables(made)
    (file,) = (made.tables / ".answers").rglob("*.json")
    file.write_text("not JSON")
    made.make()
    assert len(computed) == 2
    assert tables(made) == kept
