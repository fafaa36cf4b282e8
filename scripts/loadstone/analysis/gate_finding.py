"""What the gate finds of one figure, and how it says so."""

from dataclasses import dataclass

from loadstone.analysis.cell_figures import ERRORS
from loadstone.text import rate_text

WORSE, NO_WORSE, INCONCLUSIVE = "worse", "no worse", "inconclusive"
RUNS, REFERENCE = "runs", "reference"


@dataclass(frozen=True)
class Finding:
    """One figure of the candidate, and why nothing is told of it, if so.

    Latencies are in ns, and `change`, its interval and `allowed` ratios; of ``error_fraction`` all are shares. `low`
    and `high` are one-sided bounds: what is worse has `low` above `allowed`, what is no worse has `high` below it.
    `missing`: ``runs`` where the candidate has none that count, ``reference`` where no earlier campaign has the figure.
    `at_least`: the value falls among requests that timed out, so that it, `change` and `low` are the least that they
    may be, and there is no `high`; `reference_at_least`: the reference's does, so that change and `high` are the most.
    `unit`: what `rate` counts, requests/s or users. `days_unknown`: too few earlier campaigns tell by how much
    campaigns differ of themselves, so that what is allowed alone makes up for it.
    """

    app: str
    host: str
    candidate: str
    variant: str
    rate: float
    statistic: str
    verdict: str
    why: str | None = None
    missing: str | None = None
    reference: str | None = None
    value: float | None = None
    reference_value: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    allowed: float | None = None
    p_worse: float | None = None
    at_least: bool = False
    reference_at_least: bool = False
    unit: str = "requests/s"
    days_unknown: bool = False

    @property
    def campaign(self) -> tuple[str, str, str]:
        """Which is judged."""
        return self.app, self.host, self.candidate

    def text(self) -> str:
        """In words."""
        what = f"{self.app}/{self.host}: {self.variant} at {rate_text(self.rate)} {self.unit}, {self.statistic}"
        if self.value is None or self.reference_value is None or self.change is None or self.allowed is None:
            return f"{what}: {self.why}"
        if self.statistic == ERRORS:
            points = number(100 * abs(self.change))
            apart = f"{points} percentage points {'apart' if points == '0' else 'less' if self.change < 0 else 'more'}"
            bounds = self._bounds(100)
            return (
                f"{what}: {percent(self.value)} instead of {percent(self.reference_value)} in {self.reference}, "
                f"{apart} ({bounds})"
            )
        value, before = (
            f"{'at least ' if least else ''}{number(figure_ns / 1e6, 4)} ms"
            for least, figure_ns in ((self.at_least, self.value), (self.reference_at_least, self.reference_value))
        )
        least = "at least " if self.at_least else "at most " if self.reference_at_least else ""
        told = f"{least}{number(self.change)} times ({self._bounds()})"
        if least:
            told += f": {self.why}"
        return f"{what}: {value} instead of {before} in {self.reference}, {told}"

    def _bounds(self, unit: float = 1) -> str:
        """The interval, and what is allowed."""
        allowed = unit * (self.allowed or 0)
        low, high = (None if each is None else _beside(unit * each, allowed) for each in (self.low, self.high))
        told = f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
        return f"{told}; allowed {number(allowed)}"


def number(value: float, digits: int = 3) -> str:
    """For reading, rounded to significant digits: never ``3e+04``, but ``30,000``."""
    return rate_text(round(float(f"{value:.{digits}g}"), 9) + 0.0)


def percent(share: float) -> str:
    """A share for reading."""
    return f"{number(100 * share)} %"


def failures(share: float) -> str:
    """What latencies are of where so large a share of requests failed."""
    return "failures" if share == 1 else "failures too"


def _beside(value: float, allowed: float) -> str:
    """With as many digits as show on which side of what is allowed it lies."""
    texts = [number(value, digits) for digits in range(3, 10)]
    return next((text for text in texts if text != number(allowed)), texts[0])
