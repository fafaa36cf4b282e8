"""Sentences of pages about rows of `effects`, `knees` and `interactions`."""

from loadstone.analysis import reasons
from loadstone.percentiles import LATENCIES
from loadstone.report.conclusions import with_caveats
from loadstone.report.numbers import MILLISECONDS
from loadstone.report.verdicts import Verdict, correction, interactions, knees, verdicts

LABELS = {"plain": "Direct", "envoy": "Envoy"}
VARY = {"code": reasons.RUNS_VARY}
STEP = {"code": reasons.BELOW_RESOLUTION, "value": 1e6}


def bound(code: str, ratio: float, variant: str) -> list[dict]:
    """The reasons of a figure that is among requests that timed out."""
    return [{"code": code, "value": ratio}, {"code": reasons.TIMEOUTS, "variant": variant, "value": 150}]


def effect(rate: float, statistic: str, verdict: str | None, ratio: float = 2.0, **changes) -> dict:
    """A row of `effects`: Envoy relative to Direct, whose figure is 0.2 ms."""
    base = 2e5
    shift = base * ratio - base
    return {
        "rate": rate,
        "load_model": "open",
        "generator": "vegeta",
        "baseline": "plain",
        "variant": "envoy",
        "statistic": statistic,
        "baseline_value": base,
        "value": base * ratio,
        "shift": shift,
        "shift_low": shift - 1e4,
        "shift_high": shift + 1e4,
        "ratio": ratio,
        "ratio_low": 0.95 * ratio,
        "ratio_high": 1.05 * ratio,
        "n_runs": 5,
        "baseline_n_runs": 5,
        "verdict": verdict,
        "reasons": [],
        "n_compared": 12,
        "margin": 0.05,
        "confidence": 0.95,
        "runs_needed": None,
    } | changes


def said(rows) -> Verdict:
    """The one verdict on these."""
    (found,) = verdicts(rows, LABELS)
    assert found.kind in ("slower", "faster", "more", "fewer", "equivalent", "inconclusive")
    return found


def one_run(rate: float, statistic: str, needed: int | None = 7) -> dict:
    why = {"code": reasons.ONE_RUN, "value": 0.05, "needed": needed}
    bounds = {"shift_low": None, "shift_high": None, "n_compared": 0}
    counts = {"n_runs": 1, "baseline_n_runs": 1, "runs_needed": needed}
    return effect(rate, statistic, "inconclusive", 1.02, reasons=[why], **bounds, **counts)


def test_by_how_much_is_left_open_where_a_percentile_is_among_timeouts() -> None:
    why = bound(reasons.AT_LEAST, 748, "envoy")
    unknown = dict.fromkeys(("value", "shift", "shift_low", "shift_high", "ratio"))
    rows = [effect(100, "p50", "equivalent", 1.0), effect(100, "p99", "slower", reasons=why) | unknown]
    found = said(rows)
    assert found.text == "Envoy is slower than Direct at 100 requests/s (in p99)."


def test_what_is_among_timeouts_at_some_loads_is_said() -> None:
    why = bound(reasons.AT_LEAST, 13_100, "envoy")
    unknown = dict.fromkeys(("shift", "shift_low", "shift_high", "ratio"))
    known = [effect(100, name, "slower", 3.0) for name in ("p50", "p90")]
    rows = [
        *known,
        effect(400, "p50", "slower", 1.2),
        effect(400, "p90", "slower", reasons=why) | unknown | {"value": None},
    ]
    found = said(rows)
    assert "(median: 1.20 to 3.00 times; p90 among requests that timed out)" in found.text


def test_equivalence_is_told_of_the_figures_in_which_it_is_known_at_these_loads() -> None:
    rows = [
        effect(200, "p50", "equivalent", 1.0),
        effect(200, "p90", "inconclusive"),
        effect(200, "p99", "inconclusive"),
    ]
    rows += [effect(400, "p50", "faster", 0.77), effect(400, "p90", "equivalent"), effect(400, "p99", "equivalent")]
    assert said(rows).text == (
        "Envoy is faster than Direct at 400 requests/s (median: 0.770 times); equivalent within 5 % at 200 requests/s "
        "(in median)."
    )
    rows = [effect(100, "p50", "faster", 0.5), effect(200, "p90", "faster", 0.7), effect(200, "p50", "slower")]
    assert "faster than Direct at 100 requests/s (median: 0.500 times); slower in some figures" in said(rows).text


