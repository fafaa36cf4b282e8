"""Spreads that cells tell together: sharper where they are alike, and hardly ever wrong where they are not."""

import numpy as np
import pytest
from loadstone import stats
from loadstone.stats.contrasts import contrast, contrast_of_runs, hommel, max_true_nulls, pool_errors, runs_needed
from loadstone.stats.pooled_error import MOST_PRIOR_FREEDOM, MOST_PRIOR_FREEDOM_OF_TWO_RUNS, moderated, pooled_variances
from scipy import stats as scipy_stats
from scipy.special import digamma, polygamma
from statsmodels.stats.multitest import multipletests
from support.pages import LIKE, ONE_CELL, ONE_RATE, ONE_VARIANT, SPREADS, UNLIKE, Pages
from support.simulated import Truth

ALPHA = 0.05


def told(page) -> list[bool]:
    return [p <= ALPHA for p in hommel([each.p_different() for each in page])]


# --- what it is ------------------------------------------------------------------------------------------------------


def test_a_cell_alone_is_as_it_is():
    assert moderated([0.04], [2]) == [(0.04, 2.0)]
    assert moderated([], []) == []
    assert moderated([0.0, 0.04], [2, 2]) == [(0.0, 2.0), (0.04, 2.0)]


def test_cells_are_drawn_towards_each_other_and_gain_freedom():
    variances = [0.01, 0.012, 0.009, 0.04, 0.002, 0.011]
    found = moderated(variances, [2] * 6)
    assert np.argsort([variance for variance, _ in found]).tolist() == np.argsort(variances).tolist()
    assert 0.002 < found[4][0] < 0.011 < found[3][0] < 0.04
    assert all(2 < freedom <= 2 + MOST_PRIOR_FREEDOM for _, freedom in found)


def test_the_scale_does_not_matter_and_the_order_neither():
    variances, freedom = [0.01, 0.03, 0.002], [2, 3, 4]
    found = moderated(variances, freedom)
    scaled = moderated([each * 1e6 for each in variances], freedom)
    assert [each[0] for each in scaled] == pytest.approx([each[0] * 1e6 for each in found], rel=1e-6)
    assert moderated(variances[::-1], freedom[::-1])[::-1] == [pytest.approx(each) for each in found]


def test_many_runs_hardly_need_their_neighbours():
    found = moderated([0.01, 0.04], [200, 200])
    assert [each[0] for each in found] == pytest.approx([0.01, 0.04], rel=0.05)


def test_unlike_cells_lend_less_than_like_ones():
    like, unlike = (np.mean([freedom for _, freedom in moderated(v, [4] * 6)]) for v in ([1] * 6, 10.0 ** np.arange(6)))
    assert unlike < like - 1.5


def test_cells_of_two_runs_borrow_little_and_of_the_same_variants_only():
    variances, freedom, runs, of = [0.01, 4.0, 0.02, 0.03, 0.04, 0.05], [1, 1, 1, 2, 2, 1], [2, 2, 2, 3, 3, 2], "abaabc"
    found = pooled_variances(variances, freedom, runs, of)
    assert [found[0], found[2]] == moderated([0.01, 0.02], [1, 1], MOST_PRIOR_FREEDOM_OF_TWO_RUNS)
    assert [found[3], found[4]] == moderated([0.03, 0.04], [2, 2])
    assert (found[1], found[5]) == ((4.0, 1.0), (0.05, 1.0))  # alone
    assert all(found[n][1] <= 1 + MOST_PRIOR_FREEDOM_OF_TWO_RUNS for n in (0, 1, 2, 5))


def test_it_agrees_with_the_posterior_drawn_at_random():
    """Against plain Monte Carlo: priors drawn, weighted by how likely they make the variances of all cells."""
    generator, variances, freedom = np.random.default_rng(3), np.array([0.5, 1.0, 4.0]), 2.0
    deviations = generator.uniform(*np.sqrt(polygamma(1, np.array([MOST_PRIOR_FREEDOM, 1.0]) / 2)), 400_000)
    grid = np.linspace(0.5, 2.5, 4000)
    prior = 2 * np.interp(-deviations, -np.sqrt(polygamma(1, grid)), grid)
    location = np.exp(generator.uniform(np.log(variances).mean() - 8, np.log(variances).mean() + 8, prior.size))
    weight = np.prod([scipy_stats.f.pdf(v / location, freedom, prior) * v / location for v in variances], axis=0)
    for own, (variance, degrees) in zip(variances, moderated(variances, [freedom] * 3), strict=True):
        draws = np.log((prior * location + freedom * own) / generator.chisquare(prior + freedom))
        mean = np.average(draws, weights=weight)
        expected = np.log(variance) + np.log(degrees / 2) - digamma(degrees / 2)
        assert mean == pytest.approx(expected, abs=0.05)
        deviation = np.sqrt(np.average((draws - mean) ** 2, weights=weight))
        assert deviation == pytest.approx(np.sqrt(polygamma(1, degrees / 2)), rel=0.05)


