"""Statistics: arrays in, numbers out. Nothing here knows of tables, files or pages."""

from pathlib import Path

from loadstone.stats.bootstrap import (
    Interval,
    Replicates,
    Sample,
    censoring,
    estimable,
    interval,
    replicate,
    requests_needed,
    seed,
    standard_error,
    t_factor,
)

__all__ = [
    "CODE",
    "Interval",
    "Replicates",
    "Sample",
    "censoring",
    "estimable",
    "interval",
    "replicate",
    "requests_needed",
    "seed",
    "standard_error",
    "t_factor",
]

# Everything that a figure depends on, other than its data.
CODE = [module.read_text("utf-8") for module in sorted(Path(__file__).parent.glob("*.py"))]
