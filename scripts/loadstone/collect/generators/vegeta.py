"""Vegeta: two programs on top of its library send (envs/tools), `paced` on a clock and `serial` one after another.

Both write vegeta's binary format, which vegeta itself converts to the archive's formats after the attack.

`vegeta attack` is not used: it waits in steps of 1 ms on Linux, measures the same fast target as 20 % slower (median
511 us instead of 411), and drops a last request that it would send late. Runs that are compared must be sent by the
same program; caveats and histories compare `Metadata.sent_by`. A single `paced` that falls behind stops a second after
its planned end with what it has sent; that run is kept and flagged as late, because otherwise all runs of a sweep
beyond the generator's limit would fail. Each of `sweep.connections` is an attack of vegeta's library, not a
`RoundTripper` that chooses among transports: that would race with `http.Client` over timeouts, and half of the errors
of a hanging server would be attributed to another cause.
"""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

from loadstone.archive.stages import Attack, apart, together
from loadstone.collect.generators import base, several
from loadstone.collect.targets.base import Job, RunFailedError
from loadstone.config import redact
from loadstone.process import Program, Sending, check, run

_SUFFIXES = {"warmup": ".warmups.json.zst", "test": ".results.json.zst"}


class Vegeta(base.LoadGenerator):
    """Open load: `paced` sends all stages, or several of them share the load where the sweep declares a number."""

    def __init__(self, job: Job, folder: Path) -> None:
        super().__init__(job, folder)
        self._count = job.planned.generators or 1
        self._reports: list[dict[str, Any]] = []

    def attacks(self) -> list[Attack]:
        return together(self._job.planned.load)

    def start(self, attack: Attack) -> Sending:
        if self._job.planned.generators is not None:  # one included, so that a sweep of 1, 2, 4 differs in nothing else
            return self._start_several(attack)
        command = ["paced", f"-timeout={self._job.timeout}", *self._outputs(0).arguments]
        return _program(self._job, command, several.plan(self._job, attack, _target(self._job)))

    def _start_several(self, attack: Attack) -> Sending:
        job, in_cluster = self._job, self._job.planned.generators_in == "cluster"
        where = [] if in_cluster else several.places(self._count)
        processes = self._count if in_cluster else len(where)
        plans = [
            several.plan(job, attack, _target(job), range(part, self._count, processes)) for part in range(processes)
        ]
        outputs = [self._outputs(part) for part in range(processes)]
        if in_cluster:
            from loadstone.collect.targets.kubernetes import generator_pods  # noqa: PLC0415 - its client library takes a second to load

            fleet: several.Fleet = generator_pods.start(job, plans, outputs)
        else:
            fleet = several.LocalFleet(job, plans, outputs, where)
        self._reports = fleet.reports
        return fleet

    def _output(self, phase: str, part: int = 0) -> Path:
        return self._folder / f"{phase}-{part}.bin"

    def _outputs(self, part: int) -> several.Outputs:
        measured, others = self._output("test", part), self._output("warmup", part)
        return several.Outputs(measured, others, self._negotiated(part), self._redacted(part))

    def _negotiated(self, part: int) -> Path:
        return self._folder / f"negotiated-{part}.json"

    def _redacted(self, part: int | str) -> Path:
        return self._folder / f"redacted-{part}.json"

    def _results(self, phase: str) -> list[Path]:
        """The files of a phase that are not empty, one per process."""
        parts = [self._output(phase, part) for part in range(self._count)]
        return [part for part in parts if part.exists() and part.stat().st_size]

    def finish(self) -> base.Results:
        job, files = self._job, {".summary.json": self._folder / "summary"}
        sent = self._results("test")
        report = summarise(sent, files[".summary.json"], job) if sent else {}
        if not report.get("requests"):
            raise RunFailedError(f"run {job.run} of {job.cell}: the attack sent no request; see {job.attack_log}")
        # Requests missing from several may have been lost by one; a single one lacks those it could not send in time.
        if self._count > 1 and report["requests"] != (planned := job.planned.expected_requests):
            raise RunFailedError(
                f"the {self._count} generators' results hold {report['requests']} requests instead of {planned}"
            )
        for phase, suffix in _SUFFIXES.items():
            if parts := self._results(phase):
                files[suffix] = self._folder / f"{phase}.encoded"
                encode(parts, files[suffix], job)
        record: dict[str, Any] = {"negotiated": base.negotiated(map(self._negotiated, range(self._count)))}
        removed = redact.Removed()
        for file in self._folder.glob("redacted-*.json"):
            removed.add(json.loads(file.read_bytes()))
        record["redacted"] = removed.fields()
        return base.Results(files, record | ({"generators": self._reports} if self._reports else {}))


class Serial(Vegeta):
    """One request after another: rate x duration of them, however long they take."""

    def attacks(self) -> list[Attack]:
        return apart(self._job.planned.load)

    def start(self, attack: Attack) -> Program:
        (stage,) = attack.stages
        output = self._output("test" if stage.measured else "warmup")
        command = ["serial", "-requests", str(stage.requests), "-timeout", self._job.timeout, "-output", str(output)]
        command += ["-redacted", str(self._redacted(stage.name))]
        if stage.measured:
            command += ["-negotiated", str(self._negotiated(0))]
        return _program(
            self._job, command, _target(self._job) | {"connection": self._job.connection.settings(), **base.redacting()}
        )


def _program(job: Job, command: list[str], given: dict[str, Any]) -> Program:
    with base.as_stdin(json.dumps(given).encode() + b"\n") as stdin:
        return Program(command, job.supervisor, job.attack_log, stdin=stdin, environment=base.environment())


def _target(job: Job) -> dict[str, Any]:
    """The request in vegeta's JSON format."""
    request, body = job.planned.request, job.planned.request.get("body")
    found = {"method": request["method"], "url": request["url"], "header": base.headers(job)}
    return found if body is None else found | {"body": base64.b64encode(body.encode()).decode()}


def encode(sources: Sequence[Path], destination: Path, job: Job) -> None:
    """Binary results -> JSON lines, zstd compressed with a checksum."""
    program = Program(["vegeta", "encode", "-to=json", *map(str, sources)], job.supervisor, job.attack_log, stdout=PIPE)
    base.compress_output(program, destination)
    check(program, program.wait())


def summarise(sources: Sequence[Path], destination: Path, job: Job) -> dict[str, Any]:
    """Write vegeta's own report of binary results as indented JSON. Returns it decoded."""
    command = ["vegeta", "report", "-type=json", f"-output={destination}", *map(str, sources)]
    run(command, job.supervisor, job.attack_log)
    report: dict[str, Any] = json.loads(destination.read_bytes())
    destination.write_text(json.dumps(report, indent=2) + "\n")
    return report
