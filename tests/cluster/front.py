"""A server in front of the API server that answers as it is told, for what the API server itself does seldom."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cluster.api import ApiError
from cluster.control_plane import ControlPlane

# What to do with a request: hand it on; hand it on and lose the answer; or answer (status, headers, body).
FORWARD, LOSE = "forward", "lose"
Fate = str | tuple[int, dict[str, str], Any]


class Front:
    """Used with `with`. Requests take their fate from the front of `fates`; when there is none they are handed on."""

    def __init__(self, plane: ControlPlane, *fates: Fate) -> None:
        self.fates = list(fates)
        self.seen: list[tuple[float, str, str]] = []
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                front.seen.append((time.monotonic(), self.command, self.path))
                fate = front.fates.pop(0) if front.fates else FORWARD
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                status, headers, answer = fate if isinstance(fate, tuple) else self.forward(body)
                if fate == LOSE:
                    self.close_connection = True
                    return
                data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def forward(self, body: Any) -> tuple[int, dict[str, str], Any]:
                try:
                    content_type = self.headers.get("Content-Type", "application/json")
                    return 200, {}, plane.api.call(self.command, self.path, body, content_type)
                except ApiError as error:
                    return error.status, {}, json.loads(error.text)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Front":
        threading.Thread(target=self._server.serve_forever, args=[0.05], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, file: Path) -> Path:
        """The administrator's way through this server, in a context named `front`."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "front",
            "clusters": [{"name": "front", "cluster": {"server": self.address}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "front", "context": {"cluster": "front", "user": "nobody"}}],
        }
        file.write_text(json.dumps(content))
        return file
