"""The stages that a declared sweep gives to each run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loadstone.archive.metadata import parse_duration
from loadstone.archive.stages import TEST, WARMUP, Stage, integral, steps, ticks

# k6's limit of the time that users have for their iterations.
_LONGEST = "10m"
_LENGTH = "must be longer than zero and shorter than 31 years"  # of a duration


def loads(sweep: Mapping[str, Any]) -> Sequence[float]:
    """The loads of a sweep, one folder each: requests per second, or numbers of users."""
    found: Sequence[float] = sweep["users"] if "users" in sweep else sweep["rates"]
    return found


def load_model(sweep: Mapping[str, Any]) -> str:
    """``open``, ``closed`` or ``serial``."""
    if "users" in sweep:
        return "closed"
    return "serial" if sweep.get("generator") == "serial" else "open"


def planned(sweep: Mapping[str, Any], load: float) -> list[Stage]:
    """The stages of every run at a load (requests per second, or users); the measured one is always among them."""
    if "users" in sweep:
        return _of_users(sweep, int(load))
    stages = _of_shape(sweep, load) if "shape" in sweep else _of_rate(sweep, load)
    each = requests_each(sweep)
    if sweep.get("generator") == "artillery":
        return [stage.with_requests(sum(ticks(*step) for step in steps(stage))) for stage in stages]
    return [stage.with_requests(integral(stage) * each) for stage in stages]


def measured_duration(sweep: Mapping[str, Any]) -> str:
    """The declared duration of the measured stage."""
    return str(_measured(sweep["shape"])["duration"] if "shape" in sweep else sweep.get("duration", _LONGEST))


def _measured(shape: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The stage that is declared to be measured, by default the last."""
    return next((stage for stage in shape if stage.get("measured")), shape[-1])


def requests_each(sweep: Mapping[str, Any]) -> int:
    """Requests that a user sends in one iteration."""
    return int(sweep.get("script", {}).get("requests", 1))


def _of_rate(sweep: Mapping[str, Any], rate: float) -> list[Stage]:
    test = Stage(TEST, seconds(sweep["duration"]), rate=rate, to=rate, measured=True)
    warmup_s = seconds(sweep.get("warmup", {}).get("duration"))
    before = float(warmup_rate(rate, sweep["warmup"])) if warmup_s else 0.0
    return [Stage(WARMUP, warmup_s, rate=before, to=before), test] if before else [test]


def _of_users(sweep: Mapping[str, Any], users: int) -> list[Stage]:
    iterations = sweep.get("iterations")
    requests = users * iterations * requests_each(sweep) if iterations else None
    duration_s = seconds(measured_duration(sweep))
    test = Stage(TEST, duration_s, users=users, iterations=iterations, requests=requests, measured=True)
    warmup_s = seconds(sweep.get("warmup", {}).get("duration"))
    return [Stage(WARMUP, warmup_s, users=users), test] if warmup_s else [test]


def _of_shape(sweep: Mapping[str, Any], load: float) -> list[Stage]:
    return [
        Stage(
            stage["name"],
            seconds(stage["duration"]),
            rate=_rate(stage["rate"], load),
            to=_rate(stage.get("to", stage["rate"]), load),
            measured=stage is _measured(sweep["shape"]),
        )
        for stage in sweep["shape"]
    ]


def _rate(declared: str | float, load: float) -> float:
    """Requests per second of a declared rate: a number, or a share of the sweep's rate (``50%``)."""
    if isinstance(declared, str):
        return round(float(declared.removesuffix("%")) * load / 100, 9)
    return float(declared)


