"""Collecting one run, from the machine's lock to the archive."""

import json
import os
import platform
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone import __version__, archive, metadata, sweep
from loadstone.archive import Cell
from loadstone.collect import local, vegeta
from loadstone.collect.kubernetes import session
from loadstone.collect.sampling import Sampler
from loadstone.collect.staging import Staging
from loadstone.collect.target import Job, OnPhase, RunFailedError, Target, Up, ignore
from loadstone.errors import LoadstoneError
from loadstone.lock import exclusive
from loadstone.metadata import Metadata
from loadstone.process import Minder, Program, check

Log = Callable[[str], None]


def _running(kind: str) -> Up:
    """How the variant of a run is brought up, by the target's kind."""
    if kind == "kubernetes":  # its client library takes a second to load
        from loadstone.collect.kubernetes.running import running  # noqa: PLC0415

        return running
    return local.running


def collect_run(
    cell: Cell,
    run: int,
    target: Mapping[str, Any],
    *,
    host: str,
    logs: Path,
    log: Log,
    on_phase: OnPhase = ignore,
) -> None:
    """Collect run `run` of `cell` as its metadata plans it, unless the archive already holds it.

    `target` and `host` are the configuration's; `logs` a folder for what the programs print. Waits for the machine's
    attack lock; `on_phase` is told what is done now. Raises LoadstoneError, with nothing left running and nothing under
    a final name, when it fails: a RunFailedError when that need not hold for the next try.
    """
    planned = metadata.read(cell.path / archive.METADATA)
    _check_plan(cell, planned, target)
    planned.request = sweep.request(target["variants"][cell.variant_dir])  # the archive's lacks credentials
    on_phase("waiting")
    if target["kind"] == "kubernetes":  # before the machine: who has the cluster may still need that
        session.join()
    with exclusive(f"run {run} of {cell}", log) as lock, Minder(keep_open=[lock]) as minder:
        if _is_collected(cell, run):
            log(f"run {run} of {cell} is already collected")
            return
        _check_open(cell, run, host)
        staging = Staging(cell, run)
        if staging.is_sealed():
            log(f"run {run} of {cell} was collected by a job that died at its very end; finishing it")
        else:
            on_phase("target")
            try:
                staging.prepare()
                _attack(Job(cell, run, planned, target, minder, logs, log, on_phase), staging)
            except BaseException as error:
                staging.discard()
                if isinstance(error, OSError):
                    raise LoadstoneError(f"run {run} of {cell}: {error}") from None
                raise
        staging.publish(log)


def _attack(job: Job, staging: Staging) -> None:
    """Target up, identity, warm-up, attack, target down; then its results in the archive's formats, sealed."""
    planned = job.planned
    record: dict[str, Any] = {"started": _now(), "run": job.run, "position": planned.positions[job.run - 1]}
    attack = vegeta.Attack(planned.mode, planned.request, job.timeout, job.minder, job.attack_log)
    phases = {"warmup": (planned.warmup_rate or 0, planned.warmup_duration_s or 0)}
    phases["test"] = (planned.rate or 0, planned.duration_s or 0)
    outputs: dict[str, Path] = {}
    sampler = Sampler(job, staging.path / "samples", phases["test"][1])
    with _running(job.target["kind"])(job) as up:
        record |= {**up.seen, "ready": _now()}
        for phase, (rate, duration_s) in phases.items():
            if metadata.planned_requests(rate, duration_s) < 1:
                continue
            job.on_phase(phase)
            if phase == "test":
                up.watch()
            started = _now()
            outputs[phase] = staging.path / f"{phase}.bin"
            program = attack.start(rate, duration_s, outputs[phase])
            with sampler.during(up, program.pid) if phase == "test" else nullcontext():
                _attack_to_end(job, program, up, rate, duration_s)
            seen = {"phase": phase, "rate": rate, "duration_s": duration_s, "started": started}
            record.setdefault("phases", []).append(seen)
        record["incidents"] = up.incidents()
    # Only now, with the target stopped, does anything else use the machine.
    job.on_phase("results")
    files = {".summary.json": staging.path / "summary"}
    report = vegeta.summarise(outputs["test"], files[".summary.json"], job.minder, job.attack_log)
    if not report.get("requests"):
        raise RunFailedError(f"run {job.run} of {job.cell}: the attack sent no request; see {job.attack_log}")
    for phase, output in outputs.items():
        suffix = ".warmups.json.zst" if phase == "warmup" else ".results.json.zst"
        files[suffix] = output.with_suffix(".encoded")
        vegeta.encode(output, files[suffix], job.minder, job.attack_log)
    if (samples := sampler.compressed()) is not None:
        files[".resources.csv.zst"] = samples
    record["sampling"] = sampler.record()
    record |= {"ended": _now(), "loadstone": __version__, "machine": _machine()}
    files[".run.json"] = staging.path / "record"
    files[".run.json"].write_text(json.dumps(record, indent=2) + "\n")
    staging.seal(files)


