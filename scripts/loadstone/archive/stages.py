"""The load of one run: stages in sequence, one of which is measured."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

WARMUP, TEST = "warmup", "test"

# Limits of what a metadata.json can hold: number of stages, their length, other numbers.
_MOST, _LONGEST_S, _LARGEST = 1000, 1e9, 1e12


@dataclass(frozen=True)
class Stage:
    """A period with one kind of load.

    Open load ramps from `rate` to `to` requests per second; closed load is `users` who wait for each response, with
    `iterations` each if these end the stage. `requests` is their planned number; None where it can't be known.
    """

    name: str
    duration_s: float
    rate: float | None = None
    to: float | None = None
    users: int | None = None
    iterations: int | None = None
    requests: int | None = None
    measured: bool = False

    @property
    def sends(self) -> bool:
        """Whether it may have requests."""
        return self.requests is None or self.requests > 0

    def with_requests(self, requests: int) -> "Stage":
        return replace(self, requests=requests)

    def to_json(self) -> dict[str, Any]:
        """The stage as a ``metadata.json`` has it."""
        found: dict[str, Any] = {"name": self.name, "duration": f"{number_text(self.duration_s)}s"}
        if self.rate is not None and self.to is not None:
            found |= {"rate": number_text(self.rate)} | ({"to": number_text(self.to)} if self.to != self.rate else {})
        given = {"users": self.users, "iterations": self.iterations, "requests": self.requests}
        return found | {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True)
class Attack:
    """Stages that are sent by one program."""

    stages: tuple[Stage, ...]

    @property
    def duration_s(self) -> float:
        return sum(stage.duration_s for stage in self.stages)

    @property
    def measured(self) -> Stage | None:
        return next((stage for stage in self.stages if stage.measured), None)

    def start_s(self, stage: Stage) -> float:
        """When a stage begins: seconds after the program's start."""
        return sum(each.duration_s for each in self.stages[: self.stages.index(stage)])


def together(stages: Sequence[Stage]) -> list[Attack]:
    """All stages sent by one program."""
    return [Attack(tuple(stages))]


def apart(stages: Sequence[Stage]) -> list[Attack]:
    """The measured stage sent by a program of its own, so that its report covers nothing else."""
    index = next(index for index, stage in enumerate(stages) if stage.measured)
    groups = (stages[:index], stages[index : index + 1], stages[index + 1 :])
    return [Attack(tuple(group)) for group in groups if any(stage.sends for stage in group)]


def integral(stage: Stage) -> int:
    """Requests of a stage: request n (from 0) is due when the integral of the rate is n."""
    return planned_requests((stage.rate or 0.0) + ((stage.to or 0.0) - (stage.rate or 0.0)) / 2, stage.duration_s)


def steps(stage: Stage) -> list[tuple[float, int]]:
    """An open stage as Artillery gets it: (seconds, requests) at a constant rate; a ramp has one step per second.

    Artillery's own ramps drop what is less than a request in each second. It sends `ticks` requests of each step.
    """
    rate, to, duration_s = stage.rate or 0.0, stage.to or 0.0, stage.duration_s
    if rate == to:
        return [_step(duration_s, planned_requests(rate, duration_s))]
    found, before = [], 0
    for start in range(math.ceil(duration_s)):
        end = min(start + 1.0, duration_s)
        due = planned_requests(rate + (to - rate) * end / 2 / duration_s, end)
        found.append(_step(end - start, due - before))
        before = due
    return found


def _step(duration_s: float, requests: int) -> tuple[float, int]:
    """One more request where rounding of the seconds would cost one."""
    seconds = round(duration_s, 6)
    return seconds, requests + (ticks(seconds, requests) < requests)


def ticks(duration_s: float, requests: int) -> int:
    """Requests that Artillery sends when given this number: its pauses between two are whole microseconds.

    Computed exactly as by UniformProcess in lib/ of its package ``arrivals``.
    """
    duration_ms = duration_s * 1000
    tick_us = math.floor(duration_ms / requests * 1000) if requests else 0
    return math.floor(duration_ms * 1000 / tick_us) if tick_us else requests


def planned_requests(rate: float, duration_s: float) -> int:
    """Requests that an attack sends: all that start before its end, at 0, 1 / rate, 2 / rate, ... (vegeta's pacing)."""
    return math.ceil(rate * duration_s - 1e-6)


def number_text(number: float) -> str:
    """A rate or a number of seconds as in folder names and metadata: ``100``, ``0.5``."""
    return str(int(number)) if number == int(number) else repr(float(number))


def load_text(load: str, model: str) -> str:
    """The load of a run's folder for people: ``300/s``, ``3 users``."""
    return f"{load} user{'' if load == '1' else 's'}" if model == "closed" else f"{load}/s"


def phase_names(stages: Sequence[Stage]) -> tuple[list[str], list[int]]:
    """Names of the stages that are not measured, and how many of their requests come before the end of each.

    Empty when a stage's requests are unknown.
    """
    others = [stage for stage in stages if not stage.measured]
    requests = [stage.requests for stage in others if stage.requests is not None]
    if len(requests) < len(others):
        return [], []
    return [stage.name for stage in others], list(accumulate(requests))


def parse(content: Any, measured: str | None, seconds: Any) -> list[Stage]:
    """The stages in a ``metadata.json``; `seconds` parses a duration. Raises ValueError for anything else."""
    if not isinstance(content, list) or len(content) > _MOST:
        raise ValueError("no list of stages")
    return [_stage(each, measured, seconds) for each in content]


def _stage(content: Any, measured: str | None, seconds: Any) -> Stage:
    if not isinstance(content, Mapping) or not isinstance(name := content.get("name"), str):
        raise ValueError("a stage without a name")
    duration_s = seconds(content.get("duration"))
    if duration_s is None or duration_s > _LONGEST_S:
        raise ValueError("a stage without a duration")
    found: dict[str, Any] = {
        key: convert(content[key]) for key, convert in _NUMBERS.items() if content.get(key) is not None
    }
    return Stage(name, duration_s, measured=name == measured, **({"to": found.get("rate")} | found))


def number(value: object) -> float:
    """A number from 0 in a ``metadata.json``, where it may be text. Raises ValueError or OverflowError for others."""
    found = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    if not 0 <= found < _LARGEST:
        raise ValueError(f"{value!r} is not a number from 0 on")
    return found


def integer(value: object, most: int = 2**31 - 1) -> int:
    """A whole number likewise, at most `most`: by default what tables can hold."""
    found = number(value)
    if found != int(found) or found > most:
        raise ValueError(f"{value!r} is not a whole number")
    return int(found)


_NUMBERS: dict[str, Callable[[object], float]] = {
    "rate": number,
    "to": number,
    "users": integer,
    "iterations": integer,
    "requests": integer,
}
