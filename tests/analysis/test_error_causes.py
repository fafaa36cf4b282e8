"""Causes of failed requests: texts as tools really write them, and a bounded number of rows whatever a server sends."""

import json
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from loadstone import process, sql
from loadstone.analysis.error_causes import BY_NAME, CAUSES, MOST_TEXTS
from loadstone.tables import database
from support import misbehaving, rawfiles
from support.checkout import free_ports
from support.misbehaving import answering, envoy_before, not_accepting, serving
from tables.tabling import Project

SAMPLES = Path(__file__).parents[1] / "readers/samples"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def found(project: Project, results: bytes, rate: str = "100", duration: str = "1s") -> dict[tuple[str, str], int]:
    """Requests by side and cause."""
    options = {"rate": rate, "duration": duration}
    rawfiles.write_cell(project.archive, {"1.results.json": results}, rate=rate, testOptions=options)
    project.make()
    rows = project.rows("SELECT side, cause, sum(count)::BIGINT AS n FROM error_causes GROUP BY ALL")
    return {(row["side"], row["cause"]): row["n"] for row in rows}


def attacked(url: str, timeout: str = "10s") -> bytes:
    target = f"GET {url}\n".encode()
    options = ["-rate", "10", "-duration", "200ms", "-timeout", timeout]
    return rawfiles.vegeta("encode", "--to", "json", stdin=rawfiles.vegeta("attack", *options, stdin=target))


def sent_by_ours(url: str, timeout: str, folder: Path, connections: int) -> bytes:
    stage = {"rate": 10, "to": 10, "nanoseconds": 200_000_000, "requests": 2, "measured": True}
    plan = {"method": "GET", "url": url, "stages": [stage], "connections": connections}
    results = folder / "results"
    command = [process.find("paced"), f"-timeout={timeout}", f"-measured={results}", f"-others={os.devnull}"]
    subprocess.run(command, input=json.dumps(plan).encode(), check=True)
    return rawfiles.vegeta("encode", "--to", "json", str(results))


# --- texts of the real vegeta ----------------------------------------------------------------------------------------


@contextmanager
def nobody() -> Iterator[int]:
    yield free_ports(1)[0]


SERVERS = {
    "refused": (nobody, "http", "10s"),
    "reset": (partial(serving, misbehaving.resetting), "http", "10s"),
    "closed": (partial(serving, misbehaving.closing), "http", "10s"),
    "body_cut": (partial(serving, misbehaving.cut), "http", "10s"),
    "malformed": (partial(serving, answering(b"SSH-2.0-OpenSSH\r\n\r\n")), "http", "10s"),
    "tls": (partial(serving, answering(PLAIN)), "https", "10s"),
    "timeout_body": (partial(serving, misbehaving.slow_body), "http", "300ms"),
    # Go has one text for these.
    "timeout_before_headers": (partial(serving, misbehaving.silent), "http", "300ms"),
}


@pytest.mark.parametrize("cause", SERVERS)
def test_vegeta_against_a_server_that_fails_so(project, cause):
    server, scheme, timeout = SERVERS[cause]
    with server() as port:
        assert found(project, attacked(f"{scheme}://127.0.0.1:{port}/", timeout)) == {(BY_NAME[cause].side, cause): 2}


@pytest.mark.parametrize("connections", [0, 2])
@pytest.mark.parametrize("cause", SERVERS)
def test_the_program_that_sends_says_the_same(project, tmp_path, cause, connections):
    server, scheme, timeout = SERVERS[cause]
    with server() as port:
        results = sent_by_ours(f"{scheme}://127.0.0.1:{port}/", timeout, tmp_path, connections)
        assert found(project, results) == {(BY_NAME[cause].side, cause): 2}


def test_while_it_connects_vegeta_speaks_of_headers_too(project):
    with not_accepting() as port:
        causes = found(project, attacked(f"http://127.0.0.1:{port}/", "300ms"))
    assert causes == {("unknown", "timeout_before_headers"): 2}


def test_a_handshake_that_takes_too_long_is_a_timeout(project):
    with serving(misbehaving.silent) as port:
        causes = found(project, attacked(f"https://127.0.0.1:{port}/", "300ms"))
    # Two texts, and it is chance which comes.
    assert sum(causes.values()) == 2
    assert {cause.partition("_")[0] for _, cause in causes} == {"timeout"}


def test_a_name_that_nobody_has(project):
    assert found(project, attacked("http://nowhere.invalid/")) == {("client", "dns"): 2}