def warmup_rate(rate: float, warmup: Mapping[str, Any]) -> int:
    """Requests/s of the warm-up: half the rate, rounded down, within the configured bounds (as in version 4)."""
    return int(max(warmup.get("min_rate", 0), min(warmup.get("max_rate", 100), rate // 2)))


def seconds(duration: str | None) -> float:
    """The seconds of a checked duration; 0 for none."""
    return parse_duration(duration) or 0.0


def faults(sweep: Mapping[str, Any]) -> list[str]:
    """Contradictions in a sweep's load: a key and why, each."""
    generator = sweep.get("generator", "vegeta")
    found = [f"{key}: {why}" for key, why in _misplaced(sweep, generator)]
    if found:
        return found
    if "shape" in sweep:
        found += _shape_faults(sweep, generator)
    elif not seconds(measured_duration(sweep)):
        found.append(f"duration: {_LENGTH}")
    warmup = sweep.get("warmup", {})
    if warmup.get("min_rate", 0) > warmup.get("max_rate", 100):
        found.append("warmup: min_rate is above max_rate")
    if found:
        return found
    for load in loads(sweep):
        stages = planned(sweep, load)
        short = [stage for stage in stages if stage.sends and stage.duration_s < 1]
        if generator == "k6" and short:
            found.append(f"generator: k6 needs stages of at least a second, but {short[0].name} is shorter")
        measured = next(stage for stage in stages if stage.measured)
        found += _sharing_faults(sweep, load, measured.requests or 0)
        if measured.rate is not None and (measured.rate + (measured.to or 0)) / 2 * measured.duration_s < 1:
            found.append(f"rates: {load} requests/s for {measured_duration(sweep)} is less than one request")
    return list(dict.fromkeys(found))


def _sharing_faults(sweep: Mapping[str, Any], load: float, requests: int) -> Iterator[str]:
    """Faults of the numbers of generators and connections that share the requests."""
    number = sweep.get("generators", 1)
    if requests < number > 1:
        yield f"generators: {number} generators have {requests} requests to send at {load} requests/s; each needs one"
    if (connections := sweep.get("connections", 0)) > requests:
        yield f"connections: {connections} have {requests} requests to send at {load} requests/s; each needs one"
    elif connections % number:
        yield f"connections: {connections} can't be shared evenly by {number} generators"


# Keys that only one generator has.
_OF_ONE = {
    "generators": ("vegeta", "is only for vegeta"),
    "connections": ("vegeta", "is only for vegeta"),
    "script": ("k6", "is only for k6"),
}


def _misplaced(sweep: Mapping[str, Any], generator: str) -> list[tuple[str, str]]:
    """Keys that are missing, or that can't be combined with another."""
    found = []
    if ("users" in sweep) == ("rates" in sweep):
        found.append(("rates", "either rates (requests per second) or users (who wait for responses) are needed"))
    if "users" in sweep and generator != "k6":
        found.append(("users", f"{generator} does not support closed load; use generator: k6"))
    if "iterations" in sweep and "users" not in sweep:
        found.append(("iterations", "needs users (closed load)"))
    found += [
        (key, f"{why}; the generator is {generator}")
        for key, (whose, why) in _OF_ONE.items()
        if key in sweep and generator != whose
    ]
    if "shape" in sweep:
        if generator == "serial" or "users" in sweep:
            found.append(("shape", "needs open load (rates, and generator: vegeta, k6 or artillery)"))
        found += [
            (key, "conflicts with sweep.shape, whose stages define it")
            for key in ("duration", "warmup")
            if key in sweep
        ]
    elif "duration" not in sweep and "iterations" not in sweep:
        found.append(("duration", "is required"))
    return found


def _shape_faults(sweep: Mapping[str, Any], generator: str) -> list[str]:
    shape, found = sweep["shape"], []
    names = [stage["name"] for stage in shape]
    found += [f"shape: two stages have the name {name}" for name in dict.fromkeys(names) if names.count(name) > 1]
    if sum(bool(stage.get("measured")) for stage in shape) > 1:
        found.append("shape: only one stage can be the measured one")
    found += [f"shape: {stage['name']}: {_LENGTH}" for stage in shape if not seconds(stage["duration"])]
    if found:
        return found
    for load in sweep["rates"]:
        measured = next(stage for stage in _of_shape(sweep, load) if stage.measured)
        if not load == measured.rate == measured.to:
            found.append(
                f"shape: the measured stage, {measured.name}, must have the rate that sweep.rates says ({load:g} "
                "requests/s) all the time: write `rate: 100%`"
            )
    if generator == "artillery" and any(seconds(stage["duration"]) * 1000 % 1 for stage in shape):
        found.append("shape: Artillery counts time in milliseconds")
    return found[:1]
