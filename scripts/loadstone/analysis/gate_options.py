"""What `gate:` of the configuration says, as the gate takes it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadstone import config
from loadstone.analysis.cell_figures import ERRORS


@dataclass(frozen=True)
class Options:
    """What `gate:` of the configuration says. `ratio` and `error_fraction` are allowed, `runs` are needed.

    `reference` is ``previous``, ``best of last N`` or a timestamp, `candidate` ``newest`` or a timestamp. `margin` is
    the least step that makes another level of earlier campaigns.
    """

    reference: str
    candidate: str
    statistics: tuple[str, ...]
    ratio: float
    error_fraction: float
    runs: int
    cannot_tell: str
    overrides: tuple[Mapping[str, Any], ...]
    margin: float
    confidence: float

    @property
    def last(self) -> int:
        """How many earlier campaigns a cell is compared with."""
        return int(self.reference.rpartition(" ")[2]) if self.reference.startswith("best of last ") else 1

    def allowed(self, cell: Mapping[str, Any], statistic: str) -> float:
        """How far a figure may be from the reference, on the scale of comparison; the last override counts."""
        of = {"ratio": self.ratio, ERRORS: self.error_fraction}
        for override in self.overrides:
            if all(cell[name] == override.get(name, cell[name]) for name in ("app", "variant")):
                of |= {name: config.share(override[name]) for name in of if name in override}
        return of[ERRORS] if statistic == ERRORS else math.log(of["ratio"])


def options(declared: Mapping[str, Any], margin: float = 0.05, confidence: float = 0.95) -> Options:
    """From the checked configuration: its `gate`, and two of its `analysis`."""
    found = dict(declared)
    found["error_fraction"] = config.share(found["error_fraction"])
    found |= {name: tuple(found[name]) for name in ("statistics", "overrides")}
    return Options(**found, margin=margin, confidence=confidence)
