"""k6: the user's script or `k6.js`; stages become scenarios, the results are k6's raw points and its summary.

Request, timeouts and values of drawn headers reach the script as JSON on standard input, never as text in JavaScript.
The same JSON is k6's configuration file, with scenarios and other options, which options of a user's script override.
So neither credentials nor private keys are in a file with a name.

k6 has a Go module of its own (envs/tools/k6): in vegeta's module it would raise the versions of vegeta's dependencies.
"""

import json
import mmap
import os
import re
import socket
import tarfile
import tempfile
from collections.abc import Mapping
from fractions import Fraction
from math import ceil, lcm
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadstone.archive.stages import Attack, Stage
from loadstone.collect.generators import base
from loadstone.collect.targets.base import Job, RunFailedError
from loadstone.config import redact
from loadstone.config.connection import HTTP1, HTTP2, Connection, address, host_port
from loadstone.config.target import recordable, variant_identity
from loadstone.errors import LoadstoneError
from loadstone.process import Program, Supervisor, run

_SCRIPT = Path(__file__).with_name("k6.js")
_INPUT = "/dev/stdin"  # may be read several times: it is a file
_THRESHOLDS_CROSSED = 99  # of a user's script: the results are complete
# A request is not sent when no virtual user is free. So many are allocated beforehand (a thousand take 0.8 s and
# 120 MB), enough for a target that does not respond for a second.
_PREALLOCATED_VUS, _MAX_VUS = 2_000, 10_000
_TAGS = ["error", "error_code", "expected_response", "method", "proto", "scenario", "status"]
_COUNTED = ("http_reqs", "grpc_req_duration", "ws_sessions")  # what k6 sends: requests, calls, sessions
_TREND_STATS = ["count", "avg", "min", "med", "max", "p(75)", "p(90)", "p(95)", "p(99)", "p(99.9)"]


class K6(base.LoadGenerator):
    """One run's load, sent by k6. The measured stage has a process of its own: k6's summary is of a whole process."""

    succeeds_with = frozenset((0, _THRESHOLDS_CROSSED))

    def __init__(self, job: Job, folder: Path) -> None:
        super().__init__(job, folder)
        self._raw: list[Path] = []
        self._summary = folder / "k6.summary"
        self._script = job.script

    def start(self, attack: Attack) -> Program:
        raw = self._folder / f"k6.{len(self._raw)}.json"
        self._raw.append(raw)
        command = ["k6", "run", "--quiet", "--no-color", "--no-usage-report", "--address=", f"--config={_INPUT}"]
        command += [f"--out=json={raw}"]
        if attack.measured:
            command.append(f"--summary-export={self._summary}")
        command.append(self._script.get("file", str(_SCRIPT)))
        request = self._job.planned.request | {"header": base.headers(self._job)}
        request["url"], hosts = _url_and_hosts(request["url"], self._job.connection)
        connected = hosts | _tls(self._job.connection)
        requests = {stage.name: stage.requests for stage in attack.stages if stage.requests is not None}
        given = _script_input(request, self._job.timeout_s, self._job.draws, requests)
        variables = _environment(self._script, _INPUT) | self._tls_variables()
        with base.as_stdin(json.dumps(given | self._options(attack) | connected).encode()) as stdin:
            return Program(command, self._job.supervisor, self._job.attack_log, stdin=stdin, environment=variables)

    def _options(self, attack: Attack) -> dict[str, Any]:
        scenarios = {
            stage.name: _scenario(stage, self._job.timeout_s) | {"startTime": _microseconds(attack.start_s(stage))}
            for stage in attack.stages
            if stage.sends
        }
        found: dict[str, Any] = {
            "scenarios": scenarios,
            "discardResponseBodies": True,
            "summaryTrendStats": _TREND_STATS,
        }
        if not self._script:  # a user's script may need other tags
            found["systemTags"] = _TAGS
        return found

    def _tls_variables(self) -> dict[str, str | None]:
        """Variables by which Go trusts only the declared authority, and uses the declared protocol."""
        found: dict[str, str | None] = {}
        if self._job.connection.ca:
            file = self._folder / "ca.pem"
            file.write_text(self._job.connection.ca)
            found = {"SSL_CERT_FILE": str(file), "SSL_CERT_DIR": os.devnull}
        if self._job.connection.protocol == HTTP1:
            found["GODEBUG"] = ",".join(filter(None, [os.environ.get("GODEBUG"), "http2client=0"]))
        return found

    def finish(self) -> base.Results:
        job = self._job
        try:
            summary = json.loads(self._summary.read_bytes())
            sent = sum(summary["metrics"].get(name, {}).get("count", 0) for name in _COUNTED)
        except (OSError, ValueError, KeyError, TypeError):
            sent = 0
        if not sent:
            raise RunFailedError(f"run {job.run} of {job.cell}: k6 sent no request; see {job.attack_log}")
        files = {".k6.json.zst": self._folder / "k6.compressed", ".k6.summary.json": self._summary}
        protocols = sorted(set().union(*map(_protocols, self._raw)))
        removed = redact.Removed()
        base.compress(self._raw, files[".k6.json.zst"], removed)
        base.redact_file(self._summary, removed)
        negotiated = {"negotiated": [{"protocol": name} for name in protocols]} if protocols else {}
        return base.Results(files, negotiated | {"redacted": removed.fields()})


def _tls(connection: Connection) -> dict[str, Any]:
    """k6's options for TLS and reuse of connections."""
    found: dict[str, Any] = {}
    if connection.insecure:
        found["insecureSkipTLSVerify"] = True
    if connection.cert:
        found["tlsAuth"] = [{"cert": connection.cert, "key": connection.key}]
    if not connection.keepalive:
        found["noConnectionReuse"] = True
    return found