def _attack_to_end(job: Job, program: Program, target: Target, rate: float, duration_s: float) -> None:
    """Wait for one attack while the target is watched."""
    is_open = job.planned.mode == "vegeta"
    try:
        code = _watch(program, target, duration_s + job.timeout_s + 30 if is_open else None)
    finally:
        program.stop()
    if code < 0:  # most likely for lack of memory at this rate
        raise RunFailedError(f"the load generator was killed by {signal.Signals(-code).name}:\n{program.tail()}")
    check(program, code)
    # vegeta takes an interrupt for a wish to end early, and succeeds.
    took_s, least_s = time.monotonic() - program.started_s, duration_s - 1 / rate
    if is_open and took_s < 0.95 * least_s:
        raise RunFailedError(f"the attack ended after {took_s:.1f} s instead of {duration_s:g} s; was it interrupted?")


def _watch(program: Program, target: Target, limit_s: float | None) -> int:
    deadline = None if limit_s is None else time.monotonic() + limit_s
    while (code := program.exit_code()) is None:
        target.check_alive()
        if deadline is not None and time.monotonic() > deadline:
            raise RunFailedError(f"the attack did not end within {limit_s:.0f} s")
        time.sleep(0.02)
    target.check_alive()
    return code


def _is_collected(cell: Cell, run: int) -> bool:
    """Whether the archive holds the run's main results, in whatever format, now that nobody else attacks."""
    return run in archive.scan_cell(cell).collected()


def _check_open(cell: Cell, run: int, host: str) -> None:
    """Only planned runs of open campaigns of this host are ever attacked, whatever was asked for by name."""
    planned = metadata.read(cell.path / archive.METADATA)
    if cell.campaign.host != host:
        raise LoadstoneError(f"{cell} is of the host {cell.campaign.host!r}; this one is {host!r}")
    if not cell.campaign.is_open:
        raise LoadstoneError(f"{cell.campaign} is closed; nothing of it is attacked any more")
    if not 1 <= run <= min(planned.runs or 0, len(planned.positions)):
        raise LoadstoneError(f"the plan of {cell} has no run {run}")


def _check_plan(cell: Cell, planned: Metadata, target: Mapping[str, Any]) -> None:
    if planned.problems:
        raise LoadstoneError(f"{cell}: " + "; ".join(planned.problems))
    variant = cell.variant_dir
    if variant not in target.get("variants", {}):
        raise LoadstoneError(
            f"{cell} is planned, but the configuration declares no target variant {variant!r}. "
            f"Declare it, or give the campaign up: touch '{cell.campaign.path / archive.ABANDONED}'"
        )
    if otherwise := sweep.changes(planned, target, variant):
        raise LoadstoneError(
            f"{cell}: the target variant {variant!r} is declared otherwise than when the campaign was opened, so its "
            "runs would not be comparable:\n"
            + "".join(f"  {phrase}\n" for phrase in otherwise)
            + f"Put that back, or give the campaign up (touch '{cell.campaign.path / archive.ABANDONED}') and open a "
            "new one"
        )


def _now() -> str:
    return datetime.now().astimezone().isoformat()


def _machine() -> dict[str, Any]:
    return {"system": platform.platform(), "cpus": os.cpu_count(), "load_1min": os.getloadavg()[0]}