def test_a_load_generator_without_file_descriptors(project):
    """It may have fewer than it needs for connections that stay open."""
    limited = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (16, 16))
    command = [process.find("vegeta"), "attack", "-rate", "40", "-duration", "500ms", "-timeout", "1s"]
    with serving(misbehaving.silent) as port:
        target = f"GET http://127.0.0.1:{port}/\n".encode()
        done = subprocess.run(command, input=target, capture_output=True, check=True, preexec_fn=limited)
    causes = found(project, rawfiles.vegeta("encode", "--to", "json", stdin=done.stdout), "40", "500ms")
    assert causes["client", "file_descriptors"] > 5
    assert sum(causes.values()) == 20
    (suggested,) = project.rows("SELECT * FROM suggestions WHERE tag = 'GENERATOR_LIMITED'")
    number = causes["client", "file_descriptors"]
    assert (
        f"{number} of its 20 requests failed at the client: the load generator had no file descriptors left"
        in (suggested["evidence"])
    )


@pytest.mark.parametrize(
    ("text", "failed", "limited"),
    [
        ("dial tcp: socket: too many open files", 10, True),
        ("dial tcp: socket: too many open files", 9, False),
        ("dial tcp 10.0.0.1:80: connect: cannot assign requested address", 10, True),
        ("dial tcp: lookup nowhere: no such host", 500, False),
    ],
)
def test_a_generator_that_lacks_what_requests_take_is_suggested_though_it_was_punctual(project, text, failed, limited):
    start, late = rawfiles.START_NS, {"code": 0, "error": f'Get "http://10.0.0.1/": {text}'}
    requests = [
        rawfiles.line(seq, 10**6, sent_ns=start + seq * 10**6, **(late if seq < failed else {})) for seq in range(1000)
    ]
    found(project, b"".join(requests), rate="1000")
    suggested = project.rows("SELECT kind, run FROM suggestions WHERE tag = 'GENERATOR_LIMITED'")
    assert suggested == ([{"kind": "exhausted generator", "run": 1}] if limited else [])


def test_503_of_an_envoy_and_of_its_service_and_of_nobody_knows_whom(project, tmp_path):
    results = []
    with rawfiles.server() as port:
        for name, behind in (("missing", free_ports(1)[0]), ("refusing", port)):
            (tmp_path / name).mkdir()
            with envoy_before(behind, tmp_path / name) as proxy:
                results.append(attacked(f"http://127.0.0.1:{proxy}/503"))
        results.append(attacked(f"http://127.0.0.1:{port}/503"))
    for number, content in enumerate(results, 1):
        rawfiles.write_cell(project.archive, {f"{number}.results.json": content})
    project.make()
    rows = project.rows("SELECT run, side, cause, code, error, count, n_texts FROM error_causes ORDER BY run")
    assert [tuple(row.values()) for row in rows] == [
        (1, "proxy", "http_503_by_proxy", 503, "Service Unavailable", 2, 1),
        (2, "server", "http_503_by_service", 503, "Service Unavailable", 2, 1),
        (3, "unknown", "http_503", 503, "Service Unavailable", 2, 1),
    ]
    classes = dict(project.row("SELECT error_fractions FROM cells_all")["error_fractions"])
    assert classes == pytest.approx({cause: 1 / 3 for _, _, cause, *_ in (tuple(row.values()) for row in rows)})


# --- texts that nobody can have on purpose, or of other tools --------------------------------------------------------

