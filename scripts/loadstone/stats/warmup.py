"""How many requests at the start of a run differ from the rest."""

import numpy as np
from numpy.typing import NDArray

_BATCH = 5


def mser(latencies_ns: NDArray[np.int64]) -> int | None:
    """How many requests to leave out at the start, by MSER-5; None where the run does not settle in its first half.

    White 1997, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6), on means
    of five (White, Cobb & Spratt 2000): what is left out makes the standard error of the mean of the rest least. That a
    minimum in the second half means that no steady state was seen is of Hoad, Robinson & Davies 2010, "Automating
    warm-up length estimation", Journal of the Operational Research Society 61.
    """
    batches = latencies_ns.size // _BATCH
    if batches < 2 * _BATCH:
        return None
    means = latencies_ns[: batches * _BATCH].reshape(batches, _BATCH).mean(axis=1)
    rest = np.arange(batches, 0, -1)
    total, squares = (np.cumsum(values[::-1])[::-1] for values in (means, means**2))
    error = (squares / rest - (total / rest) ** 2) / rest
    left_out = int(error[: batches - _BATCH].argmin())
    return left_out * _BATCH if left_out < batches // 2 else None
