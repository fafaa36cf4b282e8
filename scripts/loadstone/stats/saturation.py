"""The saturation point (knee) of a variant: the highest rate that it sustains, as an interval of measured rates.

Requests are sent at a fixed rate, whether they are answered or not. While a rate is sustained (*carried*), as many
requests succeed as are sent, and latency stays near its plateau. Beyond its capacity a server answers what it can, the
other requests wait, and latency grows for as long as the attack lasts. The saturation point is in between. Its interval
is from the highest rate that is certainly sustained to the lowest that is certainly not: nothing is known between
measured rates.

Each rate is judged by the interval over its runs, not by the value:

- *beyond*: the share of requests answered is below ``1 - max(SHORTFALL, CHANCE / sqrt(n))``, n being the requests of a
  run. The second term allows for chance: at exactly its capacity a server's queue behaves as a reflected Brownian
  motion (Kingman 1962, *On queues in heavy traffic*, JRSS B 24) and so has ``sigma sqrt(2 n / pi)`` requests on average
  when a run of n ends (Harrison 1985, *Brownian Motion and Stochastic Flow Systems*, chapter 1), without any overload.
  This reduces the share of requests answered by 0.8 sigma / sqrt(n), the share computed from the mean latency by 1.1
  sigma / sqrt(n). CHANCE is the latter for Poisson arrivals and exponential service, sigma = sqrt(2).
- *carried*: the share is above that bound, and latency below LEAVES times its plateau, the least latency at this rate
  or a lower one. For a single server 3 is a utilisation of two thirds (Kleinrock 1975, *Queueing Systems*, section 3.2:
  latency is service time / (1 - utilisation)), for several servers it is more.
- *near*: neither is certain. Such rates are inside the interval.

Where the throughput is unknown it is computed from the latency: of a server with capacity C that is sent R requests/s
for T seconds, the request sent at t waits for ``(R / C - 1) t``, so the mean grows by ``(R / C - 1) T / 2`` (a fluid
queue; Newell 1982, *Applications of Queueing Theory*, chapter 2) and the share is
``1 / (1 + 2 (latency - plateau) / T)``.

Why no curve is fitted: every curve has a point where it bends most (Kneedle, Satopaa et al. 2011; segmented regression,
Muggeo 2003), also that of a server far from its limit, and that point depends on the rates measured; the Universal
Scalability Law (Gunther 2007, *Guerrilla Capacity Planning*, chapter 4) is about users who wait.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from loadstone.text import listed, rate_text

SHORTFALL = 0.05
CHANCE = 1.5
LEAVES = 3.0

CARRIED, NEAR, BEYOND = "carried", "near", "beyond"


@dataclass(frozen=True)
class Estimate:
    """A value with its interval over runs; a single run has none."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return self.low is not None and self.high is not None


@dataclass(frozen=True)
class Load:
    """What was measured of a variant at one rate.

    `rate` is the planned rate in requests/s, `requests` and `duration_s` are those of one run. `share` is throughput /
    rate: successful requests in the time that sending took, per request sent. `latency_ns` is the median or, where that
    is unknown, the mean; the same for all loads. Unknown fields are None.
    """

    rate: float
    requests: float
    latency_ns: Estimate | None
    share: Estimate | None = None
    duration_s: float | None = None


@dataclass(frozen=True)
class Knee:
    """The interval of rates (requests/s) with the saturation point; an end beyond the measured rates is None.

    `rate` is the highest throughput at the rates from `low` to `high`, which is the most that the variant sustains;
    None where the interval is open. `by` says what ends the carried rates: ``throughput`` or ``latency``. `states` has
    the state of each rate, in ascending order; `beyond` has those rates from `high` on. `problem` says why there is no
    saturation point, or what is unusual about it.
    """

    rate: float | None
    low: float | None
    high: float | None
    by: str | None
    states: tuple[tuple[float, str], ...]
    problem: str | None = None

    @property
    def beyond(self) -> tuple[float, ...]:
        """The measured rates beyond the saturation point."""
        return () if self.high is None else tuple(rate for rate, _ in self.states if rate >= self.high)


@dataclass(frozen=True)
class _Judged:
    rate: float
    share: Estimate | None  # as measured, or computed from the latency
    by: str  # why it is not carried, if it is not
    state: str
    left: bool  # whether the upper end of the interval of its latency is above the plateau


def knee(loads: Sequence[Load]) -> Knee:
    """The saturation point of one variant from its loads, at different rates and in any order."""
    if problem := _unknown(loads):
        return Knee(None, None, None, None, tuple((load.rate, NEAR) for load in loads), problem)
    judged, plateau_ns = [], float("inf")
    for load in sorted(loads, key=lambda load: load.rate):
        plateau_ns = min(plateau_ns, load.latency_ns.value if load.latency_ns else plateau_ns)
        judged.append(_judged(load, plateau_ns))
    low = max((each.rate for each in judged if each.state == CARRIED), default=None)
    above = [each for each in judged if low is None or each.rate > low]
    high = min((each.rate for each in above if each.state == BEYOND), default=None)
    rate = None
    if low is not None and high is not None:
        answered = (each.share.value * each.rate for each in judged if each.share and low <= each.rate <= high)
        rate = min(max(*answered, low), high)
    ended = above and not (low is None and high is None)
    states = tuple((each.rate, each.state) for each in judged)
    return Knee(rate, low, high, above[0].by if ended else None, states, _problem(judged, low, high))


