"""The faults that the tests must notice, by the promise of tests/README.md that each breaks.

Of each promise at least one fault must be noticed by the tests that README names for it. Others name narrower tests.
"""

from mutants import conclusions, faults, invariants, pages, use
from mutants.mutant import Mutant

MUTANTS: dict[str, tuple[Mutant, ...]] = (
    invariants.MUTANTS | conclusions.MUTANTS | pages.MUTANTS | faults.MUTANTS | use.MUTANTS
)
