"""Collecting one run, from the machine's lock to the archive."""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone import __version__, archive, metadata, sweep
from loadstone.archive import Cell
from loadstone.collect import local, vegeta
from loadstone.collect.staging import Staging
from loadstone.errors import LoadstoneError
from loadstone.lock import exclusive
from loadstone.metadata import Metadata
from loadstone.process import Minder, Program, check

Log = Callable[[str], None]


@dataclass(frozen=True)
class _Job:
    """What collecting one run needs to know; `logs` is the folder for what programs print."""

    cell: Cell
    run: int
    planned: Metadata
    target: Mapping[str, Any]
    minder: Minder
    logs: Path

    @property
    def attack_log(self) -> Path:
        return self.logs / "attack.log"

    @property
    def timeout(self) -> str:
        return self.planned.timeout or "30s"

    @property
    def timeout_s(self) -> float:
        return metadata.parse_duration(self.timeout) or 30.0


def collect_run(cell: Cell, run: int, target: Mapping[str, Any], *, host: str, logs: Path, log: Log) -> None:
    """Collect run `run` of `cell` as its metadata plans it, unless the archive already holds it.

    `target` and `host` are the configuration's; `logs` a folder for what the programs print. Waits for the machine's
    attack lock. Raises LoadstoneError, with nothing left running and nothing under a final name, when it fails.
    """
    planned = metadata.read(cell.path / archive.METADATA)
    _check_plan(cell, planned, target)
    planned.request = sweep.request(target["variants"][cell.variant_dir])  # the archive's lacks credentials
    with exclusive(f"run {run} of {cell}", log) as lock, Minder(keep_open=[lock]) as minder:
        if _is_collected(cell, run):
            log(f"run {run} of {cell} is already collected")
            return
        _check_open(cell, run, host)
        staging = Staging(cell, run)
        if staging.is_sealed():
            log(f"run {run} of {cell} was collected by a job that died at its very end; finishing it")
        else:
            log(_progress(cell, run))
            try:
                staging.prepare()
                _attack(_Job(cell, run, planned, target, minder, logs), staging)
            except BaseException as error:
                staging.discard()
                if isinstance(error, OSError):
                    raise LoadstoneError(f"run {run} of {cell}: {error}") from None
                raise
        staging.publish(log)


def _attack(job: _Job, staging: Staging) -> None:
    """Target up, identity, warm-up, attack, target down; then its results in the archive's formats, sealed."""
    planned, variant = job.planned, job.cell.variant_dir
    record: dict[str, Any] = {"started": _now(), "run": job.run, "position": planned.positions[job.run - 1]}
    attack = vegeta.Attack(planned.mode, planned.request, job.timeout, job.minder, job.attack_log)
    phases = {"warmup": (planned.warmup_rate or 0, planned.warmup_duration_s or 0)}
    phases["test"] = (planned.rate or 0, planned.duration_s or 0)
    outputs: dict[str, Path] = {}
    with local.running(job.target, variant, job.minder, job.logs) as up:
        record["identity"] = local.identify(planned.request, job.target["variants"][variant]["expect"], job.timeout_s)
        record["ready"] = _now()
        for phase, (rate, duration_s) in phases.items():
            if metadata.planned_requests(rate, duration_s) < 1:
                continue
            started = _now()
            outputs[phase] = staging.path / f"{phase}.bin"
            _attack_to_end(job, attack.start(rate, duration_s, outputs[phase]), up, rate, duration_s)
            seen = {"phase": phase, "rate": rate, "duration_s": duration_s, "started": started}
            record.setdefault("phases", []).append(seen)
    # Only now, with the target stopped, does anything else use the machine.
    files = {".summary.json": staging.path / "summary"}
    report = vegeta.summarise(outputs["test"], files[".summary.json"], job.minder, job.attack_log)
    if not report.get("requests"):
        raise LoadstoneError(f"run {job.run} of {job.cell}: the attack sent no request; see {job.attack_log}")
    for phase, output in outputs.items():
        suffix = ".warmups.json.zst" if phase == "warmup" else ".results.json.zst"
        files[suffix] = output.with_suffix(".encoded")
        vegeta.encode(output, files[suffix], job.minder, job.attack_log)
    record |= {"ended": _now(), "loadstone": __version__, "machine": _machine()}
    files[".run.json"] = staging.path / "record"
    files[".run.json"].write_text(json.dumps(record, indent=2) + "\n")
    staging.seal(files)


def _attack_to_end(job: _Job, program: Program, target: local.Target, rate: float, duration_s: float) -> None:
    """Wait for one attack while the target is watched."""
    is_open = job.planned.mode == "vegeta"
    started = time.monotonic()
    try:
        code = _watch(program, target, duration_s + job.timeout_s + 30 if is_open else None)
    finally:
        program.stop()
    check(program, code)
    # vegeta takes an interrupt for a wish to end early, and succeeds.
    took_s, least_s = time.monotonic() - started, duration_s - 1 / rate
    if is_open and took_s < 0.95 * least_s:
        raise LoadstoneError(f"the attack ended after {took_s:.1f} s instead of {duration_s:g} s; was it interrupted?")


def _watch(program: Program, target: local.Target, limit_s: float | None) -> int:
    deadline = None if limit_s is None else time.monotonic() + limit_s
    while (code := program.exit_code()) is None:
        target.check_alive()
        if deadline is not None and time.monotonic() > deadline:
            raise LoadstoneError(f"the attack did not end within {limit_s:.0f} s")
        time.sleep(0.02)
    target.check_alive()
    return code


def _is_collected(cell: Cell, run: int) -> bool:
    """Whether the archive holds the run's main results, in whatever format, now that nobody else attacks."""
    listing = next((each for each in archive.scan_campaign(cell.campaign).cells if each.cell == cell), None)
    return listing is not None and run in listing.collected()


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


def _progress(cell: Cell, run: int) -> str:
    """Which run of how many this is, and how long the sweep will still take."""
    listing = archive.scan_campaign(cell.campaign)
    lacking = sweep.missing(listing)
    total = sweep.planned_runs(listing)
    left = sweep.duration_text(sweep.time_left_s(lacking))
    what = f"{cell.variant_dir} at {cell.rate}/s, run {run}"
    return f"[{total - len(lacking) + 1} of {total}] {what}; about {left} left"


def _now() -> str:
    return datetime.now().astimezone().isoformat()


def _machine() -> dict[str, Any]:
    return {"system": platform.platform(), "cpus": os.cpu_count(), "load_1min": os.getloadavg()[0]}
