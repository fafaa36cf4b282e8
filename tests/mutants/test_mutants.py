"""Each fault of `make mutate` can be put in, the tests that shall notice it exist, and each promise has a fault."""

import re

import pytest
from mutants.mutations import MUTANTS, Mutant
from mutants.run import ROOT, place_of

FAULTS = [mutant for found in MUTANTS.values() for mutant in found]


def promised() -> dict[str, set[str]]:
    """The tests that tests/README.md names for each of its promises."""
    found: dict[str, set[str]] = {}
    promise = ""
    for line in (ROOT / "tests/README.md").read_text().splitlines():
        if row := re.match(r"\| (?:([^|]+) )?\| ([\w/]+\.py(?:::\w+)?) \|", line):
            promise = row[1] or promise
            found.setdefault(promise, set()).add(row[2])
    return found


@pytest.mark.parametrize("mutant", FAULTS, ids=lambda mutant: mutant.rule.replace(" ", "-"))
def test_a_fault_has_one_place_and_tests_that_exist(mutant: Mutant) -> None:
    place = place_of(mutant)
    assert place.is_file() and not place.is_relative_to(ROOT / "tests")
    assert mutant.before != mutant.after
    for test in mutant.tests:
        file, _, name = test.partition("::")
        path = ROOT / "tests" / file
        assert path.exists()
        assert not name or f"\ndef {name}(" in path.read_text()


def test_each_rule_is_broken_once() -> None:
    assert len({mutant.rule for mutant in FAULTS}) == len(FAULTS) >= 120


def test_each_promise_has_a_fault_that_its_own_tests_notice() -> None:
    named = promised()
    assert len(named) > 80
    assert MUTANTS.keys() == named.keys()
    without = [
        promise for promise, found in MUTANTS.items() if not any(named[promise] >= {*each.tests} for each in found)
    ]
    assert without == []
