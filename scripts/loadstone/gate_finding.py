"""What the gate finds of one figure, and how it says so."""

from dataclasses import dataclass

from loadstone.tables.figures_of_cells import ERRORS


@dataclass(frozen=True)
class Finding:
    """One figure of the candidate, and why nothing is told of it, if so.

    Latencies are in ns, and `change`, its interval and `allowed` ratios; of ``error_fraction`` all are shares.
    `at_least`: the value falls among requests that timed out, so that it, `change` and `low` are the least that they
    may be, and there is no `high`; `reference_at_least`: the reference's does, so that change and `high` are the most.
    """

    app: str
    host: str
    candidate: str
    variant: str
    rate: float
    statistic: str
    verdict: str
    why: str | None = None
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

    def text(self) -> str:
        """In words."""
        what = f"{self.app}/{self.host}: {self.variant} at {self.rate:g} requests/s, {self.statistic}"
        if self.value is None or self.reference_value is None:
            return f"{what}: {self.why}"
        if self.statistic == ERRORS:
            return (
                f"{what}: {_percent(self.value)} instead of {_percent(self.reference_value)} in {self.reference}, "
                f"{_percent(self.change)} more ({_percent(self.low)} to {_percent(self.high)}; "
                f"allowed {_percent(self.allowed)})"
            )
        value, before = (
            f"{'at least ' if least else ''}{figure_ns / 1e6:.4g} ms"
            for least, figure_ns in ((self.at_least, self.value), (self.reference_at_least, self.reference_value))
        )
        if self.at_least:
            told = f"at least {self.change:.3g} times (at least {self.low:.3g}; allowed {self.allowed:.3g}): {self.why}"
        elif self.reference_at_least:
            told = f"at most {self.change:.3g} times (at most {self.high:.3g}; allowed {self.allowed:.3g}): {self.why}"
        else:
            told = f"{self.change:.3g} times ({self.low:.3g} to {self.high:.3g}; allowed {self.allowed:.3g})"
        return f"{what}: {value} instead of {before} in {self.reference}, {told}"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.3g} %"
