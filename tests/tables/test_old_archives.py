"""Campaigns as they were collected in 2024 and 2025, through conversion and analysis."""

from typing import Any

from support import rawfiles, shapes
from support.rawfiles import START_NS, line, lines

OLD = "2024-04-14T00:54:06-04:00"
SIDE = "2024-05-07T18:44:39-04:00"
ROUND = "2025-01-02T11:48-05:00"


def write(project, timestamp: str, variant_dir: str, metadata: dict[str, Any], files: dict[str, bytes]) -> None:
    packed = {name: rawfiles.compress(data) if name.endswith(".zst") else data for name, data in files.items()}
    shapes.write(shapes.cell(project.archive, timestamp, "10", variant_dir), metadata, packed)


def run(latency_ns: int, count: int = 100) -> bytes:
    return lines([latency_ns] * count, rate=10.0)


def test_what_was_inferred_is_a_column_of_runs(project):
    write(project, OLD, "filter", shapes.version_1e(OLD, "shiver", "10", "filter"), {"1.results.json.zst": run(5)})
    project.make()
    found = project.row("SELECT * FROM runs")
    assert (found["metadata_version"], found["load_model"], found["warmup_rate"], found["replicas"]) == (
        "1",
        "open",
        100,
        10,
    )
    assert set(dict(found["inferred"])) == {"metadata_version", "load_model", "generator", "warmup_rate"}
    assert (found["complete"], found["excluded"]) == (True, False)


def test_a_renamed_folder_is_named_and_counts(project):
    collected = shapes.version_1a(OLD, "shiver", "10", "filter")
    write(project, OLD, "filter-97776ef1", collected, {"1.results.json.zst": run(5)})
    project.aliases["filter-97776ef1"] = "prose-filter-97776ef1"
    project.make()
    found = project.row("SELECT variant, excluded, problems FROM runs")
    assert (found["variant"], found["excluded"]) == ("prose-filter-97776ef1", False)
    assert any("was collected as 'filter'" in problem for problem in found["problems"])


def test_the_predecessors_serial_mode_stamped_the_end(project):
    latency_ns = 250_000_000
    ends = b"".join(line(seq, latency_ns, sent_ns=START_NS + (seq + 1) * latency_ns) for seq in range(100))
    for variant, mode in (("istio", "serial"), ("plain", "vegeta")):
        metadata = shapes.version_3(ROUND, "shiver", "10", variant, mode)
        write(project, ROUND, variant, metadata, {"1.results.json.zst": ends})
    project.make()
    first = project.rows(
        "SELECT variant, min(epoch_ns(sent_at)) AS sent_ns FROM requests GROUP BY variant ORDER BY variant"
    )
    assert [row["sent_ns"] - START_NS for row in first] == [0, latency_ns]
    models = project.rows("SELECT variant, load_model, generator FROM runs ORDER BY variant")
    assert [tuple(row.values()) for row in models] == [("istio", "serial", "serial"), ("plain", "open", "vegeta")]


def test_side_attacks_are_apart_from_the_main_one_everywhere(project):
    files = {"1.results.json.zst": run(1_000_000), "1.warmups.json.zst": run(9_000_000, 50)}
    for stream in ("presidio", "req_0.presidio", "req_1.presidio", "req_2.presidio"):
        files[f"1.{stream}.results.json.zst"] = run(50_000_000)
        files[f"1.{stream}.warmups.json.zst"] = run(70_000_000)
    for stream, mean_ns in (("", 1_000_000), (".presidio", 50_000_000)):
        files[f"1{stream}.summary.json"] = shapes.summary(mean_ns, {"200": 100})
    write(project, SIDE, "prose-filter", shapes.version_32(SIDE, "shiver", "10", "prose-filter", "3"), files)
    project.make()
    found = project.row("SELECT metadata_version, requests, complete, excluded, problems FROM runs")
    assert (found["metadata_version"], found["requests"]) == ("3.2", 100)
    assert (found["complete"], found["excluded"], found["problems"]) == (True, False, [])
    cells = project.rows("SELECT stream, n_requests, mean_ns, run_mean_ns FROM cells ORDER BY stream")
    streams = ["main", "presidio", "presidio.req_0", "presidio.req_1", "presidio.req_2"]
    assert [cell["stream"] for cell in cells] == streams
    assert [cell["mean_ns"] for cell in cells] == [1e6] + [5e7] * 4
    assert {cell["n_requests"] for cell in cells} == {100}
    summaries = project.rows("SELECT stream, mean_ns FROM summaries ORDER BY stream")
    assert [tuple(row.values()) for row in summaries] == [("main", 1e6), ("presidio", 5e7)]


def test_run_ten_comes_after_run_nine(project):
    metadata = shapes.version_4(ROUND, "shiver", "10", "plain")
    write(project, ROUND, "plain", metadata, {f"{number}.results.json.zst": run(5) for number in range(1, 12)})
    project.make()
    assert [row["run"] for row in project.rows("FROM runs SELECT run")] == list(range(1, 12))
