"""Collecting one run, from the machine's lock to the archive.

The request comes from the configuration, not from the archive, which has no credentials; equal identity digests show
that it is the same.
"""

import json
import math
import os
import platform
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from loadstone import __version__, archive
from loadstone.archive import Cell, metadata
from loadstone.archive.locks import MEASURES, PREPARED_LOCK, exclusive
from loadstone.archive.metadata import Metadata
from loadstone.archive.stages import Attack, Stage
from loadstone.archive.staging import Staging
from loadstone.collect.generators import GENERATORS, LoadGenerator
from loadstone.collect.sampling import Sampler
from loadstone.collect.targets import local, session
from loadstone.collect.targets.base import Job, OnPhase, RunFailedError, Target, Up, ignore
from loadstone.config import redact
from loadstone.config import target as declared_target
from loadstone.config.connection import Connection
from loadstone.config.target import drawn_values, recorded_script, script_changes
from loadstone.errors import LoadstoneError
from loadstone.process import Sending, Supervisor, check

# For a program to start, and to write its results.
_GRACE_S = 60

Log = Callable[[str], None]


def _running(kind: str) -> Up:
    """The function that brings up the variant of a run, by the target's kind."""
    # Loaded only when needed: the client library of Kubernetes takes a second.
    if kind == "kubernetes":
        from loadstone.collect.targets.kubernetes import running as kubernetes  # noqa: PLC0415

        return kubernetes.running
    if kind == "external":
        from loadstone.collect.targets.external import running as external  # noqa: PLC0415

        return external.running
    return local.running


def collect_run(
    cell: Cell,
    run: int,
    target: Mapping[str, Any],
    *,
    host: str,
    logs: Path,
    log: Log,
    script: Mapping[str, Any] | None = None,
    on_phase: OnPhase = ignore,
    while_waiting: Callable[[], None] = lambda: None,
) -> None:
    """Collect run `run` of `cell` as planned in its metadata, unless the archive already holds it.

    `target`, `host` and `script` (``sweep.script``) are the configuration's; `logs` is a folder for the programs'
    output. Waits for the machine's attack lock, calling `while_waiting` often; `on_phase` gets each phase as it begins.
    When it fails, nothing is left running and nothing has a final name; it raises RunFailedError if the next run may
    succeed, else another LoadstoneError.
    """
    planned = metadata.read_cell(cell)
    _check_plan(cell, planned, target)
    _check_script(cell, planned, script or {})
    declared = target["variants"][cell.variant_dir]
    planned.request = declared_target.sent(declared)  # the archive's has no credentials
    draws = drawn_values(declared)
    connection = Connection.of(declared, f"target.variants.{cell.variant_dir}").used_by(planned.generator)
    if target["kind"] == "external":
        connection = replace(connection, redirect_hosts=tuple(target.get("allow", ())))
    on_phase("waiting")
    purpose = f"run {run} of {cell}"
    with (
        _target_held(target, purpose, log, while_waiting) as held,
        exclusive(purpose, log, while_waiting=while_waiting) as lock,
        Supervisor(keep_open=[lock, *held]) as supervisor,
    ):
        if run in archive.scan_cell(cell).collected():  # in whatever format
            log(f"run {run} of {cell} is already collected")
            return
        _check_open(cell, run, host)
        staging = Staging(cell, run)
        if staging.is_sealed():
            log(f"run {run} of {cell} was collected by a job that was killed while finishing; completing it")
        else:
            on_phase("target")
            try:
                staging.prepare()
                _set_aside(logs)
                job = Job(cell, run, planned, target, supervisor, logs, log, on_phase, connection, draws, script or {})
                try:
                    _attack(job, staging)
                finally:
                    _redact_logs(logs)
            except BaseException as error:
                staging.discard()
                if isinstance(error, OSError):
                    raise LoadstoneError(f"run {run} of {cell}: {error}") from None
                raise
        staging.publish(log)


@contextmanager
def _target_held(
    target: Mapping[str, Any], purpose: str, log: Log, while_waiting: Callable[[], None]
) -> Iterator[list[int]]:
    """Keep others from changing the target; yields descriptors of locks, to be passed on to the load generator.

    Entered before taking the machine's lock, which the holder of the target may still need.
    """
    if target["kind"] == "external" and not declared_target.has_commands(target):
        with exclusive(purpose, log, PREPARED_LOCK, does=MEASURES, while_waiting=while_waiting) as held:
            yield [held]
        return
    if target["kind"] != "local":
        session.wait_until_held(while_waiting)
    yield []


