"""Tags on runs, and what does not fit together: each run is judged in one place, and everything is named."""

import json
from pathlib import Path

import pytest
from loadstone.analysis.campaign import analyse_campaign
from loadstone.archive import LINKS, Campaign, allow_links, campaigns, outside
from loadstone.tables.exclusion import matches
from support import rawfiles
from support.rawfiles import TIMESTAMP, lines, write_cell

RUN = rawfiles.compress(lines([2_000_000] * 100))
SLOW = rawfiles.compress(lines([8_000_000] * 100))
FACT = {
    "timestamp": "2024-04-09T20:14:12-04:00",
    "variant": "prose-filter-97776ef1",
    "variant_dir": "filter-97776ef1",
    "rate": 120.0,
    "run": 4,
    "source": "bookinfo/moone/2024-04-09T20:14:12-04:00/120/filter-97776ef1/4.results.bin",
}


def problems(project) -> list[str]:
    return [row["problem"] for row in project.rows("SELECT problem FROM problems ORDER BY problem")]


# --- the predecessor's patterns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("2024-04-09T20:14:12-04:00/120/*/4.*", True),
        ("2024-04-09T20:14:12-04:00/120/*/5.*", False),
        ("2024-04-09T20:14:12-04:00/100/*/4.*", False),
        ("2024-04-09T20:21:34-04:00/120/*/4.*", False),
        ("*/4.*", True),
        ("*.results.bin", True),
        ("*/4.summary.json", True),
        ("*/filter-97776ef1/*", True),
        ("*/prose-filter-97776ef1/*", False),
        ("2024-04-09T20:14:12-04:00/120/*/40.*", False),
    ],
)
def test_patterns_mean_what_they_meant(pattern, found):
    assert matches({"tag": "FAILED", "pattern": pattern}, FACT) is found


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        *(({"rate": rate}, True) for rate in (120, 120.0, "120.0", "1.2e2", "12*", "*", "", None)),
        *(({"rate": rate}, False) for rate in (12, 120.5, "12", "1.2e3", "12?0", "nan", 0)),
        *(
            ({"run": run}, run_is_4)
            for run, run_is_4 in ((4, True), (4.0, True), ("[45]", True), (40, False), (0, False))
        ),
    ],
)
def test_numbers_of_tags_are_numbers_or_patterns(fields, found):
    assert matches({"tag": "FAILED", "variant": "prose-*"} | fields, FACT) is found


def test_run_1_is_not_run_10():
    assert not matches({"pattern": "*/1.*"}, FACT | {"run": 10, "source": "a/h/t/120/v/10.results.json.zst"})


# --- what people reject, and put back --------------------------------------------------------------------------------


def test_the_cells_with_everything_put_back_stand_beside_those_that_count(project):
    write_cell(project.archive, {"1.results.json.zst": RUN, "2.results.json.zst": RUN, "3.results.json.zst": SLOW})
    write_cell(project.archive, {"1.results.json.zst": RUN}, variant="envoy")
    project.convert()
    project.analyse([{"tag": "FAILED", "variant": "plain", "run": "3"}], ["FAILED"])
    columns = "variant, n_runs, n_excluded, mean_ns"
    assert [tuple(row.values()) for row in project.rows(f"SELECT {columns} FROM cells ORDER BY variant")] == [
        ("istio", 1, 0, 2e6),
        ("plain", 2, 1, 2e6),
    ]
    assert [tuple(row.values()) for row in project.rows(f"SELECT {columns} FROM cells_all ORDER BY variant")] == [
        ("istio", 1, 0, 2e6),
        ("plain", 3, 1, 4e6),
    ]


def test_a_campaign_that_is_out_as_a_whole_can_still_be_looked_at(project):
    write_cell(project.archive, {"1.results.json.zst": RUN})
    project.convert()
    project.analyse([{"tag": "INVALID", "reason": "not loaded"}], ["INVALID"])
    assert project.rows("SELECT * FROM cells") == []
    assert project.row("SELECT n_runs, n_excluded FROM cells_all") == {"n_runs": 1, "n_excluded": 1}
    run = project.row("SELECT tags, excluded, exclusion_reason FROM runs")
    assert run == {"tags": ["INVALID"], "excluded": True, "exclusion_reason": "tagged INVALID: not loaded"}


# --- what does not fit together --------------------------------------------------------------------------------------


def analyse(project, **known) -> None:
    project.convert()
    for campaign in campaigns(project.archive):
        analyse_campaign(campaign, project.tables, **known)


