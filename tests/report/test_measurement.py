"""How a campaign was measured, from raw files, metadata and records to the page's words."""

import html
import json
import re

import pytest
from loadstone import archive
from loadstone.archive import run_records
from loadstone.config.variants import Variants
from support import rawfiles, shapes, site
from tables.tabling import Project

VARIANTS = Variants({"demo": {"plain": {"label": "Direct"}, "istio": {"label": "Istio", "aliases": ["envoy"]}}})
TOOLS = {"loadstone": "0.1.0", "vegeta": "v12.13.0", "envoy": "9e5580933739775e/1.40.0/Clean/RELEASE/BoringSSL"}
REQUEST = {
    "method": "POST",
    "url": "http://ada:open-sesame@127.0.0.1:9000/page?n=1&access_token=open-sesame",
    "header": {"Host": ["shop.example"], "Authorization": ["Bearer open-sesame"], "X-Case": ["a<b>c</b>"]},
    "body": "x" * 1234,
}
TARGET = {
    "expect": {"status": 200, "body_contains": "<title>"},
    "commands": {
        "app": ["./server", "--upstream", "http://ada:open-sesame@10.0.0.1/?sig=open-sesame", "--name", "a b"]
    },
    "redacted": {"headers": {"Authorization": 1}, "query": {"access_token": 1}},
}


def record(**changes):
    found = {
        "started": "2026-11-21T11:30:00.1+00:00",
        "ended": "2026-11-21T11:31:00.1+00:00",
        "identity": {"body_sha256": "a" * 64, "body_bytes": 100},
        "machine": {"system": "Linux-6", "cpus": 2, "load_1min": 0.5},
        "loadstone": "0.1.0",
    } | changes
    return json.dumps(found).encode()


def page(tmp_path, project):
    project.make()
    (campaign,) = archive.campaigns(project.archive)
    path = site.build_campaign(campaign, project.tables, tmp_path / "reports", VARIANTS, {})
    return path.read_text()


def words(text):
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text)))


def run(lag_ns=0, **fields):
    """A run at 100/s of 1 ms, of which every fifth request is late."""
    lines = [
        rawfiles.line(seq, sent_ns=rawfiles.START_NS + seq * 10_000_000 + (lag_ns if seq % 5 == 4 else 0), **fields)
        for seq in range(100)
    ]
    return rawfiles.compress(b"".join(lines))


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_generator_machine_request_and_commands_are_named_and_no_credential_is(tmp_path, project):
    files = {"1.results.json.zst": run(), "2.results.json.zst": run(), "1.run.json": record()}
    redacted = {"headers": {"Set-Cookie": 1200, "<b>": "x"}, "query": {"access_token": 99}}
    files["2.run.json"] = record(machine={"system": "Linux-6", "cpus": 2, "load_1min": 1.25}, redacted=redacted)
    changes = {"tools": TOOLS, "generator": {"name": "vegeta", "version": "v12.13.0"}, "req": REQUEST, "seed": 7}
    changes |= {"target": TARGET, "order": {"kind": "blocks", "positions": [1, 2, 3]}}
    changes["testOptions"] = {"duration": "1s", "rate": "100", "timeout": "1m30s"}
    rawfiles.write_cell(project.archive, files, **changes)
    text = page(tmp_path, project)
    said = words(text)
    for expected in (
        "Load generator vegeta v12.13.0",
        "Programs envoy 1.40.0",
        "Machine Linux-6",
        "CPUs 2",
        "Redacted Set-Cookie (1,200 values), access_token (100 values), Authorization (1 value)",
        "Load average (1 min) after a run 0.5 to 1.2",
        "Order complete blocks, shuffled with seed 7",
        "Request timeout 90 s",
        "2026-11-21 11:30 UTC to 2026-11-21 11:31 UTC",
        "POST http://127.0.0.1:9000/page?n=1&access_token=redacted Host: shop.example",
        "Host: shop.example Authorization: (redacted) X-Case: a<b>c</b>",
        "with a body of 1,234 bytes",
        "Checked before every run: status 200, a body that contains “<title>”.",
        "./server --upstream 'http://10.0.0.1/?sig=redacted' --name 'a b'",
    ):
        assert expected in said, expected
    assert "open-sesame" not in text and "Bearer" not in text
    assert "Not recorded" not in said
    assert "In the worst run, 99 % of requests were sent within 0 ms" in said
    assert "<b>c</b>" not in text


def test_a_late_generator_and_a_busy_machine_are_told_at_the_top(tmp_path, project):
    busy = record(machine={"system": "Linux-6", "cpus": 2, "load_1min": 3.5})
    files = {"1.results.json.zst": run(), "2.results.json.zst": run(5_000_000), "2.run.json": busy}
    rawfiles.write_cell(project.archive, files | {"1.run.json": record()})
    said = words(page(tmp_path, project))
    assert "The load generator fell behind in 1 of 2 runs" in said
    assert "After 1 of 2 runs the machine's load average was above its number of CPUs (up to 3.5 with 2 CPUs)" in said
    for brief in ("Limited by the load generator", "The machine was busy after 1 of 2 runs"):
        assert said.index(brief) < said.index("Latency across load")


