"""A small web server as a target: `python server.py PORT LOG [options]`.

Writes a line per request to LOG. Answers /ready, everything else with a fixed page.
"""

import argparse
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("log", type=Path)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--die-after", type=int, default=0)
    parser.add_argument("--slow-start", type=float, default=0.0)
    parser.add_argument("--drip", action="store_true")
    parser.add_argument("--status", type=int, default=200)
    parser.add_argument("--token", default="")
    options = parser.parse_args()
    time.sleep(options.slow_start)
    served = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            nonlocal served
            if self.path != "/ready":
                served += 1
                with options.log.open("a") as log:
                    log.write(f"{self.path} {self.headers['User-Agent']}\n")
                if options.die_after and served > options.die_after:
                    os._exit(7)
            body = b"another page" if options.wrong else b"the page"
            status = options.status if self.headers.get("Authorization", "") == options.token else 401
            self.send_response(status if self.path != "/ready" else 200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Name", "wrong" if options.wrong else "right")
            self.end_headers()
            for letter in body if options.drip and self.path != "/ready" else []:
                time.sleep(0.5)
                self.wfile.write(bytes([letter]))
                self.wfile.flush()
            if not options.drip or self.path == "/ready":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
