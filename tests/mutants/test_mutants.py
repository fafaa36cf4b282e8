"""Each fault of `make mutate` can be put in, and the tests that shall notice it exist."""

from pathlib import Path

import pytest
from mutants.mutations import MUTANTS, Mutant
from mutants.run import ROOT, place_of


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.promise.replace(" ", "-"))
def test_a_fault_has_one_place_and_tests_that_exist(mutant: Mutant) -> None:
    assert place_of(mutant).is_file()
    assert mutant.before != mutant.after
    for test in mutant.tests:
        file, _, name = test.partition("::")
        path = ROOT / "tests" / file
        assert path.exists()
        assert not name or f"\ndef {name}(" in path.read_text()


def test_every_promise_is_broken_once() -> None:
    assert len({mutant.promise for mutant in MUTANTS}) == len(MUTANTS) >= 40
    assert all(Path(mutant.where).parts[0] == "scripts" for mutant in MUTANTS)
