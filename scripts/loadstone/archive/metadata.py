"""What a cell's ``metadata.json`` says, in any of its versions; and the version 5 that Loadstone writes.

Versions 1 (no ``version`` key) to 4 are the predecessor's. Version 5 keeps every key of version 4 under its old name
and type and adds what was missing. No value of a key makes reading fail: one that can't be understood becomes None and
is listed in `Metadata.not_understood`; one that was inferred from the file's form, or is in the file but most likely
wrong, is listed in `Metadata.inferred`.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from loadstone.archive import LEADS_OUT, METADATA, Cell, extension, leads_out, parse_timestamp, stages
from loadstone.archive.stages import Stage, planned_requests

VERSION = "5"

_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(h|ms|us|µs|μs|ns|m|s)")
_DURATION = re.compile(rf"(?:{_DURATION_PART.pattern})+")
_LOAD_MODELS = {"serial": "serial", "k6": "open", "artillery": "open", "vegeta": "open"}  # by ``testMode``
PACED = ("open", "serial")  # load models whose rate is one of requests, so that rate x duration requests are expected

_LONGEST_S = 1e9
_LARGEST_SEED = 2**32
_LARGEST_BYTES = 16 << 20  # a damaged file of another kind must not fill the memory
MOST_RUNS = 100_000
_DEPTH = 6  # of the file in an archive

# The first and the last campaign whose collector made no warm-up and still wrote that it had.
_NO_WARMUP = (
    datetime.fromisoformat("2024-04-12T13:06:39-04:00"),
    datetime.fromisoformat("2024-04-17T00:47:50-04:00"),
)

# Key of a side attack -> the version that files with this key were given later; they may still say "3".
_SIDE_ATTACKS = {"presidioReqBodies": "3.2", "presidioReqTemplate": "3.2", "presidioReq": "3.1"}

# What is assumed of a cell without metadata.
_ASSUMED = {"load_model": "most runs have open load", "generator": "most runs used vegeta"}


@dataclass
class Metadata:
    """One cell's metadata. Rates in requests/s, durations in seconds; None where the file does not say.

    `inferred` explains each column of table ``runs`` whose value is not taken from the file as it is. `tools` maps
    programs to their versions. `rate` is None under closed load, which has `users`. `measured_phase` is the tool's own
    name of the measured phase, `zone` the offset of times that tools wrote without one, `unit` that of latencies;
    `imported` is empty unless the runs were imported. `generators` is how many share the load and `connections` how
    many connections they use in turn, where the sweep declares a number; `generators_in` is ``cluster`` where they are
    pods. `program` is the program that sent the requests for `generator`. `stages` are given where load is more than a
    warm-up and a test at one rate (see `load`), `script` is the user's own for k6. `parts` has the part of the campaign
    of each run, from 1, if it was extended.
    """

    version: str = "1"
    mode: str = "vegeta"
    timestamp: str | None = None
    rate: float | None = None
    duration_s: float | None = None
    warmup_rate: float | None = None
    warmup_duration_s: float | None = None
    includes_warmup: bool | None = None
    variant: str | None = None
    hostname: str | None = None
    replicas: int | None = None
    runs: int | None = None
    positions: list[int] = field(default_factory=list)
    seed: int | None = None
    order: str | None = None
    load_model: str = "open"
    generator: str = "vegeta"
    generator_version: str | None = None
    generators: int | None = None
    generators_in: str | None = None
    program: str | None = None
    connections: int | None = None
    tools: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    users: int | None = None
    measured_phase: str | None = None
    zone: str | None = None
    unit: str | None = None
    imported: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    target: dict[str, Any] = field(default_factory=dict)
    timeout: str | None = None
    stages: list[Stage] = field(default_factory=list)
    script: dict[str, Any] = field(default_factory=dict)
    parts: list[int] = field(default_factory=list)
    inferred: dict[str, str] = field(default_factory=dict)
    unreadable: str | None = None  # why nothing could be read
    not_understood: list[str] = field(default_factory=list)  # values, each with its key

    @property
    def problems(self) -> list[str]:
        """Everything wrong with the file."""
        unreadable = [] if self.unreadable is None else [f"{METADATA} {self.unreadable}"]
        return unreadable + [f"{METADATA}: {each}" for each in self.not_understood]

    def part(self, run: int) -> int:
        """The part of the campaign in which a run was planned, from 1."""
        return self.parts[run - 1] if 0 < run <= len(self.parts) else 1

    @property
    def connection(self) -> dict[str, Any]:
        """How requests reach the target, as declared (`config.connection`)."""
        found = self.target.get("connection")
        return found if isinstance(found, dict) else {}

    @property
    def load(self) -> list[Stage]:
        """The stages of a run; a warm-up and a test at one rate unless the file names others."""
        if self.stages:
            return self.stages
        rates = {stages.WARMUP: self.warmup_rate, stages.TEST: self.rate}
        lengths = {stages.WARMUP: self.warmup_duration_s, stages.TEST: self.duration_s}
        found = [Stage(name, lengths[name] or 0.0, rate or 0.0, rate or 0.0) for name, rate in rates.items()]
        counted = [
            replace(stage, requests=stages.integral(stage), measured=stage.name == stages.TEST) for stage in found
        ]
        return [stage for stage in counted if stage.sends or stage.measured]

    @property
    def load_s(self) -> float:
        """Seconds of all stages of a run that time ends."""
        return sum(stage.duration_s for stage in self.load if not stage.iterations)

    @property
    def sent_by(self) -> str:
        """The programs that sent the load: ``paced``, ``4 of paced over 8 connections``."""
        return self._sent_by("" if self.generators is None else f"{self.generators} of ")

    def sent_alike(self, processes: int) -> str:
        """The same for runs whose ways of sending are known to be equivalent; `processes` are those that sent.

        Load generators of one process that use a declared number of connections measure the same, however many they
        are (docs/load.md). Without a number they use one each, and in several processes they compete for processors.
        """
        if self.generators is None or self.connections is None or self.generators_in == "cluster" or processes != 1:
            return self.sent_by
        return f"{self._sent_by('')} by load generators of one process"

    def _sent_by(self, number: str) -> str:
        text = f"{number}{self.program or self.generator}"
        text += f" over {self.connections} connections" if self.connections is not None else ""
        text += " with a new connection for each request" if self.connection.get("keepalive") is False else ""
        return f"{text} in the cluster" if self.generators_in == "cluster" else text

    @property
    def measured(self) -> Stage | None:
        """The stage whose requests count."""
        return next((stage for stage in self.stages if stage.measured), None)

    @property
    def expected_requests(self) -> int | None:
        """Requests of a complete run: rate x duration; None under closed load, or when the metadata does not say."""
        if self.measured is not None:
            return self.measured.requests
        if self.rate is None or self.duration_s is None or self.load_model not in PACED:
            return None
        return planned_requests(self.rate, self.duration_s)


def parse_duration(text: object) -> float | None:
    """Seconds of a Go duration (``"10s"``, ``"1m0.04s"``, ``"588.001µs"``); None when it is not one."""
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        return None
    seconds = 0.0
    for number, unit in _DURATION_PART.findall(text):
        seconds += float(number) * _UNITS_S[unit]
    return seconds if seconds < _LONGEST_S else None


def load(path: Path) -> Any:
    """The decoded ``metadata.json`` of a cell.

    Raises ValueError, and OSError: without errno when it is not a file to read, or leads out of the archive.
    """
    if path.is_symlink() and leads_out(path, [*path.parents][:_DEPTH][-1]):
        raise OSError(LEADS_OUT)
    if path.exists() and not path.is_file():  # a named pipe would block for ever
        raise OSError("is not a file")
    with path.open("rb") as file:
        content = file.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        raise OSError(f"is larger than {_LARGEST_BYTES >> 20} MiB")
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read(path: Path) -> Metadata:
    """Read one ``metadata.json``. A missing or broken file gives an empty `Metadata` that says so in `problems`."""
    try:
        content = load(path)
    except FileNotFoundError:
        return nothing("is missing")
    except OSError as error:
        return nothing(f"cannot be read: {error.strerror}" if error.strerror else str(error))
    except ValueError:
        return nothing("is not JSON")
    if not isinstance(content, dict):
        return nothing("is not a JSON object")
    return parse(content)


def read_cell(cell: Cell) -> Metadata:
    """Read the metadata of a cell, with the further runs of extensions."""
    return extended(cell, read(cell.path / METADATA))


def extended(cell: Cell, described: Metadata) -> Metadata:
    """Add the runs that extensions of the campaign planned for a cell. `target` then has the newest identity."""
    place = cell.rate, cell.variant_dir
    for part in extension.read(cell.campaign):
        before = len(described.positions)
        if (further := part.runs_of(place)) is None:
            continue
        if further.first_run == before + 1:
            described.positions = [*described.positions, *further.positions]
            described.runs = len(described.positions)
        elif further.first_run != 1 or len(further.positions) != before:  # else a new cell, whose metadata have them
            continue
        earlier = [described.part(run) for run in range(1, len(described.positions) - len(further.positions) + 1)]
        described.parts = [*earlier, *[part.number + 1] * len(further.positions)]
        if cell.variant_dir in part.identities:
            identified = {"identity": part.identities[cell.variant_dir]} | (
                {"redact": part.redact} if part.redact else {}
            )
            described.target = {**described.target, **identified}
    return described


def nothing(unreadable: str) -> Metadata:
    """The metadata of a cell whose file could not be read, for the reason that `unreadable` gives."""
    inferred = {name: f"{METADATA} {unreadable}; {why}" for name, why in _ASSUMED.items()}
    return Metadata(unreadable=unreadable, inferred=inferred)


def parse(content: dict[str, Any]) -> Metadata:
    """The metadata from its decoded JSON."""
    found = _Fields(content)
    mode = found.take(_text, "testMode") or "vegeta"
    read = {name: found.take(convert, *keys) for name, (convert, *keys) in _FIELDS.items()}
    warmup_rate, load_model, generator = read.pop("warmup_rate"), read.pop("load_model"), read.pop("generator")
    for key, convert in _UNUSED.items():
        found.take(convert, key)
    parse_stages = partial(stages.parse, measured=found.get("measuredPhase"), seconds=parse_duration)
    metadata = Metadata(
        version=_version(found),
        mode=mode,
        warmup_rate=found.take(stages.number, "testOptions", "warmupRate") if warmup_rate is None else warmup_rate,
        load_model=load_model or _LOAD_MODELS.get(mode, mode),
        generator=generator or mode,
        stages=found.take(parse_stages, "stages") or [],
        **{name: value for name, value in read.items() if value is not None},
    )
    metadata.generator_version = metadata.generator_version or None
    metadata.program = metadata.program or _program(found)
    if metadata.measured is not None and metadata.measured.iterations:
        metadata.duration_s = None  # the file's duration is the longest that users have for their iterations
    metadata.not_understood = found.not_understood
    metadata.inferred = _inferred(found, metadata)
    return metadata


def _program(found: "_Fields") -> str | None:
    """The program that sent, where the file does not say it: earlier, only these runs were sent by `paced`."""
    is_ours = found.get("version") == "5" and found.get("generator", "name") == "vegeta" and not found.get("imported")
    was_paced = any(found.get(*key) for key in (("stages",), ("req", "draw"), ("generator", "count")))
    return "paced" if is_ours and was_paced else None


def _version(found: "_Fields") -> str:
    version = found.take(_text, "version") or "1"
    key = _side_attack(found)
    return _SIDE_ATTACKS[key] if key and version == "3" else version


def _side_attack(found: "_Fields") -> str | None:
    """The key that declares a side attack, if there is one."""
    return next((key for key in _SIDE_ATTACKS if found.get(key) is not None), None)


def _inferred(found: "_Fields", metadata: Metadata) -> dict[str, str]:
    reasons = {}
    if found.get("version") is None:
        reasons["metadata_version"] = "the file names no version, like all files of version 1"
    elif found.get("version") == "3" != metadata.version:
        reasons["metadata_version"] = f"the file says 3 and has the key {_side_attack(found)}"
    if found.get("loadModel") is None:
        mode = f"testMode is {metadata.mode}" if found.get("testMode") is not None else "only vegeta mode existed"
        reasons["load_model"] = f"the file names no load model; {mode}"
    if found.get("generator", "name") is None:
        reasons["generator"] = "the file names no load generator; it follows from the mode"
    if metadata.includes_warmup and metadata.timestamp and _made_no_warmup(metadata.timestamp):
        reasons["warmup_rate"] = "the file says that there was a warm-up, but the collector sent none at that time"
    return reasons


def _made_no_warmup(timestamp: str) -> bool:
    instant = parse_timestamp(timestamp)
    return instant is not None and _NO_WARMUP[0] <= instant <= _NO_WARMUP[1]


def _is_text(value: str) -> bool:
    """False for half a character (a lone surrogate), which JSON can hold and tables can't."""
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


