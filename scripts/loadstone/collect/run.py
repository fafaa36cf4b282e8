"""Collecting one run, from the machine's lock to the archive."""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
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


def collect_run(cell: Cell, run: int, target: Mapping[str, Any], logs: Path, log: Log) -> None:
    """Collect run `run` of `cell` as its metadata plans it, unless the archive already holds it.

    `target` is the configuration's target; `logs` a folder for what the programs print. Waits for the machine's
    attack lock. Raises LoadstoneError, with nothing left running and nothing under a final name, when it fails.
    """
    planned = metadata.read(cell.path / archive.METADATA)
    _check_plan(cell, planned, target)
    with exclusive(f"run {run} of {cell}", log) as lock, Minder(keep_open=[lock]) as minder:
        if cell.results(run).exists():
            log(f"run {run} of {cell} is already collected")
            return
        staging = Staging(cell, run)
        if staging.is_sealed():
            log(f"run {run} of {cell} was collected by a job that died at its very end; finishing it")
        else:
            log(_progress(cell, run, planned))
            try:
                staging.prepare()
                _attack(cell, run, planned, target, staging, minder, logs)
            except BaseException as error:
                staging.discard()
                if isinstance(error, OSError):
                    raise LoadstoneError(f"run {run} of {cell}: {error}") from None
                raise
        staging.publish(log)


def _attack(
    cell: Cell, run: int, planned: Metadata, target: Mapping[str, Any], staging: Staging, minder: Minder, logs: Path
) -> None:
    expect = target["variants"][cell.variant_dir]["expect"]
    timeout = planned.timeout or "30s"
    limit_s = metadata.parse_duration(timeout) or 30.0
    ready_s = metadata.parse_duration(target.get("ready_timeout", "30s")) or 30.0
    record: dict[str, Any] = {"started": _now(), "run": run, "position": planned.positions[run - 1]}
    attack = vegeta.Attack(planned.mode, planned.request, timeout, minder, logs / "attack.log")
    results, warmups = staging.path / "results.bin", staging.path / "warmups.bin"
    warmup_rate, warmup_s = planned.warmup_rate or 0, planned.warmup_duration_s or 0
    has_warmup = round(warmup_rate * warmup_s) > 0
    with local.running({**target, "ready_timeout_s": ready_s}, cell.variant_dir, minder, logs) as up:
        record["identity"] = local.identify(planned.request, expect, limit_s)
        record["ready"] = _now()
        if has_warmup:
            _run_phase(attack, "warmup", warmup_rate, warmup_s, limit_s, warmups, up, record)
        _run_phase(attack, "test", planned.rate or 0, planned.duration_s or 0, limit_s, results, up, record)
    # Only now, with the target stopped, does anything else use the machine.
    encoded = {".results.json.zst": staging.path / "results.json.zst", ".summary.json": staging.path / "summary.json"}
    vegeta.encode(results, encoded[".results.json.zst"], minder, logs / "attack.log")
    report = vegeta.summarise(results, encoded[".summary.json"], minder, logs / "attack.log")
    if not report.get("requests"):
        raise LoadstoneError(f"run {run} of {cell}: the attack sent no request; see {logs / 'attack.log'}")
    if has_warmup:
        encoded[".warmups.json.zst"] = staging.path / "warmups.json.zst"
        vegeta.encode(warmups, encoded[".warmups.json.zst"], minder, logs / "attack.log")
    record |= {"ended": _now(), "loadstone": __version__, "machine": _machine()}
    encoded[".run.json"] = staging.path / "record"
    encoded[".run.json"].write_text(json.dumps(record, indent=2) + "\n")
    staging.seal(encoded)


def _run_phase(
    attack: vegeta.Attack,
    phase: str,
    rate: float,
    duration_s: float,
    timeout_s: float,
    output: Path,
    target: local.Target,
    record: dict[str, Any],
) -> None:
    """One attack to its end, while the target is watched."""
    started = _now()
    program = attack.start(rate, f"{round(duration_s * 1e9)}ns", round(rate * duration_s), output)
    try:
        code = _watch(program, target, duration_s + timeout_s + 30 if attack.mode == "vegeta" else None)
    finally:
        program.stop()
    check(program, code)
    record.setdefault("phases", []).append({"phase": phase, "rate": rate, "duration_s": duration_s, "started": started})


def _watch(program: Program, target: local.Target, limit_s: float | None) -> int:
    deadline = None if limit_s is None else time.monotonic() + limit_s
    while (code := program.exit_code()) is None:
        target.check_alive()
        if deadline is not None and time.monotonic() > deadline:
            raise LoadstoneError(f"the attack did not end within {limit_s:.0f} s")
        time.sleep(0.02)
    target.check_alive()
    return code


def _check_plan(cell: Cell, planned: Metadata, target: Mapping[str, Any]) -> None:
    if planned.problems:
        raise LoadstoneError(f"{cell}: " + "; ".join(planned.problems))
    variant = cell.variant_dir
    if variant not in target.get("variants", {}):
        raise LoadstoneError(
            f"{cell} is planned, but the configuration declares no target variant {variant!r}. Declare it, or give the "
            f"campaign up: touch '{cell.campaign.path / archive.ABANDONED}'"
        )
    if planned.target.get("identity") != sweep.identity_digest(target, variant):
        raise LoadstoneError(
            f"{cell}: the target variant {variant!r} is declared otherwise (request, expected answer, command or a file "
            "it names) than when the campaign was opened, so its runs would not be comparable. Restore the declaration, "
            f"or give the campaign up (touch '{cell.campaign.path / archive.ABANDONED}') and open a new one"
        )


def _progress(cell: Cell, run: int, planned: Metadata) -> str:
    """Which run of how many this is, and how long the sweep will still take."""
    listing = archive.scan_campaign(cell.campaign)
    lacking = sweep.missing(listing)
    total = sum(metadata.read(each.cell.path / archive.METADATA).runs or 0 for each in listing.cells)
    left = sweep.duration_text(sweep.time_left_s(lacking))
    what = f"{cell.variant_dir} at {cell.rate}/s, run {run}"
    return f"[{total - len(lacking) + 1} of {total}] {what}; about {left} left"


def _now() -> str:
    return datetime.now().astimezone().isoformat()


def _machine() -> dict[str, Any]:
    return {"system": platform.platform(), "cpus": os.cpu_count(), "load_1min": os.getloadavg()[0]}
