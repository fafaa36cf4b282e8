"""Vegeta: two programs of its library send (envs/tools), `paced` on a clock and `serial` one request after another.

Each leaves vegeta's binary format, which vegeta itself makes the archive's formats of once the attack is over.

`vegeta attack` is not used: it waits in steps of 1 ms on Linux, finds the same fast target 20 % slower (median 511 us
where `paced` finds 411), and drops a last request that it would send late. Compared runs must be sent alike;
`Metadata.sent_by` is the text that claims and histories compare. A single `paced` that falls behind ends a second after
its planned end, with what it has sent; that run is kept and called late, or a sweep beyond the generator's limit would
end with failed runs. `sweep.connections` are attacks of vegeta's library each, not one `RoundTripper` that chooses
among transports: that would race with `http.Client` over timeouts, and every second error of a hanging server would
have the text of another cause.
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
from loadstone.process import Minder, Program, Sending, check, run

_SUFFIXES = {"warmup": ".warmups.json.zst", "test": ".results.json.zst"}


class Vegeta:
    """Open load: `paced` sends all stages, or several of it share them where the sweep says how many.

    Never ``vegeta attack``, which waits in steps of 1 ms on Linux and leaves out a last request that it would send
    late: whatever is compared is sent by one program.
    """

    succeeds_with = frozenset((0,))

    def __init__(self, job: Job, folder: Path) -> None:
        self._job = job
        self._outputs = {phase: folder / f"{phase}.bin" for phase in _SUFFIXES}
        self._folder = folder
        self._count = job.planned.generators or 1
        # Also when it is shared among one: what differs between that and several is their number alone.
        self._is_shared = job.planned.generators is not None
        self._said: list[dict[str, Any]] = []

    def attacks(self) -> list[Attack]:
        return together(self._job.planned.load)

    def start(self, attack: Attack) -> Sending:
        if self._is_shared:
            return self._start_several(attack)
        others, measured = self._outputs.values()
        command = ["paced", f"-timeout={self._job.timeout}", f"-measured={measured}", f"-others={others}"]
        return _program(self._job, command, several.plan(self._job, attack, _target(self._job)))

    def _start_several(self, attack: Attack) -> Sending:
        job, in_cluster = self._job, self._job.planned.generators_in == "cluster"
        where = [] if in_cluster else several.places(self._count)
        processes = self._count if in_cluster else len(where)
        plans = [
            several.plan(job, attack, _target(job), range(part, self._count, processes)) for part in range(processes)
        ]
        outputs = [(self._part("test", part), self._part("warmup", part)) for part in range(processes)]
        if in_cluster:
            from loadstone.collect.targets.kubernetes import generator_pods  # noqa: PLC0415 - its client library takes a second to load

            fleet: several.Fleet = generator_pods.start(job, plans, outputs)
        else:
            fleet = several.LocalFleet(job, plans, outputs, where)
        self._said = fleet.said
        return fleet

    def _part(self, phase: str, part: int) -> Path:
        return self._folder / f"{phase}-{part}.bin"

    def _results(self, phase: str) -> list[Path]:
        """The files of a phase that hold anything, one of each process."""
        parts = [self._part(phase, part) for part in range(self._count)] if self._is_shared else [self._outputs[phase]]
        return [part for part in parts if part.exists() and part.stat().st_size]

    def finish(self) -> base.Results:
        job, files = self._job, {".summary.json": self._folder / "summary"}
        sent = self._results("test")
        report = summarise(sent, files[".summary.json"], job.minder, job.attack_log) if sent else {}
        if not report.get("requests"):
            raise RunFailedError(f"run {job.run} of {job.cell}: the attack sent no request; see {job.attack_log}")
        # What several lack may be what one of them lost; a single one lacks what it could not send in time.
        if self._count > 1 and report["requests"] != (planned := job.planned.expected_requests):
            raise RunFailedError(
                f"the {self._count} generators' results hold {report['requests']} requests instead of {planned}"
            )
        for phase, output in self._outputs.items():
            if parts := self._results(phase):
                files[_SUFFIXES[phase]] = output.with_suffix(".encoded")
                encode(parts, files[_SUFFIXES[phase]], job.minder, job.attack_log)
        return base.Results(files, {"generators": self._said} if self._said else {})


class Serial(Vegeta):
    """One request after another: as many as rate x duration, in any time."""

    def attacks(self) -> list[Attack]:
        return apart(self._job.planned.load)

    def start(self, attack: Attack) -> Program:
        (stage,) = attack.stages
        output = self._outputs["test" if stage.measured else "warmup"]
        command = ["serial", "-requests", str(stage.requests), "-timeout", self._job.timeout]
        return _program(self._job, [*command, "-output", str(output)], _target(self._job))


def _program(job: Job, command: list[str], given: dict[str, Any]) -> Program:
    with base.given(json.dumps(given).encode() + b"\n") as stdin:
        return Program(command, job.minder, job.attack_log, stdin=stdin, environment=base.environment())


def _target(job: Job) -> dict[str, Any]:
    """The request in vegeta's JSON format."""
    request, body = job.planned.request, job.planned.request.get("body")
    found = {"method": request["method"], "url": request["url"], "header": base.headers(job)}
    return found if body is None else found | {"body": base64.b64encode(body.encode()).decode()}


def encode(sources: Sequence[Path], destination: Path, minder: Minder, log: Path) -> None:
    """Binary results -> JSON lines, zstd compressed with a checksum."""
    program = Program(["vegeta", "encode", "-to=json", *map(str, sources)], minder, log, stdout=PIPE)
    base.compress_output(program, destination)
    check(program, program.wait())


def summarise(sources: Sequence[Path], destination: Path, minder: Minder, log: Path) -> dict[str, Any]:
    """Vegeta's own report of binary results, as indented JSON. Returns it decoded."""
    compact = destination.with_suffix(".compact")
    run(["vegeta", "report", "-type=json", f"-output={compact}", *map(str, sources)], minder, log)
    report: dict[str, Any] = json.loads(compact.read_bytes())
    destination.write_text(json.dumps(report, indent=2) + "\n")
    compact.unlink()
    return report