def _url_and_hosts(url: str, connection: Connection) -> tuple[str, dict[str, Any]]:
    """The URL as k6 gets it, and k6's option ``hosts``.

    k6 verifies the host of the URL, so a declared server name takes its place; ``hosts`` says where that is, as an IP
    address. The header Host stays as it is.
    """
    if not (connection.server_name or connection.resolve):
        return url, {}
    name, port = host_port(url)
    to, to_port = address(connection.resolve) if connection.resolve else (name, port)
    ip = socket.getaddrinfo(to, to_port, type=socket.SOCK_STREAM)[0][4][0]
    known_as = connection.server_name or (f"[{name}]" if ":" in name else name)
    hosts = {f"{known_as}:{port}": f"[{ip}]:{to_port}" if ":" in str(ip) else f"{ip}:{to_port}"}
    return urlsplit(url)._replace(netloc=f"{known_as}:{port}").geturl(), {"hosts": hosts}


def _protocols(raw: Path) -> set[str]:
    """The protocols of all responses among k6's raw points; gRPC is HTTP/2."""
    if not raw.stat().st_size:
        return set()
    with raw.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        versions = {match[1] for match in re.finditer(rb'"proto":"HTTP/([0-9])', content)}
        found = {HTTP2 if version == b"2" else HTTP1 for version in versions}
        return found | ({HTTP2} if content.find(b'"grpc_req_duration"') >= 0 else set())


def _scenario(stage: Stage, timeout_s: float) -> dict[str, Any]:
    """One stage as a scenario of k6. Requests under way at its end have as much time as any other."""
    common: dict[str, Any] = {"gracefulStop": _microseconds(timeout_s + 1)}
    if stage.users is not None:
        if stage.iterations is None:
            return common | {
                "executor": "constant-vus",
                "vus": stage.users,
                "duration": _microseconds(stage.duration_s),
            }
        iterations = {"iterations": stage.iterations, "maxDuration": _microseconds(stage.duration_s)}
        return common | {"executor": "per-vu-iterations", "vus": stage.users} | iterations
    rate, to = (Fraction(value or 0.0).limit_denominator(1_000_000) for value in (stage.rate, stage.to))
    highest = float(max(rate, to))
    unit = lcm(rate.denominator, to.denominator)  # k6 counts in whole requests
    ready = min(_PREALLOCATED_VUS, max(50, ceil(highest)))
    common |= {
        "timeUnit": f"{unit}s",
        "preAllocatedVUs": ready,
        "maxVUs": max(ready, min(_MAX_VUS, ceil(highest * timeout_s))),
    }
    if rate == to:
        constant = {
            "executor": "constant-arrival-rate",
            "rate": int(rate * unit),
            "duration": _microseconds(stage.duration_s),
        }
        return common | constant
    targets = [{"target": int(to * unit), "duration": _microseconds(stage.duration_s)}]
    if to:  # the last request would be sent only by chance; the script limits their number
        targets.append({"target": int(to * unit), "duration": _microseconds(2 / float(to))})
    return common | {"executor": "ramping-arrival-rate", "startRate": int(rate * unit), "stages": targets}


def _microseconds(seconds: float) -> str:
    return f"{round(seconds * 1e6)}us"


def _environment(script: Mapping[str, Any], given: str) -> dict[str, str | None]:
    """Variables of k6: those that are declared for the script, and the file `given` with its input."""
    # No usage report is sent, and no extension that a script imports is downloaded.
    offline = {"K6_NO_USAGE_REPORT": "true", "K6_AUTO_EXTENSION_RESOLUTION": "false"}
    return {**base.environment("K6_", **script.get("environment", {})), **offline, "LOADSTONE": given}


def _script_input(
    request: Mapping[str, Any], timeout_s: float, draws: Mapping[str, Any], requests: Mapping[str, int]
) -> dict[str, Any]:
    """The script's input: request, values of drawn headers, and how many requests each scenario may send."""
    return {
        "request": {
            "method": request["method"],
            "url": request["url"],
            "headers": base.one_line(request["header"]),
            "body": request.get("body"),
            "timeout_ms": round(timeout_s * 1000),
        },
        "draw": draws,
        "requests": requests,
    }


# --- the user's own script -------------------------------------------------------------------------------------------

_PACKED = "file/"


def script_files(config: Mapping[str, Any]) -> list[str]:
    """The files that the user's script reads, relative to its folder; none without a script.

    Raises LoadstoneError with k6's message when the script can't be loaded.
    """
    script = config["sweep"].get("script")
    if script is None:
        return []
    variant = config["sweep"]["variants"][0]
    if variant not in config.get("target", {}).get("variants", {}):
        raise LoadstoneError(f"the configuration declares no target variant {variant!r}")
    request = recordable(variant_identity(config["target"], variant))["request"]  # with marks for credentials
    path = Path(script["file"]).resolve()
    with tempfile.TemporaryDirectory() as folder, Supervisor() as supervisor:
        work = Path(folder).resolve()
        given, packed = work / "request.json", work / "packed.tar"
        given.write_text(json.dumps(_script_input(request, 1.0, {}, {})))
        command = ["k6", "archive", "--quiet", "--no-color", "--address=", "--include-system-env-vars"]
        command += [f"--archive-out={packed}", str(path)]
        run(command, supervisor, work / "log", environment=_environment(script, str(given)))
        with tarfile.open(packed) as archive:
            entries = [entry.name for entry in archive if entry.isfile() and entry.name.startswith(_PACKED)]
    names = [Path("/", name.removeprefix(_PACKED)) for name in entries]
    return sorted(os.path.relpath(name, path.parent) for name in names if name not in (path, given))
