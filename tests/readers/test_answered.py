"""Who gave an answer that is no success: real Envoys, and lines that must not mislead."""

import base64
import json

import pytest
from loadstone.readers.vegeta_raw import answered_by
from readers.reading import rows
from support import rawfiles
from support.checkout import free_ports
from support.misbehaving import envoy_before


def attack(port: int, path: str) -> bytes:
    target = f"GET http://127.0.0.1:{port}{path}\n".encode()
    return rawfiles.vegeta("attack", "-rate", "10", "-duration", "200ms", stdin=target)


@pytest.fixture(scope="module")
def failing(tmp_path_factory) -> bytes:
    """An attack on an Envoy whose service is not there."""
    with envoy_before(free_ports(1)[0], tmp_path_factory.mktemp("envoy")) as proxy:
        return attack(proxy, "/")


@pytest.fixture(scope="module")
def refusing(tmp_path_factory) -> bytes:
    """The same, its service answers 503 itself."""
    with rawfiles.server() as port, envoy_before(port, tmp_path_factory.mktemp("envoy")) as proxy:
        return attack(proxy, "/503")


@pytest.mark.parametrize("suffix", ["json", "csv", "bin"])
def test_an_envoy_and_its_service_are_told_apart(tmp_path, failing, refusing, suffix):
    for results, expected in ((failing, "proxy"), (refusing, "service")):
        content = results if suffix == "bin" else rawfiles.vegeta("encode", "--to", suffix, stdin=results)
        path = tmp_path / f"1.results.{suffix}"
        path.write_bytes(content)
        assert {(row["code"], row["answered_by"]) for row in rows(path)} == {(503, expected)}


def test_without_a_proxy_nothing_tells(tmp_path):
    with rawfiles.server() as port:
        content = rawfiles.vegeta("encode", "--to", "json", stdin=attack(port, "/503"))
    path = tmp_path / "1.results.json"
    path.write_bytes(content)
    assert {(row["code"], row["answered_by"]) for row in rows(path)} == {(503, None)}


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (b"no healthy upstream", b"", "proxy"),
        (b"upstream request timeout", b"", "proxy"),
        # Passed on from one Envoy by another: the text says more than the header.
        (b"no healthy upstream", b'{"X-Envoy-Upstream-Service-Time":["3"]}', "proxy"),
        (b"", b'{"L5d-Proxy-Error":["no endpoints"]}', "proxy"),
        (b"busy", b"x-envoy-upstream-service-time: 3", "service"),
        (b"<h1>no healthy upstream</h1>", b'{"Server":["envoy"]}', None),
        (b"", b"", None),
    ],
)
def test_what_tells(body, headers, expected):
    assert answered_by(body, headers) == expected


def test_a_text_that_looks_like_the_line_itself_misleads_nobody(tmp_path):
    path = tmp_path / "1.results.json"
    own = base64.b64encode(b"no healthy upstream").decode()
    path.write_bytes(
        rawfiles.line(0, code=503, error=f'503 ","body":"{own}"', body="", headers={})
        + rawfiles.line(1, code=503, error="503", body="not base64!", headers={})
        + rawfiles.line(2, code=200, body=own, headers={})
        + json.dumps({"seq": 3, "code": 503, "timestamp": "2026-11-21T11:00:00Z", "latency": 1}).encode()
        + b"\n"
    )
    assert [row["answered_by"] for row in rows(path)] == [None, None, None, None]
