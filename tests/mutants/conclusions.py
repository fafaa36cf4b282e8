"""Faults that break what tests/README.md promises of statistics and of the gate."""

from mutants.mutant import Mutant

MUTANTS = {
    "Intervals cover": (
        Mutant(
            "few runs: the standard error is widened by n / (n - 1)",
            "    between = (float(np.var(draws, ddof=1)) - noise) * n_runs / (n_runs - 1)\n",
            "    between = (float(np.var(draws, ddof=1)) - noise) / 4\n",
            ("stats/test_bootstrap.py::test_a_standard_error_is_that_of_the_runs_means",),
        ),
        Mutant(
            "intervals are Student's, not normal",
            "    factor = t_factor(confidence, found.n_runs - 1)\n",
            "    factor = t_factor(confidence, 1e6)\n",
            ("stats/test_bootstrap.py::test_intervals_cover_the_truth",),
        ),
        Mutant(
            "the clock's resolution widens an interval",
            "sum((step / value) ** 2 for value in values) / 12 if logs else 0.0",
            "0.0 if logs else 0.0",
            ("stats/test_contrasts.py::test_a_step_of_the_clock_is_never_resolved_however_many_runs_agree",),
        ),
        Mutant(
            "a line has n - 2 degrees of freedom",
            "    factor = t_factor(confidence, n - 2)\n",
            "    factor = t_factor(confidence, n - 1)\n",
            ("stats/test_lines.py::test_the_line_is_numpy_s_and_its_interval_is_scipy_s",),
        ),
    ),
    "Equal variants seldom get a verdict": (
        Mutant(
            "p values are adjusted for the number of tests",
            "np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))",
            "np.maximum.accumulate(p[order])",
            ("stats/test_contrasts.py::test_holm_is_that_of_statsmodels",),
        ),
        Mutant(
            "a two-sided test counts both sides",
            "        return 2 * t_cdf(-abs(self.effect), self.error, self.scaled.freedom)\n",
            "        return t_cdf(-abs(self.effect), self.error, self.scaled.freedom)\n",
            ("stats/test_contrasts.py::test_equal_variants_seldom_give_a_verdict_on_a_page",),
        ),
    ),
    "Too few runs decide nothing": (
        Mutant(
            "a percentile takes ten requests beyond it",
            "    return requests * min(probability, 1 - probability) >= _BEYOND - 1e-9\n",
            "    return True\n",
            ("analysis/test_effects.py::test_a_percentile_that_the_sample_cannot_support_says_what_it_takes",),
        ),
        Mutant(
            "a verdict takes six runs of both variants together",
            "        return self.n_both >= 2 * LEAST_RUNS\n",
            "        return self.n_runs >= 2\n",
            ("analysis/test_effects.py::test_two_runs_of_each_decide_nothing_however_alike_they_are",),
        ),
    ),
    "Equivalence is shown, not assumed": (
        Mutant(
            "equivalence is two one-sided tests against the margin",
            "        return t_cdf(abs(self.effect) - float(np.log1p(margin)), self.error, self.scaled.freedom)\n",
            "        return 1 - self.p_different()\n",
            ("stats/test_contrasts.py::test_equivalence_is_two_one_sided_tests",),
        ),
    ),
    "A percentile among timeouts is a lower bound": (
        Mutant(
            "the side whose percentile is a lower limit is known",
            "    return replace(found, open_side=is_open[1] - is_open[0])\n",
            "    return replace(found, open_side=is_open[0] - is_open[1])\n",
            ("stats/test_contrasts.py::test_what_lies_among_timeouts_is_longer_than_what_does_not",),
        ),
    ),
    "The overhead of known layers is found": (
        Mutant(
            "layers add up: the interaction is (top - left) - (right - bottom)",
            "_SIGNS = (1, -1, -1, 1)",
            "_SIGNS = (1, -1, 1, -1)",
            ("stats/test_interaction.py::test_means_of_runs_alone_tell_it_as_student_does",),
        ),
        Mutant(
            "the variances of both variants add up",
            "    return Spread(float(np.sqrt(sum(variances))), satt",
            "    return Spread(float(np.sqrt(max(variances))), satt",
            ("stats/test_interaction.py::test_injected_layers_come_back",),
        ),
    ),
    "Intervals cover the saturation point": (
        Mutant(
            "only a rate that is certainly not sustained ends the interval",
            "if each.state == BEYOND), default=None)",
            "if each.state != CARRIED), default=None)",
            ("stats/test_saturation.py::test_the_interval_covers_the_capacity_of_simulated_servers",),
        ),
    ),
    "Shapes are recognised": (
        Mutant(
            "changes from a fifth of the latency on are material",
            "MATERIAL = 1.2\n",
            "MATERIAL = 2.0\n",
            ("stats/test_run_shape.py::test_shapes_are_recognised",),
        ),
    ),
    "Other tools read the gate's outcome": (
        Mutant(
            "the gate's test report fails where a figure is worse",
            "            fails = found.verdict == WORSE or outcome",
            "            fails = outcome",
            ("analysis/test_gate_reports.py::test_junit",),
        ),
    ),
    "The gate reports its limits": (
        Mutant(
            "the reference's late runs are reported as those of the candidate",
            "*_lag_warnings(cells, judged | references)]",
            "*_lag_warnings(cells, judged)]",
            ("analysis/test_gate_warnings.py::test_what_was_sent_late_is_said_of_both_sides_and_in_the_history",),
        ),
    ),
    "Shares of failures are compared at their level": (
        Mutant(
            "the gate's test of failures is that of Farrington and Manning",
            "            max(1.0, pooled.factor, side.dispersion.factor) * share * (1 - share) / side.requests\n",
            "            share * (1 - share) / side.requests / 4\n",
            (
                "stats/test_shares.py::test_a_share_that_rose_by_just_what_is_allowed_is_seldom_called_worse_or_no_worse",
            ),
        ),
    ),
    "Campaigns that agree are seldom said to disagree": (
        Mutant(
            "groups that disagree are compared two by two, with Bonferroni's factor",
            "    return float(min(1.0, found.min() * found.size))\n",
            "    return float(min(1.0, found.min()))\n",
            ("stats/test_shares.py::test_equal_groups_seldom_seem_to_differ_however_unlike_they_are",),
        ),
        Mutant(
            "variance between campaigns counts twice: both have it",
            "        parts.append((2 * between[0], between[1]))\n",
            "        pass\n",
            ("analysis/test_gate.py::test_campaigns_that_are_known_to_differ_are_allowed_to",),
        ),
    ),
    "Shapes that people saw in real runs are found": (
        Mutant(
            "of two runs the slower one that is far from the other is an outlier",
            "    if len(cell) < SEVERAL or len(far) != 1:\n",
            "    if len(cell) <= SEVERAL or len(far) != 1:\n",
            ("reproduction/test_outlier.py::test_run_1_is_an_outlier_beside_run_2_and_among_all_ten",),
        ),
    ),
}
