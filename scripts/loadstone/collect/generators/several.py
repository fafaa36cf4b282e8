"""Several load generators that share one load: which sends what, and those that are local processes.

Request n of a stage is sent by generator n modulo their number, at the time at which a single one would send it. So
together they send what a single one sends, at any rate, in ramps and for any number of generators; results are merged
by concatenation. A generator that fails ends all others, and the run.

The rate is not divided, because each part would be rounded and ramps would not add up. The agreed start is sent only
when all are ready, and a generator that reads it too late fails instead of starting late. A request's generator is
vegeta's `attack`, written by `paced` after the response: vegeta would send a named attack to the target as a header.
The format is vegeta's own, so `vegeta encode` and `report` merge files by reading several.
"""

import json
import os
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any, Protocol

from loadstone.archive.stages import Attack
from loadstone.collect.generators import base
from loadstone.collect.targets.base import Job, RunFailedError
from loadstone.process import Program, Sending

# Until all have read their plans, and from then to the agreed start: longer than a busy machine delays one.
_READY_S, _AHEAD_S = 30.0, 0.25


def plan(job: Job, attack: Attack, request: Mapping[str, Any], own: range = range(1)) -> dict[str, Any]:
    """The plan of a process, as `paced` reads it: `request`, which is vegeta's target, and the generators that it is.

    `own` are their numbers, from 0; its stop is the number of all generators.
    """
    stages = [
        {
            "rate": stage.rate,
            "to": stage.to,
            "nanoseconds": round(stage.duration_s * 1e9),
            "requests": stage.requests,
            "measured": stage.measured,
        }
        for stage in attack.stages
    ]
    connections = (job.planned.connections or 0) // own.stop
    shared = {"part": own.start, "of": own.stop, "step": own.step, "connections": connections}
    return {
        **request,
        "stages": stages,
        "draw": job.draws,
        "connection": job.connection.settings(),
        **shared,
        **base.redacting(),
    }


def places(generators: int) -> list[dict[str, Any]]:
    """The processor of each process that sends for the generators, as in a run's record.

    The first processor is left for the target: on two processors, four generators that ran on both measured a proxy on
    loopback 1.2 times as slow as one did. Generators for which no other processor is left share a process: processes
    that take turns on a processor find cold caches, which cost each request 15 us, and 25 % more CPU.
    """
    if not hasattr(os, "sched_getaffinity"):
        return [{"not_pinned": "this system can't pin processes"}] * generators
    others = sorted(os.sched_getaffinity(0))[1:]
    if not others:
        return [{"not_pinned": "the only processor is shared with the target"}]
    return [{"processor": processor} for processor in others[-generators:]]


@dataclass(frozen=True)
class Outputs:
    """The files of one process: measured and other requests, what TLS negotiated, and what was removed from results."""

    measured: Path
    others: Path
    negotiated: Path
    redacted: Path

    @property
    def arguments(self) -> list[str]:
        return [f"-{name}={path}" for name, path in vars(self).items()]


class Fleet(Sending, Protocol):
    """Several running generators; `reports` has one entry per generator for the run's record."""

    @property
    def reports(self) -> list[dict[str, Any]]: ...


class LocalFleet:
    """Local processes, one for each of `plans`, which start at the same moment.

    `outputs` has the files of each, `where` its place. They share a clock, so offsets are not
    measured.
    """

    def __init__(
        self,
        job: Job,
        plans: Sequence[Mapping[str, Any]],
        outputs: Sequence[Outputs],
        where: Sequence[Mapping[str, Any]],
    ) -> None:
        self._plans = plans
        self._programs: list[Program] = []
        about: dict[int, dict[str, Any]] = {}
        try:
            for number, (content, files, place) in enumerate(zip(plans, outputs, where, strict=True)):
                core = place.get("processor")
                command = ["paced", "-agree", f"-timeout={job.timeout}", *files.arguments]
                log = job.logs / f"attack-{number}.log"
                program = Program(
                    command, job.supervisor, log, stdin=PIPE, stdout=PIPE, environment=base.environment(), core=core
                )
                self._programs.append(program)
                self._send(number, content)
                about |= {
                    each: {"requests": own_requests(content, each), "process": number, **place}
                    for each in numbers(content)
                }
            start_ns = self._agree()
        except BaseException:
            self.stop()
            raise
        self.reports = [{"generator": each, **known, "start": start_ns} for each, known in sorted(about.items())]

    @property
    def command(self) -> list[str]:
        return self._programs[0].command

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(program.pid for program in self._programs)

    def exit_code(self) -> int | None:
        """0 when all have succeeded. Raises RunFailedError as soon as one has failed."""
        codes = [program.exit_code() for program in self._programs]
        for number, code in enumerate(codes):
            if code:
                self._fail(number)
        return 0 if all(code == 0 for code in codes) else None

    def stop(self) -> None:
        for program in self._programs:
            program.stop()
            program.stdin.close()
            program.stdout.close()

    def tail(self) -> str:
        return "\n".join(filter(None, (program.tail() for program in self._programs)))

    def _agree(self) -> int:
        """Wait until each is ready, then send the start to all; returns it in nanoseconds since 1970."""
        given_up = time.monotonic() + _READY_S
        for number, program in enumerate(self._programs):
            readable, _, _ = select.select([program.stdout], [], [], max(0.0, given_up - time.monotonic()))
            if not readable or program.stdout.readline() != b"ready\n":
                self._fail(number, "was not ready")
        start_ns = time.time_ns() + round(_AHEAD_S * 1e9)
        self.started_s = time.monotonic() + _AHEAD_S
        for number in range(len(self._programs)):
            self._send(number, {"start": start_ns})
        return start_ns

    def _send(self, number: int, content: Mapping[str, Any]) -> None:
        program = self._programs[number]
        try:
            program.stdin.write(json.dumps(content).encode() + b"\n")
            program.stdin.flush()
        except BrokenPipeError:
            self._fail(number)

    def _fail(self, number: int, how: str = "failed") -> None:
        program = self._programs[number]
        program.stop()  # so that its output is complete
        raise RunFailedError(failure(self._plans[number], how, program.exit_code(), program.tail()))


def numbers(content: Mapping[str, Any]) -> range:
    """The generators of a plan's process."""
    return range(content["part"], content["of"], content["step"])


def own_requests(content: Mapping[str, Any], number: int) -> int:
    """How many of a plan's measured requests a generator sends."""
    measured = sum(stage["requests"] for stage in content["stages"] if stage["measured"])
    return int(measured + content["of"] - 1 - number) // int(content["of"])


def failure(content: Mapping[str, Any], how: str, code: int | None, output: str) -> str:
    """The message that the process of a plan failed; `output` is what it printed."""
    own = numbers(content)
    who = (
        f"{'the process of generators' if len(own) > 1 else 'generator'} {', '.join(map(str, own))} of {content['of']}"
    )
    ended = f" (killed by signal {-code})" if code is not None and code < 0 else ""
    return f"{who} {how}{ended}, so the load was not complete: {output or '(it printed nothing)'}"