class _Fields:
    """Look-ups in a decoded object; what can't be understood is None and listed in `not_understood`."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.not_understood: list[str] = []

    def get(self, *keys: str) -> Any:
        value: Any = self.content
        for depth, key in enumerate(keys):
            if not isinstance(value, dict):
                if value is not None:
                    self._wrong(keys[:depth], value)
                return None
            value = value.get(key)
        return value

    def take(self, convert: Callable[[Any], Any], *keys: str) -> Any:
        """A value as `convert` reads it, which raises ValueError or OverflowError for what it can't understand."""
        value = self.get(*keys)
        try:
            return None if value is None else convert(value)
        except (ValueError, OverflowError):
            self._wrong(keys, value)
            return None

    def _wrong(self, keys: tuple[str, ...], value: object) -> None:
        problem = f"{'.'.join(keys)} has the value {str(value)[:80]!r}, which is not understood"
        if problem not in self.not_understood:  # each key of a part that is not an object would add it
            self.not_understood.append(problem)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not _is_text(value):
        raise ValueError(value)
    return value


# These raise ValueError likewise.
_boolean = partial(msgspec.convert, type=bool)
_mapping = partial(msgspec.convert, type=dict)


def _seed(value: Any) -> int:
    return stages.integer(value, _LARGEST_SEED)


