"""Every latency figure of a run or a cell, wherever it is shown, is that of its measured requests.

Requests that timed out took at least the time limit, whatever the tool wrote; warm-ups and excluded runs are in no
figure of a cell. Runs of vegeta have warm-ups and a report beside their requests, with what vegeta wrote of timeouts;
those of hey and ab are read from files as these write them. The raw numbers of this module are all that is expected of
a place.
"""

import json
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from loadstone import archive, stats
from loadstone.analysis import history
from loadstone.analysis.comparison import compare, fit_all, select
from loadstone.analysis.scope import Settings
from loadstone.config.comparisons import Comparison, Fit
from loadstone.config.variants import Style
from loadstone.percentiles import SHOWN_PERCENTILES
from loadstone.report import chart_rows, query_page, rate_data, reported_section, run_findings
from loadstone.report.figures import rows_of
from loadstone.report.numbers import MILLISECONDS
from loadstone.report.queries import querying
from loadstone.tables import database
from support import foreign, rawfiles
from tables.tabling import Project

RATE, SECONDS, LIMIT_S = 200, 15, 30
N, LIMIT_NS = RATE * SECONDS, LIMIT_S * 10**9
EARLY, LATE = "2026-11-21T11:00:00+00:00", "2026-12-01T11:00:00+00:00"
EXCLUDED = 3
MS = MILLISECONDS
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
VARIANTS = ("plain", "slow", "hey", "ab")
VEGETA = VARIANTS[:2]
STEP_NS = {"hey": 100_000, "ab": 1_000_000}  # in which these write latencies
AB_PER_S = 50  # requests; runs of ab last a minute, since it writes whole seconds
BURST = slice(1000, 1200)  # requests of "slow", of which most time out
RNG = np.random.default_rng(11)
TIMED_OUT = {
    "code": 0,
    "error": 'Get "http://x/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
}


