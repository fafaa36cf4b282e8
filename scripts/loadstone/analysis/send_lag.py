"""How punctually the load generator sent each run: table `sending`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.analysis import run_requests
from loadstone.analysis.run_requests import Source
from loadstone.digits import ms
from loadstone.readers import load_generators
from loadstone.stats import estimable
from loadstone.text import rate_text

_Row = dict[str, Any]

# Sent faster than asked, and that not only to catch up, requests were not due when it seems.
_TOO_FAST = 1.01
# By the highest of them that a run's requests support it is judged whether it was sent late.
PERCENTILES = {"p99": 0.99, "p90": 0.9, "p50": 0.5}
NAMES = {"p99": "the 99th percentile", "p90": "the 90th percentile", "p50": "the median"}
# How reasons begin that are cured in another way than by another load generator.
_SET_BACK = "the clock was set back"
_ONE, _NONE = "a single measured request has no rate", "there is no measured request"
REMEDIES = {
    _SET_BACK: "measure on a machine whose clock nobody sets meanwhile: have its time service slew it, not step it",
    _ONE: "measure for longer, so that there are several requests",
    _NONE: "measure for longer, so that there are several requests",
}
# Between so many requests there is a rate.
_FEWEST = 2
# A clock this coarse shows no lag that the limit is about.
_COARSE_NS = 1e6


@dataclass(frozen=True)
class LagLimit:
    """A run is limited by its generator when the 99th percentile of its send lag is above both of these.

    Of a run with too few requests for that, the highest of `PERCENTILES` that they support; without any, nothing is
    said. The second is a share of its own median latency. What is late by less than the first is the clock of the load
    generator itself: ``vegeta attack``, of which many archives are, waits in steps of 1 ms on Linux (golang/go#53824),
    so it sends up to 1.1 ms late on an idle machine. What is late by less than the second moves no figure of the run
    visibly. `apart_ns` is how far the clocks or starts of several generators may be from each other.
    """

    time_ns: float = 2e6
    share: float = 0.1
    apart_ns: float = 10e6

    def of(self, median_ns: float) -> float:
        return max(self.time_ns, self.share * median_ns)


def sending(source: Source, facts: Sequence[_Row], counts: Sequence[int | None], limit: LagLimit) -> list[_Row]:
    """The row of `sending` of each of `facts`, runs of so many single requests."""
    found: dict[tuple[str, int], _Row] = {}
    for file, runs in run_requests.by_file(facts):
        if any(_refusal(run) is None for run in runs):
            found |= {(file, row["run"]): row for row in source.of_cell("sending", file, runs)}
    return [
        run_requests.key(fact)
        | {"requests": count}
        | _judged(fact, found.get((fact["requests_file"] or "", fact["run"])), count or 0, limit)
        for fact, count in zip(facts, counts, strict=True)
    ]


def _judged(fact: _Row, found: _Row | None, requests: int, limit: LagLimit) -> _Row:
    why = _refusal(fact)
    if why is None and requests < _FEWEST:
        why = _ONE if requests else _NONE
    elif why is None and (found is None or found["achieved_rate"] is None):
        why = "nothing tells when its requests were sent"
    elif why is None and found and (found["least_rate"] or 0) > _TOO_FAST * fact["rate"]:
        why = (
            f"its requests were sent at {_rate(found['least_rate'])} per second and more where "
            f"{rate_text(fact['rate'])} were asked for: when each was due is not known"
        )
    if why is not None or found is None:
        return {"refused": why}
    limit_ns = limit.of(found["observed_p50_ns"])
    supported = next((name for name, share in PERCENTILES.items() if estimable(requests, share)), None)
    return {name: value for name, value in found.items() if name not in ("run", "least_rate")} | {
        "asked_rate": fact["rate"],
        "lag_limit_ns": limit_ns,
        "judged_by": supported,
        "judged_lag_ns": found[f"lag_{supported}_ns"] if supported else None,
        "limited": found[f"lag_{supported}_ns"] > limit_ns if supported else None,
    }


_NOT_DUE = {
    "serial": "serial load: each request is sent when the one before it has been answered, and none is due before",
    "closed": "closed load: users send when they have been answered, and nothing is due before",
}


def _refusal(fact: _Row) -> str | None:
    """Why it means nothing to say how late the requests of a run were sent."""
    generator, resolution_ns = fact["generator"], fact["resolution_ns"] or 0
    why = None
    if fact["load_model"] != "open":
        why = _NOT_DUE.get(fact["load_model"], "its load model is not known")
    elif not fact["requests_file"]:
        why = "nothing is known of single requests"
    elif not load_generators.is_timed(generator):
        why = f"{generator} tells in which period a request was answered, not when it was sent"
    elif not load_generators.is_paced(generator):
        why = f"which of its requests {generator or 'the load generator'} was to send when is not known"
    elif fact["clock_set_back_s"]:
        why = set_back(fact["clock_set_back_s"])
    elif resolution_ns >= _COARSE_NS:
        why = f"its times come in steps of {resolution_ns / 1e6:g} ms, coarser than what is to be seen"
    return why


def set_back(seconds: float) -> str:
    """That its clock was, in words."""
    return f"{_SET_BACK} by {seconds:,.0f} s during the run: when its requests were sent is not known"


def told(row: Mapping[str, Any]) -> str | None:
    """That the load generator fell behind in a run, in words; None where it did not."""
    if not row.get("limited"):
        return None
    return (
        f"its requests were sent late: {NAMES[row['judged_by']]} of the send lag is {ms(row['judged_lag_ns'])}, the "
        f"limit {ms(row['lag_limit_ns'])}; {_rate(row['achieved_rate'])} of {rate_text(row['asked_rate'])} requests/s "
        f"were sent, and the 99th percentile of latency, {ms(row['observed_p99_ns'])}, is "
        f"{ms(row['corrected_p99_ns'])} from when requests were due"
    )


def _rate(achieved: float) -> str:
    """Four digits."""
    return rate_text(float(f"{achieved:.4g}"))
