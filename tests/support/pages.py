"""Pages of figures whose truth is known: runs of a baseline and of variants at several rates, as numbers."""

from dataclasses import dataclass

import numpy as np
from loadstone.stats.contrasts import Contrast, contrast_of_runs, pool_errors

LIKE, UNLIKE, BY_RATE, ONE_RATE, ONE_CELL = "like", "unlike", "by rate", "one rate", "one cell"
ONE_VARIANT = "one variant"
SPREADS = (LIKE, UNLIKE, BY_RATE, ONE_RATE, ONE_CELL)


@dataclass(frozen=True)
class Pages:
    """Variants beside a baseline at some rates, each of `runs`; `spread` is by how much runs differ (a share).

    `spreads` says how that differs: not at all; by a factor of 1.65 (one standard deviation) between cells, or of 2
    between rates; four times as much at one rate, or in one cell; ten times as much of one variant. The figures of a
    run resemble each other. The baseline may have `baseline_runs`.
    """

    variants: int = 2
    rates: int = 3
    runs: int = 3
    spread: float = 0.1
    spreads: str = LIKE
    paired: bool = True
    factor: float = 1.0
    figures: int = 4
    baseline_runs: int | None = None

    def drawn(self, generator: np.random.Generator) -> list[Contrast]:
        """All contrasts of one page, with their spreads pooled within each figure."""
        shape = (self.rates, self.variants + 1)
        sigma = self.spread * np.ones(shape)
        if self.spreads == UNLIKE:
            sigma *= np.exp(0.5 * generator.normal(size=shape))
        if self.spreads == BY_RATE:
            sigma *= np.exp(0.7 * generator.normal(size=(self.rates, 1)))
        if self.spreads == ONE_RATE:
            sigma[generator.integers(self.rates)] *= 4
        if self.spreads == ONE_CELL:
            sigma[generator.integers(self.rates), 1 + generator.integers(self.variants)] *= 4
        if self.spreads == ONE_VARIANT:
            sigma[:, 1 + generator.integers(self.variants)] *= 10
        runs = max(self.runs, self.baseline_runs or 0)
        of_run = generator.normal(size=(*shape, runs, 1))
        own = generator.normal(size=(*shape, runs, self.figures))
        block = 0.2 * generator.normal(size=(self.rates, 1, runs, 1)) if self.paired else 0.0
        logs = block + sigma[..., None, None] * (np.sqrt(0.8) * of_run + np.sqrt(0.2) * own)
        logs[:, 1:] += np.log(self.factor)
        found = []
        for figure in range(self.figures):
            levels = np.exp(logs[..., figure])
            one = [
                (
                    contrast_of_runs(
                        at[0][: self.baseline_runs], other[: self.runs], paired=self.paired, confidence=0.95
                    ),
                    variant,
                )
                for at in levels
                for variant, other in enumerate(at[1:])
            ]
            known = [(each, variant) for each, variant in one if each]
            found += pool_errors([each for each, _ in known], [variant for _, variant in known])
        return found
