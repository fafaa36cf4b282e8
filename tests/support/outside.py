"""An external target: one server that already runs, with commands that note in a file when they are run."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from support.checkout import PROJECT, Checkout, free_ports

# Every note is one write of one line, so that commands that are killed leave whole lines.
_NOTE = 'printf \'%s\\n\' "$1 $LOADSTONE_VARIANT" >> "$2"; sleep {}'


class Outside:
    """`url` is its page; `notes` what the commands have noted: ``prepare plain``, ``cleanup plain``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.file = folder / "notes"
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, str(PROJECT / "tests/support/server.py"), str(port), str(folder)]
        self._server = subprocess.Popen(command)
        deadline = time.monotonic() + 20
        while True:
            try:
                urlopen(f"{self.url}/ready").close()
                return
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def close(self) -> None:
        self._server.kill()
        self._server.wait()

    def notes(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    def command(self, word: str, *, takes_s: float = 0.0, then: str = "") -> list[str]:
        """A command that notes `word`."""
        return ["sh", "-c", _NOTE.format(takes_s) + then, "sh", word, str(self.file)]

    def variant(self, *, takes_s: float = 0.0, **changes: Any) -> dict[str, Any]:
        return {
            "url": f"{self.url}/page",
            "expect": {"status": 200, "body_contains": "the page"},
            "prepare": [self.command("prepare", takes_s=takes_s)],
            "cleanup": [self.command("cleanup", takes_s=takes_s)],
        } | changes

    def configure(self, checkout: Checkout, *, takes_s: float = 0.0, sweep: dict[str, Any] | None = None) -> None:
        """Two variants, each at one rate, twice."""
        variants = {name: self.variant(takes_s=takes_s) for name in ("plain", "envoy")}
        checkout.replace(target={"kind": "external", "variants": variants})
        checkout.configure(sweep={"app": "outside", "duration": "200ms", "warmup": {"duration": "0s"}, **(sweep or {})})


def assert_cleaned_up(notes: list[str]) -> None:
    """Each preparation was followed by its cleanup, once, before anything else was prepared."""
    assert notes
    assert notes[0::2] == [note.replace("cleanup", "prepare") for note in notes[1::2]], notes
    assert all(note.startswith("cleanup ") for note in notes[1::2]), notes
    assert len(notes) % 2 == 0, notes