def _redact_logs(logs: Path) -> None:
    """Remove credentials from what the programs of a run printed, which have ended."""
    for path in logs.glob("*.log"):
        content = path.read_bytes()
        if (redacted := redact.names().encoded(content, redact.Removed())) != content:
            path.write_bytes(redacted)


def _set_aside(logs: Path) -> None:
    """Rename the logs of an interrupted attempt, so that they are not taken for this one's."""
    for log in logs.glob("*.log"):
        log.replace(log.with_name(f"{log.name}.earlier"))


def _attack(job: Job, staging: Staging) -> None:
    """Target up, identity, warm-up, attack, target down; then the results in the archive's formats, sealed."""
    planned = job.planned
    record: dict[str, Any] = {"started": _now(), "run": job.run, "position": planned.positions[job.run - 1]}
    if planned.generator not in GENERATORS:
        raise LoadstoneError(f"{job.cell}: no load generator is called {planned.generator!r}")
    generator = GENERATORS[planned.generator](job, staging.path)
    attacks = generator.attacks()
    measured = next(attack.measured for attack in attacks if attack.measured)
    once_per_sweep = {"is_new": session.is_new} if job.target["kind"] != "local" else {}
    sampler = Sampler(job, staging.path / "samples", measured.duration_s, **once_per_sweep)
    with _running(job.target["kind"])(job) as up:
        record |= {**up.seen, "ready": _now(), "phases": []}
        for attack in attacks:
            record["phases"] += _send(job, generator, attack, up, sampler)
        record["incidents"] = up.incidents()
    # Nothing else uses the machine until the target is stopped.
    job.on_phase("results")
    results = generator.finish()
    files = results.files
    record |= results.record
    if (samples := sampler.compressed()) is not None:
        files[".resources.csv.zst"] = samples
    record["sampling"] = sampler.record()
    record |= {"ended": _now(), "loadstone": __version__, "machine": _machine()}
    files[".run.json"] = staging.path / "record"
    files[".run.json"].write_text(json.dumps(redact.texts(record), indent=2) + "\n")
    staging.seal(files)


def _send(job: Job, generator: LoadGenerator, attack: Attack, target: Target, sampler: Sampler) -> list[dict[str, Any]]:
    """Send the stages of one program while the target is watched; returns their entries for the run's record."""
    measured = attack.measured
    before_s = attack.duration_s if measured is None else attack.start_s(measured)
    if before_s:
        job.on_phase("warmup")
    else:
        _begin(job, target)
    program = generator.start(attack)
    # Several generators start at an agreed time, which may be in the future.
    started = _time_of_day(program.started_s)
    try:
        limit_s = _limit_s(job, attack)
        if measured and before_s:
            _wait(program, target, limit_s, before_s)
            _begin(job, target)
        with sampler.during(target, program.pids) if measured else nullcontext():
            code = _wait(program, target, limit_s)
    finally:
        program.stop()
    _check_exit_code(program, code, generator)
    _check_length(program, attack, job.planned.load_model)
    return [_phase(stage, started + timedelta(seconds=attack.start_s(stage))) for stage in attack.stages]


def _time_of_day(monotonic_s: float) -> datetime:
    """The time of day for a reading of the monotonic clock (s), from the quickest of three readings of both."""
    readings = []
    for _ in range(3):
        before, now, after = time.monotonic(), datetime.now().astimezone(), time.monotonic()
        readings.append((after - before, now + timedelta(seconds=monotonic_s - (before + after) / 2)))
    return min(readings)[1]


def _begin(job: Job, target: Target) -> None:
    """The measured stage begins."""
    job.on_phase("test")
    target.watch()


def _phase(stage: Stage, started: datetime) -> dict[str, Any]:
    """The entry of a stage in the run's record: its load, and when it began."""
    entry = {"phase": stage.name, "rate": stage.rate, "to": None if stage.to == stage.rate else stage.to}
    entry |= {"users": stage.users, "iterations": stage.iterations, "duration_s": stage.duration_s}
    return {key: value for key, value in entry.items() if value is not None} | {"started": started.isoformat()}


