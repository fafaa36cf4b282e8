"""Orders of runs: how often equal variants get a verdict while the machine drifts, and what that costs in precision."""

import itertools

import numpy as np
import pytest
from loadstone.archive.plan import order
from loadstone.stats.contrasts import contrast_of_runs

SWEEPS = 1000
NOISE = 0.01  # of a run, in the logarithm of its figure
VARIANTS = ("a", "b")


def sweeps(kind: str, rates: int, runs: int, drift: float, walk: float) -> tuple[float, float]:
    """The share of sweeps that find two equal variants different, and the median width of intervals.

    Per block, the machine becomes slower by `drift` (as a logarithm), and at random by a standard deviation of `walk`.
    """
    loads = [float(number) for number in range(rates)]
    n = rates * len(VARIANTS)
    wrong, widths = 0, []
    for seed in range(SWEEPS):
        generator = np.random.default_rng(seed)
        positions = order(VARIANTS, loads, runs, kind, seed)
        at = np.arange(n * runs + 1) / n * drift + np.cumsum(generator.normal(size=n * runs + 1)) * walk / np.sqrt(n)
        figures = [
            np.exp(at[positions[loads[0], variant]] + NOISE * generator.normal(size=runs)) for variant in VARIANTS
        ]
        found = contrast_of_runs(*figures, paired=True, confidence=0.95)
        assert found is not None
        wrong += found.p_different() <= 0.05
        widths.append(np.log(found.ratio_high / found.ratio_low))
    return wrong / SWEEPS, float(np.median(widths))


@pytest.mark.parametrize(("drift", "walk"), [(0.0, 0.0), (0.05, 0.0), (0.0, 0.05), (0.03, 0.03)])
@pytest.mark.parametrize(("rates", "runs"), [(1, 3), (4, 3), (4, 4), (4, 7)])
def test_a_drift_seldom_gives_equal_variants_a_verdict_when_runs_are_grouped(rates, runs, drift, walk):
    # Of 1,000 sweeps at 5 %, more than 6.6 % are wrong with a probability of 1 %.
    assert sweeps("grouped", rates, runs, drift, walk)[0] <= 0.066


def test_a_fixed_order_takes_a_drift_for_a_difference():
    assert sweeps("fixed", 1, 5, 0.05, 0.0)[0] > 0.5


@pytest.mark.parametrize(("drift", "walk"), [(0.05, 0.0), (0.0, 0.05)])
def test_grouped_runs_cost_precision_while_the_machine_drifts(drift, walk):
    (_, blocks), (_, grouped) = (sweeps(kind, 4, 4, drift, walk) for kind in ("blocks", "grouped"))
    assert blocks < grouped < 1.6 * blocks
    assert sweeps("grouped", 4, 4, 0.0, 0.0)[1] == pytest.approx(sweeps("blocks", 4, 4, 0.0, 0.0)[1], rel=0.1)


def test_grouped_runs_switch_variants_as_rarely_as_possible_and_reverse_every_second_block():
    variants, rates = ("a", "b", "c"), (1.0, 2.0)
    cells = sorted(
        (position, variant, rate)
        for (rate, variant), own in order(variants, rates, 4, "grouped", 3).items()
        for position in own
    )
    assert [position for position, *_ in cells] == list(range(1, 25))
    blocks = [[cell[1:] for cell in cells[first : first + 6]] for first in range(0, 24, 6)]
    assert blocks[1] == blocks[0][::-1] and blocks[3] == blocks[2][::-1]
    assert len(list(itertools.groupby(cells, key=lambda cell: cell[1]))) <= 11  # 12 without the reverse