# Go 1.25 (net, net/http, crypto/tls), k6 v1.8.1 (lib/netext/httpext/error_codes.go), Node.js as Artillery counts it.
TEXTS = {
    'Get "http://10.0.0.1/": dial tcp 10.0.0.1:80: connect: cannot assign requested address': "ports",
    'Get "http://10.0.0.1/": dial tcp 0.0.0.0:0->10.0.0.1:80: connect: no route to host': "no_route",
    'Get "http://10.0.0.1/": dial tcp 10.0.0.1:80: connect: network is unreachable': "no_route",
    'Get "http://10.0.0.1/": dial tcp 10.0.0.1:80: i/o timeout': "timeout_connecting",
    'Get "http://10.0.0.1/": dial tcp 10.0.0.1:80: connect: connection timed out': "timeout_connecting",
    "dial tcp: lookup slow.example on 10.0.0.1:53: read udp 10.0.0.2:5->10.0.0.1:53: i/o timeout": "dns",
    'Get "https://10.0.0.1/": net/http: TLS handshake timeout': "timeout_tls",
    'Get "http://10.0.0.1/": net/http: timeout awaiting response headers': "timeout_headers",
    'Get "http://10.0.0.1/": context canceled': "cancelled",
    "tls: failed to verify certificate: x509: certificate signed by unknown authority": "tls",
    "http2: server sent GOAWAY and closed the connection; LastStreamID=7, ErrCode=NO_ERROR": "http2",
    "stream error: stream ID 5; REFUSED_STREAM; received from peer": "http2",
    "write tcp 1.2.3.4:5->1.2.3.4:6: write: broken pipe": "reset",
    "http: server closed idle connection": "closed",
    'Get "/a": stopped after 10 redirects': "redirects",
    "dial: i/o timeout": "timeout_connecting",
    "dial: connection refused": "refused",
    "read: connection reset by peer": "reset",
    "lookup: no such host": "dns",
    "request timeout": "timeout",
    "error_code 1050": "timeout",
    "error_code 1101": "dns",
    "error_code 1212": "refused",
    "x509: unknown authority": "tls",
    "http2: stream error with http2 ErrCode REFUSED_STREAM": "http2",
    "ECONNREFUSED": "refused",
    "ETIMEDOUT": "timeout",
    "connect ETIMEDOUT 10.0.0.1:80": "timeout_connecting",
    "getaddrinfo EAI_AGAIN shop.example": "dns",
    "socket hang up": "closed",
    "": "no_text",
    "something new at 10.0.0.7:4711 after 31 tries": "unknown",
}


def test_texts_that_other_tools_and_rarer_faults_leave(project):
    lines = [rawfiles.line(seq, code=0, error=text) for seq, text in enumerate(TEXTS)]
    causes = found(project, b"".join(lines))
    expected = {}
    for cause in TEXTS.values():
        key = BY_NAME[cause].side, cause
        expected[key] = expected.get(key, 0) + 1
    assert causes == expected


def test_codes(project):
    codes = [200, 204, 302, 399, 400, 429, 499, 500, 502, 503, 504, 101, 600, 999_999]
    causes = found(project, b"".join(rawfiles.line(seq, code=code, error="") for seq, code in enumerate(codes)))
    assert causes == {
        ("server", "http_4xx"): 3,
        ("unknown", "http_5xx"): 3,
        ("unknown", "http_503"): 1,
        ("unknown", "http_other"): 3,
    }


def test_every_failure_has_a_cause_and_each_counts_once(project):
    lines = [rawfiles.line(seq, code=seq % 7 * 100, error=f"text {seq % 3}") for seq in range(210)]
    causes = found(project, b"".join(lines))
    assert sum(causes.values()) == project.row("SELECT count(error_class) AS n FROM requests")["n"] == 150


@pytest.mark.parametrize(("sample", "count"), [("one.artillery.json", 29), ("two.artillery.json.zst", 21)])
def test_errors_that_artillery_counts_without_a_request(project, sample, count):
    content = (SAMPLES / sample).read_bytes()
    name = "1." + sample.partition(".")[2]
    rawfiles.write_cell(project.archive, {name: content}, testMode="artillery", generator={"name": "artillery"})
    project.make()
    rows = project.rows("SELECT side, cause, code, error, count FROM error_causes WHERE code = 0")
    assert [tuple(row.values()) for row in rows] == [("server", "reset", 0, "ECONNRESET", count)]


REPORT = """Requests      [total, rate, throughput]         100, 10.10, 8.08
Duration      [total, attack, wait]             9.901s, 9.9s, 1ms
Latencies     [min, mean, 50, 90, 95, 99, max]  1ms, 2ms, 2ms, 3ms, 3ms, 4ms, 5ms
Bytes In      [total, mean]                     500, 5.00
Bytes Out     [total, mean]                     0, 0.00
Success       [ratio]                           80.00%
Status Codes  [code:count]                      0:5  200:70  302:10  404:3  503:12
Error Set:
503 Service Unavailable
"""