def test_a_variant_has_one_sentence() -> None:
    rows = [
        effect(rate, statistic, "slower", ratio)
        for rate, ratio in ((100, 1.9), (200, 2.0), (400, 2.1))
        for statistic in ("p50", "p99")
    ]
    assert said(rows) == Verdict("slower", "Envoy is slower than Direct at all 3 loads (median: 1.90 to 2.10 times).")
    assert "99 % confidence" in correction([effect(100, "p50", "slower", confidence=0.99)])
    assert correction([effect(100, "p50", "inconclusive", n_compared=0)]) == correction([]) == ""


def test_how_many_figures_were_tested_of_those_that_the_table_has() -> None:
    slower, open_ended = effect(100, "p50", "slower", n_compared=2), effect(100, "p99", "inconclusive", n_compared=2)
    by_chance = "tested at 95 % confidence, corrected for multiple comparisons"
    assert correction([slower, open_ended]) == f"2 verdicts {by_chance}."
    assert correction([slower, open_ended, one_run(500, "p50")]) == f"2 of 3 verdicts {by_chance}."
    assert correction([open_ended, open_ended, open_ended]) == (
        f"2 of 3 verdicts {by_chance}: no difference is significant."
    )


def test_what_strikes_a_verdict_stands_beside_it() -> None:
    cell = {"variant": "plain", "load_model": "open", "generator": "vegeta"}
    claims = [
        {"claim": "one_run", "weight": "serious", "cells": [cell | {"rate": 100.0}]},
        {"claim": "generator_limited", "weight": "serious", "cells": [cell | {"rate": 400.0}]},
        {"claim": "unsettled", "weight": "serious", "cells": [cell | {"rate": 100.0, "load_model": "closed"}]},
        {"claim": "warmup_inside", "weight": "serious", "cells": [cell | {"rate": 800.0}]},
        {"claim": "unbalanced", "weight": "limits", "cells": [cell | {"rate": 100.0}]},
        {"claim": "fixed_order", "weight": "limits", "cells": [cell | {"rate": rate} for rate in (100.0, 400.0)]},
    ]
    rows = [effect(rate, "p50", "slower") for rate in (100, 400)]
    rows += [effect(100, "error_fraction", "more"), effect(800, "p50", "inconclusive")]
    assert [(mark.claim, mark.text) for mark in said(with_caveats(rows, claims)).marks] == [
        ("generator_limited", "limited by the load generator at 400 requests/s"),
        ("fixed_order", "fixed or unknown order"),
    ]
    failing = effect(800, "error_fraction", "more")
    assert with_caveats([failing], claims)[0]["caveats"] == []
    # Another tool, whose latencies mean something else, at the same load.
    assert with_caveats([effect(400, "p50", "slower", generator="k6")], claims)[0]["caveats"] == []
    assert said([effect(100, "p50", "slower")]).marks == ()


def test_failures_that_campaigns_tell_unlike_strike_latencies_but_not_the_other_way_round() -> None:
    cell = {"rate": 100.0, "variant": "envoy", "load_model": "open", "generator": "vegeta"}
    rows = [effect(100, "p50", "slower"), effect(100, "error_fraction", "more")]

    def struck(statistic: str | None) -> list[bool]:
        claim = {"claim": "campaigns_disagree", "weight": "serious", "statistic": statistic, "cells": [cell]}
        return [bool(row["caveats"]) for row in with_caveats(rows, [claim])]

    assert struck("error_fraction") == [True, True]
    assert struck("p50") == struck(None) == [True, False]


def test_no_number_of_runs_is_told_where_the_clock_decides() -> None:
    why = [{"code": reasons.ONE_RUN}, STEP]
    found = said([one_run(500, "mean", None) | {"reasons": why}])
    assert found.text == (
        "Envoy relative to Direct: inconclusive, one run each, and the shift is below the clock's resolution of 1 ms."
    )


