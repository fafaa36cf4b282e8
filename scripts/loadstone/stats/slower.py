"""Is a figure of a later campaign worse than an earlier one's by more than is allowed?

Runs of two campaigns have no partners: the difference of two figures (of logarithms, where ratios count) is judged by
Welch's t with Satterthwaite's degrees of freedom, as in `loadstone.stats.contrasts`. Where earlier campaigns have told
by how much campaigns of one level differ beyond their runs, that variance is added for both. Two one-sided tests: that
the difference is above what is allowed (worse), and that it is below (no worse: non-inferiority; Walker & Nowacki 2011,
"Understanding Equivalence and Noninferiority Testing", J. General Internal Medicine 26(2)). Neither: it cannot be told.
"""

from dataclasses import dataclass

from loadstone.stats.bootstrap import t_factor

_TINY = 1e-12


@dataclass(frozen=True)
class Difference:
    """`shift` from the earlier figure to the later one, its standard `error`, and the degrees of freedom of that."""

    shift: float
    error: float
    freedom: float

    def bounds(self, above: float, below: float) -> tuple[float, float]:
        """The shifts that are allowed as far as tests go: those with `p_above` and `p_below` of at least so much."""
        down, up = (t_factor(1 - 2 * level, self.freedom) * self.error for level in (above, below))
        return self.shift - down, self.shift + up

    def p_above(self, allowed: float) -> float:
        """How often chance alone would give as much where the true shift is just what is allowed."""
        return self._student(allowed - self.shift)

    def p_below(self, allowed: float) -> float:
        """How often chance alone would give as little there."""
        return self._student(self.shift - allowed)

    def _student(self, distance: float) -> float:
        from scipy.special import stdtr  # noqa: PLC0415 - as in bootstrap.py

        return float(stdtr(self.freedom, distance / (self.error + _TINY)))


def difference(
    earlier: tuple[float, float, float], later: tuple[float, float, float], between: tuple[float, float] = (0.0, 0.0)
) -> Difference:
    """From two figures, each with its standard error and that one's degrees of freedom.

    `between` is the variance between campaigns of one level and its degrees of freedom.
    """
    parts = [(error**2, freedom) for _, error, freedom in (earlier, later)]
    if between[0] > 0:
        parts.append((2 * between[0], between[1]))
    variance = sum(part for part, _ in parts)
    below = sum(part**2 / freedom for part, freedom in parts)
    fewest = min(freedom for _, freedom in parts)
    return Difference(later[0] - earlier[0], variance**0.5, variance**2 / below if below > 0 else fewest)
