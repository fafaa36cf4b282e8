"""The load of one run: stages one after another, one of which is measured."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

WARMUP, TEST = "warmup", "test"

# Of a metadata.json: more, or longer ones, were not written by us.
_MOST, _LONGEST_S, _LARGEST = 1000, 1e9, 1e12


@dataclass(frozen=True)
class Stage:
    """A time with one kind of load.

    Open load goes steadily from `rate` to `to` requests per second; closed load is `users` who wait for each answer,
    with `iterations` each when that ends the stage. `requests` is how many it holds; None: nobody can know.
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
        """Whether it has requests, as far as is known."""
        return self.requests is None or self.requests > 0

    def with_requests(self, requests: int) -> "Stage":
        return replace(self, requests=requests)

    def to_json(self) -> dict[str, Any]:
        """As it stands in a ``metadata.json``."""
        found: dict[str, Any] = {"name": self.name, "duration": f"{number_text(self.duration_s)}s"}
        if self.rate is not None and self.to is not None:
            found |= {"rate": number_text(self.rate)} | ({"to": number_text(self.to)} if self.to != self.rate else {})
        given = {"users": self.users, "iterations": self.iterations, "requests": self.requests}
        return found | {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True)
class Attack:
    """Stages that one program sends."""

    stages: tuple[Stage, ...]

    @property
    def duration_s(self) -> float:
        return sum(stage.duration_s for stage in self.stages)

    @property
    def measured(self) -> Stage | None:
        return next((stage for stage in self.stages if stage.measured), None)

    def start_s(self, stage: Stage) -> float:
        """When a stage begins, from the program's start."""
        return sum(each.duration_s for each in self.stages[: self.stages.index(stage)])


def together(stages: Sequence[Stage]) -> list[Attack]:
    """One program sends all."""
    return [Attack(tuple(stages))]


def apart(stages: Sequence[Stage]) -> list[Attack]:
    """The measured stage has a program of its own, so that what it reports is of that alone."""
    index = next(index for index, stage in enumerate(stages) if stage.measured)
    groups = (stages[:index], stages[index : index + 1], stages[index + 1 :])
    return [Attack(tuple(group)) for group in groups if any(stage.sends for stage in group)]


def integral(stage: Stage) -> int:
    """Requests of a stage: number n (from 0) is due when the integral of the rate is n."""
    return _n_requests((stage.rate or 0.0) + ((stage.to or 0.0) - (stage.rate or 0.0)) / 2, stage.duration_s)


def steps(stage: Stage) -> list[tuple[float, int]]:
    """An open stage as Artillery is told it: (seconds, requests) at a constant rate; a ramp has one of each second.

    Artillery's own ramps leave out what is less than a request in every second. It makes `ticks` requests of each step.
    """
    rate, to, duration_s = stage.rate or 0.0, stage.to or 0.0, stage.duration_s
    if rate == to:
        return [_step(duration_s, _n_requests(rate, duration_s))]
    found, before = [], 0
    for start in range(math.ceil(duration_s)):
        end = min(start + 1.0, duration_s)
        due = _n_requests(rate + (to - rate) * end / 2 / duration_s, end)
        found.append(_step(end - start, due - before))
        before = due
    return found


def _step(duration_s: float, requests: int) -> tuple[float, int]:
    """One request more where a last bit that is missing of the seconds would cost one."""
    seconds = round(duration_s, 6)
    return seconds, requests + (ticks(seconds, requests) < requests)


def ticks(duration_s: float, requests: int) -> int:
    """Requests that Artillery makes when told so many: it waits whole microseconds from one to the next.

    As UniformProcess in lib/ of its package ``arrivals`` does, to the last bit.
    """
    duration_ms = duration_s * 1000
    tick_us = math.floor(duration_ms / requests * 1000) if requests else 0
    return math.floor(duration_ms * 1000 / tick_us) if tick_us else requests


def _n_requests(rate: float, duration_s: float) -> int:
    return math.ceil(rate * duration_s - 1e-6)


def number_text(number: float) -> str:
    """A rate or a number of seconds as folders and metadata have it: ``100``, ``0.5``."""
    return str(int(number)) if number == int(number) else repr(float(number))


def load_text(load: str, model: str) -> str:
    """What a run's folder says of its load, in words: ``300/s``, ``3 users``."""
    return f"{load} user{'' if load == '1' else 's'}" if model == "closed" else f"{load}/s"


def phase_names(stages: Sequence[Stage]) -> tuple[list[str], list[int]]:
    """Of the stages that are not measured: names, and the number of the first request behind each.

    In the order of their requests. Empty when a stage's requests are unknown.
    """
    others = [stage for stage in stages if not stage.measured]
    ends, end = [], 0
    for stage in others:
        if stage.requests is None:
            return [], []
        end += stage.requests
        ends.append(end)
    return [stage.name for stage in others], ends


def parse(content: Any, measured: str | None, seconds: Any) -> list[Stage]:
    """The stages that a ``metadata.json`` names; `seconds` reads a duration. Raises ValueError for anything else."""
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
    """A number of a ``metadata.json``, which may be text, from 0. Raises ValueError or OverflowError for others."""
    found = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    if not 0 <= found < _LARGEST:
        raise ValueError(f"{value!r} is no number from 0")
    return found


def integer(value: object, most: int = 2**31 - 1) -> int:
    """The same of a whole number, by default of those that tables can hold."""
    found = number(value)
    if found != int(found) or found > most:
        raise ValueError(f"{value!r} is no whole number")
    return int(found)


_NUMBERS: dict[str, Callable[[object], float]] = {
    "rate": number,
    "to": number,
    "users": integer,
    "iterations": integer,
    "requests": integer,
}
