"""Runs of other load generators: what counts, what stands beside it, and what is never pooled."""

import json

import pytest
from loadstone.readers import load_generators
from support import foreign, rawfiles
from support.rawfiles import lines, write_cell

RUN = rawfiles.compress(lines([2_000_000] * 100))


def of(generator: str, load_model: str, **more) -> dict:
    """Metadata of a cell of another tool; one second of its rate unless users wait."""
    found = {"testMode": generator, "generator": {"name": generator}, "loadModel": load_model, "order": None}
    if load_model == "closed":
        found["testOptions"] = {}
    return found | more


def problems(project) -> list[str]:
    query = "SELECT run, source, problem FROM problems ORDER BY run NULLS FIRST, source, problem"
    return [f"{row['source'].rpartition('/')[2]} {row['problem']}" for row in project.rows(query)]


# --- one tool each ---------------------------------------------------------------------------------------------------


def test_hey_knows_only_the_time_since_its_start(project):
    write_cell(project.archive, {"1.hey.csv": foreign.HEY.encode()}, rate="3", **of("hey", "closed", users=3))
    project.make()
    run = project.row("SELECT * FROM runs")
    assert (run["load_model"], run["generator"], run["evidence"]) == ("closed", "hey", "raw")
    assert (run["users"], run["resolution_ns"], run["requests"]) == (3, 1e5, 3)
    assert (run["expected_requests"], run["complete"], run["excluded"]) == (None, None, False)
    assert (run["started_at"], run["send_lag_p99_ns"]) == (None, None)
    rows = project.rows("SELECT sent_at, offset_ns, code FROM requests ORDER BY seq")
    assert [row["offset_ns"] for row in rows] == [41_600_000, 41_100_000, 116_200_000]
    assert {row["sent_at"] for row in rows} == {None}
    cell = project.row("SELECT * FROM cells")
    assert (cell["n_requests"], cell["p50_ns"]) == (3, 13_300_000)
    assert cell["error_fraction"] == pytest.approx(1 / 3)
    assert problems(project) == []


def test_k6_raw_with_its_own_summary_beside_it(project):
    files = {"1.k6.json.zst": rawfiles.compress(foreign.k6_json([1.0, 2.0, 3.0])), "1.k6.summary.json": b""}
    files["1.k6.summary.json"] = foreign.k6_summary(3)
    files["2.k6.json"], files["2.k6.summary.json"] = foreign.k6_json([1.0, 2.5]), foreign.k6_summary(3)
    write_cell(project.archive, files, rate="2", **of("k6", "closed", users=2))
    project.make()
    runs = project.rows("SELECT run, evidence, generator, load_model, requests, source FROM runs ORDER BY run")
    assert [(run["evidence"], run["requests"], run["source"].rpartition("/")[2]) for run in runs] == [
        ("raw", 3, "1.k6.json.zst"),
        ("raw", 2, "2.k6.json"),
    ]
    summaries = project.rows("SELECT run, stream, requests, mean_ns, preferred, source FROM summaries ORDER BY run")
    assert [(row["run"], row["stream"], row["requests"], row["mean_ns"], row["preferred"]) for row in summaries] == [
        (1, "main", 3, 2_000_000, True),
        (2, "main", 3, 2_000_000, True),
    ]
    assert problems(project) == ["2.k6.summary.json counts 3 requests, the results contain 2"]
    assert {row["phase"] for row in project.rows("SELECT DISTINCT phase FROM requests")} == {"test"}


def test_artillery_counts_only_its_last_phase_unless_told_otherwise(project):
    report = foreign.artillery([[9.0] * 3, [8.0] * 4, [2.0] * 5, [3.0] * 5])
    for variant, more in (("last", {}), ("first", {"measuredPhase": "Warm up"}), ("none", {"measuredPhase": "Ramp"})):
        described = of("artillery", "open", testOptions={}, **more)
        write_cell(project.archive, {"1.artillery.json": report}, variant=variant, **described)
    project.make()
    phases = {
        row["variant"]: row["phases"]
        for row in project.rows("SELECT variant, histogram(phase) AS phases FROM requests GROUP BY variant")
    }
    assert sum(dict(phases["last"]).values()) == sum(dict(phases["first"]).values()) == 17
    assert set(dict(phases["last"])) >= {"Warm up", "test"} and set(dict(phases["first"])) >= {"test", "Sustained"}
    means = {row["variant"]: row["mean_ns"] for row in project.rows("SELECT variant, mean_ns FROM cells")}
    assert 2_000_000 <= means["last"] <= 3_000_000 and 8_000_000 <= means["first"] <= 9_000_000
    runs = {row["variant"]: row for row in project.rows("SELECT * FROM runs")}
    assert runs["last"]["resolution_ns"] == 1e6 and runs["last"]["generator"] == "artillery"
    assert runs["none"]["exclusion_reason"] == "1.artillery.json holds no request of the phase 'Ramp'"
    assert project.row("SELECT count(*) n FROM figures WHERE variant = 'last' AND section = ''")["n"] > 0
    assert project.row("SELECT requests FROM summaries WHERE variant = 'last'") == {"requests": 17}


