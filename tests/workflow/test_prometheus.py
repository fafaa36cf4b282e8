"""CPU and memory of an external target, from a real Prometheus that scrapes a real exporter."""

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import chdir
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import duckdb
import pytest
from loadstone.collect.targets.base import UnsampledError
from loadstone.collect.targets.external.prometheus import PrometheusSampler
from support.checkout import Checkout, free_ports
from support.outside import Outside

CORES, MIB = 0.25, 48
QUERIES = {
    "cpu_millicores": "sum by (namespace) (rate(cpu_seconds_total[4s])) * 1000",
    "memory_mib": "sum by (namespace) (memory_bytes) / 1048576",
}


class Exporter(BaseHTTPRequestHandler):
    """Two pods of one namespace, which together use `CORES` and `MIB`."""

    @property
    def lines(self) -> list[str]:
        used = CORES * time.monotonic() / 2
        lines = [f'cpu_seconds_total{{namespace="shop",pod="web-{n}"}} {used}' for n in (1, 2)]
        return lines + [f'memory_bytes{{namespace="shop",pod="web-{n}"}} {MIB << 19}' for n in (1, 2)]

    def do_GET(self) -> None:
        body = "\n".join([*self.lines, ""]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its URL; it has a few seconds of samples."""
    if shutil.which("prometheus") is None:
        if os.environ.get("LOADSTONE_REQUIRE_PROMETHEUS") == "1":
            pytest.fail("there is no program prometheus")
        pytest.skip("there is no program prometheus (Debian's package)")
    folder = tmp_path_factory.mktemp("prometheus")
    exporter = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    (port,) = free_ports(1)
    scraped = f"127.0.0.1:{exporter.server_address[1]}"
    (folder / "prometheus.yml").write_text(
        f"scrape_configs: [{{job_name: app, scrape_interval: 1s, static_configs: [{{targets: ['{scraped}']}}]}}]"
    )
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while True:
        try:
            if b'"value"' in urlopen(f"{url}/api/v1/query?query=rate(cpu_seconds_total[4s])").read():
                break
        except OSError:
            pass
        assert time.monotonic() < deadline and server.poll() is None, (folder / "log").read_text()
        time.sleep(0.2)
    time.sleep(6)  # until rates are over samples at regular intervals only
    yield url
    server.terminate()
    server.wait()
    exporter.shutdown()


def test_samples_are_what_prometheus_has(prometheus: str) -> None:
    (sample,) = PrometheusSampler({"url": prometheus, **QUERIES}).sample()
    assert (sample.scope, sample.name) == ("namespace", "shop")
    assert sample.memory_mib == MIB
    assert sample.cpu_millicores == pytest.approx(1000 * CORES, rel=0.02)
    pods = PrometheusSampler({"url": f"{prometheus}/", "memory_mib": "memory_bytes / 1048576"}).sample()
    assert [(each.scope, each.name, each.memory_mib, each.cpu_millicores) for each in pods] == [
        ("pod", f"shop/web-{n}", MIB / 2, None) for n in (1, 2)
    ]
    (one,) = PrometheusSampler({"url": prometheus, "memory_mib": "scalar(sum(memory_bytes)) / 1048576"}).sample()
    assert (one.scope, one.name, one.memory_mib) == ("process", "target", MIB)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sum(", "Prometheus rejects the query: .*parse error"),
        ("memory_bytes[5s]", "the query does not return an instant vector"),
        ("vector(-5)", "the query returns -5, which is no memory_mib"),
        ("vector(1e300)", r"the query returns 1e\+300, which is no memory_mib"),
        (
            'label_replace(label_replace(memory_bytes, "container", "$1", "pod", "(.*)"), "pod", "web", "", "")',
            "several series of the query are named shop/web",
        ),
    ],
)
def test_a_query_that_can_not_be_used_is_named(prometheus: str, query: str, said: str) -> None:
    with pytest.raises(UnsampledError, match=f"target.resources.prometheus.memory_mib: {said}"):
        PrometheusSampler({"url": prometheus, "memory_mib": query}).sample()


def test_a_server_that_is_none_or_away_is_named(prometheus: str, tmp_path: Path) -> None:
    outside = Outside(tmp_path / "outside")
    with pytest.raises(UnsampledError, match=r"is not Prometheus|does not answer"):
        PrometheusSampler({"url": outside.url, "memory_mib": "up"}).sample()
    outside.close()
    with pytest.raises(UnsampledError, match="does not answer"):
        PrometheusSampler({"url": outside.url, "memory_mib": "up"}).sample()


@pytest.mark.parametrize(
    "series",
    [
        {"metric": [], "value": [1, "1"]},
        {"metric": {}, "value": [1e300, "1"]},
        {"metric": {}, "value": 1},
        {"metric": {}, "value": [1, "many"]},
        [],
    ],
)
def test_a_server_whose_answers_make_no_sense_is_named(series: object) -> None:
    class Nonsense(Exporter):
        lines = (json.dumps({"status": "success", "data": {"resultType": "vector", "result": [series]}}),)

    with ThreadingHTTPServer(("127.0.0.1", 0), Nonsense) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with pytest.raises(UnsampledError, match=r"is not Prometheus|does not answer"):
            PrometheusSampler({"url": url, "memory_mib": "up"}).sample()
        server.shutdown()


def test_a_sweep_has_the_usage_of_its_target(prometheus: str, pristine: Path, tmp_path: Path) -> None:
    outside = Outside(tmp_path / "outside")
    checkout = Checkout(pristine, tmp_path / "checkout")
    variant = outside.variant()
    del variant["prepare"], variant["cleanup"]
    resources = {"every": "500ms", "prometheus": {"url": prometheus, **QUERIES}}
    checkout.replace(target={"kind": "external", "resources": resources, "variants": {"plain": variant}})
    checkout.configure(sweep={"variants": ["plain"], "rates": [20], "runs": 1, "duration": "3s"})
    checkout.run("--cores", "1", "open")
    checkout.run("--cores", "all")
    outside.close()
    with chdir(checkout.path), duckdb.connect("results/loadstone.duckdb", read_only=True) as database:
        query = "SELECT scope, name, cpu_mean_millicores, memory_max_mib FROM resource_usage WHERE scope <> 'node'"
        found = {row[:2]: row[2:] for row in database.sql(query).fetchall()}
    cpu, memory = found["namespace", "shop"]
    assert memory == MIB and cpu == pytest.approx(1000 * CORES, rel=0.05)
    assert found["total", "TOTAL"] == (cpu, memory)
