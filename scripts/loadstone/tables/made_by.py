"""By what each table is made, for readers who follow a figure: SQL files first, then modules, below this package."""

from collections.abc import Mapping

_REQUESTS = "sql/series_requests.sql"
_READERS = "readers/"

MADE_BY: Mapping[str, tuple[str, ...]] = {
    "cells": ("sql/cells.sql", _REQUESTS, "tables/replicates.py"),
    "cells_all": ("sql/cells.sql", _REQUESTS, "tables/replicates.py"),
    "claims": ("sql/claims_runs.sql", "sql/claims_missing.sql", "tables/claims/"),
    "comparisons": (
        "sql/comparison_summaries.sql",
        "sql/comparison_derived.sql",
        "sql/comparison_pooled.sql",
        "sql/cells.sql",
        "tables/compare.py",
    ),
    "effects": (_REQUESTS, "tables/effects.py", "stats/contrasts.py"),
    "error_causes": ("sql/error_causes.sql", "sql/error_causes_reported.sql", "tables/error_causes.py"),
    "failures": ("failures.py", "tables/cell.py"),
    "figures": (_READERS,),
    "fits": ("sql/comparison_points.sql", "tables/fits.py", "stats/lines.py"),
    "generators": ("generators.py",),
    "histograms": (_READERS,),
    "history": ("sql/history_cells.sql", "tables/history.py", "stats/history.py"),
    "incidents": ("readers/run_record.py", "tables/cell.py"),
    "interactions": (_REQUESTS, "tables/layers.py", "stats/interaction.py"),
    "knee_shares": (_REQUESTS, "tables/saturation.py", "stats/equal_share.py"),
    "knees": (_REQUESTS, "tables/saturation.py", "stats/saturation.py"),
    "layers": (_REQUESTS, "tables/layers.py"),
    "percentile_curves": ("sql/percentile_curves.sql", _REQUESTS, "tables/pictured.py"),
    "planned": ("tables/cell.py",),
    "problems": ("tables/cell.py", "tables/mismatch.py"),
    "requests": (_READERS, "tables/requests.py", "tables/error_class.py"),
    "resource_usage": ("sql/resource_usage.sql",),
    "resources": (_READERS,),
    "run_figures": ("sql/run_figures.sql", "tables/pictured.py"),
    "run_shapes": ("sql/run_latencies.sql", "tables/run_shapes.py", "stats/run_shape.py"),
    "runs": ("sql/runs.sql", "tables/analyse.py", "tables/exclusion.py"),
    "senders": ("sql/senders.sql", "tables/senders.py"),
    "sending": ("sql/sending.sql", "tables/sending.py"),
    "spans": ("readers/jaeger.py", "tables/span_times.py"),
    "suggestions": ("tables/suggest.py",),
    "summaries": (_READERS, "tables/run_files.py"),
    "time_bins": ("sql/time_bins.sql", "tables/pictured.py"),
    "trace_shares": ("sql/trace_shares.sql", "tables/traces.py"),
}