def test_a_text_report_is_a_run_of_its_own(project):
    write_cell(project.archive, {"1.vegeta.txt": foreign.VEGETA.encode()}, **of("vegeta", "open"))
    project.make()
    run = project.row("SELECT * FROM runs")
    assert (run["evidence"], run["requests"], run["complete"], run["excluded"]) == ("summary", 100, True, False)
    assert run["source"].endswith("/1.vegeta.txt")
    row = project.row("SELECT * FROM summaries")
    assert (row["min_ns"], row["mean_ns"], row["p90_ns"], row["max_ns"]) == (
        2_089_000,
        5_529_000,
        7_572_000,
        79_870_000,
    )
    assert row["source"] == run["source"]
    assert project.rows("SELECT * FROM cells") == [] and problems(project) == []
    figure = project.row("SELECT value, unit, text FROM figures WHERE metric = 'Latencies' AND statistic = '99'")
    assert figure == {"value": 18_509_000, "unit": "ns", "text": "18.509ms"}


def test_a_cut_report_is_unfit(project):
    text = foreign.VEGETA.partition("Bytes In")[0].rpartition(",")[0]
    write_cell(project.archive, {"1.vegeta.txt": text.encode()}, **of("vegeta", "open"))
    project.make()
    run = project.row("SELECT excluded, exclusion_reason FROM runs")
    assert run["excluded"] and "1.vegeta.txt is" in run["exclusion_reason"]


def test_a_histogram_is_evidence_of_its_own(project):
    write_cell(project.archive, {"1.hdr.csv": foreign.HDR.encode()}, rate="5", **of("wrk2", "open", testOptions={}))
    project.make()
    assert project.row("SELECT evidence, generator FROM runs") == {"evidence": "histogram", "generator": "wrk2"}
    bins = project.rows('SELECT lower_ns, upper_ns, "count" n, stream FROM histograms ORDER BY upper_ns')
    assert sum(row["n"] for row in bins) == 100 and bins[-1]["upper_ns"] == 9_000_000
    assert {row["stream"] for row in bins} == {"main"}


@pytest.mark.parametrize("zone", ["-06:00", None])
def test_times_without_a_zone_need_one_from_the_metadata(project, zone):
    files = {"1.vegeta.txt": foreign.VEGETA.encode(), "1.resource-usage.log": foreign.SAMPLES.encode()}
    write_cell(project.archive, files, **of("vegeta", "open", **({"zone": zone} if zone else {})))
    project.make()
    samples = project.rows("SELECT sampled_at, scope, name, cpu_millicores FROM resources ORDER BY sampled_at")
    if zone is None:
        assert samples == [] and "1.resource-usage.log is damaged: its times have no zone" in problems(project)[0]
        return
    assert [row["cpu_millicores"] for row in samples] == [11, 13]
    assert samples[0]["sampled_at"].isoformat() == "2025-03-10T20:05:12+00:00"
    assert project.row("SELECT n_samples FROM resource_usage WHERE name = 'nginx'")["n_samples"] == 2


@pytest.mark.parametrize("count", [10**30, 1e300, -(10**30)])
def test_figures_beyond_any_table_leave_out_their_file_alone(project, count):
    report = foreign.artillery([[9.0] * 3, [8.0] * 4, [2.0] * 5, [3.0] * 5]).replace(b'"rps"', b'"x"')
    huge = json.loads(report)
    huge["aggregate"] |= {"requestsCompleted": count, "codes": {"200": count}, "latency": {"min": count, "max": count}}
    files = {"1.artillery.json": json.dumps(huge).encode(), "2.artillery.json": report}
    files["3.vegeta.txt"] = foreign.VEGETA.replace("100, 100.00", f"{10**30}, 1e400").encode()
    write_cell(project.archive, files, **of("artillery", "open", testOptions={}))
    project.make()
    runs = project.rows("SELECT run, requests, problems FROM runs ORDER BY run")
    # What stands behind an integer of more than 64 bits can't be read any more; behind another number it can.
    assert runs[0]["requests"] == (10 if isinstance(count, float) else None)
    assert any("1.artillery.json is damaged" in text for text in runs[0]["problems"]) is isinstance(count, int)
    assert runs[1]["requests"] == 10 and not runs[1]["problems"]
    assert not any("could not be converted" in problem for problem in problems(project))