def _unknown(loads: Sequence[Load]) -> str | None:
    """Why these loads have no saturation point."""
    if not loads:
        return "no rate was measured"
    if all(load.share is None and not (load.duration_s and load.latency_ns) for load in loads):
        return "neither the throughput nor the duration of runs is known"
    if not any(each.has_interval for load in loads for each in (load.share, load.latency_ns) if each):
        return "one run at each rate: the variation between runs is unknown; at least 2 runs are needed, better 5"
    return None


def _judged(load: Load, plateau_ns: float) -> _Judged:
    share = load.share or _implied(load, plateau_ns)
    enough = 1 - max(SHORTFALL, CHANCE / sqrt(max(load.requests, 1)))
    highest_ns = load.latency_ns.high if load.latency_ns else None
    left = highest_ns is not None and highest_ns >= LEAVES * plateau_ns
    by = "throughput" if load.share and (load.share.value < enough or not left) else "latency"
    state = NEAR
    if share and share.high is not None and share.high < enough:
        state = BEYOND
    elif share and share.low is not None and share.low > enough and highest_ns is not None:
        state = NEAR if left else CARRIED
    return _Judged(load.rate, share, by, state, left)


def _implied(load: Load, plateau_ns: float) -> Estimate | None:
    """The share computed from the latency; None where that or the duration of a run is unknown."""
    if not load.duration_s or not load.latency_ns:
        return None
    half_ns = load.duration_s * 1e9 / 2
    value, high, low = (
        None if latency is None else 1 / (1 + max(latency - plateau_ns, 0) / half_ns)
        for latency in (load.latency_ns.value, load.latency_ns.low, load.latency_ns.high)
    )
    return Estimate(value or 0.0, low, high)


def _problem(judged: Sequence[_Judged], low: float | None, high: float | None) -> str | None:
    """What a reader must know about a saturation point: open ends and contradictions."""
    found = []
    if low is None:
        first = judged[0]
        share = f", where {first.share.value:.0%} of requests succeeded" if first.share else ""
        beyond = f"already beyond saturation at the lowest rate, {rate_text(first.rate)} requests/s{share}"
        certain = beyond if high == first.rate else "no rate is certainly below saturation"
        found.append(certain if high else f"{certain}, and none certainly beyond it")
    else:
        if short := [each.rate for each in judged if each.state == BEYOND and each.rate < low]:
            found.append(
                f"throughput fell short at {_listed(short)}, although {rate_text(low)} requests/s were sustained"
            )
        near = [each for each in judged if each.rate > low]
        if high is None and near:
            slow = [each.rate for each in near if each.left and each.by == "latency"]
            unsure = [each.rate for each in near if each.rate not in slow]
            why = [f"at {_listed(slow)} latency left its plateau"] if slow else []
            why += [f"at {_listed(unsure)} throughput may have fallen short"] if unsure else []
            found.append(f"certainly sustained up to {rate_text(low)} requests/s; {', '.join(why)}")
        elif high is None:
            found.append(f"sustained up to {rate_text(low)} requests/s, the highest rate measured")
    return "; ".join(found) or None


def _listed(rates: Sequence[float]) -> str:
    return listed(map(rate_text, rates))


@dataclass(frozen=True)
class AtShare:
    """`load` is the share times the saturation point, in requests/s; without a `value`, `problem` says why."""

    load: float | None
    value: Estimate | None
    problem: str | None = None


def at_share(knee: Knee, share: float, rates: Sequence[float], values: Sequence[Estimate]) -> AtShare:
    """The value at `share` (0 to 1) of the saturation point. `rates` ascend, each with a value greater than 0."""
    if knee.rate is None or knee.low is None or knee.high is None:
        return AtShare(None, None, f"no saturation point: {knee.problem or 'its interval is open'}")
    load, least, most = share * knee.rate, share * knee.low, share * knee.high
    if not rates or least < rates[0] or most > rates[-1]:
        measured = f"measured rates are {rates[0]:g} to {rates[-1]:g}" if rates else "no measured rate has this figure"
        return AtShare(
            load,
            None,
            f"{share:.0%} of the saturation point is {least:.4g} to {most:.4g} requests/s, but {measured}",
        )
    if not all(value.has_interval for value in values):
        return AtShare(load, None, "there is no interval with one run at a rate")
    stretch = [least, *(rate for rate in rates if least < rate < most), most]
    return AtShare(
        load,
        Estimate(
            float(_between([load], rates, [value.value for value in values])[0]),
            float(_between(stretch, rates, [value.low or 0.0 for value in values]).min()),
            float(_between(stretch, rates, [value.high or 0.0 for value in values]).max()),
        ),
    )


def ratio_of(of: Estimate, to: Estimate) -> Estimate:
    """`of` over `to`, with the interval of all ratios of values in theirs (Moore 1966, interval arithmetic)."""
    if of.low is None or of.high is None or to.low is None or to.high is None:
        return Estimate(of.value / to.value)
    return Estimate(of.value / to.value, of.low / to.high, of.high / to.low)


def _between(loads: Sequence[float], rates: Sequence[float], values: Sequence[float]) -> np.ndarray:
    return np.exp(np.interp(np.log(loads), np.log(rates), np.log(values)))