def _positions(value: Any) -> list[int]:
    if not isinstance(value, list) or len(value) > MOST_RUNS or any(isinstance(item, str) for item in value):
        raise ValueError(value)
    return list(map(stages.integer, value))


def _duration(value: Any) -> float:
    if (seconds := parse_duration(value)) is None:
        raise ValueError(value)
    return seconds


def _texts(value: Any) -> dict[str, str]:
    return {str(key): str(each) for key, each in _mapping(value).items() if _is_text(f"{key}{each}")}


# Field of `Metadata` -> conversion of its value, and its key.
_FIELDS: dict[str, tuple[Any, ...]] = {
    "timestamp": (_text, "timestamp"),
    "rate": (stages.number, "testOptions", "rate"),
    "duration_s": (_duration, "testOptions", "duration"),
    "warmup_rate": (stages.number, "warmupOptions", "rate"),
    "warmup_duration_s": (_duration, "warmupOptions", "duration"),
    "includes_warmup": (_boolean, "testOptions", "includesWarmup"),
    "variant": (_text, "workloadInfo", "variant"),
    "hostname": (_text, "workloadInfo", "hostname"),
    "replicas": (stages.integer, "workloadInfo", "test_replicas"),
    "runs": (stages.integer, "runs"),
    "positions": (_positions, "order", "positions"),
    "seed": (_seed, "seed"),
    "order": (_text, "order", "kind"),
    "load_model": (_text, "loadModel"),
    "generator": (_text, "generator", "name"),
    "generator_version": (_text, "generator", "version"),
    "generators": (stages.integer, "generator", "count"),
    "generators_in": (_text, "generator", "in"),
    "program": (_text, "generator", "program"),
    "connections": (stages.integer, "generator", "connections"),
    "tools": (_texts, "tools"),
    "labels": (_texts, "labels"),
    "users": (stages.integer, "users"),
    "measured_phase": (_text, "measuredPhase"),
    "zone": (_text, "zone"),
    "unit": (_text, "unit"),
    "imported": (_mapping, "imported"),
    "request": (_mapping, "req"),
    "target": (_mapping, "target"),
    "timeout": (_text, "testOptions", "timeout"),
    "script": (_mapping, "script"),
}

# Key of version 5 that Loadstone checks and does not read -> conversion of its value.
_UNUSED: dict[str, Callable[[Any], Any]] = {
    "min_warmup_rate": stages.number,
    "max_warmup_rate": stages.number,
    "resultsFileSuffix": _text,
    "summaryFileSuffix": _text,
    "warmupsFileSuffix": _text,
}