def test_one_load_is_named() -> None:
    found = said([effect(1000, "mean", "faster", 0.5)])
    assert found.text == "Envoy is faster than Direct at 1,000 requests/s (mean: 0.500 times)."


def test_equivalents_name_the_margin_and_in_which_figures() -> None:
    rows = [effect(100, name, "equivalent", 1.01) for name in ("mean", "p50", "p90")]
    found = said(rows)
    assert found.text == ("Envoy is equivalent within 5 % to Direct at 100 requests/s (in mean, median and p90).")
    assert said([effect(100, name, "equivalent", 1.01) for name in LATENCIES]).text.endswith("at 100 requests/s.")


def test_one_run_each_says_what_it_takes() -> None:
    rows = [one_run(rate, name, needed) for rate, needed in ((500, 7), (1000, 19)) for name in ("mean", "p99")]
    found = said(rows)
    assert found.kind == "inconclusive"
    assert found.text == (
        "Envoy relative to Direct: inconclusive, one run each; if runs differ by 5 % (one standard deviation), about 7 "
        "to 19 runs each are needed (mean)."
    )
    assert "more than 1,000 runs each" in said([one_run(500, "mean", None)]).text


def test_the_runs_needed_in_short_are_those_of_one_figure() -> None:
    rows = [one_run(rate, name, needed) for rate in (500, 1000) for name, needed in (("p50", 14), ("p99", 969))]
    assert said(rows).text.endswith("about 14 runs each are needed (median).")


def test_loads_with_different_verdicts_share_the_sentence() -> None:
    rows = [effect(100, "p50", "equivalent", 1.0), effect(200, "p50", "slower"), effect(400, "p50", "slower", 3.0)]
    rows += [one_run(800, "p50"), effect(1600, "p50", "faster", 0.5)]
    found = said(rows)
    assert found.kind == "slower" and found.text == (
        "Envoy is slower than Direct at 200 and 400 requests/s (median: 2.00 to 3.00 times); faster at 1,600 "
        "requests/s (median: 0.500 times); equivalent within 5 % at 100 requests/s (in median); inconclusive at 800 "
        "requests/s."
    )


def test_slower_in_one_figure_and_faster_in_another_is_said() -> None:
    found = said([effect(100, "p50", "faster", 0.5), effect(100, "p99", "slower")])
    assert found.text == "Envoy is slower in some figures and faster in others than Direct at 100 requests/s."
    assert found.kind == "slower"


def test_a_load_that_only_one_figure_tells_of_names_that() -> None:
    rows = [effect(100, "p50", "slower"), effect(200, "p50", "inconclusive", reasons=[VARY])]
    rows += [effect(200, "p99", "slower")]
    assert said(rows).text == "Envoy is slower than Direct at all 2 loads (2.00 times in median or p99)."


def test_what_is_equivalent_at_one_load_each_is_not_at_all() -> None:
    rows = [effect(100, "p50", "equivalent", 1.0), effect(200, "p99", "equivalent", 1.0)]
    rows += [effect(200, "p50", "equivalent", 1.0), effect(100, "p90", "inconclusive", reasons=[VARY])]
    assert said(rows).text == "Envoy is equivalent within 5 % to Direct at all 2 loads (in median)."


def test_reasons_that_differ_in_numbers_are_one_and_name_variants_by_their_labels() -> None:
    rows = [
        effect(
            rate,
            "p99",
            "inconclusive",
            value=None,
            reasons=[
                {
                    "code": reasons.TOO_FEW_REQUESTS,
                    "variant": "envoy",
                    "statistic": "p99",
                    "value": number,
                    "needed": 1000,
                }
            ],
        )
        for rate, number in ((100, 150), (200, 1300))
    ]
    assert said(rows).text == (
        "Envoy relative to Direct: inconclusive, for example too few requests: p99 needs 1,000, Envoy has 150."
    )


def test_only_quoted_names_of_variants_are_replaced_and_each_once() -> None:
    labels = {"mean": "“plain”", "plain": "Direct"}
    renamed = reasons.renamed("the mean of “mean” and “plain”, “gone” and plain", lambda name: labels.get(name, name))
    assert renamed == ("the mean of “plain” and Direct, gone and plain")


