"""A server that stands in for somebody else's service: over TLS or in the clear, with the answers that a test gives."""

import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import trustme

Answer = tuple[int, dict[str, str], str]  # status, headers, body


class StandIn:
    """`answer` gets method, path and headers (by lower-case name). `names` are those of its certificate; none: no TLS.

    With `clients` it wants a client certificate. `seen` has method, path and header Host of every request but those of
    the identity check.
    """

    def __init__(
        self,
        folder: Path,
        answer: Callable[[str, str, dict[str, str]], Answer],
        *names: str,
        clients: bool = False,
        address: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.seen: list[tuple[str, str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                if headers.get("user-agent") != "loadstone":
                    outer.seen.append((self.command, self.path, headers.get("host", "")))
                status, given, body = answer(self.command, self.path, headers)
                self.send_response_only(status)
                for name, value in {**given, "Content-Length": str(len(body.encode()))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            def do_GET(self) -> None:
                self.answer()

            def do_POST(self) -> None:
                self.answer()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(address, Handler)
        self.port = self.server.server_address[1]
        authority = trustme.CA()
        client = authority.issue_cert("client@example.com")
        self.ca, self.cert, self.key = (str(folder / name) for name in ("ca.pem", "client.pem", "client.key"))
        authority.cert_pem.write_to_path(self.ca)
        client.cert_chain_pems[0].write_to_path(self.cert)
        client.private_key_pem.write_to_path(self.key)
        if names:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert(*names).configure_cert(context)
            if clients:
                authority.configure_trust(context)
                context.verify_mode = ssl.CERT_REQUIRED
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
