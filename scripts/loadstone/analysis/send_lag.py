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
# By the code of the reason, where another load generator would not help.
_LONGER = "measure for longer, so that there are several requests"
REMEDIES = {
    "clock_set_back": "measure on a machine whose clock is not set back: have its time service slew it, not step it",
    "one_request": _LONGER,
    "no_request": _LONGER,
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
    reason = _refusal(fact) or _refusal_by_requests(fact, found, requests)
    if reason or found is None:
        return dict(zip(("refused_code", "refused"), reason or (), strict=False))
    limit_ns = limit.of(found["observed_p50_ns"])
    supported = next((name for name, share in PERCENTILES.items() if estimable(requests, share)), None)
    return {name: value for name, value in found.items() if name not in ("run", "least_rate")} | {
        "asked_rate": fact["rate"],
        "lag_limit_ns": limit_ns,
        "judged_by": supported,
        "judged_lag_ns": found[f"lag_{supported}_ns"] if supported else None,
        "limited": found[f"lag_{supported}_ns"] > limit_ns if supported else None,
    }


def _refusal(fact: _Row) -> tuple[str, str] | None:
    """Why the send lag of a run has no meaning or is unknown: code and text."""
    generator, resolution_ns = fact["generator"], fact["resolution_ns"] or 0
    reason = None
    if fact["load_model"] != "open":
        unknown = "unknown_load_model", "its load model is not known"
        reason = _NEVER_DUE.get(fact["load_model"], unknown)
    elif not fact["requests_file"]:
        reason = "reports_only", "single requests are not known"
    elif not load_generators.is_timed(generator):
        reason = "untimed", f"{generator} records in which period a request was answered, not when it was sent"
    elif not load_generators.is_paced(generator):
        reason = "unpaced", f"when {generator or 'the load generator'} had to send which request is not known"
    elif fact["clock_set_back_s"]:
        reason = "clock_set_back", set_back(fact["clock_set_back_s"])
    elif resolution_ns >= _COARSE_NS:
        reason = "coarse_clock", f"its times come in steps of {resolution_ns / 1e6:g} ms, too coarse to show it"
    return reason


_NEVER_DUE = {
    "serial": (
        "serial",
        "serial load: each request is sent after the answer to the one before, so none is due earlier",
    ),
    "closed": ("closed", "closed load: users send after their last answer, so no request is due earlier"),
}


def _refusal_by_requests(fact: _Row, found: _Row | None, requests: int) -> tuple[str, str] | None:
    if requests < _FEWEST:
        if requests:
            return "one_request", "a single measured request has no rate"
        return "no_request", "there is no measured request"
    if found is None or found["achieved_rate"] is None:
        return "no_times", "when its requests were sent is not recorded"
    if (found["least_rate"] or 0) > _TOO_FAST * fact["rate"]:
        text = (
            f"its requests were sent at {_rate(found['least_rate'])} per second or more, the rate is "
            f"{rate_text(fact['rate'])}: when each was due is not known"
        )
        return "too_fast", text
    return None


def set_back(seconds: float) -> str:
    """That the clock was, in words."""
    return f"the clock was set back by {seconds:,.0f} s during the run: when its requests were sent is not known"


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
