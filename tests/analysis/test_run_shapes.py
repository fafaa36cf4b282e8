"""Table run_shapes: one row per run with single requests, and what follows from it."""

import json

import numpy as np
import pytest
from loadstone.stats import run_shape
from stats.simulated import autocorrelated
from support.rawfiles import START_NS, compress, line, lines, write_cell

RNG = np.random.default_rng(11)
N = 600
U = np.arange(N) / N


def latencies(level: np.ndarray) -> list[int]:
    return [round(5e6 * value) for value in np.exp(level + 0.15 * RNG.normal(size=N))]


def written(project, runs: dict[int, np.ndarray], **fields) -> None:
    files = {f"{run}.results.json.zst": compress(lines(latencies(level))) for run, level in runs.items()}
    write_cell(project.archive, files, testOptions={"rate": "100", "duration": "6s"}, **fields)


FLAT, STEP = np.zeros(N), np.log(3) * (U > 0.6)
COLD, RISING = np.log(10) * np.exp(-U / 0.08), np.log(2.5) * U


def test_every_run_has_its_shape(project) -> None:
    written(project, {1: FLAT, 2: COLD, 3: RISING, 4: STEP})
    project.make()
    rows = project.rows("SELECT * FROM run_shapes ORDER BY run")
    assert [row["shape"] for row in rows] == ["flat", "still warming up", "drifting up", "changing level"]
    assert {row["requests"] for row in rows} == {N}
    flat, cold, rising, step = rows
    assert (flat["app"], flat["variant"], flat["variant_dir"], flat["rate"]) == ("demo", "plain", "plain", 100)
    assert flat["shapes"] == ["flat"] and 0.9 < flat["half_ratio"] < 1.1 and flat["change_seqs"] == []
    assert cold["half_ratio"] > 1.5 and cold["warmup_share"] > 0.2
    assert cold["warmup_s"] == pytest.approx(cold["warmup_requests"] / 100)
    assert rising["trend_share"] == pytest.approx(1.5, abs=0.4) and rising["trend_p"] < 0.001
    assert step["change_seqs"] == [pytest.approx(360, abs=N / 64)]
    assert step["levels_ns"] == [pytest.approx(5e6, rel=0.05), pytest.approx(15e6, rel=0.05)]


def test_a_period_in_seconds(project) -> None:
    written(project, {1: 0.5 * np.sin(2 * np.pi * 12 * U)})
    project.make()
    row = project.row("SELECT shape, period_requests, period_s FROM run_shapes")
    assert row == {
        "shape": "periodic",
        "period_requests": pytest.approx(50, rel=0.02),
        "period_s": pytest.approx(0.5, rel=0.02),
    }


def test_requests_are_taken_in_the_order_of_sending(project) -> None:
    """Numbers are the tool's; k6 gives them out as requests end."""
    values = latencies(COLD)
    content = b"".join(line(N - 1 - seq, ns, sent_ns=START_NS + seq * 10**7) for seq, ns in enumerate(values))
    write_cell(
        project.archive, {"1.results.json.zst": compress(content)}, testOptions={"rate": "100", "duration": "6s"}
    )
    project.make()
    assert project.row("SELECT shape FROM run_shapes") == {"shape": "still warming up"}


def test_runs_that_are_left_out_are_judged_and_those_without_requests_are_not(project) -> None:
    written(project, {1: FLAT, 2: COLD, 3: FLAT})
    report = {"latencies": {"mean": 1_000_000}, "requests": 600, "success": 1.0, "status_codes": {"200": 600}}
    write_cell(project.archive, {"1.summary.json": json.dumps(report).encode()}, variant="reported")
    write_cell(project.archive, {"1.results.json.zst": compress(lines([10**6] * 20))}, variant="short")
    project.convert()
    project.analyse([{"tag": "FAILED", "variant": "plain", "run": "2"}], ["FAILED"])
    found = project.rows("SELECT variant, run, shape FROM run_shapes ORDER BY variant, run")
    assert [tuple(row.values()) for row in found] == [
        ("plain", 1, "flat"),
        ("plain", 2, "still warming up"),
        ("plain", 3, "flat"),
        ("short", 1, "too few"),
    ]


def test_what_never_settled_is_suggested_with_its_evidence(project) -> None:
    written(project, {1: FLAT, 2: COLD, 3: FLAT, 4: STEP, 5: FLAT, 6: RISING, 7: FLAT})
    project.make()
    found = project.rows("SELECT run, tag, evidence FROM suggestions WHERE kind = 'unsettled run' ORDER BY run")
    assert [(row["run"], row["tag"]) for row in found] == [(2, "unsettled"), (4, "unsettled"), (6, "unsettled")]
    for row, words in zip(found, ("slow start increases", "level changes at request 3", "% over the run"), strict=True):
        assert words in row["evidence"] and " half took " in row["evidence"]


def test_no_run_that_is_suggested_as_unsettled_is_flat(project) -> None:
    """A burst of queued requests in one half, which no change of level or drift explains."""
    burst = np.log(200) * np.exp(-(((U - 0.25) / 0.1) ** 2)) + 0.8 * autocorrelated(RNG, N, 0.97)
    written(project, {1: FLAT, 2: burst, 3: FLAT, 4: burst[::-1], 5: FLAT})
    project.make()
    rows = project.rows("SELECT run, shape FROM run_shapes ORDER BY run")
    assert [row["shape"] for row in rows] == ["flat", "uneven", "flat", "uneven", "flat"]
    found = project.rows("SELECT run, evidence FROM suggestions WHERE tag = 'unsettled' ORDER BY run")
    assert [row["run"] for row in found] == [2, 4]
    assert found[0]["evidence"].startswith("is uneven: its first half took ")
    assert found[1]["evidence"].startswith("is uneven: its second half took ")


def test_a_run_more_costs_its_own_cell(project, monkeypatch) -> None:
    written(project, {1: FLAT, 2: FLAT})
    written(project, {1: FLAT}, variant="other")
    project.make()
    before = project.rows("SELECT * FROM run_shapes WHERE variant = 'other'")
    judged: list[int] = []
    classify = run_shape.classify

    def spy(latencies_ns, *rest):
        judged.append(latencies_ns.size)
        return classify(latencies_ns, *rest)

    monkeypatch.setattr(run_shape, "classify", spy)
    project.make()
    assert judged == []
    assert project.rows("SELECT * FROM run_shapes WHERE variant = 'other'") == before, "kept as it was computed"
    cell = write_cell(project.archive, {}, testOptions={"rate": "100", "duration": "6s"})
    (cell.path / "3.results.json.zst").write_bytes(compress(lines(latencies(FLAT))))
    project.make()
    assert len(judged) == 3
