"""The knee of a variant: the highest rate of requests that it carries, and between which measured rates it lies.

Requests come on a clock, whether answers come or not. While a rate is carried, as many are answered well as are sent,
and latency stays near its plateau. Beyond its capacity a server answers what it can, the rest waits, and latency grows
with every second that the attack lasts. In between lies the knee. Its interval runs from the highest rate that is
surely carried to the lowest that is surely not, for nothing is known of rates between two measured ones.

Each rate is judged by the whole interval over its runs, not by the value:

- *beyond*: the share of the rate that was answered lies below ``1 - max(SHORTFALL, CHANCE / sqrt(n))``, n being the
  requests of a run. The second term is what chance does: at exactly its capacity a server's queue behaves as a
  reflected Brownian motion (Kingman 1962, *On queues in heavy traffic*, JRSS B 24) and so has ``sigma sqrt(2 n / pi)``
  requests on average when a run of n ends (Harrison 1985, *Brownian Motion and Stochastic Flow Systems*, chapter 1),
  though nothing is overloaded. The share of those answered is 0.8 sigma / sqrt(n) less by that, the one that the mean
  latency tells 1.1 sigma / sqrt(n). CHANCE is the latter for Poisson arrivals and exponential service, sigma = sqrt(2).
- *carried*: the share lies above that bound, and latency below LEAVES times its plateau, the least latency at this
  rate or a lower one. For a single server 3 is a utilisation of two thirds (Kleinrock 1975, *Queueing Systems*, section
  3.2: latency is service time / (1 - utilisation)), for several of more.
- *near*: neither is certain. Such rates lie inside the interval.

Where the throughput is not known it follows from the latency: a server of capacity C that is sent R requests/s for T
seconds lets the one sent at t wait for ``(R / C - 1) t``, hence the mean grows by ``(R / C - 1) T / 2`` (a fluid queue;
Newell 1982, *Applications of Queueing Theory*, chapter 2) and the share is ``1 / (1 + 2 (latency - plateau) / T)``.

Why no curve is fitted: the place where one bends most (Kneedle, Satopaa et al. 2011; segmented regression, Muggeo 2003)
is there for every curve, also that of a server far from its limit, and moves with the rates that were measured; the
Universal Scalability Law (Gunther 2007, *Guerrilla Capacity Planning*, chapter 4) is about users who wait.
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
    """A value with the interval that its runs give it; a single run gives none."""

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

    `rate` in requests/s as asked for, `requests` and `duration_s` those of one run. `share` is throughput / rate: how
    many were answered well in the time that sending took, per request. `latency_ns` is a median or, for lack of it, a
    mean; the same of all loads. What is not known is None.
    """

    rate: float
    requests: float
    latency_ns: Estimate | None
    share: Estimate | None = None
    duration_s: float | None = None


@dataclass(frozen=True)
class Knee:
    """Between which rates (requests/s) the knee lies; None for an end that the measured rates do not reach.

    `rate` is the most that was answered per second at the rates from `low` to `high`, which is as much as the variant
    carries; None where the interval is open. `by` tells what ends the carried rates: ``throughput`` or
    ``latency``. `states` has the state of each rate, in ascending order; `beyond` those rates from `high` on. `problem`
    says why there is no knee, or what is odd about it.
    """

    rate: float | None
    low: float | None
    high: float | None
    by: str | None
    states: tuple[tuple[float, str], ...]
    problem: str | None = None

    @property
    def beyond(self) -> tuple[float, ...]:
        """The measured rates that lie beyond the knee."""
        return () if self.high is None else tuple(rate for rate, _ in self.states if rate >= self.high)


@dataclass(frozen=True)
class _Judged:
    rate: float
    share: Estimate | None  # as measured or as the latency tells it
    by: str  # what keeps it from being carried, if anything does
    state: str
    left: bool  # the upper end of its latency's interval left the plateau


