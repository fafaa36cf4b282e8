"""metrics.k8s.io/v1beta1 in one file: `python fake_metrics.py PORT CERTIFICATE KEY PODS`.

Stands behind the API server as an aggregated API, as metrics-server does. PODS is a JSON file, read at each request:
`{"namespace/pod": {"cpu": "12m", "memory": "34Mi"}}`, or with a time and several containers
`{"namespace/pod": {"timestamp": "2026-11-21T11:30:00Z", "containers": [{"cpu": "12m", "memory": "34Mi"}]}}`.
"""

import json
import ssl
import sys
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

VERSION = "metrics.k8s.io/v1beta1"
VERBS = ["get", "list"]
PODS_FILE = Path(sys.argv[4])


def pod_metrics(key: str, pod: dict[str, Any]) -> dict[str, Any]:
    namespace, name = key.split("/")
    now = pod.get("timestamp") or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "kind": "PodMetrics",
        "apiVersion": VERSION,
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": now},
        "timestamp": now,
        "window": "15s",
        "containers": [{"name": "app", "usage": usage} for usage in pod.get("containers", [pod])],
    }


def discovery() -> dict[str, Any]:
    pods = {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": VERBS}
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": VERSION, "resources": [pods]}


def answer(path: list[str]) -> dict[str, Any] | None:
    """The body for a path below /apis/metrics.k8s.io/v1beta1; None when there is nothing."""
    if path == [""]:
        return discovery()
    namespace = path[1] if path[0] == "namespaces" and path[2:3] == ["pods"] else None
    if namespace is None and path[0] != "pods":
        return None
    usages = json.loads(PODS_FILE.read_text())
    items = [pod_metrics(key, usage) for key, usage in sorted(usages.items())]
    items = [item for item in items if namespace in (None, item["metadata"]["namespace"])]
    if len(path) < 4:
        return {"kind": "PodMetricsList", "apiVersion": VERSION, "metadata": {}, "items": items}
    return next((item for item in items if item["metadata"]["name"] == path[3]), None)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, root = self.path.split("?")[0], f"/apis/{VERSION}"
        found = answer(path.removeprefix(root).strip("/").split("/")) if path.startswith(root) else None
        body = found or {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        data = json.dumps(body).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
