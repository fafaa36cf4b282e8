"""How requests reach a variant: every setting by every load generator, against a real Envoy and its access log."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loadstone.archive import Cell
from loadstone.collect import sweep
from loadstone.collect.generators import k6
from loadstone.collect.run import collect_run
from loadstone.collect.targets.base import RunFailedError
from loadstone.config import check
from loadstone.config.connection import Connection
from loadstone.errors import LoadstoneError
from support.bench import RATE, configured
from support.generators import require
from support.tls import TlsServer

GENERATORS = ("vegeta", "serial", "k6", "artillery")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    found = TlsServer(tmp_path_factory.mktemp("tls"))
    yield found
    found.close()


def measure(folder: Path, generator: str, **variant: Any) -> dict[str, Any]:
    """Collect one run; returns its record."""
    if generator in ("k6", "artillery"):
        require(generator)
    config = configured(folder, generator, **variant)
    campaign = sweep.open_sweep(config, {}, lambda _: None, k6.script_files(config))
    cell = Cell(campaign, str(RATE), "only")
    collect_run(cell, 1, config["target"], host="here", logs=folder / "logs", log=lambda _: None)
    record: dict[str, Any] = json.loads((cell.path / "1.run.json").read_text())
    return record


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_private_authority_a_name_that_dns_does_not_know_and_its_own_certificate(
    server: TlsServer, tmp_path: Path, generator: str
) -> None:
    before = len(server.requests())
    record = measure(
        tmp_path,
        generator,
        url=f"https://a.test:{server.tls}/page",
        resolve=f"127.0.0.1:{server.tls}",
        tls={"ca": server.ca},
    )
    logged = server.requests()[before:]
    assert len(logged) == RATE
    assert {line["sni"] for line in logged} == {"a.test"}
    assert {line["host"] for line in logged} == {f"a.test:{server.tls}"}
    protocol = "http1" if generator == "artillery" else "http2"
    assert {line["protocol"] for line in logged} == {{"http1": "HTTP/1.1", "http2": "HTTP/2"}[protocol]}
    assert record["identity"]["negotiated"]["protocol"] == protocol
    assert {each["protocol"] for each in record.get("negotiated", [])} <= {protocol}
    if generator in ("vegeta", "serial"):
        assert [each["certificate"] for each in record["negotiated"]] == [
            record["identity"]["negotiated"]["certificate"]
        ]


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_server_name_http1_and_a_connection_for_each_request(
    server: TlsServer, tmp_path: Path, generator: str
) -> None:
    before = len(server.requests())
    record = measure(
        tmp_path,
        generator,
        url=f"https://127.0.0.1:{server.tls}/page",
        tls={"ca": server.ca, "server_name": "b.test"},
        protocol="http1",
        keepalive=False,
    )
    logged = server.requests()[before:]
    assert {line["sni"] for line in logged} == {"b.test"}
    assert {line["host"] for line in logged} == {f"127.0.0.1:{server.tls}"}
    assert {line["protocol"] for line in logged} == {"HTTP/1.1"}
    assert len({line["connection"] for line in logged}) == len(logged) == RATE
    if generator in ("vegeta", "serial"):
        assert sum(each["handshakes"] for each in record["negotiated"]) == RATE


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_client_certificate_and_any_certificate_of_the_server(
    server: TlsServer, tmp_path: Path, generator: str
) -> None:
    before = len(server.requests())
    measure(
        tmp_path,
        generator,
        url=f"https://127.0.0.1:{server.mutual}/page",
        tls={"insecure": True, "cert": server.cert, "key": server.key},
    )
    assert len(server.requests()[before:]) == RATE
    secret = Path(server.key).read_bytes().splitlines()[1]
    written = [path for path in tmp_path.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert written == []


@pytest.mark.parametrize("generator", ["vegeta", "serial"])
def test_http2_without_tls(server: TlsServer, tmp_path: Path, generator: str) -> None:
    before = len(server.requests())
    record = measure(tmp_path, generator, url=f"http://127.0.0.1:{server.clear}/page", protocol="h2c")
    assert {line["protocol"] for line in server.requests()[before:]} == {"HTTP/2"}
    assert [each["protocol"] for each in record["negotiated"]] == ["h2c"]
    assert record["identity"]["negotiated"] == {"protocol": "h2c"}


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ({"protocol": "h2c"}, "the generator k6 does not send h2c"),
        ({"tls": {"insecure": True}}, "has no effect, because the URL begins with http://"),
        ({"protocol": "http2"}, "http2 needs TLS"),
        ({"protocol": "http3"}, "no load generator here sends HTTP/3"),
        ({"url": "https://x/", "tls": {"cert": "a"}}, "cert and key need each other"),
        ({"url": "https://x/", "tls": {"ca": "a", "insecure": True}}, "ca has no effect"),
        ({"resolve": "x"}, "ADDRESS:PORT"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, variant: dict[str, Any], said: str) -> None:
    with pytest.raises(LoadstoneError, match=said):
        configured(tmp_path, "k6", **{"url": "http://127.0.0.1/", **variant})


@pytest.mark.parametrize("protocol", ["http2", "h2c"])
def test_artillery_sends_http1_only(tmp_path: Path, protocol: str) -> None:
    url = {"http2": "https://127.0.0.1/", "h2c": "http://127.0.0.1/"}[protocol]
    with pytest.raises(LoadstoneError, match=f"target.variants.only.protocol: the generator artillery .*{protocol}"):
        configured(tmp_path, "artillery", url=url, protocol=protocol)


@pytest.mark.parametrize(
    ("port", "tls", "said"),
    [
        ("tls", None, "tls.ca of the variant"),
        ("tls", "other_ca", "tls.ca of the variant"),
        ("mutual", "ca", "tls.cert and tls.key"),
    ],
)
def test_an_error_names_the_key_to_set(
    server: TlsServer, tmp_path: Path, port: str, tls: str | None, said: str
) -> None:
    declared = {"tls": {"ca": getattr(server, tls)}} if tls else {}
    with pytest.raises(RunFailedError, match=said):
        measure(tmp_path, "vegeta", url=f"https://127.0.0.1:{getattr(server, port)}/page", **declared)


def test_a_certificate_of_another_name_is_refused(server: TlsServer, tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="names another host to verify"):
        measure(
            tmp_path,
            "vegeta",
            url=f"https://c.test:{server.mutual}/page",
            resolve=f"127.0.0.1:{server.mutual}",
            tls={"ca": server.ca, "cert": server.cert, "key": server.key},
        )


def test_a_file_that_can_not_be_used_is_named(server: TlsServer, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for tls, said in [
        ({"ca": str(tmp_path / "none.pem")}, r"where\.tls\.ca: .*none.pem can't be read: No such file"),
        ({"ca": str(empty)}, r"where\.tls\.ca: .*empty.pem is not a PEM file"),
        ({"cert": server.cert, "key": server.ca}, r"where\.tls\.cert .* and where\.tls\.key .* can't be used"),
    ]:
        with pytest.raises(LoadstoneError, match=said):
            Connection.of({"tls": tls}, "where")


def test_of_a_private_key_beside_certificates_nothing_is_passed_on(server: TlsServer, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_text(Path(server.key).read_text() + Path(server.ca).read_text() + Path(server.cert).read_text())
    found = Connection.of({"tls": {"ca": str(both)}}, "where")
    assert found.ca is not None and "PRIVATE KEY" not in found.ca and found.ca.count("BEGIN CERTIFICATE") >= 2
    with pytest.raises(LoadstoneError, match=r"where\.tls\.ca: .* holds no certificate"):
        Connection.of({"tls": {"ca": server.key}}, "where")


def test_the_connection_to_prometheus_is_checked_before_a_sweep() -> None:
    target = {
        "kind": "external",
        "resources": {"prometheus": {"url": "https://127.0.0.1:9090", "memory_mib": "up", "tls": {"cert": "c.pem"}}},
        "variants": {"a": {"url": "http://127.0.0.1:1/", "expect": {"status": 200, "body_contains": "x"}}},
    }
    sweep = {"app": "a", "variants": ["a"], "rates": [10], "runs": 1, "duration": "1s"}
    with pytest.raises(LoadstoneError, match=r"target\.resources\.prometheus\.tls: cert and key need each other"):
        check({"archive": "a", "tables": "t", "reports": "r", "host": "h", "sweep": sweep, "target": target})


def test_a_load_that_is_not_configured_can_not_be_selected() -> None:
    target = {
        "kind": "external",
        "variants": {"a": {"url": "http://127.0.0.1:1/", "expect": {"status": 200, "body_contains": "x"}}},
    }
    sweep = {"app": "a", "variants": ["a"], "rates": [10], "runs": 1, "duration": "1s"}
    config = {"archive": "a", "tables": "t", "reports": "r", "host": "h", "sweep": sweep, "target": target}
    with pytest.raises(LoadstoneError, match=r"only\.rates: 20 is not in sweep\.rates"):
        check(config | {"only": {"rates": [20]}})
