"""Driving vegeta: an attack into its binary format, and that into the archive's formats once the attack is over."""

import base64
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from subprocess import PIPE
from typing import Any

import zstandard

from loadstone.errors import LoadstoneError
from loadstone.metadata import planned_requests
from loadstone.process import Minder, Program, check, run

# Level 20 costs 70 times the CPU of level 3 for 10 % less.
_LEVEL = 3


class Attack:
    """One stream of requests: `mode` is ``vegeta`` (open, at `rate` per second) or ``serial`` (one after another)."""

    def __init__(self, mode: str, request: Mapping[str, Any], timeout: str, minder: Minder, log: Path) -> None:
        self.mode = mode
        self.timeout = timeout
        self._minder = minder
        self._log = log
        body = request.get("body")
        target = {"method": request["method"], "url": request["url"], "header": request.get("header", {})}
        if body is not None:
            target["body"] = base64.b64encode(body.encode()).decode()
        self._target = json.dumps(target).encode() + b"\n"

    def start(self, rate: float, duration_s: float, output: Path) -> Program:
        """Start it; results go to `output` in vegeta's binary format. Serial: rate x duration requests, in any time."""
        target = output.with_suffix(".target")
        target.write_bytes(self._target)
        if self.mode == "serial":
            requests = str(planned_requests(rate, duration_s))
            command = ["serial", "-requests", requests, "-timeout", self.timeout, "-output", str(output)]
        else:
            pace = Fraction(rate).limit_denominator(1_000_000)
            command = ["vegeta", "attack", "-format=json", f"-rate={pace.numerator}/{pace.denominator}s"]
            command += [f"-duration={round(duration_s * 1e9)}ns", f"-timeout={self.timeout}", f"-output={output}"]
        with target.open("rb") as stdin:
            # A proxy of the environment would be measured instead of the target.
            return Program(
                command, self._minder, self._log, stdin=stdin, environment={"NO_PROXY": "*", "no_proxy": "*"}
            )


def encode(source: Path, destination: Path, minder: Minder, log: Path) -> None:
    """Binary results -> JSON lines, zstd compressed with a checksum."""
    program = Program(["vegeta", "encode", "-to=json", str(source)], minder, log, stdout=PIPE)
    try:
        compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, threads=1)
        with destination.open("wb") as output:
            compressor.copy_stream(program.stdout, output, read_size=1 << 18)
    except OSError as error:
        program.stop()
        raise LoadstoneError(f"{destination} cannot be written: {error.strerror}") from None
    except BaseException:
        program.stop()
        raise
    check(program, program.wait())


def summarise(source: Path, destination: Path, minder: Minder, log: Path) -> dict[str, Any]:
    """Vegeta's own report of binary results, as indented JSON. Returns it decoded."""
    compact = destination.with_suffix(".compact")
    run(["vegeta", "report", "-type=json", f"-output={compact}", str(source)], minder, log)
    report: dict[str, Any] = json.loads(compact.read_bytes())
    destination.write_text(json.dumps(report, indent=2) + "\n")
    compact.unlink()
    return report