# --- what the metadata say, and what they don't ----------------------------------------------------------------------


def test_without_metadata_the_file_says_which_tool_it_was(project):
    cell = write_cell(project.archive, {"1.hey.csv": foreign.HEY.encode(), "2.k6.json": foreign.k6_json([1.0])})
    (cell.path / "metadata.json").unlink()
    project.make()
    runs = project.rows("SELECT generator, load_model, inferred FROM runs ORDER BY run")
    assert [(run["generator"], run["load_model"]) for run in runs] == [("hey", "closed"), ("k6", None)]
    assert all({"generator", "load_model"} <= set(dict(run["inferred"])) for run in runs)


def test_files_of_another_tool_than_the_metadata_name_are_a_fault(project):
    files = {"1.hey.csv": foreign.HEY.encode(), "2.results.json.zst": RUN, "2.k6.summary.json": foreign.k6_summary(100)}
    write_cell(project.archive, files, generator={"name": "vegeta"}, loadModel="open")
    project.make()
    runs = project.rows("SELECT excluded, exclusion_reason FROM runs ORDER BY run")
    assert all(run["excluded"] for run in runs)
    assert "1.hey.csv is a file of hey, but the run is of vegeta" in runs[0]["exclusion_reason"]
    assert "2.k6.summary.json is a file of k6, but the run is of vegeta" in runs[1]["exclusion_reason"]


def test_users_are_what_the_folder_says(project):
    write_cell(project.archive, {"1.hey.csv": foreign.HEY.encode()}, rate="5", **of("hey", "closed", users=3))
    project.make()
    assert "gives the number of users as 3" in project.row("SELECT exclusion_reason FROM runs")["exclusion_reason"]


# --- what is never pooled --------------------------------------------------------------------------------------------


def test_two_folders_of_one_variant_measured_in_other_ways_are_not_pooled(project):
    write_cell(project.archive, {"1.results.json.zst": RUN}, variant="istio")
    report = foreign.artillery([[9.0] * 3, [8.0] * 4, [2.0] * 5, [3.0] * 5])
    write_cell(project.archive, {"2.artillery.json": report}, variant="envoy", **of("artillery", "open"))
    project.make()
    runs = project.rows("SELECT excluded, exclusion_reason FROM runs")
    assert [run["excluded"] for run in runs] == [True, True]
    assert "open load by artillery and open load by vegeta" in runs[0]["exclusion_reason"]
    assert project.rows("SELECT * FROM cells") == project.rows("SELECT * FROM cells_all") == []


def test_the_generators_are_a_table(project):
    rows = {row["generator"]: row for row in project.rows("SELECT * FROM generators")}
    assert set(rows) == set(load_generators.GENERATORS) >= {"vegeta", "serial", "k6", "artillery", "hey"}
    assert rows["artillery"]["resolution_ns"] == 1e6 and rows["k6"]["load_models"] == ["open", "closed"]
    assert all(row["source"] and row["starts_at"] and row["ends_at"] for row in rows.values())


def test_the_real_artillery_reports_have_the_published_figures(project, shared):
    for scenario in (1, 3):
        report = (shared / f"artillery/scenario{scenario}.json").read_bytes()
        described = of("artillery", "open", testOptions={"rate": "50", "duration": "600s"})
        write_cell(project.archive, {"1.artillery.json": report}, rate="50", variant=str(scenario), **described)
    project.make()
    published = {"1": (1, 90, 2, 3, 3), "3": (1, 16, 2, 2, 3)}
    for variant, expected in published.items():
        row = project.row(f"SELECT * FROM summaries WHERE variant = '{variant}'")
        assert tuple(row[f"{name}_ns"] / 1e6 for name in ("min", "max", "p50", "p95", "p99")) == expected
        raw = project.row(
            "SELECT min(latency_ns) / 1e6 a, max(latency_ns) / 1e6 b, quantile_disc(latency_ns, [0.5, 0.95, 0.99]) c "
            f"FROM requests WHERE variant = '{variant}'"
        )
        assert (raw["a"], raw["b"], *(value / 1e6 for value in raw["c"])) == expected
    assert problems(project) == []
    # Requests on the border of two phases count in neither, so nobody knows whether the last one is complete.
    assert project.rows("SELECT excluded, complete FROM runs") == [{"excluded": False, "complete": None}] * 2
