"""Statistics: arrays in, numbers out. Nothing here knows of tables, files or pages."""

from pathlib import Path

from loadstone.stats.bootstrap import (
    Interval,
    Replicates,
    Sample,
    interval,
    replicate,
    seed,
    standard_error,
    t_factor,
)
from loadstone.stats.latencies import Latencies, estimable, is_lower_bound, requests_needed

__all__ = [
    "CODE",
    "Interval",
    "Latencies",
    "Replicates",
    "Sample",
    "estimable",
    "interval",
    "is_lower_bound",
    "replicate",
    "requests_needed",
    "seed",
    "standard_error",
    "t_factor",
]

# Everything that a figure depends on, other than its data.
CODE = [module.read_text("utf-8") for module in sorted(Path(__file__).parent.glob("*.py"))]
