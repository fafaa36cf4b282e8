"""A sweep against the little server of `server.py`, collected in the test's own process."""

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import psutil
import zstandard
from loadstone.archive import Campaign, Cell
from loadstone.archive.stages import number_text
from loadstone.collect import sweep
from loadstone.collect.generators import k6
from loadstone.collect.run import collect_run
from loadstone.config import check, load_shapes

from support.checkout import PROJECT, free_ports

RATE = 20
_numbers = itertools.count()


class Bench:
    """A sweep of one variant against one server, whose options can be changed."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        headers: dict[str, str] | None = None,
        request: dict[str, Any] | None = None,
        query: str = "",
        **changes: Any,
    ) -> None:
        """`request` are keys of the variant, `changes` of the sweep (None: left out)."""
        self.folder = folder
        self.hits = folder / "hits"
        self.hits.mkdir(parents=True)
        (port,) = free_ports(1)
        self.port = port
        command = [sys.executable, str(PROJECT / "tests/support/server.py"), str(port), str(self.hits), *options]
        url = f"http://127.0.0.1:{port}"
        self.target = {
            "kind": "local",
            "ready_timeout": "10s",
            "processes": {"server": {"command": command, "port": port, "ready": f"{url}/ready"}},
            "variants": {
                "only": {
                    "url": f"{url}/page{query}",
                    "headers": headers or {},
                    "processes": ["server"],
                    "expect": {"status": 200, "body_contains": "the page", "headers": {"X-Name": "right"}},
                }
            },
        }
        declared = {"app": "app", "variants": ["only"], "rates": [100], "runs": 2, "duration": "500ms", "timeout": "2s"}
        declared |= {"warmup": {"duration": "200ms", "min_rate": 50}} | changes
        declared = {key: value for key, value in declared.items() if value is not None}
        self.target["variants"]["only"] |= request or {}
        self.script = declared.get("script")
        config = {"archive": str(folder / "archive"), "host": "here", "sweep": declared, "target": self.target}
        self.campaign: Campaign = sweep.open_sweep(config, {}, lambda _: None, k6.script_files(config))
        self.cell = Cell(self.campaign, number_text(load_shapes.loads(declared)[0]), "only")
        self.said: list[str] = []
        self.phases: list[str] = []
        self._others = _children()

    def collect(self, run: int = 1) -> None:
        logs, log, on_phase = self.folder / "logs", self.said.append, self.phases.append
        collect_run(self.cell, run, self.target, host="here", logs=logs, log=log, script=self.script, on_phase=on_phase)

    @property
    def told(self) -> list[str]:
        """What it said, but for waiting for others who had the machine."""
        return [line for line in self.said if not line.startswith("waiting: ")]

    def lines(self, name: str) -> list[dict[str, Any]]:
        with zstandard.open(self.cell.path / name) as file:
            return [json.loads(line) for line in file.read().splitlines()]

    def served(self) -> int:
        requests = self.hits / "requests"
        return len(requests.read_text().splitlines()) if requests.exists() else 0

    def recorded(self) -> list[dict[str, Any]]:
        """Requests as the server saw them (with `--record`), but for those that asked who it is."""
        lines = [json.loads(line) for line in (self.hits / "recorded").read_text().splitlines()][3:]
        keys = ("time_s", "method", "path", "headers", "body", "port")
        return [dict(zip(keys, line, strict=True)) | {"headers": dict(line[3])} for line in lines]

    def assert_nothing_left(self) -> None:
        files = {file.name for file in self.cell.path.iterdir()}
        assert files == {"metadata.json"}
        assert _children() <= self._others


def _children() -> set[psutil.Process]:
    """What this process has started and still runs."""
    return {each for each in psutil.Process().children(recursive=True) if each.status() != psutil.STATUS_ZOMBIE}


def configured(folder: Path, generator: str, script: dict[str, Any] | None = None, **variant: Any) -> dict[str, Any]:
    """A checked configuration with one variant, which somebody else has started."""
    declared = {
        "archive": str(folder / "archive"),
        "tables": str(folder / "tables"),
        "reports": str(folder / "reports"),
        "host": "here",
        "target": {
            "kind": "local",
            "variants": {"only": {"expect": {"status": 200, "body_contains": "the page"}, **variant}},
        },
        "sweep": {
            "app": f"app{next(_numbers)}",
            "variants": ["only"],
            "generator": generator,
            "rates": [RATE],
            "runs": 1,
            "duration": "1s",
            "timeout": "2s",
            **({"script": script} if script else {}),
        },
    }
    return check(declared)
