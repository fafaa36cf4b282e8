"""Every weakness that is looked for, with the threshold from which it counts and the reason for that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SERIOUS, LIMITS, NOTE = "serious", "limits", "note"
WEIGHTS = {
    SERIOUS: "what it concerns should not be concluded",
    LIMITS: "what it concerns holds with a reservation",
    NOTE: "a reader should know it",
}

# A mean over five runs, by Student's t with four degrees of freedom, has an interval of 1.24 standard deviations; over
# three runs it is twice that.
FEW_RUNS = 5
# Exclusion of one in ten at random hardly moves a figure; of more it is a choice that readers have to know.
EXCLUDED_SHARE = 0.1
# A share of the runs of a cell from which its mean is more of an unsettled system than of a settled one.
UNSETTLED_SHARE = 0.5
# Shapes are recognised in 95 of 100 runs (tests/stats/test_run_shape.py): so few unsettled ones may be none.
UNSURE_SHARE = 0.05
# A value of ten steps is known to a twentieth, which is the margin of equivalence unless it is declared otherwise.
RESOLUTION_STEPS = 10
# Finer steps are far below what anybody measures over a network.
COARSE_NS = 1e5
# Software of clusters is renewed, and its neighbours change, from one week to the next.
FAR_APART_DAYS = 7
# One failure in a hundred: from there on p99 may be that of failures, which are often faster or slower than answers.
FAILURES_SHARE = 0.01
# So many that end at once make a mean shorter by the margin of equivalence, unless it is declared otherwise.
DECIDING_SHARE = 0.05


@dataclass(frozen=True)
class Claim:
    """A kind of weakness: a heading, when it is stated and why from there on, and what cures it."""

    id: str
    heading: str
    when: str
    remedy: str


CLAIMS = {
    each.id: each
    for each in (
        Claim(
            "one_run",
            "One run only",
            "serious where a variant has one run at a rate: how much runs differ is then not known",
            f"measure at least {FEW_RUNS} runs of each variant at each rate",
        ),
        Claim(
            "few_runs",
            "Few runs",
            f"note from 2 to {FEW_RUNS - 1} runs: with 3 an interval is twice as wide as with {FEW_RUNS}",
            f"measure at least {FEW_RUNS} runs of each variant at each rate",
        ),
        Claim(
            "unbalanced",
            "Unbalanced runs",
            "limits where variants or rates have different numbers of runs that count",
            "collect the runs that are missing: the same command resumes a sweep that is open",
        ),
        Claim(
            "unfinished",
            "Planned runs are missing",
            "limits where a planned run has no result",
            "collect the runs that are missing: the same command resumes a sweep that is open",
        ),
        Claim(
            "excluded",
            "Runs left out",
            f"limits where more than {EXCLUDED_SHARE:.0%} of all runs are left out; serious where it is "
            f"{EXCLUDED_SHARE:.0%} more of one variant than of another, for what is left is then chosen unlike",
            "look at why they were left out, remove the cause and measure them again",
        ),
        Claim(
            "fixed_order",
            "Fixed or unknown order",
            "limits where variants were measured in a fixed order, or nobody recorded it: a drift of the machine "
            "then looks like a difference of variants",
            "sweep with the order blocks, in which every variant has its run in every block",
        ),
        Claim(
            "warmup_inside",
            "Warm-up inside",
            f"serious where more than {UNSETTLED_SHARE:.0%} of a cell's runs start slowly, or a report sums up warm-up "
            "and test; limits where fewer do, or nothing tells of a warm-up before the test; note where it is "
            f"{UNSURE_SHARE:.0%} of all runs at most",
            "send a warm-up before the test and measure it apart",
        ),
        Claim(
            "unsettled",
            "Drifting or changing runs",
            f"serious where more than {UNSETTLED_SHARE:.0%} of a cell's runs drift or change level, limits where "
            "fewer do, and note where it is "
            f"{UNSURE_SHARE:.0%} of all runs at most: a mean over them is of no steady state",
            "find what changes during the attack; measure longer, or from a state that has settled",
        ),
        Claim(
            "coarse_clock",
            "Coarse clock",
            f"limits where a median is within {RESOLUTION_STEPS} steps of a clock of 0.1 ms or coarser: it is known to "
            f"one part in {2 * RESOLUTION_STEPS} at best",
            "measure with a load generator whose clock is finer, such as vegeta",
        ),
        Claim(
            "zeros",
            "Latencies of 0",
            "serious where a median is 0 by a clock finer than 0.1 ms: it was not measured",
            "look at what wrote the results, and tag such runs as INVALID",
        ),
        Claim(
            "below_a_step",
            "Differences below the clock's step",
            "serious where variant and baseline differ by less than one step of a clock of 0.1 ms or coarser",
            "measure with a load generator whose clock is finer, such as vegeta",
        ),
        Claim(
            "hosts",
            "Different hosts",
            "serious where a variant and its baseline have runs of several hosts: the machine may be what differs; "
            "limits where loads or ways of measuring have",
            "measure all variants on one host",
        ),
        Claim(
            "replicas",
            "Different numbers of replicas",
            "serious where a variant and its baseline had unlike numbers of replicas; limits where loads or ways of "
            "measuring had",
            "give all variants the same number of replicas",
        ),
        Claim(
            "sent_by",
            "Sent in different ways",
            "serious where the requests of a variant and its baseline were sent by another program, by another number "
            "of load generators or over another number of connections: a fast target is then found faster or slower; "
            "limits where those of loads or ways of measuring were",
            "measure all variants with the same number of load generators and connections, by one version of Loadstone",
        ),
        Claim(
            "tool_versions",
            "Different versions of tools",
            "limits where the load generator or another recorded tool had several versions",
            "measure all runs with the same versions",
        ),
        Claim(
            "ways",
            "Measured in several ways",
            "note where load models or load generators stand side by side; no figure is of two of them",
            "measure all variants in one way",
        ),
        Claim(
            "generator_limited",
            "Limited by the load generator",
            "serious where the send lag of a run that counts is above the configured limit (analysis.lag_limit)",
            "give the load generator more CPU, or lower the rate",
        ),
        Claim(
            "lag_unknown",
            "Send lag not known",
            "note where requests were sent on a clock and nothing tells how punctually",
            "measure with a load generator that records when each request was sent, such as vegeta",
        ),
        Claim(
            "beyond_knee",
            "Beyond the knee",
            "limits where a variant was measured above the rate that it carries: latency there grows for as long as "
            "the attack lasts",
            "compare variants at rates that all of them carry, or at equal shares of their knees",
        ),
        Claim(
            "unsupported",
            "Percentiles that the sample can't support",
            "limits where fewer than ten requests are expected beyond a percentile",
            "measure longer, or more runs",
        ),
        Claim(
            "timeouts",
            "Requests that timed out",
            "limits where a figure falls among requests that timed out: it is at least what is shown",
            "lower the rate, or raise the timeout",
        ),
        Claim(
            "failures",
            "Failed requests among the latencies",
            f"limits where more than {FAILURES_SHARE:.0%} of a cell's requests failed: latencies are of failures too; "
            f"serious where more than {DECIDING_SHARE:.0%} failed in another way than by a timeout: a variant that "
            "refuses requests at once may seem fast",
            "find the cause of the failures; compare latencies at rates without them",
        ),
        Claim(
            "far_apart",
            "Measured at different times",
            f"limits where campaigns more than {FAR_APART_DAYS} days apart are joined",
            "measure all variants again in one campaign",
        ),
        Claim(
            "other_campaigns",
            "Measured in other campaigns",
            "limits where a variant's runs are not of the same campaigns as the baseline's",
            "measure all variants again in one campaign",
        ),
        Claim(
            "campaigns_disagree",
            "Campaigns that disagree",
            "serious where campaigns that are joined tell unlike differences from the baseline; limits where they tell "
            "unlike figures of a variant: beyond what runs within them vary (Student's t of every two campaigns, "
            "corrected for all of these and all figures), and by more than the margin of equivalence, or "
            f"{FAILURES_SHARE:.0%} of requests that failed",
            "look at each campaign by itself; find what differed between them before they are joined",
        ),
        Claim(
            "outlying_runs",
            "Runs far from their siblings",
            "limits where a run that counts is suggested as an outlier; of two runs, where they are that far apart",
            "look at it in the run inspector: tag it where something went wrong, else measure more runs",
        ),
        Claim(
            "reports_only",
            "Reports of tools alone",
            "limits where only what a tool reported of a run is left: no request can be looked at, and percentiles of "
            "several runs are not to be had",
            "keep the raw results of every run",
        ),
    )
}

# Beside a verdict stand the serious weaknesses of its two cells and, whatever their weight, those by which something
# else than the variants may be what differs; but not those that keep it from being given, or that it heeds anyway.
CONFOUNDING = ("fixed_order", "far_apart", "other_campaigns")
HEEDED = ("one_run", "below_a_step")


@dataclass(frozen=True)
class Weakness:
    """One that was found: it holds for `n` of `n_of` of what `counted` names.

    `cells` are those whose figures it concerns (`Evidence.cells`); None: all of the scope.
    """

    claim: str
    weight: str
    text: str
    n: int
    n_of: int
    counted: str
    rate: float | None = None
    variant: str | None = None
    statistic: str | None = None
    remedy: str | None = None  # that of the claim unless it is given
    cells: Sequence[Mapping[str, Any]] | None = None
