"""A latency at a share of a variant's own knee, between the rates that were measured.

Variants that carry different rates are unlike at equal load: one may idle while the other is at its limit. At an equal
share of what each carries they are compared alike. Between two measured rates the latency is interpolated linearly in
the logarithms of both, and nothing is ever extrapolated. The knee is known as an interval only, so the latency is that
of a stretch of loads, and its interval spans those of the whole stretch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.stats.saturation import Estimate, Knee


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
    if not all(value.sure for value in values):
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


def ratio(of: Estimate, to: Estimate) -> Estimate:
    """`of` over `to`, both with intervals; its own holds all that they allow (Moore 1966, interval arithmetic)."""
    if of.low is None or of.high is None or to.low is None or to.high is None:
        return Estimate(of.value / to.value)
    return Estimate(of.value / to.value, of.low / to.high, of.high / to.low)


def _between(loads: Sequence[float], rates: Sequence[float], values: Sequence[float]) -> np.ndarray:
    return np.exp(np.interp(np.log(loads), np.log(rates), np.log(values)))
