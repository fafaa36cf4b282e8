"""What was found: sizes with intervals, sentences, the matrix of verdicts, the choice of the headline."""

import pytest
from loadstone.config.variants import Style
from loadstone.report import findings
from loadstone.report.numbers import MILLISECONDS, change_text, points_text

LABELS = {"plain": "Direct", "envoy": "Envoy", "wasm": "Wasm"}
STYLES = [Style(name, label, "#0072B2") for name, label in LABELS.items()]


def row(variant="envoy", statistic="p50", *, rate=100.0, ratio=1.5, spread=0.1, verdict="slower", **fields):
    """A row of `effects` of a baseline that takes 0.1 ms."""
    base = 100_000.0
    made = {
        "variant": variant,
        "baseline": "plain",
        "statistic": statistic,
        "rate": rate,
        "load_model": "open",
        "generator": "vegeta",
        "evidence": "requests",
        "baseline_value": base,
        "value": base * ratio,
        "ratio": ratio,
        "ratio_low": ratio - spread,
        "ratio_high": ratio + spread,
        "shift": base * (ratio - 1),
        "shift_low": base * (ratio - spread - 1),
        "shift_high": base * (ratio + spread - 1),
        "verdict": verdict,
        "n_runs": 4,
        "baseline_n_runs": 4,
        "margin": 0.05,
        "confidence": 0.95,
        "reasons": None,
    }
    return made | fields


@pytest.mark.parametrize(
    ("ratio", "bounds", "text"),
    [
        (1.25, (1.2, 1.31), ("+25 %", "[+20, +31]")),
        (1.011, (0.99, 1.032), ("+1.1 %", "[−1.0, +3.2]")),
        (0.9996, (0.9992, 1.0), ("0.0 %", "[−0.1, 0.0]")),
        (2.512, (2.4, 2.625), ("2.51×", "[2.40, 2.62]")),
        (0.4, (0.3, 0.55), ("−60 %", "[−70, −45]")),
        (1.9, (1.5, 2.4), ("+90 %", "[+50, +140]")),
        (12.0, None, ("12.0×", "")),
        (None, None, ("–", "")),
    ],
)
def test_a_change_and_its_interval_have_one_unit(ratio, bounds, text):
    assert change_text(ratio, bounds) == text


def titles(*rows):
    return findings.titles(rows, [], LABELS, None)


def test_titles_state_the_largest_finding_and_where_it_holds():
    rows = [row(rate=rate, ratio=ratio) for rate, ratio in ((100.0, 1.2), (300.0, 1.5), (400.0, 1.5))]
    found = titles(*rows, row("wasm", rate=400.0, ratio=1.1, verdict="inconclusive"))
    assert found["latency"] == {"p50": "Envoy adds 50.0 µs to the median at 400 requests/s"}
    assert found["effects"] == {"p50": "Envoy is slower than Direct at all 3 loads"}
    faster = titles(row(statistic="p99", ratio=0.5, verdict="faster"))
    assert faster["latency"] == {"p99": "Envoy lowers the p99 by 50.0 µs at 100 requests/s"}
    same = titles(row(ratio=1.0, spread=0.01, verdict="equivalent"))
    assert same["latency"] == same["effects"] == {"p50": "Envoy is equivalent to Direct at 100 requests/s"}
    shares = {"value": 0.02, "baseline_value": 0.0, "shift": 0.02, "shift_low": 0.01, "shift_high": 0.03}
    failing = titles(row(statistic="error_fraction", verdict="more", **shares))
    more = "More requests fail with Envoy than with Direct at 100 requests/s: +2.00 pp"
    assert set(failing["failed"].values()) == set(failing["effects-errors"].values()) == {more}


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": "inconclusive"},
        {"verdict": None},
        {"ratio_low": None, "ratio_high": None},
        {"evidence": "reports"},
        {"caveats": ["unsettled"]},
    ],
)
def test_titles_claim_nothing_that_is_not_certain(fields):
    assert not any(titles(row(**fields)).values())


def test_shares_change_by_percentage_points():
    assert points_text(0.015, (0.011, 0.0193)) == ("+1.50 pp", "[+1.10, +1.93]")
    assert points_text(0.0, None) == ("0 pp", "")


def sentence(made=None, **fields) -> str:
    (found,) = findings.findings([made or row(**fields)], LABELS).values()
    return found.sentence


