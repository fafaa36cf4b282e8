"""The page on which readers ask the tables: its server and how it is driven in a browser."""

import csv
import functools
import http.server
import threading
from pathlib import Path

from loadstone.report import query_page
from report.conftest import Watched


class Counting(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and remembers what was asked for, with headers of the test's choice."""

    asked: list[str]
    headers_sent: dict[str, str]

    def end_headers(self):
        for name, value in self.headers_sent.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_args):
        self.asked.append(self.path)


class Served:
    """A running server; `address` without a slash at its end."""

    def __init__(self, folder: Path, headers: dict[str, str] | None = None):
        self.asked: list[str] = []
        handler = type("Handler", (Counting,), {"asked": self.asked, "headers_sent": headers or {}})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=folder))
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_exception):
        self._server.shutdown()
        self._server.server_close()


class Asking(Watched):
    """The page in a browser."""

    def open(self, address: str) -> None:
        self.page.goto(address)

    def ask(self, query: str) -> list[list[str]] | str:
        """The rows of the answer as they are shown, NULL as None; or what is said to be wrong."""
        self.page.locator("#sql").fill(query)
        self.page.locator("#sql").press("Control+Enter")
        return self.answer()

    def answer(self) -> list[list[str]] | str:
        self.page.locator("#run:not([disabled])").wait_for(timeout=180_000)
        if self.page.locator("#error").is_visible():
            return self.page.locator("#error").inner_text()
        return self.page.evaluate(
            "[...document.querySelectorAll('#result tbody tr')].map((row) => [...row.cells].map("
            "(cell) => cell.classList.contains('null') ? null : cell.textContent))"
        )

    def columns(self) -> list[str]:
        return self.page.evaluate(
            "[...document.querySelectorAll('#result thead th')].map((cell) => cell.firstChild.textContent)"
        )

    def saved(self) -> list[list[str]]:
        """The rows of the downloaded file, its header first."""
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="Save the result as CSV").click()
        assert download.value.suggested_filename == "answer.csv"
        with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))


def examples() -> list[str]:
    return list(query_page.EXAMPLES)
