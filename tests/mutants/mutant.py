"""One fault (`Mutant`)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One fault; `rule` is what the code keeps to without it, `tests` are test ids below ``tests/``.

    `before` stands once in the file `where`, or in the Python and SQL files below that folder; `after` takes its place.
    """

    rule: str
    before: str
    after: str
    tests: tuple[str, ...]
    where: str = "scripts/loadstone"