def test_an_answer_that_changed_between_runs_of_a_cell_is_named(tmp_path, project):
    other = record(identity={"body_sha256": "b" * 64, "body_bytes": 250})
    files = {f"{number}.results.json.zst": run() for number in (1, 2)}
    rawfiles.write_cell(project.archive, files | {"1.run.json": record(), "2.run.json": other})
    rawfiles.write_cell(project.archive, files | {"1.run.json": record(), "2.run.json": record()}, variant="envoy")
    said = words(page(tmp_path, project))
    assert "The response body changed between runs of a cell" in said
    assert "Direct at 100 requests/s (2 different bodies, of 100 to 250 bytes)." in said


def test_an_old_archive_says_once_what_was_not_recorded_and_has_no_empty_table(tmp_path, project):
    cell = shapes.cell(project.archive, "2024-04-26T01:47:38-04:00", "100", "plain", app="demo")
    content = shapes.version_1a(cell.campaign.timestamp, "shiver", "100", "plain")
    content["testOptions"]["duration"] = "1s"
    shapes.write(cell, content, {"1.results.json.zst": run()})
    said = words(page(tmp_path, project))
    assert said.count("Not recorded:") == 1
    assert (
        "Not recorded: the load generator's version, other programs' versions, the machine and its load, the order of "
        "runs, the target."
    ) in said
    assert "GET https://10.0.0.9/page?u=test" in said and "Highest load" not in said and "CPUs" not in said
    # The requests themselves tell how late they were sent.
    assert "within 0 ms of when they were due" in said
    assert "1 run has no report by the load generator" in said
    assert "found in the archive" not in said


@pytest.mark.parametrize(
    ("more", "said"), [({}, "Collected by"), ({"imported": {"records": ".run.json"}}, "Imported by")]
)
def test_who_brought_the_runs_in_is_said(tmp_path, project, more, said):
    rawfiles.write_cell(project.archive, {"1.results.json.zst": run(), "1.run.json": record()}, **more)
    text = words(page(tmp_path, project))
    assert f"{said} Loadstone 0.1.0" in text
    assert ("Collected by" in text) == (said == "Collected by")


def test_serial_load_has_no_clock_to_keep(tmp_path, project):
    rawfiles.write_cell(project.archive, {"1.results.json.zst": run(3_000_000)}, testMode="serial")
    said = words(page(tmp_path, project))
    assert "Send lag is not defined for this load" in said and "fell behind" not in said
    assert "Send lag per load and variant" not in said


def test_of_load_without_a_run_nothing_is_said_of_the_clock(tmp_path, project):
    rawfiles.write_cell(project.archive, {})
    said = words(page(tmp_path, project))
    assert "How it was measured" in said and "Send lag is not defined" not in said


def test_successes_that_are_not_200_are_named(tmp_path, project):
    rawfiles.write_cell(project.archive, {"1.results.json.zst": run(), "2.results.json.zst": run(code=204)})
    rawfiles.write_cell(project.archive, {"1.results.json.zst": run(code=201)}, variant="envoy")
    said = words(page(tmp_path, project))
    assert "Codes from 200 to 399 are successes" in said
    assert "Other successful codes: 201 (100 requests in 1 cell), 204 (100 requests in 1 cell)." in said
    assert "No request failed" in said


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"machine": 3, "identity": [], "started": 7}',
        b'{"machine": {"cpus": true, "load_1min": NaN}}',
    ],
)
def test_a_record_that_says_nothing_is_no_error(tmp_path, content):
    (tmp_path / "1.run.json").write_bytes(content)
    assert run_records.read_run_record(tmp_path / "1.run.json") == run_records.RunRecord()
    assert run_records.read_run_record(tmp_path / "2.run.json") == run_records.RunRecord()


def test_what_a_variant_is_in_its_cluster_is_shown_and_images_that_changed_are_warned_of(tmp_path, project):
    def of_cluster(image):
        pods = [{"pod": "shop/web-1", "node": "n", "images": {"app": image}}]
        return record(cluster={"server_version": "v1.36.3", "pods": pods})

    changes = [
        {"deployment": "web", "image": {"app": "shop:2"}, "env": {"app": {"API_TOKEN": "sesame", "MODE": "fast"}}}
    ]
    target = {"expect": {"status": 200}, "cluster": {"namespace": "shop", "replicas": 2, "changes": changes}}
    target["cluster"]["deployments"] = {"web": None, "redis": 3}
    files = {"1.results.json.zst": run(), "2.results.json.zst": run()}
    files |= {"1.run.json": of_cluster("shop:2"), "2.run.json": of_cluster("shop:3")}
    rawfiles.write_cell(project.archive, files, req=REQUEST, target=target)
    text = words(page(tmp_path, project))
    assert "Kubernetes v1.36.3" in text
    assert "namespace: shop" in text and "app: shop:2" in text and "MODE: fast" in text and "'app: shop:3'" in text
    assert "sesame" not in text
    assert "The images of the pods changed between runs of a cell" in text
    assert "Replicas 1 of each deployment, but redis 3" in text and "Pods during a run 1" in text
    assert "pods: shop: 1 images:" in text


def test_failed_attempts_are_in_a_table_with_their_evidence(tmp_path, project):
    failure = {"run": 2, "nth": 1, "phase": "target", "failed": "2026-11-21T13:00:00+00:00", "error": "<b> ended"}
    content = json.dumps(failure | {"evidence": ["Warning: BackOff", "a log\nof two lines"]}).encode()
    rawfiles.write_cell(project.archive, {"1.results.json.zst": run(), "2.failure.1.json": content})
    said = words(page(tmp_path, project))
    assert "1 failed attempt" in said and "starting the target: <b> ended" in said
    assert "Warning: BackOff" in said and "In full" in said