def test_failures_are_told_as_shares() -> None:
    row = effect(100, "error_fraction", "more", value=0.03, baseline_value=0.01, shift=0.02) | {
        "shift_low": 0.01,
        "shift_high": 0.03,
    }
    found = said([row, effect(100, "p50", "slower")])
    assert found.text == (
        "Envoy is slower than Direct at 100 requests/s (median: 2.00 times). More of its requests fail at 100 "
        "requests/s (3 %)."
    )


def test_no_failure_is_nothing_to_say() -> None:
    assert verdicts([effect(100, "error_fraction", None, n_compared=0)], LABELS) == []
    assert verdicts([], LABELS) == []


def test_users() -> None:
    found = said([effect(10, "p50", "slower", load_model="closed")])
    assert found.text.startswith("Envoy is slower than Direct at 10 users")


def test_many_loads_are_counted_and_ways_are_told_apart() -> None:
    rows = [effect(100.0 * n, "p50", "slower") for n in range(1, 7)] + [effect(700, "p50", "equivalent")]
    assert "at 6 of 7 loads, from 100 to 600 requests/s" in said(rows).text
    rows = [effect(100, "p50", "slower"), effect(100, "p50", "slower", load_model="serial", generator="serial")]
    first, second = verdicts(rows, LABELS)
    assert "(open load, vegeta)" in first.text and "(serial load, serial)" in second.text


def test_knees() -> None:
    knee = {
        "variant": "envoy",
        "knee_rate": 450.0,
        "low": 400.0,
        "high": 500.0,
        "by": "throughput",
        "carried": [100.0, 400.0],
        "near": [],
        "beyond": [500.0],
        "confidence": 0.95,
    }
    never = knee | {"variant": "plain", "knee_rate": None, "low": None, "high": None, "by": None, "beyond": []}
    assert knees([knee, never], LABELS) == [
        (
            "Envoy saturates at 450 requests/s (95 % interval [400, 500]); "
            "beyond that, fewer requests per second are answered than sent."
        ),
        "Direct does not saturate at any measured load, up to 400 requests/s.",
    ]


def diamond(rate: float, statistic: str, value_ms: float, **changes) -> dict:
    """A row of `interactions`: a cache and Envoy over Direct, and both."""
    return {
        "bottom": "plain",
        "left": "cache",
        "right": "envoy",
        "top": "both",
        "rate": rate,
        "load_model": "open",
        "statistic": statistic,
        "interaction_ns": value_ms * 1e6,
        "interaction_low_ns": (value_ms - 1) * 1e6,
        "interaction_high_ns": (value_ms + 1) * 1e6,
        "confidence": 0.9,
        "reasons": [{"code": reasons.NOT_ADDITIVE}] if abs(value_ms) > 1 else [],
    } | changes


def test_layers_that_do_not_add_up_are_said_with_figure_and_interval() -> None:
    rows = [diamond(20, "mean", 4), diamond(20, "p50", 3), diamond(40, "p50", 0.5)]
    (found,) = interactions(rows, LABELS, MILLISECONDS)
    assert found.kind == "warning" and found.text == (
        "both over Direct: the overheads of cache and Envoy are not additive. Median: both take 3.00 ms more than "
        "their sum (90 % interval [2.00, 4.00] ms), at 20 requests/s."
    )
    (found,) = interactions([diamond(20, "p50", -3)], LABELS, MILLISECONDS)
    assert "both take 3.00 ms less than their sum (90 % interval [2.00, 4.00] ms)" in found.text
    (found,) = interactions([diamond(20, "p50", -3), diamond(40, "p50", 3)], LABELS, MILLISECONDS)
    assert "sum (90 % interval [2.00, 4.00] ms), at 40 requests/s. Median: both take 3.00 ms less" in (found.text)
    (found,) = interactions([diamond(20, "p50", 0.5)], LABELS, MILLISECONDS)
    assert (found.kind, found.text) == (
        "note",
        "both over Direct: the overheads of cache and Envoy may be additive; no figure contradicts it.",
    )
    assert interactions([diamond(20, "p50", 1, interaction_ns=None)], LABELS, MILLISECONDS) == []
