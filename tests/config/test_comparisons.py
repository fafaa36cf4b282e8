"""What config/comparisons.yaml may say."""

import csv
from pathlib import Path

import pytest
from conftest import PROJECT
from loadstone.config import comparisons
from loadstone.errors import LoadstoneError

ONE = "- {id: a, title: A, app: shop, host: lab, timestamps: ['2026-11-21T11:30:00+00:00']%s}\n"


def load(folder: Path, text: str) -> list[comparisons.Comparison]:
    file = folder / "comparisons.yaml"
    file.write_text(text)
    return comparisons.load(file)


def test_the_projects_own_are_those_that_were_published() -> None:
    found = comparisons.load(PROJECT / "config/comparisons.yaml")
    numbers = {comparison.id.removeprefix("bookinfo_shiver_").removesuffix("-first") for comparison in found}
    assert {str(number) for number in range(1, 20)} <= numbers
    assert all(comparison.app == "bookinfo" and comparison.hosts == ("shiver",) for comparison in found)


def test_titles_timestamps_and_exclusions_are_the_published_ones(shared: Path) -> None:
    with (shared / "prose/aggregates.csv").open(newline="") as file:
        graphs = {
            (row["title"], row["timestamps"], row["excludes"])
            for row in csv.DictReader(file)
            if row["graph"].startswith("bookinfo")
        }
    found = comparisons.load(PROJECT / "config/comparisons.yaml")
    declared = {
        (
            comparison.title.removesuffix(" – first version"),
            ";".join(comparison.timestamps),
            ";".join(comparison.exclude),
        )
        for comparison in found
    }
    assert graphs <= declared


def test_a_baseline_and_a_margin_of_its_own(tmp_path: Path) -> None:
    plain, told = load(tmp_path, ONE % "" + (ONE % ", baseline: istio, margin: 2%").replace("id: a", "id: b"))
    assert (plain.baseline, plain.margin, told.baseline, told.margin) == (None, None, "istio", 0.02)
    with pytest.raises(LoadstoneError, match="margin"):
        load(tmp_path, ONE % ", margin: 200%")


def test_no_file_and_an_empty_one_declare_nothing(tmp_path: Path) -> None:
    assert comparisons.load(tmp_path / "none.yaml") == []
    assert load(tmp_path, "# nothing yet\n") == []


def test_a_list_of_hosts_and_unquoted_numbers(tmp_path: Path) -> None:
    (found,) = load(tmp_path, ONE.replace("host: lab", "host: [lab, other]") % ", rates: [10, 0.5], allow: [hosts]")
    assert (found.hosts, found.rates, found.allow) == (("lab", "other"), (10.0, 0.5), {"hosts"})
    assert [str(campaign) for campaign in found.campaigns(tmp_path)] == [
        f"shop/{host}/2026-11-21T11:30:00+00:00" for host in ("lab", "other")
    ]
    assert found.takes("any", 10.0) and not found.takes("any", 20.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ONE % ", colour: red", "colour"),
        (ONE % ", allow: [everything]", "everything"),
        (ONE % ", rates: [0]", "rates"),
        (ONE.replace("id: a", "id: ../a") % "", "id"),
        (ONE.replace("id: a", "id: ''") % "", "id"),
        (ONE % "" + ONE.replace("id: a", "id: A") % "", "two comparisons have the id"),
        ("a: 1", "top level"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(LoadstoneError, match=said):
        load(tmp_path, text)