def test_codes_of_a_report_are_causes_where_no_request_is_left(project):
    codes = {"0": 5, "200": 70, "302": 10, "404": 3, "503": 12}
    summary = {"requests": 100, "success": 0.8, "status_codes": codes, "latencies": {"mean": 2e6}}
    files = {"1.summary.json": json.dumps(summary).encode(), "2.vegeta.txt": REPORT.encode()}
    rawfiles.write_cell(project.archive, files)
    beside = {"1.summary.json": files["1.summary.json"], "1.results.json": rawfiles.line(0, code=500)}
    rawfiles.write_cell(project.archive, beside, variant="with_requests")
    project.make()
    rows = project.rows("SELECT variant, run, side, cause, code, error, count FROM error_causes ORDER BY ALL")
    told = [("unknown", "http_503", 503, "", 12), ("unknown", "no_text", 0, "", 5), ("server", "http_4xx", 404, "", 3)]
    assert [tuple(row.values())[1:] for row in rows if row["variant"] != "with_requests"] == [
        (run, *each) for run in (1, 2) for each in sorted(told)
    ]
    assert [(row["code"], row["count"]) for row in rows if row["variant"] == "with_requests"] == [(500, 1)]


# --- texts that group, and many --------------------------------------------------------------------------------------


def test_equal_errors_are_one_row(project):
    texts = [
        f'Get "http://10.0.{n}.1:80{n}/a?b={n}": strange thing no. {n} at [fe80::{n}%eth0]:{n} after {n}.5s '
        f"(request 0000000{n}-0000-4000-8000-00000000000{n})"
        for n in range(10)
    ]
    rawfiles.write_cell(
        project.archive,
        {"1.results.json": b"".join(rawfiles.line(n, code=0, error=text) for n, text in enumerate(texts))},
    )
    project.make()
    row = project.row("SELECT cause, error, count, n_texts FROM error_causes")
    assert row == {
        "cause": "unknown",
        "error": 'Get "<address>": strange thing no. # at <address> after # (request <id>)',
        "count": 10,
        "n_texts": 1,
    }


def test_a_server_that_says_something_else_each_time_fills_no_table(project):
    letters = ["".join(chr(97 + n // 26**digit % 26) for digit in range(3)) for n in range(5000)]
    lines = [rawfiles.line(n, code=400 + n % 1000, error=f"said {text}" * 40) for n, text in enumerate(letters)]
    lines += [rawfiles.line(5000 + n, code=0, error="EOF") for n in range(9)]
    rawfiles.write_cell(project.archive, {"1.results.json": b"".join(lines)})
    project.make()
    rows = project.rows("SELECT * FROM error_causes")
    named = [row for row in rows if row["error"] is not None]
    assert len(named) == MOST_TEXTS
    assert len(rows) - len(named) <= len(CAUSES)
    assert sum(row["count"] for row in rows) == 5009
    assert sum(row["n_texts"] for row in rows) == 5001
    assert named[0]["cause"] == "closed"  # the most frequent first
    assert max(len(row["error"]) for row in named) <= 200


def test_runs_and_streams_apart_and_no_warm_up(project):
    fail = [rawfiles.line(seq, code=0, error="EOF") for seq in range(3)]
    files = {
        "1.results.json": b"".join(fail),
        "2.results.json": fail[0] + rawfiles.line(1) + rawfiles.line(2),
        "2.warmups.json": b"".join(fail),
        "2.presidio.results.json": b"".join(fail[:2]),
    }
    rawfiles.write_cell(project.archive, files)
    project.make()
    rows = project.rows("SELECT run, stream, count FROM error_causes ORDER BY ALL")
    assert [tuple(row.values()) for row in rows] == [(1, "main", 3), (2, "main", 1), (2, "presidio", 2)]


def test_one_run_more_costs_its_own_cell_alone(project, monkeypatch):
    fail = rawfiles.line(0, code=0, error="EOF")
    for variant in ("plain", "istio"):
        rawfiles.write_cell(project.archive, {"1.results.json": fail}, variant=variant)
    project.make()
    computed: list[str] = []
    rows = database.rows

    def noting(connection, query, **values):
        if query == sql.load("error_causes"):
            computed.extend(Path(file).stem for file in values["files"])
        return rows(connection, query, **values)

    monkeypatch.setattr(database, "rows", noting)
    rawfiles.write_cell(project.archive, {"2.results.json": fail}, variant="istio")
    project.make()
    assert computed == ["100_istio"]
    assert len(project.rows("SELECT * FROM error_causes")) == 3


def test_the_list_of_causes_is_sound():
    assert len(BY_NAME) == len(CAUSES)
    assert {each.side for each in CAUSES} == {"client", "server", "proxy", "unknown"}
    assert all(each.text for each in CAUSES)
