"""By what each table is made, for readers who follow a figure: SQL files first, then modules, below this package."""

from collections.abc import Mapping

_MEASURED = "sql/measured_requests.sql"
_REQUESTS = "sql/series_requests.sql"
_READERS = "readers/"

MADE_BY: Mapping[str, tuple[str, ...]] = {
    "cells": ("sql/cells.sql", _MEASURED, _REQUESTS, "analysis/replicates.py"),
    "cells_all": ("sql/cells.sql", _MEASURED, _REQUESTS, "analysis/replicates.py"),
    "claims": ("sql/claims_runs.sql", "sql/claims_missing.sql", "analysis/caveats/"),
    "comparisons": (
        "sql/comparison_summaries.sql",
        "sql/comparison_derived.sql",
        "sql/cells.sql",
        _MEASURED,
        "analysis/comparison.py",
    ),
    "effects": (_REQUESTS, "analysis/effects.py", "stats/contrasts.py"),
    "error_causes": ("sql/error_causes.sql", _MEASURED, "sql/error_causes_reported.sql", "analysis/error_causes.py"),
    "failures": ("archive/run_records.py", "tables/convert.py"),
    "figures": (_READERS,),
    "fits": ("sql/comparison_points.sql", "analysis/fits.py", "stats/lines.py"),
    "generators": ("readers/load_generators.py",),
    "histograms": (_READERS,),
    "history": ("sql/history_cells.sql", "analysis/history.py", "stats/history.py"),
    "incidents": ("archive/run_records.py", "tables/convert.py"),
    "interactions": (_REQUESTS, "analysis/layers.py", "stats/interaction.py"),
    "knee_shares": (_REQUESTS, "analysis/saturation.py", "stats/saturation.py"),
    "knees": (_REQUESTS, "analysis/saturation.py", "stats/saturation.py"),
    "layers": (_REQUESTS, "analysis/layers.py"),
    "percentile_curves": ("sql/percentile_curves.sql", _MEASURED, "analysis/distributions.py"),
    "planned": ("tables/convert.py",),
    "problems": ("tables/convert.py", "analysis/campaign_checks.py"),
    "requests": (_READERS, "tables/requests.py"),
    "resource_usage": ("sql/resource_usage.sql",),
    "resources": (_READERS,),
    "run_figures": ("sql/run_figures.sql", _MEASURED, "analysis/distributions.py"),
    "run_shapes": ("sql/run_latencies.sql", _MEASURED, "analysis/run_behaviour.py", "stats/run_shape.py"),
    "runs": ("sql/runs.sql", _MEASURED, "analysis/campaign.py", "tables/exclusion.py"),
    "senders": ("sql/senders.sql", _MEASURED, "analysis/run_behaviour.py"),
    "sending": ("sql/sending.sql", _MEASURED, "analysis/run_behaviour.py"),
    "spans": ("readers/jaeger.py", "tables/traces.py"),
    "suggestions": ("analysis/campaign_checks.py",),
    "summaries": (_READERS, "tables/run_files.py"),
    "time_bins": ("sql/time_bins.sql", _MEASURED, "analysis/distributions.py"),
    "trace_shares": ("sql/trace_shares.sql", "tables/traces.py"),
}
