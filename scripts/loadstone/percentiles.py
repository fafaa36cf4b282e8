"""The statistics of latency: which percentiles tables have and pages show, and their names.

Tables of cells, comparisons and the choices of pages use these lists. Another name in `SHOWN_PERCENTILES` can be chosen
with intervals and verdicts; these are then corrected for more tests. Latency over time and the run inspector show a
few percentiles of their own. Columns are declared in ``tables/columns.yaml``.
"""

# Names of statistics.
MEAN, ERRORS, THROUGHPUT = "mean", "error_fraction", "throughput"

# Shares of the pooled requests of a cell, by the name of their columns: `p50_ns`, `p50_low_ns`, ...
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}

# Percentiles that readers can choose, that have verdicts, and that successful requests and time bins have too.
SHOWN_PERCENTILES = {name: PERCENTILES[name] for name in ("p50", "p90", "p99")}

# Percentiles that tables have of single runs, which tools report too.
RUN_PERCENTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}

LATENCIES = (MEAN, *SHOWN_PERCENTILES)
STATISTICS = (*LATENCIES, ERRORS)


def label(statistic: str) -> str:
    """In tables, on buttons and (in small letters) in sentences: ``Mean``, ``Median``, ``p90``, ``Error fraction``."""
    return _NAMES.get(statistic) or f"p{_percent(statistic)}"


def title(statistic: str) -> str:
    """In headings: ``Mean``, ``Median``, ``90th percentile``, ``99.9th percentile``, ``Error fraction``."""
    return _NAMES.get(statistic) or f"{_percent(statistic)}th percentile"


_NAMES = {MEAN: "Mean", "p50": "Median", ERRORS: "Error fraction"}


def _percent(statistic: str) -> str:
    """The number of a percentile by its name: ``99.9`` for ``p999``."""
    return statistic[1:3] + (f".{statistic[3:]}" if len(statistic) > 3 else "")
