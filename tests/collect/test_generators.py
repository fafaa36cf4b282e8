"""Runs of each load generator against a real little server: what arrives there, and what lands in the archive."""

import contextlib
import json
import math
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psutil
import pytest
import zstandard
from loadstone.archive import metadata
from loadstone.errors import LoadstoneError
from support.bench import Bench
from support.generators import require

SHAPE = [
    {"name": "warm", "rate": 20, "duration": "1s"},
    {"name": "ramp", "rate": 20, "to": "100%", "duration": "2s"},
    {"name": "steady", "rate": "100%", "duration": "1500ms"},
]
HELD = {"warm": 20, "ramp": 100, "steady": 120}
# k6 ends a stage on time: what a busy machine keeps it from sending until then, it never sends. Few requests have time.
CALM = [
    {"name": "warm", "rate": 5, "duration": "1s"},
    {"name": "ramp", "rate": 5, "to": "100%", "duration": "2s"},
    {"name": "steady", "rate": "100%", "duration": "1500ms"},
]
CALMLY_HELD = {"warm": 5, "ramp": 15, "steady": 15}

# Values that mean something to JavaScript, to templates and to shells.
HOSTILE = {
    "X-Script": "\"'`${__ENV.HOME}\\n</script>",
    "X-Template": "{{ $env.HOME }} {{ url }} {{{ body }}} <%= 1 %>",
    "X-Shell": "$(touch /tmp/never) ; & | * ~",
    "X-Text": "naïve % \\ //",
}


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Bench]:
    def made(generator: str, *options: str, **changes: Any) -> Bench:
        if generator in ("k6", "artillery"):
            require(generator)
        defaults: dict[str, Any] = {"warmup": None, "rates": [80]}
        return Bench(tmp_path, "--record", *options, **{**defaults, "generator": generator, **changes})

    return made


def points(it: Bench, metric: str = "http_reqs") -> list[dict[str, Any]]:
    """The raw points of one metric of k6."""
    lines = it.lines("1.k6.json.zst")
    return [line["data"] for line in lines if line["type"] == "Point" and line["metric"] == metric]


def by_scenario(it: Bench) -> dict[str, int]:
    found: dict[str, int] = {}
    for point in points(it):
        name = point["tags"]["scenario"]
        found[name] = found.get(name, 0) + int(point["value"])
    return found


def record(it: Bench) -> dict[str, Any]:
    return json.loads((it.cell.path / "1.run.json").read_text())


def seconds(line: dict[str, Any]) -> float:
    return datetime.fromisoformat(line["timestamp"][:26].rstrip("Z")).timestamp()


# --- load in stages ---------------------------------------------------------------------------------------------------


