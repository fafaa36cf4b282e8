"""Artillery 2: stages become phases, with one request per virtual user; its own report is the result.

Artillery reports on a whole process, so the measured stage has a process of its own; the reports on the others are in
the run's record. The request reaches it as variables on standard input (`artillery.cjs`), because texts in Artillery's
configuration are templates.

Artillery's own ramps drop what is less than a request per second, so it gets numbers of requests, not rates.
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadstone.archive.stages import Attack, steps
from loadstone.collect.generators import base
from loadstone.collect.targets.base import Job, RunFailedError
from loadstone.config import redact
from loadstone.config.connection import address, host_port, is_address
from loadstone.process import Program

_PROCESSOR = Path(__file__).with_name("artillery.cjs")
_CONNECTIONS = 10_000  # kept alive and shared by all users, as vegeta does
# Variables of Artillery, Node.js and their libraries that change what is sent, or to whom.
_OPTIONS = ("ARTILLERY_", "WORKER", "CUSTOM_REPORTERS", "DEBUG", "NODE_", "OTEL_", "DD_")


class Artillery(base.LoadGenerator):
    """One run's load, sent by Artillery."""

    def __init__(self, job: Job, folder: Path) -> None:
        super().__init__(job, folder)
        self._started: list[tuple[Attack, Path]] = []

    def start(self, attack: Attack) -> Program:
        report = self._folder / f"artillery.{len(self._started)}"
        self._started.append((attack, report))
        config = report.with_name(f"{report.name}.config.json")
        names = base.one_line(base.headers(self._job))
        if not self._job.connection.keepalive:
            names["Connection"] = "close"
        config.write_text(json.dumps(self._config(attack, [*names, *self._job.draws])))
        command = ["artillery", "run", "--quiet", f"--output={report}", str(config)]
        variables = base.environment(*_OPTIONS, ARTILLERY_DISABLE_TELEMETRY="true", LOADSTONE="/dev/stdin")
        with base.as_stdin(json.dumps(self._given(list(names.values()))).encode()) as stdin:
            return Program(command, self._job.supervisor, self._job.attack_log, stdin=stdin, environment=variables)

    def _given(self, values: list[str]) -> dict[str, Any]:
        request = self._job.planned.request
        fixed = {f"header{index}": value for index, value in enumerate(values)}
        drawn = {f"header{index}": each for index, each in enumerate(self._job.draws.values(), len(values))}
        # The URL is treated as a template again after its variable was inserted.
        url = request["url"].replace("{", "%7B").replace("}", "%7D")
        return {"fixed": fixed | {"url": url, "body": request.get("body")}, "drawn": drawn, **_connected(self._job)}

    def _config(self, attack: Attack, names: list[str]) -> dict[str, Any]:
        request: dict[str, Any] = {"url": "{{ url }}", "name": "request"}
        request["headers"] = {name: f"{{{{ header{index} }}}}" for index, name in enumerate(names)}
        if self._job.planned.request.get("body") is not None:
            request["body"] = "{{ body }}"
        if self._job.connection.redirect_hosts is not None:  # Artillery has no list of allowed hosts
            request["followRedirect"] = False
        method = self._job.planned.request["method"].lower()
        return {
            "config": {
                "target": "/".join(self._job.planned.request["url"].split("/")[:3]),
                "processor": str(_PROCESSOR),
                "http": {"timeout": self._job.timeout_s, "pool": _CONNECTIONS},
                "phases": _phases(attack),
            },
            "scenarios": [{"name": "request", "beforeRequest": ["fill"], "flow": [{method: request}]}],
        }

    def finish(self) -> base.Results:
        job, files, others, removed = self._job, {}, [], redact.Removed()
        for attack, report in self._started:
            try:
                base.redact_file(report, removed)
                aggregate = json.loads(report.read_bytes())["aggregate"]
                sent = aggregate["counters"].get("http.requests", 0)
            except (OSError, ValueError, KeyError, TypeError):
                aggregate, sent = {}, 0
            if attack.measured is None:
                others.append({"stages": [stage.name for stage in attack.stages], "aggregate": aggregate})
                continue
            if not sent:
                raise RunFailedError(f"run {job.run} of {job.cell}: Artillery sent no request; see {job.attack_log}")
            files[".artillery.json"] = report
        return base.Results(files, ({"unmeasured": others} if others else {}) | {"redacted": removed.fields()})


def _connected(job: Job) -> dict[str, Any]:
    """Options of got (``https``) and of Node's agents (``agent``), which replace what follows from the URL."""
    connection, agent = job.connection, dict[str, Any]()
    https = {
        "certificateAuthority": connection.ca,
        "certificate": connection.cert,
        "key": connection.key,
        "rejectUnauthorized": not connection.insecure,
    }
    if connection.resolve:
        agent["host"], agent["port"] = address(connection.resolve)
    if urlsplit(job.planned.request["url"]).scheme == "https":  # else Node takes the header Host for the server's name
        name = connection.server_name or host_port(job.planned.request["url"])[0]
        agent["servername"] = "" if is_address(name) else name
    return {"https": {name: value for name, value in https.items() if value is not None}, "agent": agent}


def _phases(attack: Attack) -> list[dict[str, Any]]:
    """Phases with numbers of arrivals: unlike rates, Artillery gives these to a single worker and does not round."""
    found: list[dict[str, Any]] = []
    for stage in attack.stages:
        for duration_s, requests in steps(stage):
            length = f"{round(duration_s * 1000)}ms"
            sending = {"duration": length, "arrivalCount": requests} if requests else {"pause": length}
            found.append({"name": stage.name, **sending})
    return found
