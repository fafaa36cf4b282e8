"""From raw files to Parquet tables, statistics and the DuckDB file.

``convert`` reads raw files, cell by cell; ``analyse`` judges runs and computes statistics from those tables alone;
``database`` puts views over everything.
"""

# Part of every table's identity. Raise it when columns change, or what is in them for the same raw files: everything is
# then converted again. A reader of a further format needs nothing: cells with such files are converted anyway.
VERSION = 17

# Which tables there are, by who writes them. The workflow asks for these names only: `schema` has their columns.

# Tables of which every cell has its own file.
OF_CELLS = ("requests", "figures", "histograms", "resources")

# Further tables of conversion, with one file per campaign; and those of a trace dump.
OF_LISTINGS = ("summaries", "incidents", "planned", "failures", "problems", "facts")
OF_DUMPS = ("spans", "trace_shares", "problems")

# Tables that are not partitioned by campaign: a comparison has a file of each, generators and history have one.
PLAIN = ("comparisons", "fits", "generators", "history")

# Tables about a scope: a campaign (a file in its folder) or a comparison (its own file).
SCOPED = (
    "effects",
    "knees",
    "knee_shares",
    "layers",
    "interactions",
    "claims",
    "time_bins",
    "percentile_curves",
)

# What analysis writes for every campaign, and for every comparison: the workflow waits for these.
OF_RUNS = ("run_shapes", "sending", "senders", "run_figures")
ANALYSED = ("runs", "cells", "cells_all", "suggestions", "error_causes", *OF_RUNS, "replicates", *SCOPED)
COMPARED = ("comparisons", "fits", *SCOPED)