def test_vegeta_sends_every_stage_on_its_schedule(bench) -> None:
    it = bench("vegeta", shape=SHAPE, duration=None)
    it.collect()
    others, measured = it.lines("1.warmups.json.zst"), it.lines("1.results.json.zst")
    assert sorted(line["seq"] for line in others) == list(range(HELD["warm"] + HELD["ramp"]))
    assert sorted(line["seq"] for line in measured) == list(range(HELD["steady"]))
    assert json.loads((it.cell.path / "1.summary.json").read_text())["requests"] == HELD["steady"]
    sent = sorted(map(seconds, others + measured))
    due = [n / 20 for n in range(20)]
    due += [1 + t for t in ramp_times(20, 80, 2.0, 100)]
    due += [3 + n / 80 for n in range(120)]
    lags = sorted(at - sent[0] - when for at, when in zip(sent, due, strict=True))
    # A busy machine sends late, never early; half of all requests are on time on any.
    assert lags[0] > -0.02 and lags[len(lags) // 2] < 0.1
    assert it.phases == ["waiting", "target", "warmup", "test", "results"]
    assert [(each["phase"], each["duration_s"]) for each in record(it)["phases"]] == [
        ("warm", 1.0),
        ("ramp", 2.0),
        ("steady", 1.5),
    ]


def ramp_times(rate: float, to: float, duration_s: float, count: int) -> list[float]:
    """When the integral of the rate reaches 0, 1, 2, ...: found by halving, not by the formula that is tested."""

    def held(at_s: float) -> float:
        return rate * at_s + (to - rate) * at_s * at_s / 2 / duration_s

    found = []
    for number in range(count):
        low, high = 0.0, duration_s
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if held(middle) < number else (low, middle)
        found.append(high)
    return found


def test_k6_sends_every_stage(bench) -> None:
    it = bench("k6", shape=CALM, rates=[10], duration=None)
    it.collect()
    assert by_scenario(it) == CALMLY_HELD
    summary = json.loads((it.cell.path / "1.k6.summary.json").read_text())
    assert summary["metrics"]["http_reqs"]["count"] == CALMLY_HELD["steady"]
    assert it.served() == sum(CALMLY_HELD.values()) + 3


def test_artillery_sends_every_stage(bench) -> None:
    it = bench("artillery", shape=SHAPE, duration=None)
    it.collect()
    report = json.loads((it.cell.path / "1.artillery.json").read_text())
    assert report["aggregate"]["counters"]["http.requests"] == HELD["steady"]
    (others,) = record(it)["unmeasured"]
    assert others["stages"] == ["warm", "ramp"]
    assert others["aggregate"]["counters"]["http.requests"] == HELD["warm"] + HELD["ramp"]
    assert it.served() == sum(HELD.values()) + 3


# --- one rate, as with vegeta -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "duration"), [(7.7, "1100ms"), (13, "1s"), (2.5, "2s")])
def test_k6_holds_as_many_requests_as_its_plan_says(bench, rate: float, duration: str) -> None:
    it = bench("k6", rates=[rate], duration=duration)
    it.collect()
    planned = metadata.read(it.cell.path / "metadata.json").expected_requests
    assert by_scenario(it) == {"test": planned} == {"test": math.ceil(rate * float(metadata.parse_duration(duration)))}


def test_k6_leaves_what_every_run_leaves(bench) -> None:
    it = bench("k6", duration="1s", warmup={"duration": "1s"})
    it.collect()
    names = {"1.k6.json.zst", "1.k6.summary.json", "1.resources.csv.zst", "1.run.json", "1.sha256", "metadata.json"}
    assert {file.name for file in it.cell.path.iterdir()} == names
    assert by_scenario(it) == {"warmup": 40, "test": 80}
    durations = [point["value"] for point in points(it, "http_req_duration") if point["tags"]["scenario"] == "test"]
    told = json.loads((it.cell.path / "1.k6.summary.json").read_text())["metrics"]["http_req_duration"]
    assert (min(durations), max(durations)) == (told["min"], told["max"])
    assert sum(durations) / len(durations) == pytest.approx(told["avg"], rel=1e-9)
    described = metadata.read(it.cell.path / "metadata.json")
    assert (described.generator, described.load_model, described.measured_phase) == ("k6", "open", "test")
    it.said.clear()
    it.collect()
    assert it.told == [f"run 1 of {it.cell} is already collected"]


def test_users_of_k6_wait_for_each_answer(bench) -> None:
    it = bench("k6", rates=None, users=[3], iterations=20, duration=None)
    assert it.cell.rate == "3"
    it.collect()
    assert by_scenario(it) == {"test": 60}
    assert it.served() == 63
    described = metadata.read(it.cell.path / "metadata.json")
    assert (described.load_model, described.users, described.rate, described.expected_requests) == (
        "closed",
        3,
        None,
        60,
    )


def test_users_of_k6_for_a_time(bench) -> None:
    it = bench("k6", rates=None, users=[2], duration="1s", warmup={"duration": "1s"})
    it.collect()
    sent = by_scenario(it)
    assert sent["test"] > 10 and sent["warmup"] > 10
    assert metadata.read(it.cell.path / "metadata.json").expected_requests is None


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generator", ["vegeta", "k6", "artillery"])
def test_headers_and_bodies_arrive_as_they_were_declared(bench, generator: str) -> None:
    body = 'one {{ $env.HOME }} `${1}` "two"\n{{ url }}'
    request = {"method": "POST", "body": body}
    it = bench(generator, headers=HOSTILE, request=request, query="?a={{b}}&c=%7B%20$x", duration="1s")
    it.collect()
    recorded = it.recorded()
    assert len(recorded) == 80
    for seen in recorded:
        assert (seen["method"], seen["body"]) == ("POST", body)
        assert unquote(seen["path"]) == "/page?a={{b}}&c={ $x"
        given = {key.lower(): value for key, value in seen["headers"].items()}
        assert {key: given[key.lower()] for key in HOSTILE} == {
            key: value.encode().decode("latin-1") for key, value in HOSTILE.items()
        }


@pytest.mark.parametrize("generator", ["vegeta", "k6", "artillery"])
def test_headers_are_drawn_for_each_request_and_stand_nowhere(bench, generator: str, tmp_path: Path) -> None:
    tokens = [f"Bearer sesame-{number}-{{{{ url }}}}" for number in range(5)]
    (tmp_path / "tokens.txt").write_text("\n".join(tokens) + "\n\n")
    it = bench(generator, request={"draw": {"X-User": {"file": str(tmp_path / "tokens.txt")}}}, duration="1s")
    it.collect()
    drawn = [seen["headers"].get("X-User", seen["headers"].get("x-user")) for seen in it.recorded()]
    assert len(drawn) == 80 and set(drawn) == set(tokens)
    assert max(drawn.count(token) for token in tokens) < 40  # by chance in one of 10^10 runs
    declared = metadata.read(it.cell.path / "metadata.json").request
    assert declared["draw"]["X-User"]["values"] == 5
    logs = [file for file in (it.folder / "logs").rglob("*") if file.is_file()]
    for file in [*it.cell.path.iterdir(), *logs]:
        assert b"sesame" not in raw(file), file
    assert not any("sesame" in line for line in it.said)
    (tmp_path / "tokens.txt").write_text("another")
    with pytest.raises(LoadstoneError, match="has changed since"):
        it.collect(2)


def raw(file: Path) -> bytes:
    return zstandard.open(file).read() if file.suffix == ".zst" else file.read_bytes()


def test_proxies_and_options_of_the_environment_are_passed_by(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("K6_VUS", "7")
    monkeypatch.setenv("K6_ITERATIONS", "1")
    it = bench("k6", duration="1s")
    it.collect()
    assert by_scenario(it) == {"test": 80}
    assert {point["tags"]["status"] for point in points(it)} == {"200"}


def test_k6_follows_no_redirect_which_would_be_a_request_more(bench) -> None:
    it = bench("k6", "--redirect", duration="1s")
    it.collect()
    assert by_scenario(it) == {"test": 80}
    assert {point["tags"]["status"] for point in points(it)} == {"302"}


# --- a user's own script ----------------------------------------------------------------------------------------------

SCRIPT = """
import http from 'k6/http';
import { check } from 'k6';
const { request } = JSON.parse(open(__ENV.LOADSTONE));
export const options = { thresholds: { http_req_duration: ['max<0'] } };
export default function () {
  http.get(request.url, { headers: { 'X-Which': 'first', 'X-Cluster': __ENV.CLUSTER } });
  check(http.get(request.url, { headers: { 'X-Which': 'second' } }), { ok: (response) => response.status === 200 });
}
"""


ASK = "export function ask(url, users) { http.get(url, { headers: { 'X-Which': users ? which : 'none' } }); }\n"


def test_a_script_of_ones_own(bench, tmp_path: Path) -> None:
    file = tmp_path / "script.js"
    file.write_text(SCRIPT)
    script = {"file": str(file), "requests": 2, "environment": {"CLUSTER": "local", "PASSWORD": "sesame"}}
    it = bench("k6", rates=None, users=[2], iterations=5, duration=None, script=script)
    it.collect()  # its thresholds are crossed: that is a judgement, not a failure
    which = [seen["headers"]["X-Which"] for seen in it.recorded()]
    assert (which.count("first"), which.count("second")) == (10, 10)
    assert {seen["headers"].get("X-Cluster") for seen in it.recorded()} == {"local", None}
    content = json.loads((it.cell.path / "metadata.json").read_text())
    assert content["script"]["content"] == SCRIPT
    assert content["script"]["environment"]["CLUSTER"] == "local"
    assert "sesame" not in json.dumps(content)
    assert metadata.read(it.cell.path / "metadata.json").expected_requests == 20
    file.write_text(SCRIPT + "// changed")
    with pytest.raises(LoadstoneError, match=r"sweep.script has changed"):
        it.collect(2)


VISIT = """
import http from 'k6/http';
const { request } = JSON.parse(open(__ENV.LOADSTONE));
const key = 'https://127.0.0.1/?api_key=opensesame';
export default function () {
  http.get(`${request.url}?page=${__ITER}&token=${__ENV.PASSWORD}&sort=up`);
}
"""


def test_parameters_of_urls_in_a_scripts_points_are_not_archived(bench, tmp_path: Path) -> None:
    file = tmp_path / "script.js"
    file.write_text(VISIT)
    script = {"file": str(file), "environment": {"PASSWORD": "opensesame", "PEER": "http://peer/?sig=opensesame"}}
    it = bench("k6", rates=None, users=[1], iterations=5, duration=None, script=script)
    it.collect()
    assert {seen["path"].partition("&")[2] for seen in it.recorded()} == {"token=opensesame&sort=up"}
    urls = [point["tags"]["url"].partition("?")[2] for point in points(it)]
    assert urls == [f"page={number}&token=redacted&sort=up" for number in range(5)]
    files = [each for each in (tmp_path / "archive").rglob("*") if each.is_file()]
    contents = [zstandard.open(each).read() if each.suffix == ".zst" else each.read_bytes() for each in files]
    assert len(files) > 4 and not any(b"opensesame" in content for content in contents)
    record = json.loads((it.cell.path / "1.run.json").read_text())
    assert record["redacted"]["query"]["token"] >= 10  # in the tags name and url of each point
    file.write_text(VISIT.replace("opensesame", "opensesame "))
    with pytest.raises(LoadstoneError, match=r"the content of sweep.script.file"):
        it.collect(2)


def test_what_a_script_imports_and_opens_belongs_to_it(bench, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "main").mkdir()
    module, deep, users = tmp_path / "lib/ask.js", tmp_path / "lib/deep.js", tmp_path / "main/users.csv"
    module.write_text("import http from 'k6/http';\nimport { which } from './deep.js';\n" + ASK)
    deep.write_text("export const which = 'imported';\n")
    users.write_text("anna,sesame\n")
    file = tmp_path / "main/script.js"
    file.write_text(
        "import { ask } from '../lib/ask.js';\nconst { request } = JSON.parse(open(__ENV.LOADSTONE));\n"
        "const users = open(__ENV.USERS);\nexport default function () { ask(request.url, users); }\n"
    )
    script = {"file": str(file), "environment": {"USERS": "./users.csv"}}
    it = bench("k6", rates=None, users=[1], iterations=3, duration=None, script=script)
    recorded = json.loads((it.cell.path / "metadata.json").read_text())["script"]
    assert list(recorded["files"]) == ["../lib/ask.js", "../lib/deep.js", "users.csv"]
    assert recorded["files"]["../lib/deep.js"]["content"] == deep.read_text()
    assert "sesame" not in json.dumps(recorded)
    it.collect()
    assert {seen["headers"]["X-Which"] for seen in it.recorded()} == {"imported"}
    for changed in (deep, users):
        was = changed.read_text()
        changed.write_text(was + "// changed")
        name = os.path.relpath(changed, file.parent)
        with pytest.raises(LoadstoneError, match=rf"opened \(the content of {re.escape(name)}, which it reads\)"):
            it.collect(2)
        changed.write_text(was)
    it.collect(2)
    deep.unlink()
    with pytest.raises(LoadstoneError, match=r"lib/deep\.js can't be read"):
        it.collect(2)


def test_a_script_that_cannot_be_loaded_opens_no_sweep(bench, tmp_path: Path) -> None:
    file = tmp_path / "script.js"
    file.write_text("import { ask } from './absent.js';\nexport default function () { ask(); }\n")
    with pytest.raises(LoadstoneError, match=r"(?s)k6 ended with exit code \d+:.*absent\.js"):
        bench("k6", duration="1s", script={"file": str(file)})


def test_a_script_that_fails_ends_with_what_k6_says(bench, tmp_path: Path) -> None:
    file = tmp_path / "script.js"
    file.write_text("export default function () { exec.nothing(); }\nif (__VU > 0) { nonsense(); }\n")
    it = bench("k6", duration="1s", script={"file": str(file)})
    with pytest.raises(LoadstoneError, match=r"(?s)k6 ended with exit code \d+:.*script.js"):
        it.collect()
    it.assert_nothing_left()


# --- interruptions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generator", ["paced", "k6", "artillery"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_generator_that_is_interrupted_leaves_nothing(bench, generator: str, number: int) -> None:
    stages = [{"name": "steady", "rate": "100%", "duration": "30s"}]
    it = bench("vegeta" if generator == "paced" else generator, shape=stages, duration=None)
    killed: list[int] = []

    def interrupt() -> None:
        while it.served() < 20:
            time.sleep(0.02)
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself since
                if generator in " ".join(process.cmdline()[:2]):
                    os.kill(process.pid, number)
                    killed.append(process.pid)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(LoadstoneError, match=r"killed by|interrupted|exit code"):
        it.collect()
    thread.join()
    assert killed
    it.assert_nothing_left()


@pytest.mark.parametrize("generator", ["k6", "artillery", "paced"])
def test_a_target_that_dies_fails_the_run(bench, generator: str) -> None:
    shape = {"shape": [{"name": "steady", "rate": "100%", "duration": "20s"}], "duration": None}
    it = bench("vegeta" if generator == "paced" else generator, "--die-after", "40", **shape)
    with pytest.raises(LoadstoneError, match=r"the process 'server' ended \(exit code 7\)"):
        it.collect()
    it.assert_nothing_left()


def test_a_generator_that_is_not_installed_says_what_to_do(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    it = bench("k6", duration="1s")
    monkeypatch.setattr("loadstone.process._PROJECT_TOOLS", Path("/nowhere"))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LoadstoneError, match="'k6' was not found; `make k6` installs it"):
        it.collect()
    it.assert_nothing_left()
