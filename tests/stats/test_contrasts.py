"""A variant against a baseline: the right difference, seldom a false verdict, and enough runs."""

from dataclasses import replace

import numpy as np
import pytest
from loadstone import stats
from loadstone.stats import contrasts
from loadstone.stats.bootstrap import at_least
from loadstone.stats.contrasts import (
    contrast,
    contrast_of_runs,
    contrast_of_shares,
    holm,
    hommel,
    pool_errors,
    runs_needed,
)
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_ind
from support.simulated import Truth, sample

ALPHA, MARGIN = 0.05, 0.05
PERCENTILES = {"p50": 0.5, "p90": 0.9}
STATISTICS = ("mean", "p50", "p90", "error_fraction")


def scaled(found: stats.Replicates, factor: float) -> stats.Replicates:
    """The same with all latencies times `factor`."""
    parts = [
        {name: each if name == "error_fraction" else each * factor for name, each in part.items()}
        for part in (found.values, found.draws, found.within)
    ]
    return replace(found, values=parts[0], draws=parts[1], within=parts[2])


# --- against plain scipy and statsmodels -----------------------------------------------------------------------------


def test_holm_is_that_of_statsmodels():
    for p_values in ([], [0.2], [0.01, 0.04, 0.03, 0.005], np.random.default_rng(1).uniform(size=50) ** 3):
        expected = multipletests(p_values, method="holm")[1] if len(p_values) else []
        assert holm(p_values) == pytest.approx(list(expected))