def _drawn(variant: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Latencies as the tool wrote them, and which requests of "slow" timed out, for which it wrote hardly any time."""
    latencies_ns = (RNG.lognormal(0, 0.4, count) * 1e6 * 3 ** VARIANTS.index(variant)).astype(np.int64)
    latencies_ns -= latencies_ns % STEP_NS.get(variant, 1)
    timed_out = RNG.random(count) < (0.02 if variant == "slow" else 0)
    timed_out[BURST] |= RNG.random(len(timed_out[BURST])) < (0.6 if variant == "slow" else 0)
    return np.where(timed_out, RNG.integers(0, 2, count) * 1000, latencies_ns), timed_out


RUNS = {(at, variant, run): _drawn(variant, N) for at in (EARLY, LATE) for variant in VARIANTS for run in (1, 2, 3)}
STYLES = [Style(variant, variant, "#0072B2") for variant in VARIANTS]
WARMUPS = {key: _drawn(key[1], RATE) for key in RUNS if key[1] in VEGETA}
# Seconds from the first request to each, as far as the tool writes it.
SENT_S = {variant: np.arange(N) / RATE for variant in VARIANTS} | {"ab": np.arange(N) // AB_PER_S}


def expected(latencies_ns: np.ndarray, timed_out: np.ndarray) -> np.ndarray:
    return np.where(timed_out, LIMIT_NS, latencies_ns).astype(np.int64)


def of_run(at: str, variant: str, run: int) -> np.ndarray:
    return expected(*RUNS[at, variant, run])


def of_cell(at: str, variant: str) -> np.ndarray:
    """The pooled requests of a cell's valid runs."""
    return np.concatenate([of_run(at, variant, run) for run in (1, 2, 3) if run != EXCLUDED])


def _lines(latencies_ns: np.ndarray, timed_out: np.ndarray, start_ns: int) -> bytes:
    return b"".join(
        rawfiles.line(
            seq,
            int(latency_ns),
            sent_ns=start_ns + round(seq * 1e9 / RATE),
            **(TIMED_OUT if timed_out[seq] else {}),
        )
        for seq, latency_ns in enumerate(latencies_ns)
    )


def _report(latencies_ns: np.ndarray, timed_out: np.ndarray) -> bytes:
    """``vegeta report -type json`` of what vegeta wrote: without the time limit of requests that timed out."""
    shares = {"50th": 0.5, "90th": 0.9, "95th": 0.95, "99th": 0.99, "min": 0, "max": 1}
    latencies = {name: int(np.quantile(latencies_ns, share)) for name, share in shares.items()}
    codes = {"200": int((~timed_out).sum()), "0": int(timed_out.sum())}
    return json.dumps(
        {
            "latencies": latencies | {"total": int(latencies_ns.sum()), "mean": int(latencies_ns.mean())},
            "requests": N,
            "success": codes["200"] / N,
            "status_codes": {code: count for code, count in codes.items() if count},
        }
    ).encode()


def _vegeta(key: tuple[str, str, int]) -> Iterator[tuple[str, bytes]]:
    yield "results.json.zst", rawfiles.compress(_lines(*RUNS[key], rawfiles.START_NS))
    yield "warmups.json.zst", rawfiles.compress(_lines(*WARMUPS[key], rawfiles.START_NS - 2 * 10**9))
    yield "summary.json", _report(*RUNS[key])


def _hey(key: tuple[str, str, int]) -> Iterator[tuple[str, bytes]]:
    """``hey -o csv``: seconds with four decimals."""
    rows = [
        f"{latency_ns / 1e9:.4f},0.0000,0.0000,0.0000,0.0000,0.0000,200,{0.0416 + sent_s:.4f}\n"
        for latency_ns, sent_s in zip(RUNS[key][0], SENT_S["hey"], strict=True)
    ]
    yield "hey.csv", (foreign.HEY.partition("\n")[0] + "\n" + "".join(rows)).encode()


def _ab(key: tuple[str, str, int]) -> Iterator[tuple[str, bytes]]:
    """``ab -g``: whole milliseconds and seconds, the fastest request first."""
    rows = [
        f"Sat Nov 21 12:00:00 2026\t{1_795_262_400 + sent_s}\t0\t{ms}\t{ms}\t{ms}\n"
        for ms, sent_s in sorted(zip((RUNS[key][0] // STEP_NS["ab"]).tolist(), SENT_S["ab"].tolist(), strict=True))
    ]
    yield "ab.tsv", (foreign.AB.partition("\n")[0] + "\n" + "".join(rows)).encode()


WRITE: dict[str, Callable[[tuple[str, str, int]], Iterator[tuple[str, bytes]]]] = {"hey": _hey, "ab": _ab}
OPTIONS = {"rate": str(RATE), "duration": f"{SECONDS}s", "timeout": f"{LIMIT_S}s"}


def _described(variant: str) -> dict:
    """What the metadata of a cell says; those of hey and ab are imported results of closed load."""
    if variant in VEGETA:
        return {"testOptions": OPTIONS, "warmupOptions": {"rate": str(RATE), "duration": "1s"}}
    return {
        "testMode": variant,
        "generator": {"name": variant},
        "loadModel": "closed",
        "order": None,
        "testOptions": {},
        "warmupOptions": {},
        "users": RATE,
    }


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """Two campaigns and comparisons of both; the third run of each cell is tagged as excluded."""
    project = Project(tmp_path_factory.mktemp("agreement"))
    for at in (EARLY, LATE):
        for variant in VARIANTS:
            files = {
                f"{run}.{name}": content
                for run in (1, 2, 3)
                for name, content in WRITE.get(variant, _vegeta)((at, variant, run))
            }
            labels = {"size": str(VARIANTS.index(variant))}
            described = _described(variant)
            rawfiles.write_cell(
                project.archive, files, at=at, rate=str(RATE), variant=variant, labels=labels, **described
            )
    project.convert()
    project.analyse([{"run": EXCLUDED, "tag": "odd", "reason": "a test"}], ["odd"], settings=Settings(order=VARIANTS))
    for comparison in (BOTH, LINES):
        compare(comparison, list(archive.campaigns(project.archive)), project.tables, Settings(order=VARIANTS))
    return project


def _comparison(name: str, **more) -> Comparison:
    return Comparison(id=name, title=name, app="demo", hosts=("here",), timestamps=(EARLY, LATE), **more)


BOTH = _comparison("both", allow=frozenset({"generators", "load_models", "evidence"}))
LINES = _comparison("lines", variants=VEGETA, fits=tuple(Fit("size", of) for of in ("mean", "p75", "p99", "max")))


@pytest.fixture(scope="module")
def places(project) -> list[tuple[str, str, int]]:
    """The campaign, variant and number of every run with requests, as table `runs` has it."""
    rows = project.rows("SELECT timestamp, variant, run, excluded FROM runs")
    assert {row["run"] for row in rows if row["excluded"]} == {EXCLUDED}
    assert len(rows) == len(RUNS)
    return [(row["timestamp"], row["variant"], row["run"]) for row in rows]


@pytest.fixture(scope="module")
def inspector(project) -> dict[tuple[str, str, int], dict]:
    """What the run inspector shows, with single requests and with bins."""
    return _inspected(project)


def _inspected(project: Project) -> dict[tuple[str, str, int], dict]:
    found = {}
    for campaign in archive.campaigns(project.archive):
        with querying(project.tables, [campaign]) as queries:
            page = rate_data.gather(queries, [RATE], MS, run_findings.gather(queries), STYLES)[RATE]
        found |= {(campaign.timestamp, run["variant"], run["run"]): run for run in page["runs"]}
        found[campaign.timestamp, "", 0] = page["charts"]["time"]
    return found


def shown(latencies_ns: np.ndarray, share: float) -> float:
    return pytest.approx(np.quantile(latencies_ns, share) / 1e6, rel=1e-5)


def test_figures_of_the_run_inspector(inspector, places) -> None:
    for place in places:
        run, own = inspector[place], of_run(*place)
        figures = run["figures"]
        for name, share in SHARES.items():
            assert (name in figures) is stats.estimable(N, share)
            if name in figures:
                assert figures[name] == shown(own, share), (place, name)
        means = {"mean": own.mean(), "min": own.min(), "max": own.max()}
        assert {name: figures[name] for name in means} == pytest.approx(
            {name: value / 1e6 for name, value in means.items()}, rel=1e-5
        )
        assert bool(run["exclusion_reason"]) is (place[2] == EXCLUDED)
        known = {name: share for name, share in SHARES.items() if stats.estimable(N, share)}
        among = {name for name, share in known.items() if np.quantile(own, share, method="higher") >= LIMIT_NS}
        assert set(run["at_least"]) == (among | {"mean", "max"} if RUNS[place][1].any() else set())


def test_distributions_of_the_run_inspector(inspector, places, project, monkeypatch) -> None:
    monkeypatch.setattr(rate_data, "POINTS", N)
    pointed = _inspected(project)
    for place in places:
        run, own = inspector[place], of_run(*place)
        assert run["cdf"] == [shown(own, share) for share in rate_data.SHARES], place
        assert sum(run["histogram"]["linear"]) + run["histogram"]["beyond"] == sum(run["histogram"]["log"]) == N
        if place[1] == "ab":  # which requests of a second came first is unknown
            assert sorted(pointed[place]["points"]["latency_ns"]) == np.sort(own).tolist()
            continue
        for first, last, failed, low, median, _, high in run["bins"]:
            part, timed_out = own[first : last + 1], RUNS[place][1][first : last + 1]
            assert [low, median, high] == [shown(part, share) for share in (0, 0.5, 1)], place
            assert failed == timed_out.sum()
        assert pointed[place]["points"]["latency_ns"] == own.tolist()
        low, p99, high = run["histogram"]["edges"]
        assert [low, high] == [shown(own, 0), shown(own, 1)]
        assert p99 >= np.quantile(own, 0.99) / 1e6 * 0.99


def test_latency_over_time_on_the_page(inspector) -> None:
    """Warm-ups are drawn too, before 0 s, and a figure among requests that timed out is a lower bound."""
    bounds = set()
    for at in (EARLY, LATE):
        time = inspector[at, "", 0]
        p50, p90 = (rows_of(time, chart_rows.variants(STYLES), name) for name in ("p50", "p90"))
        assert {(row["variant"], row["phase"]) for row in p50} == {
            *((variant, "test") for variant in VARIANTS),
            *((variant, "warmup") for variant in VEGETA),
        }
        for row, other in zip(p50, p90, strict=True):
            variant, phase, start_s, end_s, requests = (
                row[name] for name in ("variant", "phase", "start", "end", "requests")
            )
            pooled = []
            for run in (1, 2):
                values = RUNS if phase == "test" else WARMUPS
                sent_s = SENT_S[variant] if phase == "test" else np.arange(RATE) / RATE - 2
                inside = (sent_s >= start_s - 1e-9) & (sent_s < end_s - 1e-9)
                pooled.append(expected(*values[at, variant, run])[inside])
            own = np.concatenate(pooled)
            assert requests == own.size
            assert (row["value"], other["value"]) == (shown(own, 0.5), shown(own, 0.9)), (at, variant, phase, start_s)
            for name, share, drawn in (("p50", 0.5, row), ("p90", 0.9, other)):
                is_bound = np.quantile(own, share, method="higher") >= LIMIT_NS
                assert drawn["at_least"] == is_bound, (at, variant, phase, start_s, name)
                bounds |= {(variant, name)} if is_bound else set()
    assert bounds == {("slow", "p90")}


def test_figures_of_runs_in_tables(project, places) -> None:
    figures = {(row["timestamp"], row["variant"], row["run"]): row for row in project.rows("FROM run_figures")}
    sending = {(row["timestamp"], row["variant"], row["run"]): row for row in project.rows("FROM sending")}
    shapes = {(row["timestamp"], row["variant"], row["run"]): row for row in project.rows("FROM run_shapes")}
    for place in places:
        own, half = of_run(*place), N // 2
        assert figures[place]["mean_ns"] == pytest.approx(own.mean())
        assert (figures[place]["min_ns"], figures[place]["max_ns"]) == (own.min(), own.max())
        for name, share in (SHARES | {"p75": 0.75}).items():
            known = stats.estimable(N, share)
            assert figures[place][f"{name}_ns"] == (pytest.approx(np.quantile(own, share)) if known else None), place
            is_bound = known and np.quantile(own, share, method="higher") >= LIMIT_NS
            assert figures[place][f"{name}_censored"] == is_bound, (place, name)
        if sending[place]["refused"] is None:
            assert sending[place]["observed_mean_ns"] == pytest.approx(own.mean())
            for name in ("p50", "p90", "p99", "p999"):
                value = np.quantile(own, SHARES[name])
                assert sending[place][f"observed_{name}_ns"] == pytest.approx(value), (place, name)
                assert sending[place][f"corrected_{name}_ns"] == pytest.approx(value, abs=1e4), "sent on time"
        assert (sending[place]["refused"] is None) is (place[1] in VEGETA)
        assert shapes[place]["half_ratio"] == pytest.approx(own[:half].mean() / own[half:].mean()), place


def test_figures_of_cells_in_tables(project) -> None:
    for row in project.rows("FROM cells"):
        own = of_cell(row["timestamp"], row["variant"])
        means = [of_run(row["timestamp"], row["variant"], run).mean() for run in (1, 2)]
        assert (row["n_runs"], row["n_excluded"], row["n_requests"]) == (2, 1, 2 * N)
        assert (row["mean_ns"], row["std_ns"]) == (pytest.approx(own.mean()), pytest.approx(own.std()))
        assert (row["run_mean_ns"], row["run_std_ns"]) == (pytest.approx(np.mean(means)), pytest.approx(np.std(means)))
        assert {name: row[f"{name}_ns"] for name in SHARES} == pytest.approx(
            {name: np.quantile(own, share) for name, share in SHARES.items()}
        )
    for row in project.rows("FROM cells_all"):
        own = np.concatenate([of_run(row["timestamp"], row["variant"], run) for run in (1, 2, 3)])
        assert (row["n_runs"], row["n_requests"]) == (3, 3 * N)
        assert (row["mean_ns"], row["p99_ns"]) == (pytest.approx(own.mean()), pytest.approx(np.quantile(own, 0.99)))


def test_figures_of_cells_joined_by_a_comparison(project) -> None:
    """Means of reports are those of the reports, or of requests where there is no report (hey and ab)."""
    rows = project.rows("FROM comparisons WHERE comparison = 'both'")
    assert {row["variant"] for row in rows} == set(VARIANTS)
    for row in rows:
        runs = [of_run(at, row["variant"], run) for at in (EARLY, LATE) for run in (1, 2)]
        own, means = np.concatenate(runs), [run.mean() for run in runs]
        written = [RUNS[at, row["variant"], run][0].mean() for at in (EARLY, LATE) for run in (1, 2)]
        assert (row["n_runs"], row["n_requests"], row["n_excluded"]) == (4, 4 * N, 2)
        assert {name: row[f"{name}_ns"] for name in SHARES} == pytest.approx(
            {name: np.quantile(own, share) for name, share in SHARES.items()}
        )
        for by, value, spread in (
            ("all_raw_data_", own.mean(), own.std()),
            ("run_", np.mean(means), np.std(means)),
            ("vegeta_summaries_", np.mean(written), np.std(written)),
        ):
            assert row[f"{by}mean_ns"] == pytest.approx(value), by
            assert row[f"{by}std_ns"] == pytest.approx(spread, rel=1e-4), "reports have whole nanoseconds"


def test_lines_are_fitted_to_figures_of_requests_where_there_are_any(project) -> None:
    """The reports of the same runs have other figures, since vegeta wrote no time for requests that timed out."""
    campaigns = list(archive.campaigns(project.archive))
    with database.connect(project.tables, campaigns) as connection:
        fitted = fit_all(LINES, select(LINES, connection).used, connection, 0.95)
    keys = [(at, variant, run) for at in (EARLY, LATE) for variant in VEGETA for run in (1, 2)]
    for each in fitted:
        figure = np.mean if each.fit.of == "mean" else lambda own, of=each.fit.of: np.quantile(own, FITTED[of])
        expected_points = sorted((VARIANTS.index(key[1]), figure(of_run(*key)) / 1e6) for key in keys)
        assert sorted((point.x, point.y) for point in each.points) == [
            pytest.approx(point) for point in expected_points
        ]
        assert {point.evidence for point in each.points} == {"requests"}
        (row,) = (row for row in project.rows("FROM fits") if row["of"] == each.fit.of)
        assert row["slope"] == pytest.approx(np.polyfit(*zip(*expected_points, strict=True), 1)[0])


FITTED = {"p75": 0.75, "p99": 0.99, "max": 1}


def _pooled(row: dict) -> np.ndarray:
    return np.concatenate([of_cell(at, row["variant"]) for at in row["timestamps"]])


def test_figures_that_charts_draw(project) -> None:
    curves = project.rows("FROM percentile_curves")
    assert len(curves) == 2 * len(VARIANTS) + len(VARIANTS) + len(VEGETA)
    for row in curves:
        own = _pooled(row)
        assert row["latencies_ns"] == pytest.approx(np.quantile(own, row["shares"]))
    for row in project.rows("FROM time_bins"):
        sent_s = SENT_S[row["variant"]]
        inside = (sent_s >= row["from_s"]) & (sent_s < row["to_s"])
        own = np.concatenate([of_run(at, row["variant"], run)[inside] for at in row["timestamps"] for run in (1, 2)])
        assert (row["n_requests"], row["mean_ns"]) == (own.size, pytest.approx(own.mean()))
        for name in SHOWN_PERCENTILES:
            if row[f"{name}_ns"] is not None:
                assert row[f"{name}_ns"] == pytest.approx(np.quantile(own, SHARES[name]))
                assert row[f"{name}_censored"] == (np.quantile(own, SHARES[name], method="higher") >= LIMIT_NS)


def test_figures_that_verdicts_rest_on(project) -> None:
    rows = project.rows("FROM effects")
    assert rows
    with database.connect(project.tables) as connection:
        cells = history.measured(connection, project.tables, list(archive.campaigns(project.archive)))
    for cell in cells:
        own = of_cell(cell["timestamp"], cell["variant"])
        assert (cell["mean_ns"], cell["p99_ns"]) == (pytest.approx(own.mean()), pytest.approx(np.quantile(own, 0.99)))
    for row in rows:
        if row["statistic"] not in SHARES or row["value"] is None:
            continue
        share = SHARES[row["statistic"]]
        variant, baseline = (_pooled(row | {"variant": row[name]}) for name in ("variant", "baseline"))
        assert row["value"] == pytest.approx(np.quantile(variant, share))
        assert row["baseline_value"] == pytest.approx(np.quantile(baseline, share))


def test_figures_from_requests_beside_those_that_a_tool_reported(project, inspector) -> None:
    """And equal to those of the run inspector on the same page."""
    found = set()
    for campaign in archive.campaigns(project.archive):
        with querying(project.tables, [campaign]) as queries:
            reported = reported_section.gather(queries)
        for row in (row for rows in reported.raw.values() for row in rows):
            place = campaign.timestamp, row["variant_dir"], row["run"]
            own = of_run(*place)
            assert (row["mean_ns"], row["min_ns"], row["max_ns"]) == (pytest.approx(own.mean()), own.min(), own.max())
            for name, share in (SHARES | {"p75": 0.75}).items():
                value = pytest.approx(np.quantile(own, share)) if stats.estimable(N, share) else None
                assert row[f"{name}_ns"] == value, (place, name)
            figures = inspector[place]["figures"]
            assert {name: MS.of(row[f"{name}_ns"]) for name in figures} == figures
            found.add(place)
    assert found == {key for key in RUNS if key[1] not in VEGETA}


def test_an_example_of_the_query_page(project) -> None:
    found = project.rows(query_page.EXAMPLES[0])
    assert len(found) == len(VARIANTS)
    for row in found:
        assert row["p99_ms"] == pytest.approx(np.quantile(of_cell(LATE, row["variant"]), 0.99) / 1e6, abs=1e-3)