def test_sentences_say_by_how_much_and_how_sure():
    assert sentence() == "Envoy adds 50.0 µs [40.0, 60.0] to the median of Direct, 0.100 ms, at 100 requests/s."
    assert sentence(ratio=0.8, verdict="faster") == (
        "Envoy is 20.0 µs [10.0, 30.0] faster than Direct (median 0.100 ms) at 100 requests/s."
    )
    assert sentence(shift_low=-1e4) == "Envoy is slower than Direct at 100 requests/s: median +50 % [+40, +60]."
    assert sentence(ratio=1.01, spread=0.02, verdict="equivalent", statistic="p99") == (
        "Envoy is equivalent to Direct at 100 requests/s: p99 +1.0 % [−1.0, +3.0], within 5 %."
    )
    assert sentence(ratio=1.2, spread=0.3, verdict="inconclusive", load_model="closed") == (
        "Envoy relative to Direct at 100 users: median +20 % [−10, +50]: inconclusive."
    )


def test_a_single_reported_run_has_a_size_too():
    unknown = dict.fromkeys(("ratio_low", "ratio_high", "shift_low", "shift_high"))
    one_run = [{"code": "one_run", "variant": None, "other": None, "statistic": None, "value": None, "needed": None}]
    given = {"evidence": "reports", "n_runs": 1, "reasons": one_run, "verdict": "inconclusive"}
    assert sentence(row(ratio=1.1) | unknown | given) == (
        "Envoy relative to Direct at 100 requests/s: reported median +10 %, one run each: inconclusive."
    )


def test_too_few_runs_are_the_reason_in_the_sentence():
    few = [{"code": "few_runs", "variant": None, "other": None, "statistic": None, "value": 4.0, "needed": 3}]
    assert sentence(row(ratio=4.05, spread=0.9, verdict="inconclusive", reasons=few)) == (
        "Envoy relative to Direct at 100 requests/s: median 4.05× [3.15, 4.95], too few runs: inconclusive."
    )


def test_coarse_latencies_are_whole_steps():
    (found,) = findings.findings(
        [row(baseline_value=2e6, value=3.4e6, shift=1.4e6, shift_low=0.9e6, shift_high=1.6e6)], LABELS, 1e6
    ).values()
    assert found.sentence == "Envoy adds 1 ms [1, 2] to the median of Direct, 2 ms, at 100 requests/s."


def test_headline_is_about_the_greatest_load_below_saturation():
    rows = [row(rate=rate) for rate in (100.0, 300.0, 1000.0)]
    found = findings.at_one_load(rows, [{"beyond": [1000.0]}, {"beyond": None}], LABELS)
    assert [each.row["rate"] for each in found] == [300.0]
    everywhere = [{"beyond": [100.0, 300.0, 1000.0]}]
    assert [each.row["rate"] for each in findings.at_one_load(rows, everywhere, LABELS)] == [1000.0]


def test_headline_is_about_a_load_without_marked_differences_if_there_is_one():
    marked = {"caveats": ["unsettled"]}
    rows = [row(rate=100.0), row(rate=300.0), row(rate=1000.0, **marked)]
    assert [each.row["rate"] for each in findings.at_one_load(rows, [], LABELS)] == [300.0]
    all_marked = [row(rate=rate, **marked) for rate in (100.0, 300.0)]
    assert [each.row["rate"] for each in findings.at_one_load(all_marked, [], LABELS)] == [300.0]
    fewer = [*all_marked, row("wasm", rate=100.0), row("wasm", rate=300.0, **marked)]
    assert {each.row["rate"] for each in findings.at_one_load(fewer, [], LABELS)} == {100.0}


def test_ratios_of_one_statistic_have_one_notation():
    rows = [row(), row("wasm", rate=300.0, ratio=2.0), row(statistic="p99")]
    found = findings.findings(rows, LABELS)
    assert found["envoy", "p50", 100.0].change == ("1.50×", "[1.40, 1.60]")
    assert found["wasm", "p50", 300.0].change == ("2.00×", "[1.90, 2.10]")
    assert found["envoy", "p99", 100.0].change == ("+50 %", "[+40, +60]")


def test_headline_prefers_what_most_variants_have_and_what_is_certain():
    rows = [row(), row("wasm", ratio=1.02, verdict="equivalent"), row(rate=300.0, ratio=3.0)]
    found = findings.at_one_load(rows, [], LABELS)
    assert [(each.variant, each.row["rate"]) for each in found] == [("Envoy", 100.0), ("Wasm", 100.0)]
    assert findings.headline(found).variant == "Envoy"
    unsure = [row(ratio=5.0, verdict="inconclusive"), row("wasm", ratio=1.02, verdict="equivalent")]
    assert findings.headline(findings.at_one_load(unsure, [], LABELS)).variant == "Wasm"
    assert findings.headline([]) is None


def place(rows, *saturated):
    return findings.headline(findings.at_one_load(rows, [{"beyond": list(saturated)}], LABELS)).rank_text


