"""A real Envoy that answers over TLS and in the clear, and writes down by which protocol each request came."""

import json
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
import yaml

from support.checkout import PROJECT, free_ports

PAGE = "the page"
_MANAGER = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
_FILE_LOG = "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog"
_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
_LOGGED = {
    "protocol": "%PROTOCOL%",
    "sni": "%REQUESTED_SERVER_NAME%",
    "connection": "%CONNECTION_ID%",
    "host": "%REQ(:AUTHORITY)%",
    "agent": "%REQ(USER-AGENT)%",
    "tls": "%DOWNSTREAM_TLS_VERSION%",
}


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class TlsServer:
    """One Envoy.

    On the port `tls` the server's name picks between certificates of a.test, b.test and 127.0.0.1. `mutual` wants a
    client certificate too. `clear` speaks HTTP/1.1 and h2c.
    """

    folder: Path
    authority: trustme.CA = field(default_factory=trustme.CA)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.tls, self.mutual, self.clear = free_ports(3)
        self.log = self.folder / "access.log"
        self.ca = self._write("ca.pem", self.authority.cert_pem)
        self.other_ca = self._write("other-ca.pem", trustme.CA().cert_pem)
        client = self.authority.issue_cert("client@a.test")
        self.cert = self._write("client.pem", client.cert_chain_pems[0])
        self.key = self._write("client.key", client.private_key_pem)
        config = self.folder / "envoy.yaml"
        config.write_text(yaml.safe_dump(self._config()))
        command = [PROJECT / ".venv/bin/envoy", "-c", config, "--use-dynamic-base-id", "-l", "error"]
        command += ["--file-flush-interval-msec", "100"]
        with (self.folder / "envoy.log").open("wb") as log:
            self._process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, start_new_session=True)

        deadline = time.monotonic() + 30
        while not all(map(_listens, (self.tls, self.mutual, self.clear))):
            assert self._process.poll() is None and time.monotonic() < deadline, (self.folder / "envoy.log").read_text()
            time.sleep(0.05)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)

    def requests(self, *, besides: str = "loadstone") -> list[dict[str, Any]]:
        """What it has logged so far, without the requests of the identity check."""
        time.sleep(0.3)
        lines = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return [line for line in lines if line["agent"] != besides]

    def _write(self, name: str, content: trustme.Blob) -> str:
        path = self.folder / name
        path.write_bytes(content.bytes())
        return str(path)

    def _config(self) -> dict[str, Any]:
        chains = [self._chain([name], [name]) for name in ("a.test", "b.test")]
        https = self._listener("tls", self.tls, [*chains, self._chain(["127.0.0.1"])])
        https["listener_filters"] = [
            {
                "name": "envoy.filters.listener.tls_inspector",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"
                },
            }
        ]
        mutual = self._listener("mutual", self.mutual, [self._chain(["127.0.0.1", "a.test"], mutual=True)])
        clear = self._listener("clear", self.clear, [{"filters": [self._manager()]}])
        return {"static_resources": {"listeners": [https, mutual, clear]}}

    def _listener(self, name: str, port: int, chains: list[dict[str, Any]]) -> dict[str, Any]:
        address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
        return {"name": name, "address": address, "filter_chains": chains}

    def _chain(self, names: list[str], match: list[str] | None = None, *, mutual: bool = False) -> dict[str, Any]:
        issued = self.authority.issue_cert(*names)
        chain = "".join(blob.bytes().decode() for blob in issued.cert_chain_pems)
        common: dict[str, Any] = {
            "alpn_protocols": ["h2", "http/1.1"],
            "tls_certificates": [
                {
                    "certificate_chain": {"inline_string": chain},
                    "private_key": {"inline_string": issued.private_key_pem.bytes().decode()},
                }
            ],
        }
        if mutual:
            common["validation_context"] = {"trusted_ca": {"filename": self.ca}}
        context = {"@type": _TLS, "common_tls_context": common, "require_client_certificate": mutual}
        found: dict[str, Any] = {
            "filters": [self._manager()],
            "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": context},
        }
        return found | ({"filter_chain_match": {"server_names": match}} if match else {})

    def _manager(self) -> dict[str, Any]:
        log = {"@type": _FILE_LOG, "path": str(self.log), "log_format": {"json_format": _LOGGED}}
        host = {
            "name": "all",
            "domains": ["*"],
            "routes": [
                {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": PAGE}}},
            ],
        }
        router = {"name": "envoy.filters.http.router", "typed_config": {"@type": _ROUTER}}
        return {
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": {
                "@type": _MANAGER,
                "stat_prefix": "all",
                "access_log": [{"name": "envoy.access_loggers.file", "typed_config": log}],
                "http_filters": [router],
                "route_config": {"name": "all", "virtual_hosts": [host]},
            },
        }
