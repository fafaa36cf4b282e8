"""`make audit` against a service of the OSV API on this machine: known vulnerabilities, none, and nobody to ask."""

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ADVISORY = {
    "id": "GHSA-made-up",
    "summary": "made up for a test",
    "affected": [
        {
            "package": {"name": "jinja2", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.1"}]}],
        }
    ],
}


@contextmanager
def osv(answer: Callable[[str], list[dict]]) -> Iterator[str]:
    """A service that knows what `answer` says of a package; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            content = json.dumps({"vulns": answer(asked["package"]["name"])}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        server.server_close()


def audit(root: Path, url: str) -> tuple[int, str]:
    environment = os.environ | {"LOADSTONE_OSV_URL": url}
    command = [".venv/bin/python", "envs/audit.py"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_vulnerable_package_is_named(root: Path) -> None:
    with osv(lambda name: [ADVISORY] if name == "jinja2" else []) as url:
        code, said = audit(root, url)
    assert code == 1, said
    assert "audit: jinja2 3." in said and "GHSA-made-up; fixed in 99.1" in said
    assert " 0 unknown to the service, 1 vulnerabilities" in said


def test_where_nothing_is_known_of_any_it_ends_well(root: Path) -> None:
    with osv(lambda _: []) as url:
        code, said = audit(root, url)
    assert code == 0, said
    assert " 0 unknown to the service, 0 vulnerabilities" in said and int(said.split()[1]) > 100


def test_where_nobody_can_be_asked_it_says_so(root: Path) -> None:
    code, said = audit(root, "http://127.0.0.1:9/v1/query")
    assert code == 0, said
    assert said.startswith("audit: not done, advisories are not available here: ")