def test_headline_says_that_it_is_the_largest_where_it_is():
    rows = [row(), row("wasm", ratio=1.02, verdict="equivalent")]
    assert place(rows) == "The largest of 2 differences at this load."
    assert place(rows[:1]) == ""
    larger = {"ratio": 3.0, "shift": 200_000.0, "verdict": "inconclusive"}
    assert place([row(), row("wasm", **larger)]) == "1 larger difference at this load is inconclusive."
    assert place([row(), row("wasm", ratio=3.0, verdict="inconclusive", baseline="other")]) == ""
    assert place([row(verdict="inconclusive"), row("wasm", ratio=1.1, verdict="inconclusive")]) == ""


def test_headline_says_why_it_is_about_its_load():
    rows = [row(name, rate=rate, ratio=1.5 + 0.1 * at) for at, name in enumerate(LABELS) for rate in (100.0, 300.0)]
    assert place(rows) == "The largest of 3 differences at this load."
    assert place(rows, 300.0) == "The largest of 3 differences at the highest load clearly below saturation."
    all_saturated = findings.at_one_load(rows, [{"beyond": [100.0], "near": [300.0]}], LABELS)
    assert findings.headline(all_saturated).rank_text == "The largest of 3 differences at this load."
    near = findings.at_one_load(rows, [{"beyond": [], "near": [300.0]}], LABELS)
    assert (
        findings.headline(near).rank_text
        == "The largest of 3 differences at the highest load clearly below saturation."
    )
    without_figures = [*rows, row(rate=400.0, value=None)]
    assert place(without_figures, 300.0) == "The largest of 3 differences at this load."
    marked = [each | ({"caveats": ["unsettled"]} if each["rate"] == 300.0 else {}) for each in rows]
    assert place(marked) == "The largest of 3 differences at the load with the most verdicts without caveats."


def test_key_of_the_matrix_says_why_verdicts_of_its_statistic_are_inconclusive():
    def why(*codes):
        shared = {"verdict": "inconclusive", "n_compared": 9}
        rows = [row(name, reasons=[{"code": code}], **shared) for name, code in zip(LABELS, codes, strict=False)]
        rows += [row(statistic="p99", reasons=[{"code": "few_runs"}], **shared)]
        return findings.matrix(rows, STYLES, MILLISECONDS)["why_inconclusive"]

    assert why("runs_vary", "one_run", "one_run") == {"p50": "only one run, runs vary too much", "p99": "too few runs"}
    assert why("evidence_differs")["p50"] == "some runs have only reports"
    assert why("sample_size_unknown")["p50"] == "too little evidence"
    assert why("multiple_comparisons")["p50"] == ""  # these have a mark with a text of its own


def test_headline_takes_the_mean_where_there_is_no_median_or_hardly_any():
    rows = [row(value=None), row(statistic="mean"), row(statistic="error_fraction")]
    assert [each.row["statistic"] for each in findings.at_one_load(rows, [], LABELS)] == ["mean"]
    few = [row(), *(row(statistic="mean", rate=rate) for rate in (100.0, 200.0, 300.0))]
    assert [each.row["statistic"] for each in findings.at_one_load(few, [], LABELS)] == ["mean"]
    assert [each.row["statistic"] for each in findings.at_one_load(few[:2], [], LABELS)] == ["p50"]


def cell(**fields):
    """A row of `cells` of the baseline."""
    made = {"variant": "plain", "rate": 100.0, "n_requests": 900, "n_runs": 4, "n_timeouts": 0, "resolution_ns": None}
    made |= {"p50_ns": 100_000.0, "p50_estimable": True, "p50_low_ns": 90_000.0, "p50_high_ns": 110_000.0}
    return made | {"p99_estimable": False} | fields