def knee(loads: Sequence[Load]) -> Knee:
    """The knee of one variant from its loads, at different rates and in any order."""
    if problem := _unknown(loads):
        return Knee(None, None, None, None, tuple((load.rate, NEAR) for load in loads), problem)
    judged = _judge_all(sorted(loads, key=lambda load: load.rate))
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
    """Why these loads can tell no knee at all."""
    if not loads:
        return "no rate was measured"
    if all(load.share is None and not (load.duration_s and load.latency_ns) for load in loads):
        return "neither is known how much was answered, nor how long runs took"
    if not any(each.has_interval for load in loads for each in (load.share, load.latency_ns) if each):
        return "one run at each rate does not tell how runs differ: a knee takes two, better five"
    return None


def _judge_all(loads: Sequence[Load]) -> list[_Judged]:
    judged, plateau_ns = [], float("inf")
    for load in loads:
        plateau_ns = min(plateau_ns, load.latency_ns.value if load.latency_ns else plateau_ns)
        judged.append(_judged(load, plateau_ns))
    return judged


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
    """The share that the latency tells of; None where it or the length of a run is not known."""
    if not load.duration_s or not load.latency_ns:
        return None
    half_ns = load.duration_s * 1e9 / 2
    value, high, low = (
        None if latency is None else 1 / (1 + max(latency - plateau_ns, 0) / half_ns)
        for latency in (load.latency_ns.value, load.latency_ns.low, load.latency_ns.high)
    )
    return Estimate(value or 0.0, low, high)


def _problem(judged: Sequence[_Judged], low: float | None, high: float | None) -> str | None:
    """What a reader must know of a knee: open ends, and what does not fit together."""
    said = []
    if low is None:
        first = judged[0]
        share = f", of which {first.share.value:.0%} was answered well" if first.share else ""
        beyond = f"already beyond at the lowest rate, {rate_text(first.rate)}{share}"
        sure = beyond if high == first.rate else "at no rate surely carried"
        said.append(sure if high else f"{sure}, and at none surely not")
    else:
        if short := [each.rate for each in judged if each.state == BEYOND and each.rate < low]:
            said.append(f"fell short at {_listed(short)} though {rate_text(low)} was carried")
        near = [each for each in judged if each.rate > low]
        if high is None and near:
            slow = [each.rate for each in near if each.left and each.by == "latency"]
            unsure = [each.rate for each in near if each.rate not in slow]
            found = [f"at {_listed(slow)} latency had left its plateau"] if slow else []
            found += [f"at {_listed(unsure)} it is not sure that answers kept pace"] if unsure else []
            said.append(f"surely carried up to {rate_text(low)} requests/s; {', '.join(found)}")
        elif high is None:
            said.append(f"carried up to {rate_text(low)} requests/s, the highest rate measured")
    return "; ".join(said) or None


def _listed(rates: Sequence[float]) -> str:
    return listed(map(rate_text, rates))


@dataclass(frozen=True)
class AtShare:
    """`load` is the share times the knee's rate, in requests/s; without a `value`, `problem` says why."""

    load: float | None
    value: Estimate | None
    problem: str | None = None


def at_share(knee: Knee, share: float, rates: Sequence[float], values: Sequence[Estimate]) -> AtShare:
    """The value at `share` (0 to 1) of the knee. `rates` ascend and have a value each, all greater than 0."""
    if knee.rate is None or knee.low is None or knee.high is None:
        return AtShare(None, None, f"no knee: {knee.problem or 'its interval is open'}")
    load, least, most = share * knee.rate, share * knee.low, share * knee.high
    if not rates or least < rates[0] or most > rates[-1]:
        measured = f"{rates[0]:g} to {rates[-1]:g}" if rates else "nothing"
        return AtShare(
            load, None, f"{share:.0%} of the knee is {least:.4g} to {most:.4g} requests/s, measured is {measured}"
        )
    if not all(value.has_interval for value in values):
        return AtShare(load, None, "one run at a rate gives no interval")
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
    """`of` over `to`, both with intervals; its own holds all that they allow (Moore 1966, interval arithmetic)."""
    if of.low is None or of.high is None or to.low is None or to.high is None:
        return Estimate(of.value / to.value)
    return Estimate(of.value / to.value, of.low / to.high, of.high / to.low)


def _between(loads: Sequence[float], rates: Sequence[float], values: Sequence[float]) -> np.ndarray:
    return np.exp(np.interp(np.log(loads), np.log(rates), np.log(values)))
