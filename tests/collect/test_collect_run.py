"""One run against a real little server: what is checked before load, what is archived, what a failure leaves."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from loadstone import archive
from loadstone.archive import metadata, plan
from loadstone.archive.run_records import record_failure
from loadstone.collect.run import collect_run
from loadstone.collect.targets.base import RunFailedError
from loadstone.config import redact
from loadstone.errors import LoadstoneError
from support.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Bench]:
    return lambda *options, **changes: Bench(tmp_path, *options, **changes)


# A busy machine has time for few requests.
CALM = {"rates": [10], "duration": "1s", "warmup": {"duration": "1s", "min_rate": 5, "max_rate": 5}}


def test_an_open_run(bench) -> None:
    it = bench(**CALM)
    it.collect()
    test, warmup = it.lines("1.results.json.zst"), it.lines("1.warmups.json.zst")
    assert sorted(line["seq"] for line in test) == list(range(10))
    assert len(warmup) == 5
    assert {line["code"] for line in test} == {200}
    assert it.served() == 10 + 5 + 3  # the identity is asked three times
    summary = json.loads((it.cell.path / "1.summary.json").read_text())
    assert summary["requests"] == 10
    check = subprocess.run(["sha256sum", "-c", "1.sha256"], cwd=it.cell.path, capture_output=True, check=True)
    assert check.stdout.count(b": OK") == 5
    assert [line for line in it.said if not line.startswith("waiting: ")] == []  # for others' attacks
    assert it.phases == ["waiting", "target", "warmup", "test", "results"]


def test_a_serial_run_sends_one_after_another_and_stamps_the_start(bench) -> None:
    it = bench(generator="serial", rates=[40], duration="1s")
    it.collect()
    lines = it.lines("1.results.json.zst")
    assert [line["seq"] for line in lines] == list(range(40))
    starts = [_ns(line["timestamp"]) for line in lines]
    ends = [start + line["latency"] for start, line in zip(starts, lines, strict=True)]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    keys = {"attack", "seq", "code", "timestamp", "latency", "bytes_out", "bytes_in", "error", "body", "method", "url"}
    assert keys <= set(lines[0])
    metadata = json.loads((it.cell.path / "metadata.json").read_text())
    assert (metadata["testMode"], metadata["loadModel"]) == ("serial", "serial")


LINE = {
    "attack": str,
    "seq": int,
    "code": int,
    "timestamp": str,
    "latency": int,
    "bytes_out": int,
    "bytes_in": int,
    "error": str,
    "body": str,
    "method": str,
    "url": str,
    "headers": dict,
}
SUMMARY = {
    "latencies": {"total", "mean", "50th", "90th", "95th", "99th", "max", "min"},
    "bytes_in": {"total", "mean"},
    "bytes_out": {"total", "mean"},
    **dict.fromkeys(("earliest", "latest", "end"), str),
    **dict.fromkeys(("duration", "wait", "requests"), int),
    "status_codes": {"200"},
    "errors": list,
}


@pytest.mark.parametrize("generator", ["vegeta", "serial"])
def test_what_a_run_leaves_is_named_and_shaped_as_version_4_had_it(bench, generator: str) -> None:
    it = bench(generator=generator)
    it.collect()
    metadata = json.loads((it.cell.path / "metadata.json").read_text())
    kinds = ("warmups", "results", "summary")
    assert [metadata[f"{kind}FileSuffix"] for kind in kinds] == [
        ".warmups.json.zst",
        ".results.json.zst",
        ".summary.json",
    ]
    for kind in ("warmups", "results"):
        for line in it.lines(f"1{metadata[f'{kind}FileSuffix']}"):
            assert {key: type(value) for key, value in line.items()} == LINE
            assert all(type(values) is list for values in line["headers"].values())
    summary = json.loads((it.cell.path / f"1{metadata['summaryFileSuffix']}").read_text())
    for key, expected in SUMMARY.items():
        assert set(summary[key]) == expected if isinstance(expected, set) else type(summary[key]) is expected, key
    assert all(isinstance(summary[key], int | float) for key in ("rate", "throughput", "success"))


def _ns(text: str) -> int:
    return int(np.datetime64(text.replace("Z", ""), "ns").astype(int))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--wrong"], "header X-Name: 'wrong' instead of 'right'.*a body without 'the page'"),
        (["--status", "503"], "status 503"),
    ],
)
def test_the_wrong_server_is_never_attacked(bench, options: list[str], said: str) -> None:
    it = bench(*options)
    with pytest.raises(LoadstoneError, match=f"no load was sent: .*{said}"):
        it.collect()
    assert it.served() == 1
    it.assert_nothing_left()


def test_a_taken_port_is_an_error_and_the_other_server_is_not_attacked(bench) -> None:
    it = bench()
    said = f"port {it.port} of the process 'server' is already in use by process"
    with socket.create_server(("127.0.0.1", it.port)), pytest.raises(LoadstoneError, match=said):
        it.collect()
    it.assert_nothing_left()


def test_a_target_that_dies_during_the_attack_fails_the_run(bench) -> None:
    it = bench("--die-after", "20")
    with pytest.raises(LoadstoneError, match=r"the process 'server' ended \(exit code 7\)"):
        it.collect()
    it.assert_nothing_left()


def test_what_an_interrupted_try_printed_is_not_told_of_the_next(bench) -> None:
    it = bench("--die-after", "20")
    earlier = it.folder / "logs" / "server.log"
    earlier.parent.mkdir(exist_ok=True)
    earlier.write_text("said by an earlier one\n")
    with pytest.raises(LoadstoneError, match="exit code 7") as failed:
        it.collect()
    assert "earlier" not in str(failed.value) + earlier.read_text()
    assert earlier.with_name("server.log.earlier").read_text() == "said by an earlier one\n"


def test_a_target_that_never_gets_ready_is_given_up(bench) -> None:
    it = bench("--slow-start", "60")
    it.target["ready_timeout"] = "500ms"
    with pytest.raises(LoadstoneError, match=r"'server' was not ready in time: .*/ready: (.*refused|no answer yet)"):
        it.collect()
    it.assert_nothing_left()


def test_a_target_that_cannot_be_started_shows_what_it_said(bench) -> None:
    it = bench()
    command = [sys.executable, "-c", "raise SystemExit('no licence')"]
    it.target["processes"]["server"]["command"] = command
    with pytest.raises(LoadstoneError, match="has changed since"):
        it.collect()
    it.target["processes"]["server"] |= {"command": command[:1], "environment": {"PYTHONHOME": "/nowhere"}}
    with pytest.raises(LoadstoneError, match="has changed since"):
        it.collect()
    it = Bench(it.folder / "again", "--nonsense")
    with pytest.raises(LoadstoneError, match=r"(?s)'server' ended \(exit code 2\).*unrecognized arguments"):
        it.collect()
    it.assert_nothing_left()


def test_a_credential_is_sent_and_stands_nowhere(bench) -> None:
    it = bench("--token", "Bearer sesame", headers={"Authorization": "Bearer sesame"})
    # The server's own command has it too, which is recorded as it is.
    declared = json.loads((it.cell.path / "metadata.json").read_text())
    it.collect()
    assert {line["code"] for line in it.lines("1.results.json.zst")} == {200}
    assert declared["req"]["header"]["Authorization"][0].startswith("redacted ")
    files = [file for file in it.cell.path.iterdir() if file.name != "metadata.json"]
    assert len(files) == 6
    raw = [zstandard.open(file).read() if file.suffix == ".zst" else file.read_bytes() for file in files]
    assert not any(b"sesame" in content for content in raw)
    assert not any("sesame" in line for line in it.said)
    it.target["variants"]["only"]["headers"] = {"Authorization": "Bearer other"}
    with pytest.raises(LoadstoneError, match=r"(?s)has changed since.*  request.header.Authorization has changed\n"):
        it.collect(2)


SECRET = "opensesame"


def all_bytes(folder: Path) -> dict[Path, bytes]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {file: zstandard.open(file).read() if file.suffix == ".zst" else file.read_bytes() for file in files}


@pytest.mark.parametrize("changes", [{}, {"generators": 2}, {"generator": "serial"}])
def test_cookies_of_responses_and_parameters_of_urls_are_not_archived(bench, changes: dict[str, Any]) -> None:
    # The last request gets no response: its error quotes the URL.
    slow = [] if changes.get("generator") == "serial" else ["--slow-after", "56"]
    it = bench("--secrets", "--record", *slow, query=f"?page=7&access_token={SECRET}&sort=up", **changes)
    it.collect()
    contents = all_bytes(it.folder / "archive") | all_bytes(it.folder / "logs")
    assert {file.name for file in contents} >= {"metadata.json", "1.results.json.zst", "1.run.json", "server.log"}
    assert [file.name for file, content in contents.items() if SECRET.encode() in content] == []
    assert {seen["path"] for seen in it.recorded()} == {f"/page?page=7&access_token={SECRET}&sort=up"}
    lines = it.lines("1.results.json.zst")
    assert {line["url"].partition("?")[2] for line in lines} == {"page=7&access_token=redacted&sort=up"}
    answered = [line for line in lines if line["code"]]
    assert {line["bytes_in"] for line in answered} == {len(b"the page")} and len(answered) > 40
    for line in answered:
        assert line["headers"]["Set-Cookie"] == ["redacted", "redacted"]
        assert line["headers"]["X-Next"] == ["/page?n=2&token=redacted", "/login/%2Fpage%3Ftoken%3Dredacted"]
        assert line["headers"]["X-Name"] == ["right"]
        assert line["headers"]["Content-Location"] == ["http://redacted@127.0.0.1/page"]
    failed = [line for line in lines if not line["code"]]
    assert bool(failed) == bool(slow) and all("access_token=redacted" in line["error"] for line in failed)
    n_lines, n_answered = len(lines), len(answered)
    for line in it.lines("1.warmups.json.zst"):
        n_lines, n_answered = n_lines + 1, n_answered + bool(line["code"])
    record = json.loads((it.cell.path / "1.run.json").read_text())
    assert record["redacted"] == {
        "headers": {"Set-Cookie": 2 * n_answered},
        "query": {"access_token": n_lines + len(failed), "token": 2 * n_answered, "user@": n_answered},
    }
    declared = json.loads((it.cell.path / "metadata.json").read_text())["target"]
    assert declared["redacted"] == {"query": {"access_token": 1}}
    assert "Set-Cookie" in declared["redact"]["headers"] and "access_token" in declared["redact"]["query"]


def test_a_failure_shows_no_parameter_of_a_url(bench) -> None:
    it = bench("--wrong", "--secrets", query=f"?key={SECRET}")
    with pytest.raises(RunFailedError, match="is not the expected server") as failed:
        it.collect()
    record = record_failure(
        it.cell, 1, str(failed.value), [str(failed.value)], about={}, logs=it.folder / "logs", clean=redact.text
    )
    assert "key=redacted" in record.read_text() and "server.log" in record.read_text()
    assert [file.name for file, content in all_bytes(it.folder / "archive").items() if SECRET.encode() in content] == []


def test_another_token_is_another_request(bench) -> None:
    it = bench(query=f"?token={SECRET}")
    it.collect()
    it.target["variants"]["only"]["url"] = it.target["variants"]["only"]["url"].replace(SECRET, "shut")
    with pytest.raises(LoadstoneError, match=r"(?s)has changed since.*  request.url has changed\n") as refused:
        it.collect(2)
    assert SECRET not in str(refused.value) and "shut" not in str(refused.value)


def test_a_campaign_goes_on_after_redact_was_changed(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    it = bench(query=f"?token={SECRET}&user=ada")
    it.collect()
    with monkeypatch.context() as changed:
        changed.setenv("LOADSTONE_REDACT", json.dumps({"headers": ["X-Name"], "query": ["token", "user"]}))
        it.collect(2)
    (url,) = {line["url"] for line in it.lines("2.results.json.zst")}
    assert url.endswith("?token=redacted&user=redacted")
    assert {line["headers"]["X-Name"][0] for line in it.lines("2.results.json.zst")} == {"redacted"}
    assert json.loads((it.cell.path / "2.run.json").read_text())["identity"]["headers"] == {"x-name": "(redacted)"}


def test_a_collected_run_is_left_alone(bench) -> None:
    it = bench()
    it.cell.results(1).write_bytes(b"precious")
    it.collect()
    assert it.told == [f"run 1 of {it.cell} is already collected"]
    assert it.cell.results(1).read_bytes() == b"precious"
    assert it.served() == 0


def test_leftovers_of_removed_results_are_set_aside(bench) -> None:
    it = bench(**CALM)
    (it.cell.path / "1.summary.json").write_text("old")
    it.collect()
    kept = list((it.cell.path / "_set_aside").iterdir())
    assert [file.read_text() for file in kept] == ["old"]
    assert json.loads((it.cell.path / "1.summary.json").read_text())["requests"] == 10
    assert archive.scan_campaign(it.campaign).problems == []


def test_a_campaign_that_an_earlier_version_opened_is_left_to_it(bench) -> None:
    it = bench()
    path = it.cell.path / "metadata.json"
    content = json.loads(path.read_text())
    del content["generator"]["program"]
    path.write_text(json.dumps(content))
    with pytest.raises(LoadstoneError, match="opened by an earlier Loadstone, which sent its runs by `vegeta attack`"):
        it.collect()
    assert it.served() == 0


def test_without_a_warm_up_there_is_none(bench) -> None:
    it = bench(warmup={"duration": "0s"})
    it.collect()
    assert not (it.cell.path / "1.warmups.json.zst").exists()
    assert it.served() == len(it.lines("1.results.json.zst")) + 3


def test_a_fractional_rate(bench) -> None:
    it = bench(rates=[2.5], duration="2s", warmup={"duration": "0s"})
    assert it.cell.rate == "2.5"
    it.collect()
    assert len(it.lines("1.results.json.zst")) == 5


@pytest.mark.parametrize(("rate", "duration"), [(1.7, "1100ms"), (3.3, "1100ms"), (3, "500ms"), (0.9, "1500ms")])
@pytest.mark.parametrize("generator", ["vegeta", "serial"])
def test_a_run_holds_as_many_requests_as_its_plan_says(bench, generator: str, rate: float, duration: str) -> None:
    it = bench(generator=generator, rates=[rate], duration=duration, warmup={"duration": "0s"})
    it.collect()
    planned = metadata.read(it.cell.path / "metadata.json").expected_requests
    assert len(it.lines("1.results.json.zst")) == planned


def test_a_proxy_of_the_environment_is_passed_by(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    it = bench()
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    it.collect()
    assert {line["code"] for line in it.lines("1.results.json.zst")} == {200}


def test_a_body_that_never_ends_is_given_up(bench) -> None:
    it = bench("--drip")
    with pytest.raises(LoadstoneError, match="its body is not complete after 2 s"):
        it.collect()
    it.assert_nothing_left()


@pytest.mark.parametrize(
    ("run", "host", "close", "said"),
    [
        (1, "elsewhere", False, "belongs to the host 'here'"),
        (1, "here", True, "is closed"),
        (3, "here", False, "has no run 3"),
    ],
)
def test_only_planned_runs_of_open_campaigns_of_this_host_are_attacked(bench, run, host, close, said) -> None:
    it = bench()
    if close:
        (it.campaign.path / archive.COMPLETION).touch()
    with pytest.raises(LoadstoneError, match=said):
        collect_run(it.cell, run, it.target, host=host, logs=it.folder / "logs", log=it.said.append)
    assert it.served() == 0
    it.assert_nothing_left()


@pytest.mark.parametrize("name", ["1.results.bin", "1.results.csv.zst", "1.results.json.zst"])
def test_results_in_any_format_and_links_to_storage_that_is_away_count_as_collected(bench, name: str) -> None:
    it = bench()
    (it.cell.path / name).symlink_to("/nowhere/at/all")
    it.collect()
    assert it.told == [f"run 1 of {it.cell} is already collected"]
    assert it.served() == 0


def test_a_plan_that_cannot_be_read_does_not_close_its_campaign(bench) -> None:
    it = bench()
    (it.cell.path / "metadata.json").write_text("")
    with pytest.raises(LoadstoneError, match=r"is not complete: .*is not JSON"):
        plan.complete(it.campaign, it.said.append)
    assert it.campaign.is_open