def test_matrix_has_every_variant_load_and_statistic():
    rows = [
        row(),
        row(rate=300.0, verdict="inconclusive", n_compared=33, reasons=[{"code": "multiple_comparisons"}]),
        row(statistic="p99", value=3_250_000.0),
        row("wasm", rate=300.0, caveats=["fixed_order"]),
    ]
    rows.append(row(statistic="error_fraction", value=0.0, baseline_value=0.0, verdict=None))
    cells = [cell(), cell(rate=300.0, p50_low_ns=None)]
    found = findings.matrix(rows, STYLES, MILLISECONDS, cells=cells, letters={"fixed_order": "a"})
    assert found["rates"] == ["100", "300"]
    assert (found["variants"], found["baselines"], found["shown"]) == (["envoy", "wasm"], ["Direct"], "p50")
    assert list(found["cells"]) == ["p50", "p99"]  # nothing failed
    assert found["cells"]["p50"] == [
        [
            ["slower", "+50 %", "[+40, +60]", "", "0.150 ms, p99\u00a03.25 ms"],
            ["inconclusive", "+50 %", "[+40, +60]", "†", "0.150 ms"],
        ],
        [None, ["slower", "+50 %", "[+40, +60]", "a", "0.150 ms"]],
    ]
    assert found["cells"]["p99"][0][0][-1] == "3.25 ms"
    assert found["baseline_cells"]["p50"] == [[["0.100 ms", "[0.0900, 0.110]"], ["0.100 ms", "runs differ too much"]]]
    assert found["baseline_cells"]["p99"] == [[["0.100 ms", "too few requests"], ["–", "too few requests"]]]
    assert (found["caveats"], found["one_of_many"]) == (
        {"fixed_order": {"letter": "a", "heading": "Fixed or unknown order"}},
        33,
    )
    assert findings.matrix([], STYLES, MILLISECONDS) == {}
    reported = [row(value=None, baseline_value=None), row(statistic="mean")]
    assert findings.matrix(reported, STYLES, MILLISECONDS)["shown"] == "mean"


def test_failures_without_a_verdict_have_their_share_alone():
    none = {"value": 0.0, "baseline_value": 0.0, "verdict": None, "reasons": [{"code": "no_failures"}]}
    rows = [row(), row(statistic="error_fraction", **none), row("wasm", statistic="error_fraction", verdict="more")]
    found = findings.matrix(rows, STYLES, MILLISECONDS)
    assert found["cells"]["error_fraction"][0] == [["", "0 %", "", "", ""]]
    assert found["cells"]["error_fraction"][1][0][0] == "more"
    assert found["why_inconclusive"]["error_fraction"] == ""


def test_the_letter_of_a_caveat_marks_its_own_cells():
    rows = [
        row(caveats=["failures", "unsettled"]),
        row(rate=300.0, caveats=["unsettled"]),
        row("wasm", caveats=["generator_limited"]),
    ]
    letters = {"one_run": "a", "generator_limited": "b", "unsettled": "c", "failures": "d"}
    found = findings.matrix(rows, STYLES, MILLISECONDS, letters=letters)
    assert [(kind, each["letter"]) for kind, each in found["caveats"].items()] == [*letters.items()][1:]
    assert [[cell and cell[3] for cell in cells] for cells in found["cells"]["p50"]] == [["c,d", "c"], ["b", None]]


def test_without_values_a_cell_is_empty_and_without_intervals_the_matrix_says_so():
    none = dict.fromkeys(("value", "baseline_value", "ratio", "ratio_low", "ratio_high"))
    single = {"ratio_low": None, "ratio_high": None, "shift_low": None, "shift_high": None}
    found = findings.matrix([row() | none, row("wasm", **single)], STYLES, MILLISECONDS)
    assert found["cells"]["p50"] == [[None], [["slower", "+50 %", "", "", "0.150 ms"]]]
    assert not found["has_intervals"]
    assert findings.matrix([row()], STYLES, MILLISECONDS)["has_intervals"]


def test_matrix_has_failures_where_requests_failed():
    shares = {"value": 0.02, "baseline_value": 0.01, "shift": 0.01, "shift_low": 0.005, "shift_high": 0.015}
    found = findings.matrix([row(statistic="error_fraction", verdict="more", **shares)], STYLES, MILLISECONDS)
    assert found["cells"]["error_fraction"] == [[["more", "+1.00 pp", "[+0.500, +1.50]", "", "2 %"]]]
    assert found["baseline_cells"]["error_fraction"] == [[["1 %", ""]]]
    assert found["failures_have_intervals"]
    one_run = row(statistic="error_fraction", **shares | {"shift_low": None, "shift_high": None})
    assert not findings.matrix([one_run, row()], STYLES, MILLISECONDS)["failures_have_intervals"]


def test_small_plots_share_an_axis():
    found = findings.at_one_load([row(ratio=2.0), row("wasm", ratio=0.5, verdict="faster")], [], LABELS)
    envoy, wasm = findings.plots(found, STYLES)
    zero = envoy["zero"]
    assert zero == wasm["zero"] and envoy["at"] - zero == pytest.approx(zero - wasm["at"], abs=0.2)
    assert zero < envoy["from"] < envoy["at"] < envoy["to"] <= 155 and wasm["from"] >= 5
    unknown = row(ratio=0.5) | dict.fromkeys(("ratio_low", "ratio_high"))
    (plot,) = findings.plots(findings.at_one_load([unknown], [], LABELS), STYLES)
    assert (plot["from"], plot["to"]) == (None, None) and plot["at"] < plot["zero"]