def test_an_unknown_folder_is_shown_under_its_own_name_and_told(project):
    for rate in ("50", "100"):
        write_cell(project.archive, {}, rate=rate, variant="mystery")
    write_cell(project.archive, {"1.results.json.zst": RUN}, variant="mystery")
    analyse(project, folders=["plain"])
    assert project.rows("SELECT variant FROM cells") == [{"variant": "mystery"}]
    assert problems(project) == [
        "the folder name 'mystery' is not in config/variants.yaml; it is shown under its own name"
    ]
    analyse(project, folders=["mystery"])
    assert problems(project) == []


def test_a_campaign_without_an_entry_and_a_tag_of_no_run_are_told(project):
    write_cell(project.archive, {"1.results.json.zst": RUN})
    tags = [
        {"tag": "FAILED", "run": "7", "rate": "100"},
        {"tag": "FAILED", "pattern": f"{TIMESTAMP}/100/*/9.*"},
        {"tag": "FAILED", "pattern": "2024-*"},
        {"tag": "FAILED", "run": "1"},
    ]
    analyse(project, tags=tags, listed=False)
    assert problems(project) == [
        "has no entry in config/catalogue.yaml, although other campaigns of this app have one",
        f"the catalogue tags {TIMESTAMP}/100/*/9.* as FAILED, which matches no run",
        "the catalogue tags rate 100, run 7 as FAILED, which matches no run",
    ]


def test_two_folders_of_one_variant_are_told(project):
    for folder in ("envoy", "istio"):
        write_cell(project.archive, {"1.results.json.zst": RUN}, variant=folder)
    analyse(project)
    assert project.row("SELECT n_runs FROM cells") == {"n_runs": 2}
    assert problems(project) == ["the folders 'envoy' and 'istio' are one variant; their runs are combined"]


def test_a_link_to_another_variant_does_not_count_its_runs_twice(project):
    cell = write_cell(project.archive, {"1.results.json.zst": RUN, "2.results.json.zst": SLOW}, variant="istio")
    (cell.path.parent / "envoy").symlink_to(cell.path.name, target_is_directory=True)
    analyse(project)
    assert project.row("SELECT n_runs, n_excluded FROM cells") == {"n_runs": 2, "n_excluded": 2}
    left_out = project.rows("SELECT variant_dir, exclusion_reason FROM runs WHERE excluded ORDER BY run")
    assert [row["variant_dir"] for row in left_out] == ["envoy", "envoy"]
    assert f"is a link to demo/here/{TIMESTAMP}/100/istio/1.results.json.zst" in left_out[0]["exclusion_reason"]


def test_a_run_that_is_a_link_to_its_sibling_does_not_count(project):
    cell = write_cell(project.archive, {"1.results.json.zst": RUN})
    (cell.path / "2.results.json.zst").symlink_to("1.results.json.zst")
    analyse(project)
    assert project.row("SELECT n_runs, n_excluded FROM cells") == {"n_runs": 1, "n_excluded": 1}


def test_an_archive_of_links_is_read_like_any_other(project, tmp_path, monkeypatch):
    """git-annex keeps every file elsewhere and links to it: in the archive's folder, or in one that is allowed."""
    monkeypatch.setenv(LINKS, "[]")
    allow_links([str(tmp_path / "objects")])
    (tmp_path / "objects").mkdir()
    cell = write_cell(project.archive, {"1.results.json.zst": RUN, "2.results.json.zst": SLOW})
    for file in cell.path.glob("*.zst"):
        kept = tmp_path / "objects" / file.name
        file.rename(kept)
        file.symlink_to(kept)
    analyse(project)
    assert project.row("SELECT n_runs, n_excluded FROM cells") == {"n_runs": 2, "n_excluded": 0}
    assert problems(project) == []


def test_a_link_to_another_campaign_contradicts_its_metadata(project):
    cell = write_cell(project.archive, {"1.results.json.zst": RUN})
    other = cell.campaign.path.with_name("2027-01-01T00:00:00+00:00")
    other.symlink_to(cell.campaign.path, target_is_directory=True)
    analyse(project)
    runs = project.rows("SELECT timestamp, excluded, exclusion_reason FROM runs ORDER BY timestamp")
    assert [row["excluded"] for row in runs] == [False, True]
    assert "gives the timestamp as" in runs[1]["exclusion_reason"]