def test_reported_means_of_runs_are_compared_by_welchs_t():
    generator = np.random.default_rng(2)
    first, second = generator.normal(0.01, 0.002, 5), generator.normal(0.013, 0.004, 5)
    found = contrast_of_runs(first, second, paired=False, confidence=0.95, logs=False)
    expected = scipy_stats.ttest_ind(second, first, equal_var=False)
    assert found.p_different() == pytest.approx(expected.pvalue)
    assert (found.shift_low, found.shift_high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.scaled.freedom == pytest.approx(expected.df)


def test_the_side_with_fewer_runs_limits_what_is_known():
    generator = np.random.default_rng(2)
    first, second = generator.normal(0.01, 0.002, 4), generator.normal(0.013, 0.004, 6)
    found = contrast_of_runs(first, second, paired=False, confidence=0.95, logs=False)
    welch = scipy_stats.ttest_ind(second, first, equal_var=False)
    assert found.scaled.freedom == 3 < welch.df
    assert found.p_different() == pytest.approx(2 * scipy_stats.t.sf(abs(welch.statistic), 3))


def test_and_by_pairs_by_students():
    generator = np.random.default_rng(3)
    block = generator.normal(0, 5, 5)
    first, second = 20 + block, 21 + block + generator.normal(0, 0.2, 5)
    found = contrast_of_runs(first, second, paired=True, confidence=0.95, logs=False)
    expected = scipy_stats.ttest_rel(second, first)
    assert found.p_different() == pytest.approx(expected.pvalue)
    assert (found.shift_low, found.shift_high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert contrast_of_runs(first, second, paired=False, confidence=0.95, logs=False).p_different() > 0.5


def test_equivalence_is_two_one_sided_tests():
    generator = np.random.default_rng(4)
    first, second = generator.normal(0, 0.02, 6), generator.normal(0.01, 0.02, 6)
    found = contrast_of_runs(first, second, paired=False, confidence=0.95, logs=False)
    bound = np.log1p(MARGIN)
    assert found.p_equivalent(MARGIN) == pytest.approx(ttost_ind(second, first, -bound, bound, usevar="unequal")[0])


def test_replicates_of_run_means_agree_with_welchs_t_on_logarithms():
    """Runs of equal latencies leave nothing but the differences between runs, for which there is a textbook."""
    generator = np.random.default_rng(5)
    levels = [np.exp(generator.normal(15, 0.05, 8)), np.exp(generator.normal(15.05, 0.05, 8))]
    sides = [stats.replicate([sample(np.full(60, each)) for each in side], PERCENTILES, 1, 2) for side in levels]
    found = contrast(*sides, "mean", paired=False, confidence=0.95)
    expected = scipy_stats.ttest_ind(np.log(levels[1]), np.log(levels[0]), equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert np.log(found.ratio) == pytest.approx(np.log(levels[1]).mean() - np.log(levels[0]).mean(), abs=2e-3)
    assert np.log([found.ratio_low, found.ratio_high]) == pytest.approx([interval.low, interval.high], abs=0.015)
    assert found.shift == pytest.approx(levels[1].astype(int).mean() - levels[0].astype(int).mean())


def test_pairs_take_out_what_a_block_has_in_common():
    generator = np.random.default_rng(6)
    block = 0.5 * generator.normal(size=(6, 1))
    truth = Truth(between=0.01)
    sides = [stats.replicate(truth.runs(generator, 6, 500, block), PERCENTILES, 1, seed) for seed in (2, 3)]
    sides[1] = scaled(sides[1], 1.3)
    by_pairs, apart = (contrast(*sides, "p50", paired=paired, confidence=0.95) for paired in (True, False))
    assert by_pairs.error < apart.error / 4
    assert by_pairs.ratio_low > 1.1 and apart.ratio_low < 1
    assert (by_pairs.n_pairs, apart.n_pairs) == (6, None)
    assert by_pairs.scaled.freedom == 5


def test_a_step_of_the_clock_is_never_resolved_however_many_runs_agree():
    side = stats.replicate([sample(np.full(100, 2_000_000))] * 8, PERCENTILES, 1, 2)
    exact = contrast(side, side, "p50", paired=False, confidence=0.95)
    coarse = contrast(side, side, "p50", paired=False, confidence=0.95, step=1e6)
    assert exact.p_equivalent(MARGIN) < 1e-9 and exact.p_different() == 1
    assert coarse.p_equivalent(MARGIN) > 0.3 and coarse.error == pytest.approx(np.sqrt(2 / 12) / 2)


def test_what_cannot_be_compared_is_none():
    many = stats.replicate([sample(np.arange(1, 101))] * 2, PERCENTILES, 1, 2)
    assert (
        contrast(many, stats.replicate([sample([1, 2])], PERCENTILES, 1, 2), "p50", paired=False, confidence=0.9)
        is None
    )
    assert contrast(many, many, "p99", paired=False, confidence=0.9) is None
    zero = stats.replicate([sample(np.zeros(100))] * 2, PERCENTILES, 1, 2)
    assert contrast(zero, many, "p50", paired=False, confidence=0.9) is None
    assert contrast_of_runs(np.ones(1), np.ones(3), paired=False, confidence=0.9) is None


def test_reported_shares_differ_at_least_by_what_the_binomial_distribution_leaves():
    requests = np.array([1000.0, 2000.0])
    first, second = np.array([0.001, 0.001]), np.array([0.002, 0.002])
    found = contrast_of_shares((first, second), (requests, requests), paired=False, confidence=0.95)
    pooled = 9 / 6000
    floor = pooled * (1 - pooled) * (1 / 1000 + 1 / 2000) / 4
    assert found.error == pytest.approx(np.sqrt(2 * floor))
    assert found.p_different() == pytest.approx(2 * scipy_stats.t.sf(0.001 / found.error, 2))
    by_pairs = contrast_of_shares((first, second), (requests, requests), paired=True, confidence=0.95)
    assert by_pairs.error == pytest.approx(found.error) and by_pairs.scaled.freedom == 1


@pytest.mark.parametrize("paired", [True, False])
def test_so_do_shares_of_single_requests(paired):
    """Two runs of two requests, of which all failed, beside as many, of which none did."""

    def requests(failed: bool) -> stats.Replicates:
        told = np.ones(2, bool)
        run = stats.Sample(np.full(2, 10**6), told, np.full(2, failed), ~told, np.full(2, not failed), 1.0)
        return stats.replicate([run, run], PERCENTILES, 1, 2)

    found = contrast(requests(False), requests(True), "error_fraction", paired=paired, confidence=0.95)
    assert found.shift == 1
    assert found.error == pytest.approx(np.sqrt(2 * 0.25 / 4))
    assert found.shift_low < 0.5 and found.p_different() > 0.05


def test_shares_that_differ_more_from_run_to_run_are_compared_by_welchs_t():
    first, second = np.array([0.01, 0.2, 0.1]), np.array([0.3, 0.5, 0.1])
    found = contrast_of_shares((first, second), (np.full(3, 10_000), np.full(3, 10_000)), paired=False, confidence=0.95)
    assert found.p_different() == pytest.approx(scipy_stats.ttest_ind(first, second, equal_var=False).pvalue)


def test_equal_shares_are_no_difference_and_none_or_all_are_no_contrast():
    requests = (np.full(2, 1000), np.full(2, 1000))
    equal = contrast_of_shares((np.full(2, 0.01), np.full(2, 0.01)), requests, paired=False, confidence=0.95)
    assert (equal.shift, equal.p_different()) == (0, 1) and equal.shift_low < 0 < equal.shift_high
    for share in (0.0, 1.0):
        sides = (np.full(2, share), np.full(2, share))
        assert contrast_of_shares(sides, requests, paired=False, confidence=0.95) is None
    untold = (np.array([0, 1000]), np.full(2, 1000))
    assert contrast_of_shares((np.full(2, 0.1), np.full(2, 0.2)), untold, paired=False, confidence=0.95) is None


@pytest.mark.parametrize("paired", [True, False])
def test_reported_runs_that_agree_to_the_last_digit_tell_no_spread(paired):
    """Else any difference would be certain; of pairs also where all differ alike."""
    assert contrast_of_runs(np.full(3, 0.1), np.full(3, 0.3), paired=paired, confidence=0.95) is None
    coarse = contrast_of_runs(np.full(3, 10.0), np.full(3, 11.0), paired=paired, confidence=0.95, step=1.0)
    assert coarse.error == pytest.approx(np.sqrt((1 / 10**2 + 1 / 11**2) / 12))
    alike = contrast_of_runs(np.array([0.1, 0.2]), np.array([0.3, 0.4]), paired=True, confidence=0.95, logs=False)
    assert alike is None


# --- how often it is wrong -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages() -> list[list[tuple[str, stats.Replicates, stats.Replicates]]]:
    """1,000 pages of two cells with two variants that are truly equal, in three runs each."""
    generator, truth = np.random.default_rng(8), Truth(between=0.03, within=0.2, failing=0.1)
    found = []
    for page in range(1000):
        cells = []
        for cell in range(2):
            block = 0.1 * generator.normal(size=(3, 1))
            of_runs = stats.seed(page, cell)
            sides = [
                stats.replicate(truth.runs(generator, 3, 60, block), PERCENTILES, of_runs, stats.seed(page, cell, side))
                for side in "ab"
            ]
            cells += [(statistic, *sides) for statistic in STATISTICS]
        found.append(cells)
    return found


def all_of(page, *, paired: bool, factor: float = 1.0):
    """As on a page: cells of one statistic tell together by how much runs differ."""
    found = [
        (name, contrast(first, scaled(second, factor), name, paired=paired, confidence=0.95))
        for name, first, second in page
    ]
    for name in STATISTICS[:-1]:
        places = [number for number, (of, _) in enumerate(found) if of == name]
        together = pool_errors([found[number][1] for number in places], places)
        for number, each in zip(places, together, strict=True):
            found[number] = name, each
    return found


@pytest.mark.slow
@pytest.mark.parametrize("paired", [True, False])
def test_equal_variants_seldom_give_a_verdict_on_a_page(pages, paired):
    each, any_on_page = [], 0
    for page in pages:
        p_values = [found.p_different() for _, found in all_of(page, paired=paired)]
        each += p_values
        any_on_page += min(hommel(p_values)) <= ALPHA
    assert any_on_page / len(pages) <= ALPHA
    assert np.mean(np.array(each) <= ALPHA) <= ALPHA + 0.01


@pytest.mark.slow
def test_without_correction_a_page_would_often_err(pages):
    wrong = [any(found.p_different() <= ALPHA for _, found in all_of(page, paired=True)) for page in pages]
    assert np.mean(wrong) > 2 * ALPHA


@pytest.mark.slow
def test_variants_that_differ_by_the_margin_are_seldom_called_equivalent(pages):
    wrong = 0
    for page in pages:
        cells = [found for name, found in all_of(page, paired=True, factor=1 + MARGIN) if name != "error_fraction"]
        wrong += min(hommel([found.p_equivalent(MARGIN) for found in cells])) <= ALPHA
    assert wrong / len(pages) <= ALPHA


@pytest.mark.slow
def test_a_shift_is_within_its_interval_as_often_as_said(pages):
    hits = []
    for page in pages[:400]:
        shifted = all_of(page, paired=True, factor=1.1)
        hits += [found.ratio_low <= 1.1 <= found.ratio_high for name, found in shifted if name != "error_fraction"]
    assert 0.93 <= np.mean(hits) <= 0.99


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("runs", [2, 3, 5])
@pytest.mark.parametrize("failures", [0.3, 1, 3, 10])
def test_few_failures_seldom_make_equal_variants_differ(failures, runs, paired):
    """So many failures are expected of each variant; without the floor, two runs of one each would be certain of it."""
    generator = np.random.default_rng(21)
    counts = generator.binomial(1000, failures / runs / 1000, size=(1000, 2, runs))
    requests, wrong = (np.full(runs, 1000.0),) * 2, 0
    for first, second in counts / 1000:
        found = contrast_of_shares((first, second), requests, paired=paired, confidence=0.95)
        wrong += found is not None and found.p_different() <= ALPHA
    assert wrong / len(counts) <= ALPHA


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("runs", [2, 3, 4, 5, 10])
def test_bursts_in_half_of_all_runs_seldom_give_a_verdict(runs, paired):
    """Each run has a burst that makes it half as slow again, or none; baseline and variant are equal.

    Two runs of each have a burst on one side alone in one case of eight, of which no test knows: they have no verdict.
    """
    generator = np.random.default_rng([runs, paired])
    slow = np.log(1.5) * (generator.random((2000, 2, runs)) < 0.5)
    block = 0.1 * generator.normal(size=(2000, 1, runs)) if paired else 0.0
    found = [
        contrast_of_runs(*sides, paired=paired, confidence=0.95)
        for sides in np.exp(slow + block + 0.01 * generator.normal(size=slow.shape))
    ]
    differ = [each.p_different() <= ALPHA for each in found]
    if runs == 2:
        assert np.mean(differ) > 0.08, "the reason for this"
        assert {each.n_both for each in found} == {4}
    wrong = [each.has_enough_runs and p for each, p in zip(found, differ, strict=True)]
    assert np.mean(wrong) <= 0.065  # 5 %, and three deviations of the simulation


def test_many_failures_beside_few_are_told():
    generator = np.random.default_rng(22)
    requests, told = (np.full(3, 1000.0),) * 2, []
    for _ in range(100):
        shares = [generator.binomial(1000, share, size=3) / 1000 for share in (0.01, 0.1)]
        told.append(contrast_of_shares(shares, requests, paired=False, confidence=0.95).p_different() <= ALPHA)
    assert np.mean(told) >= 0.95


def planned(factor: float, runs: int, number: int) -> contrasts.Contrast:
    generator, truth = np.random.default_rng(number), Truth(between=0.03, within=0.2)
    block = 0.1 * generator.normal(size=(runs, 1))
    sides = [stats.replicate(truth.runs(generator, runs, 200, block), PERCENTILES, number, seed) for seed in (1, 2)]
    return contrast(sides[0], scaled(sides[1], factor), "mean", paired=True, confidence=0.95)


def test_a_tenth_more_is_found_with_the_runs_that_were_planned_for_it():
    alpha = ALPHA / 8
    few = planned(1.1, 3, 1)
    assert few.p_different() > alpha
    spread = float(np.median([planned(1.1, 8, n).scaled.one_run for n in range(6)]))
    needed = runs_needed(np.log(1.1), spread, alpha, paired=True)
    assert 4 <= needed <= 15
    found = np.mean([planned(1.1, needed, number).p_different() <= alpha for number in range(60)])
    assert 0.6 <= found <= 0.95  # 80 % was asked for
    assert np.mean([planned(1.1, 2 * needed, number).p_different() <= alpha for number in range(15)]) > 0.9


def test_the_smaller_the_shift_the_more_runs_until_equivalence_takes_fewer():
    needs = [runs_needed(np.log1p(shift), 0.05, ALPHA, paired=False) for shift in (0.2, 0.1, 0.05, 0.02, 0.01)]
    assert needs == sorted(needs) and needs[0] >= 2
    assert runs_needed(0.0, 0.05, ALPHA, paired=False) is None
    equal = runs_needed(0.0, 0.05, ALPHA, MARGIN, paired=False)
    assert equal < runs_needed(np.log1p(0.01), 0.05, ALPHA, paired=False)
    assert runs_needed(np.log1p(0.02), 0.05, ALPHA, MARGIN, paired=False) > equal
    assert runs_needed(0.0, 5.0, ALPHA, MARGIN, paired=False) is None
    assert runs_needed(0.2, 0.05, ALPHA, MARGIN, paired=False) is None


def test_what_other_cells_lend_spares_runs():
    few, many = (runs_needed(0.3, 0.1, ALPHA / 30, paired=True, pooled_freedom=pooled) for pooled in (5.0, 0.0))
    assert few < many


LIMIT_NS = 2e9
P90 = {"p90": 0.9}


def cell(generator, share: float, runs: int, seed: int, requests: int = 300) -> stats.Replicates:
    """Runs around 10 ms of which about so large a share of requests times out, more in some runs than in others."""
    found = []
    for _ in range(runs):
        latencies = np.exp(np.log(10e6) + 0.05 * generator.normal() + 0.2 * generator.normal(size=requests))
        own = share * np.exp(0.3 * generator.normal())
        late = generator.random(requests) < own
        latencies[late] = LIMIT_NS
        told = np.ones(requests, bool)
        found.append(stats.Sample(latencies.astype(np.int64), told, late, late, ~late, 10.0, LIMIT_NS))
    return stats.replicate(found, P90, seed, seed + 1)


def p90_contrast(baseline: stats.Replicates, other: stats.Replicates) -> contrasts.Contrast | None:
    return contrasts.contrast(baseline, other, "p90", paired=False, confidence=0.95)


def test_what_lies_among_timeouts_is_longer_than_what_does_not():
    generator = np.random.default_rng(1)
    quick, late = cell(generator, 0.0, 3, 1), cell(generator, 0.3, 3, 3)
    assert "p90" not in late.values and late.values[at_least("p90")] == LIMIT_NS
    found = p90_contrast(quick, late)
    assert found.open_side == 1 and found.p_different() < 0.01
    # The truth is no less than the limit over what the quick one takes.
    assert 50 < found.ratio_low < LIMIT_NS / quick.values["p90"]
    back = p90_contrast(late, quick)
    assert back.open_side == -1 and back.ratio_high == pytest.approx(1 / found.ratio_low)


def test_where_both_are_among_timeouts_nothing_is_told():
    generator = np.random.default_rng(2)
    assert p90_contrast(cell(generator, 0.3, 3, 1), cell(generator, 0.3, 3, 3)) is None


def test_one_run_tells_nothing():
    generator = np.random.default_rng(3)
    assert p90_contrast(cell(generator, 0.0, 3, 1), cell(generator, 0.3, 1, 3)) is None


@pytest.mark.parametrize(("runs", "share"), [(2, 0.075), (3, 0.09)])
def test_equal_variants_seldom_seem_longer(runs, share):
    """Of both as many requests time out, so many that p90 falls now among them, now not."""
    generator = np.random.default_rng([runs, round(1000 * share)])
    tries, wrong, open_sides = 200, 0, 0
    for number in range(tries):
        found = p90_contrast(*(cell(generator, share, runs, 10 * number + side, 150) for side in (0, 5)))
        if found is not None and found.open_side:
            open_sides += 1
            wrong += found.p_different() < 0.05 and found.effect * found.open_side > 0
    assert open_sides > tries / 20
    assert wrong <= 0.05 * tries, (wrong, open_sides)
