"""What a cell's ``metadata.json`` says, in any of its versions; and the version 5 that Loadstone writes.

Versions 1 (no ``version`` key) to 4 are the predecessor's. Version 5 keeps every key of version 4 under its old name
and type and adds what was missing. Reading never fails for what a key holds: a value that can't be understood
becomes None and is named in `Metadata.problems`.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSION = "5"

_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|us|µs|μs|ns|m|s)")
MODES = {"vegeta": "open", "serial": "serial"}


@dataclass
class Metadata:
    """One cell's metadata. Rates in requests/s, durations in seconds; None where the file does not say."""

    version: str = "1"
    mode: str = "vegeta"
    timestamp: str | None = None
    rate: float | None = None
    duration_s: float | None = None
    warmup_rate: float | None = None
    warmup_duration_s: float | None = None
    variant: str | None = None
    hostname: str | None = None
    replicas: int | None = None
    runs: int | None = None
    positions: list[int] = field(default_factory=list)
    seed: int | None = None
    order: str | None = None
    load_model: str = "open"
    generator: str = "vegeta"
    labels: dict[str, str] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    target: dict[str, Any] = field(default_factory=dict)
    timeout: str | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def expected_requests(self) -> int | None:
        """Requests that a complete run holds: rate x duration; None when the metadata does not say."""
        if self.rate is None or self.duration_s is None:
            return None
        return round(self.rate * self.duration_s)


def parse_duration(text: object) -> float | None:
    """Seconds of a Go duration (``"10s"``, ``"1m0.04s"``, ``"588.001µs"``); None when it is not one."""
    if not isinstance(text, str):
        return None
    position, seconds = 0, 0.0
    while match := _DURATION.match(text, position):
        seconds += float(match[1]) * _UNITS_S[match[2]]
        position = match.end()
    return seconds if position == len(text) and text else None


def read(path: Path) -> Metadata:
    """Read one ``metadata.json``. A missing or broken file gives an empty `Metadata` that says so in `problems`."""
    try:
        if path.exists() and not path.is_file():  # a named pipe would block for ever
            return Metadata(problems=["metadata.json is no file"])
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return Metadata(problems=["metadata.json is missing"])
    except OSError as error:
        return Metadata(problems=[f"metadata.json cannot be read: {error.strerror}"])
    except (ValueError, RecursionError):
        return Metadata(problems=["metadata.json is not JSON"])
    if not isinstance(content, dict):
        return Metadata(problems=["metadata.json does not hold an object"])
    return parse(content)


def parse(content: dict[str, Any]) -> Metadata:
    """The same from the decoded object."""
    found = _Fields(content)
    mode = found.text("testMode") or "vegeta"
    warmup_rate = found.number("warmupOptions", "rate")
    metadata = Metadata(
        version=found.text("version") or "1",
        mode=mode,
        timestamp=found.text("timestamp"),
        rate=found.number("testOptions", "rate"),
        duration_s=found.duration("testOptions", "duration"),
        warmup_rate=found.number("testOptions", "warmupRate") if warmup_rate is None else warmup_rate,
        warmup_duration_s=found.duration("warmupOptions", "duration"),
        variant=found.text("workloadInfo", "variant"),
        hostname=found.text("workloadInfo", "hostname"),
        replicas=found.integer("workloadInfo", "test_replicas"),
        runs=found.integer("runs"),
        positions=found.integers("order", "positions"),
        seed=found.integer("seed"),
        order=found.text("order", "kind"),
        load_model=found.text("loadModel") or MODES.get(mode, mode),
        generator=found.text("generator", "name") or "vegeta",
        labels={str(key): str(value) for key, value in found.mapping("labels").items()},
        request=found.mapping("req"),
        target=found.mapping("target"),
        timeout=found.text("testOptions", "timeout"),
    )
    metadata.problems = found.problems
    return metadata


class _Fields:
    """Typed look-ups in a decoded object; what has the wrong type is None and named in `problems`."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.problems: list[str] = []

    def get(self, *keys: str) -> Any:
        value: Any = self.content
        for key in keys:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
        return value

    def _wrong(self, keys: tuple[str, ...], value: object) -> None:
        self.problems.append(
            f"metadata.json: {'.'.join(keys)} has the value {str(value)[:80]!r}, which is not understood"
        )

    def text(self, *keys: str) -> str | None:
        value = self.get(*keys)
        if value is None or isinstance(value, str):
            return value
        self._wrong(keys, value)
        return None

    def number(self, *keys: str) -> float | None:
        value = self.get(*keys)
        if value is None:
            return None
        try:
            number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
        except (ValueError, OverflowError):
            number = -1.0
        if not 0 <= number < 1e12:
            self._wrong(keys, value)
            return None
        return number

    def integer(self, *keys: str) -> int | None:
        number = self.number(*keys)
        if number is not None and number != int(number):
            self._wrong(keys, number)
            return None
        return None if number is None else int(number)

    def integers(self, *keys: str) -> list[int]:
        value = self.get(*keys)
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(item, int) and not isinstance(item, bool) for item in value):
            return value
        self._wrong(keys, value)
        return []

    def duration(self, *keys: str) -> float | None:
        value = self.get(*keys)
        seconds = parse_duration(value)
        if value is not None and seconds is None:
            self._wrong(keys, value)
        return seconds

    def mapping(self, *keys: str) -> dict[str, Any]:
        value = self.get(*keys)
        if value is None or isinstance(value, dict):
            return value or {}
        self._wrong(keys, value)
        return {}