def test_links_that_lead_nowhere_or_round_in_circles_are_told(project):
    cell = write_cell(project.archive, {"1.results.json.zst": RUN})
    (cell.path / "2.results.json.zst").symlink_to("nowhere")
    for folder in (cell.path, *list(cell.path.parents)[:5]):
        (folder / "circle").symlink_to("circle")
    analyse(project)
    assert project.row("SELECT count(*) AS n FROM runs WHERE NOT excluded") == {"n": 1}
    assert dict(outside(project.archive)) == {
        "circle": "is not an app's folder",
        "demo/circle": "is not a host's folder",
        "demo/here/circle": "is not a campaign's folder",
    }
    told = project.rows("SELECT source FROM problems")
    prefix = f"demo/here/{TIMESTAMP}"
    expected = [f"{prefix}/circle", f"{prefix}/100/circle", f"{prefix}/100/plain/circle"]
    assert {*expected, f"{prefix}/100/plain/2.results.json.zst"} <= {row["source"] for row in told}


def test_ten_thousand_stray_files_are_all_named_and_cost_little(project):
    cell = write_cell(project.archive, {"1.results.json.zst": RUN})
    for number in range(10_000):
        (cell.path / f"stray {number}").touch()
    analyse(project)
    counts = project.row(
        "SELECT count(*) AS n, count(DISTINCT source) AS different FROM problems WHERE problem LIKE 'is not a file%'"
    )
    assert counts == {"n": 10_000, "different": 10_000}
    assert project.row("SELECT n_runs FROM cells") == {"n_runs": 1}
    assert not any("stray" in text for text in project.row("SELECT problems FROM runs")["problems"])


# --- suggestions from tables -----------------------------------------------------------------------------------------


def alike(run: int) -> bytes:
    """As `RUN`, but other bytes: those would be a copy."""
    return rawfiles.compress(lines([2_000_000 + run] * 100))


def test_suggestions_come_from_requests_and_from_summaries(project):
    files = {f"{run}.results.json.zst": alike(run) for run in range(1, 6)}
    jumpy = rawfiles.compress(lines([40_000_000] * 50 + [5_000_000] * 50))
    write_cell(project.archive, files | {"4.results.json.zst": SLOW, "5.results.json.zst": jumpy})
    report = {"latencies": {"mean": 1_000_000}, "requests": 100, "success": 1.0, "status_codes": {"200": 100}}
    failed = report | {"success": 0.0, "status_codes": {"0": 100}}
    summaries = {f"{run}.summary.json": json.dumps(failed if run == 3 else report).encode() for run in range(1, 5)}
    write_cell(project.archive, summaries, variant="envoy")
    analyse(project)
    found = project.rows("SELECT kind, variant, rate, run, tag, tagged FROM suggestions ORDER BY variant, run, kind")
    assert [(row["variant"], row["run"], row["kind"]) for row in found] == [
        ("istio", 3, "failed run"),
        ("plain", 4, "outlying run"),
        ("plain", 5, "outlying run"),
        ("plain", 5, "unsettled run"),
    ]
    assert not any(row["tagged"] for row in found)


def test_following_a_suggestion_marks_it_as_followed(project):
    write_cell(project.archive, {f"{run}.results.json.zst": SLOW if run == 4 else alike(run) for run in range(1, 6)})
    analyse(project, tags=[{"tag": "outlier", "run": "4"}], excluding=["outlier"])
    assert project.row("SELECT kind, tagged FROM suggestions") == {"kind": "outlying run", "tagged": True}
    assert project.row("SELECT n_runs, n_excluded FROM cells") == {"n_runs": 4, "n_excluded": 1}


def unfinished(project, **known) -> list[str]:
    analyse(project, **known)
    return [row["evidence"] for row in project.rows("SELECT evidence FROM suggestions WHERE kind = 'unfinished'")]


def test_an_old_campaign_without_completion_time_is_told_and_an_open_one_is_not(project):
    write_cell(project.archive, {"1.results.json.zst": RUN})
    assert unfinished(project) == [], "its plan is in the archive: it is open"
    planless = {"version": "4", "runs": None, "order": None}
    cell = write_cell(project.archive, {"1.results.json.zst": RUN}, **planless)
    assert unfinished(project) == ["completion_time.txt is missing, which is written when all runs are collected"]
    assert unfinished(project, completion_file=False) == []
    (cell.campaign.path / "completion_time.txt").write_text("2026-11-21T12:00:00+00:00\n")
    assert unfinished(project) == []


def test_nothing_of_the_archive_is_written(project):
    cell = write_cell(project.archive, {"1.results.json.zst": RUN})
    before = sorted((str(path), path.stat().st_mtime_ns) for path in Path(project.archive).rglob("*"))
    analyse(project, listed=False, folders=[])
    assert sorted((str(path), path.stat().st_mtime_ns) for path in Path(project.archive).rglob("*")) == before
    assert isinstance(cell.campaign, Campaign)
