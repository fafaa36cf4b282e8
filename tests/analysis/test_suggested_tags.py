"""Which tags are proposed, on what evidence; and that what is printed can be pasted."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import PROJECT
from hypothesis import given
from hypothesis import strategies as st
from loadstone.analysis.campaign_checks import Profile, Suggestion, catalogue_line, suggest
from loadstone.config.catalogue import load_catalogue
from loadstone.tables.exclusion import matches
from support.rawfiles import compress, lines, write_cell

MS = 1e6
CAMPAIGN = {"app": "bookinfo", "host": "moone", "timestamp": "2024-04-09T20:14:12-04:00"}


def run(number: int, **fields: Any) -> Profile:
    known: dict[str, Any] = {
        "variant": "prose-filter-97776ef1",
        "rate": 120.0,
        "requests": 1200,
        "expected": 1200,
        "sound": True,
        "failed_share": 0.0,
        "mean_ns": 150 * MS + number * MS,
        "noise": 0.01,
    }
    return Profile(run=number, **(known | fields))


def kinds(profiles: list[Profile]) -> list[tuple[str, int | None]]:
    return [(suggestion.kind, suggestion.run) for suggestion in suggest(profiles)]


def test_a_quiet_cell_needs_nothing() -> None:
    assert kinds([run(number) for number in range(1, 6)]) == []


def test_the_run_in_which_many_requests_timed_out() -> None:
    """As on moone: four runs of five like each other, the fourth with a third of its requests at the 30 s limit."""
    runs = [run(number) for number in (1, 2, 3, 5)] + [run(4, failed_share=0.35, mean_ns=10_600 * MS)]
    (found,) = suggest(runs)
    assert (found.kind, found.tag, found.run, found.rate) == ("outlying run", "outlier", 4, 120.0)
    assert (
        found.evidence
        == "its mean latency of 10,600 ms is 69.3 times as long as the 153 ms of the cell's 5 runs (median)"
    )


def test_the_run_in_which_all_requests_timed_out() -> None:
    runs = [run(number) for number in (1, 2, 3, 4)] + [run(5, failed_share=1.0, mean_ns=30_000 * MS)]
    found = {suggestion.kind: suggestion for suggestion in suggest(runs)}
    assert set(found) == {"failed run", "outlying run"}
    assert (found["failed run"].tag, found["failed run"].run) == ("FAILED", 5)
    assert found["failed run"].evidence == "100 % of its requests failed, 0 % in other runs (median)"


def test_an_overloaded_cell_is_no_failed_run() -> None:
    assert kinds([run(number, failed_share=0.95) for number in range(1, 6)]) == []
    assert kinds([run(1, failed_share=0.95)]) == [], "a run alone has no siblings to differ from"


def test_every_second_run_failing_is_inconsistent() -> None:
    shares = [0.0, 0.8, 0.01, 0.75, 0.02, 0.9]
    found = suggest([run(number, failed_share=share) for number, share in enumerate(shares, 1)])
    assert (found[0].kind, found[0].tag, found[0].run) == ("differing success", "INCONSISTENT", None)
    assert "in 3 of 6 runs most requests failed (75 % to 90 %), in 3 hardly any (0 % to 2 %)" in found[0].evidence


def test_a_short_run() -> None:
    (found,) = suggest([run(1), run(2, requests=700, sound=False), run(3)])
    assert (found.kind, found.tag, found.run) == ("cut short", "interrupted", 2)
    assert found.evidence == "holds 700 of 1,200 requests"
    assert kinds([run(1), run(2, requests=700, sound=False, changed=True), run(3)]) == []  # since it was collected


def test_a_short_run_whose_generator_fell_behind() -> None:
    short = {"requests": 700, "sound": False}
    assert kinds([run(1), run(2, late="was sent late", **short)]) == [("cut short", 2), ("late generator", 2)]
    assert kinds([run(1), run(2, exhausted="had no ports", **short)]) == [("cut short", 2), ("exhausted generator", 2)]
    assert kinds([run(1), run(2, late="was sent late", sound=False)]) == [], "broken otherwise"


def test_close_runs_have_no_outliers_and_scattered_ones_few() -> None:
    close = [run(number, mean_ns=150 * MS) for number in range(1, 9)] + [run(9, mean_ns=190 * MS)]
    assert kinds(close) == [], "far in deviations, near as a ratio"
    scattered = [run(number, mean_ns=mean_ns * MS) for number, mean_ns in enumerate((50, 100, 200, 300, 500, 900), 1)]
    assert kinds(scattered) == []


def test_one_of_few_runs_far_from_the_others() -> None:
    """Of two or three runs their own noise is all there is to judge by."""
    pair = [run(1, mean_ns=20.3 * MS, noise=0.09), run(2, mean_ns=13.6 * MS, noise=0.01)]
    (found,) = suggest(pair)
    assert (found.kind, found.tag, found.run) == ("outlying run", "outlier", 1)
    assert found.evidence == (
        "its mean latency of 20.3 ms is far from the 13.6 ms of run 2, beyond the variation of requests within each"
    )
    assert kinds([pair[0], *(run(n, mean_ns=(13 + n / 10) * MS) for n in (2, 3))]) == [("outlying run", 1)]
    assert kinds([run(1, mean_ns=20.3 * MS, noise=0.2), pair[1]]) == [], "within its noise"
    assert kinds([run(1, mean_ns=17 * MS), pair[1]]) == [], "near as a ratio"
    assert kinds([run(n, mean_ns=mean_ns * MS) for n, mean_ns in ((1, 10), (2, 20), (3, 40))]) == [], "none is odd"
    assert kinds([run(1, mean_ns=20.3 * MS, noise=None), pair[1]]) == [], "nothing is known of their noise"


def test_unfit_runs_are_no_measure_for_others() -> None:
    runs = [run(number) for number in range(1, 5)] + [run(9, mean_ns=30_000 * MS, sound=False)]
    assert kinds(runs) == []


def test_an_unsettled_run_and_a_cell_of_them() -> None:
    settling = {"unsettled": "is uneven: so and so"}
    assert kinds([run(1), run(2, **settling), run(3), run(4)]) == [("unsettled run", 2)]
    (found,) = suggest([run(number, **settling) for number in range(1, 5)])
    assert (found.run, found.variant, found.tag) == (None, "prose-filter-97776ef1", "unsettled")
    assert found.evidence == "in all 4 runs, such as run 1: is uneven: so and so"
    most = [run(1), *(run(number, **settling) for number in (2, 3, 4))]
    assert kinds(most) == [("unsettled run", number) for number in (2, 3, 4)], "run 1 is not to be tagged with them"
    assert kinds([run(1), run(2)]) == []


def test_a_run_that_never_settled_is_told_by_its_shape() -> None:
    (found,) = suggest([run(1), run(2, unsettled="is drifting up: so and so"), run(3)])
    assert (found.kind, found.tag, found.run) == ("unsettled run", "unsettled", 2)
    assert found.evidence == "is drifting up: so and so"


def test_a_run_that_was_sent_late() -> None:
    (found,) = suggest([run(1), run(2, late="its requests were sent late"), run(3)])
    assert (found.kind, found.tag, found.run) == ("late generator", "GENERATOR_LIMITED", 2)


def test_a_run_whose_generator_lacked_something_and_was_late_too() -> None:
    (found,) = suggest([run(1), run(2, late="sent late", exhausted="8 of its 9 requests failed"), run(3)])
    assert (found.kind, found.evidence) == ("late generator", "sent late; 8 of its 9 requests failed")
    (found,) = suggest([run(1), run(2, exhausted="8 of its 9 requests failed"), run(3)])
    assert (found.kind, found.tag, found.run) == ("exhausted generator", "GENERATOR_LIMITED", 2)


def test_a_campaign_that_was_never_completed() -> None:
    (found,) = suggest([], "completion_time.txt is missing")
    assert (found.tag, found.rate, found.run) == ("interrupted", None, None)


# --- to paste --------------------------------------------------------------------------------------------------------


def pasted(folder: Path, text: str) -> list[dict[str, Any]]:
    """The shipped catalogue with a line pasted at its end: the rows that are new."""
    shipped = PROJECT / "config/catalogue.yaml"
    file = folder / "catalogue.yaml"
    file.write_text(f"{shipped.read_text().rstrip()}\n{text}\n")
    before = load_catalogue(shipped).tagged
    return load_catalogue(file).tagged[len(before) :]


@pytest.mark.parametrize(
    "suggestion",
    [
        Suggestion("unfinished", "interrupted", "no end: yes"),
        Suggestion("differing success", "INCONSISTENT", "e", "plain", 0.5),
        Suggestion("late generator", "GENERATOR_LIMITED", "late", "plain", 0.5, 2),
        Suggestion("failed run", "FAILED", "100 % # of", "a*b [c]: {d}, 'e' \"f\"\n\x07é", 1000.0, 10),
    ],
)
def test_what_is_printed_can_be_pasted_and_means_the_same(tmp_path: Path, suggestion: Suggestion) -> None:
    text = catalogue_line(suggestion, CAMPAIGN)
    assert "\n" not in text
    (row,) = pasted(tmp_path, text)
    assert row.pop("reason") == suggestion.evidence
    assert row.pop("tag") == suggestion.tag
    assert {name: row.pop(name) for name in CAMPAIGN} == CAMPAIGN
    fact = {
        "variant": suggestion.variant or "x",
        "variant_dir": "y",
        "rate": suggestion.rate or 1.0,
        "run": suggestion.run or 1,
    }
    assert matches(row, fact)
    assert suggestion.run is None or not matches(row, fact | {"run": 1})
    assert suggestion.variant is None or not matches(row, fact | {"variant": "aXb [c]"})


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_variants_name_survives_the_paste(name: str) -> None:
    (row,) = yaml.safe_load(catalogue_line(Suggestion("failed run", "FAILED", name, name, 1.0, 1), CAMPAIGN))
    assert row["reason"] == name
    assert matches(row, {"variant": name, "variant_dir": "", "rate": 1.0, "run": 1})


def test_a_copied_run(project) -> None:
    """Two runs of the same bytes are one that is counted twice; a link is left out anyway and needs no word."""
    cell = write_cell(project.archive, {"1.results.json.zst": compress(lines([MS] * 100))})
    (cell.path / "2.results.json.zst").write_bytes(compress(lines([MS] * 99 + [2 * MS])))
    (cell.path / "3.results.json.zst").write_bytes((cell.path / "1.results.json.zst").read_bytes())
    (cell.path / "4.results.json.zst").symlink_to("1.results.json.zst")
    project.make()
    (found,) = project.rows("SELECT run, kind, tag, evidence FROM suggestions WHERE kind = 'copied run'")
    assert (found["run"], found["tag"]) == (3, "INVALID")
    original = (cell.path / "1.results.json.zst").relative_to(project.archive).as_posix()
    digest = hashlib.sha256((cell.path / "3.results.json.zst").read_bytes()).hexdigest()
    assert found["evidence"] == f"its results are byte for byte those of {original} (SHA-256 {digest})"
    assert project.rows("SELECT run FROM runs WHERE NOT excluded ORDER BY run") == [{"run": n} for n in (1, 2, 3)]