def test_the_interval_of_a_shift_follows_that_of_the_ratio():
    page = Pages(variants=1, rates=5).drawn(np.random.default_rng(4))
    runs = np.exp(0.1 * np.random.default_rng(5).normal(size=(2, 3)))
    own = contrast_of_runs(*runs, paired=False, confidence=0.95)
    after = pool_errors([own, *page[:5]], range(6))[0]
    assert after.plain.error / own.plain.error == pytest.approx(after.scaled.error / own.scaled.error)
    assert after.pooled_freedom == pytest.approx(after.scaled.freedom - own.scaled.freedom)
    assert (after.shift, after.ratio) == (own.shift, own.ratio)


def test_an_interval_of_a_shift_is_never_without_freedom():
    """Where one cell's runs agree far better than those around it, it may lose freedom by borrowing."""
    generator = np.random.default_rng(16)
    steady = contrast_of_runs(
        generator.normal(1, 0.002, 5), generator.normal(20, 0.04, 5), paired=False, confidence=0.95
    )
    around = Pages(4, 3, 5, spread=0.2, paired=False).drawn(generator)
    after = pool_errors([steady, *around], range(len(around) + 1))[0]
    assert 10 < after.shift_low < 19 < after.shift_high < 30


# --- how often it is wrong -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("spreads", SPREADS)
def test_equal_variants_seldom_give_a_verdict_on_a_page(spreads, paired):
    """1,000 pages in all: two variants at three rates, three at four, one at one, two and three, of 3 and 5 runs."""
    generator, wrong = np.random.default_rng(11), []
    for variants, rates in ((2, 3), (3, 4), (1, 1), (1, 2), (1, 3)):
        for runs in (3, 5):
            pages = Pages(variants, rates, runs, spreads=spreads, paired=paired)
            wrong += [any(told(pages.drawn(generator))) for _ in range(100)]
    # Where one rate or cell spreads four times as much as all others, which no prior expects, it may be a little more.
    assert np.mean(wrong) <= (0.07 if spreads in (ONE_RATE, ONE_CELL) else ALPHA), np.mean(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("spreads", [LIKE, ONE_CELL])
@pytest.mark.parametrize(("baseline_runs", "runs"), [(10, 2), (10, 3), (5, 3), (2, 10)])
def test_so_it_is_where_one_side_has_fewer_runs(baseline_runs, runs, spreads):
    """A side of two runs that agree by chance must not count as one whose spread is known."""
    generator = np.random.default_rng(15)
    pages = Pages(4, 3, runs, spreads=spreads, paired=False, baseline_runs=baseline_runs)
    wrong = [any(told(pages.drawn(generator))) for _ in range(200)]
    assert np.mean(wrong) <= 0.07, np.mean(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("variants", "rates"), [(4, 1), (4, 3), (2, 3)])
def test_so_it_is_of_two_runs_beside_a_variant_that_is_far_less_steady(variants, rates, paired):
    generator = np.random.default_rng(23)
    pages = Pages(variants, rates, 2, spread=0.05, spreads=ONE_VARIANT, paired=paired)
    wrong = [any(told(pages.drawn(generator))) for _ in range(200)]
    assert np.mean(wrong) <= 0.07, np.mean(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [3, 5, 10])
@pytest.mark.parametrize("spreads", [LIKE, UNLIKE, ONE_CELL])
def test_intervals_hold_the_truth_as_often_as_said(runs, spreads):
    generator, hits = np.random.default_rng(12), []
    for _ in range(120):
        page = Pages(2, 3, runs, spreads=spreads, factor=1.3).drawn(generator)
        hits += [each.ratio_low <= 1.3 <= each.ratio_high for each in page]
    assert 0.93 <= np.mean(hits) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("runs", [3, 5, 10])
def test_intervals_from_requests_that_resemble_each_other_do_too(runs):
    """All the way from requests, which remember each other, to a page of six cells."""
    generator, truth, hits = np.random.default_rng(13), Truth(between=0.08, within=0.3), []
    for page in range(12):
        cells = []
        for cell in range(6):
            sides = [
                stats.replicate(truth.runs(generator, runs, 200), {"p50": 0.5}, cell, stats.seed(page, cell, side))
                for side in "ab"
            ]
            cells.append(contrast(*sides, "p50", paired=False, confidence=0.95))
        hits += [each.ratio_low <= 1 <= each.ratio_high for each in pool_errors(cells, range(6))]
    assert 0.89 <= np.mean(hits) <= 0.99


# --- how much it tells -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("variants", "rates"), [(2, 3), (2, 4), (3, 4)])
@pytest.mark.parametrize("spreads", [LIKE, UNLIKE])
def test_three_runs_mostly_tell_a_ratio_of_1_6(variants, rates, spreads):
    """Runs that differ by a tenth, in blocks: Student's t with two degrees of freedom would tell one in four."""
    generator = np.random.default_rng(14)
    pages = [Pages(variants, rates, spreads=spreads, factor=1.6).drawn(generator) for _ in range(40)]
    share = np.mean([each for page in pages for each in told(page)])
    assert share >= (0.85 if spreads == LIKE else 0.6), share


def test_two_runs_at_several_rates_tell_a_variant_of_twice_the_latency():
    generator = np.random.default_rng(24)
    pages = [Pages(2, 3, 2, spread=0.05, factor=2).drawn(generator) for _ in range(30)]
    assert np.mean([each for page in pages for each in told(page)]) >= 0.8


def test_one_variant_among_equal_ones_is_told_too():
    """Of four variants three are as good as the baseline."""
    generator, found = np.random.default_rng(15), []
    for _ in range(40):
        slower, equal = Pages(1, 4, 5, factor=1.6).drawn(generator), Pages(3, 4, 5).drawn(generator)
        found += told(slower + equal)[: len(slower)]
    assert np.mean(found) >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("factor", [1.1, 1.2])
def test_with_the_runs_needed_four_in_five_tries_tell(paired, factor):
    generator, variants, rates = np.random.default_rng(16), 2, 3
    spread = 0.1 * np.sqrt(2)
    few = Pages(variants, rates, 3, paired=paired, factor=factor)
    alpha = ALPHA / (variants * rates * few.figures)
    pooled = np.mean([each.pooled_freedom for _ in range(20) for each in few.drawn(generator)])
    needed = runs_needed(np.log(factor), spread, alpha, paired=paired, pooled_freedom=pooled)
    assert needed > 3
    found = []
    for _ in range(60):
        # One variant at one rate differs, and all others of the page do not: no other figure makes it easier.
        page = Pages(variants, rates, needed, paired=paired).drawn(generator)
        (own, *_) = Pages(1, rates, needed, paired=paired, factor=factor).drawn(generator)
        found.append(told([own, *page[1:]])[0])
    assert 0.65 <= np.mean(found) <= 0.97


# --- many figures ----------------------------------------------------------------------------------------------------


def test_hommel_is_that_of_statsmodels_and_never_blunter_than_holm():
    generator = np.random.default_rng(17)
    for p_values in ([0.01, 0.04, 0.03, 0.005], [0.02] * 5, *(generator.uniform(size=n) ** 3 for n in (2, 3, 9, 40))):
        expected = multipletests(p_values, method="hommel")[1]
        assert hommel(p_values) == pytest.approx(list(expected))
        assert np.all(np.array(hommel(p_values)) <= multipletests(p_values, method="holm")[1] + 1e-12)
    assert hommel([]) == [] and hommel([0.3]) == [0.3]


def test_what_a_test_must_reach_beside_all_others():
    generator = np.random.default_rng(18)
    for n in (1, 2, 5, 12):
        for _ in range(20):
            p_values = [float(p) for p in generator.uniform(size=n) ** 4]
            most = max_true_nulls(p_values, ALPHA)
            assert 1 <= most <= n
            sure = [p <= ALPHA for p in hommel(p_values)]
            assert sure == [most * p <= ALPHA for p in p_values]
    assert max_true_nulls([], ALPHA) == 1
    assert max_true_nulls([0.9] * 7, ALPHA) == 7


def test_a_page_on_which_all_is_slower_hardly_pays_for_its_many_figures():
    assert max(hommel([0.01] * 40)) == pytest.approx(0.01)


def test_one_rate_that_is_unlike_the_others_is_not_taken_for_them():
    """Where one rate spreads four times as much, its intervals stay the widest."""
    generator, ratios = np.random.default_rng(19), []
    for _ in range(60):
        page = Pages(1, 4, 5, spreads=ONE_RATE, figures=1).drawn(generator)
        widths = sorted(np.log(each.ratio_high / each.ratio_low) for each in page)
        ratios.append(widths[-1] / np.median(widths[:-1]))
    assert np.median(ratios) > 2
