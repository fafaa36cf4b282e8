"""A small web server as a target: `python server.py PORT FOLDER [options]`.

Writes a line per request to FOLDER/requests and one per start to FOLDER/starts; with `--record`, a request's time of
arrival (s), method, path, headers, body and its sender's port to FOLDER/recorded, as JSON. Answers /ready,
everything else with a fixed page, or with `--redirect` /page with a redirect to it. With `--secrets` headers and
its output have cookies and tokens. `--slow-after 20` lets all but the
first 20 wait for a minute. `--fail-starts 2,3` ends the second and third start at once, before it is ready.
"""

import argparse
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_SECRETS = (
    ("Set-Cookie", "sid=opensesame; Path=/"),
    ("Set-Cookie", "csrf=opensesame"),
    ("X-Next", "/page?n=2&token=opensesame"),
    ("X-Next", "/login/%2Fpage%3Ftoken%3Dopensesame"),
    ("Content-Location", "http://user:opensesame@127.0.0.1/page"),
)


def _send_secrets(handler: BaseHTTPRequestHandler, options: argparse.Namespace) -> None:
    for name, value in _SECRETS if options.secrets else ():
        handler.send_header(name, value)
        print(f"GET {handler.path} {value.partition('/page')[2]}", flush=True)


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--die-after", type=int, default=0)
    parser.add_argument("--slow-start", type=float, default=0.0)
    parser.add_argument("--drip", action="store_true")
    parser.add_argument("--status", type=int, default=200)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--redirect", action="store_true")
    parser.add_argument("--secrets", action="store_true")
    parser.add_argument("--token", default="")
    parser.add_argument("--fail-starts", default="")
    parser.add_argument("--slow-after", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    with (options.folder / "starts").open("a+") as starts:
        starts.write("started\n")
        starts.seek(0)
        number = len(starts.readlines())
    if str(number) in options.fail_starts.split(",") or options.fail_starts == "all":
        raise SystemExit("no licence today")
    time.sleep(options.slow_start)
    served = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            nonlocal served
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if options.record and self.path != "/ready":
                seen = [time.time(), self.command, self.path, self.headers.items(), body.decode(errors="replace")]
                seen.append(self.client_address[1])
                with (options.folder / "recorded").open("a") as record:
                    record.write(json.dumps(seen) + "\n")
            if self.path != "/ready":
                served += 1
                with (options.folder / "requests").open("a") as log:
                    log.write(f"{self.path} {self.headers['User-Agent']}\n")
                time.sleep(60 if served > options.slow_after > 0 else 0)
                if options.die_after and served > options.die_after:
                    os._exit(7)
            body = b"another page" if options.wrong else b"the page"
            status = options.status if self.headers.get("Authorization", "") == options.token else 401
            redirects = options.redirect and self.path == "/page"
            self.send_response(302 if redirects else status if self.path != "/ready" else 200)
            if redirects:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Name", "wrong" if options.wrong else "right")
            _send_secrets(self, options)
            self.end_headers()
            for letter in body if options.drip and self.path != "/ready" else []:
                time.sleep(0.5)
                self.wfile.write(bytes([letter]))
                self.wfile.flush()
            if not options.drip or self.path == "/ready":
                self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