def _limit_s(job: Job, attack: Attack) -> float:
    """Seconds after which a program must have ended. Serial requests may take any time."""
    return math.inf if job.planned.load_model == "serial" else attack.duration_s + job.timeout_s + _GRACE_S


def _wait(program: Sending, target: Target, limit_s: float, until_s: float = math.inf) -> int:
    """Watch the target until the program ends, or has run for `until_s`; its exit code (0 while it runs).

    Raises RunFailedError when the target dies, or the program does not end within `limit_s`.
    """
    while (code := program.exit_code()) is None:
        target.check_alive()
        passed_s = time.monotonic() - program.started_s
        if passed_s >= until_s:
            return 0
        if passed_s > limit_s:
            raise RunFailedError(f"the attack did not end within {limit_s:.0f} s")
        time.sleep(0.02)
    target.check_alive()
    return code


def _check_exit_code(program: Sending, code: int, generator: LoadGenerator) -> None:
    """Raise LoadstoneError unless the program succeeded."""
    if code < 0:  # most likely out of memory at this rate
        raise RunFailedError(f"the load generator was killed by {signal.Signals(-code).name}:\n{program.tail()}")
    if code not in generator.succeeds_with:
        check(program, code)


def _check_length(program: Sending, attack: Attack, load_model: str) -> None:
    """Raise RunFailedError when it ended early, as a program may on SIGINT, with exit code 0."""
    least_s = 0.0 if load_model == "serial" else _least_s(attack)
    took_s = time.monotonic() - program.started_s
    if took_s < 0.95 * least_s:
        raise RunFailedError(
            f"the attack ended after {took_s:.1f} s instead of {attack.duration_s:g} s; was it interrupted?"
        )


def _least_s(attack: Attack) -> float:
    """Least seconds until the last request is due; 0 where the number of requests, not time, ends the attack."""
    last = attack.stages[-1]
    if last.rate is None:
        return 0.0 if last.iterations else attack.duration_s
    slowest = max(min(last.rate, last.to or 0.0), 1 / last.duration_s)
    return attack.duration_s - 1 / slowest


def _check_open(cell: Cell, run: int, host: str) -> None:
    """Only planned runs of open campaigns of this host are collected, whatever was requested by name."""
    planned = metadata.read_cell(cell)
    if cell.campaign.host != host:
        raise LoadstoneError(f"{cell} belongs to the host {cell.campaign.host!r}; this one is {host!r}")
    if not cell.campaign.is_open:
        raise LoadstoneError(f"{cell.campaign} is closed; no more of its runs are collected")
    if not 1 <= run <= min(planned.runs or 0, len(planned.positions)):
        raise LoadstoneError(f"the plan of {cell} has no run {run}")


def _check_plan(cell: Cell, planned: Metadata, target: Mapping[str, Any]) -> None:
    if planned.problems:
        raise LoadstoneError(f"{cell}: " + "; ".join(planned.problems))
    if planned.generator == "vegeta" and planned.program is None:
        raise LoadstoneError(
            f"{cell} was opened by an earlier Loadstone, which sent its runs by `vegeta attack`; this one sends by "
            "`paced`, which measures lower latencies of a fast target, so the runs would not be comparable. Finish it "
            f"with that version, or give the campaign up ({cell.campaign.give_up_command}) and open a new one"
        )
    declared_target.check_declared([cell], target)


def _check_script(cell: Cell, planned: Metadata, script: Mapping[str, Any]) -> None:
    """A user's script must be the one with which the campaign was opened."""
    now = recorded_script(script, planned.script.get("files", ())) if script else {}
    if planned.generator == "k6" and (phrases := script_changes(planned.script, now)):
        raise LoadstoneError(
            f"{cell}: sweep.script has changed since the campaign was opened ({'; '.join(phrases)}), so "
            "its runs would not be comparable. Undo these changes, or give the campaign up "
            f"({cell.campaign.give_up_command}) and open a new one"
        )


def _now() -> str:
    return datetime.now().astimezone().isoformat()


def _machine() -> dict[str, Any]:
    return {"system": platform.platform(), "cpus": os.cpu_count(), "load_1min": os.getloadavg()[0]}
