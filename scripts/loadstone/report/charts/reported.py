"""Charts of what tools reported of single runs, and of lines fitted over runs."""

from collections.abc import Sequence

import altair as alt

from loadstone.config.variants import Style
from loadstone.report.charts.base import (
    HEIGHT,
    ROWS,
    SMALL_HEIGHT,
    Load,
    colour,
    dashes,
    direct_labels,
    latency_y,
    layered,
    load_axis,
    shapes,
    tooltips,
    wrapped,
)
from loadstone.report.numbers import Unit


def reported_across_load(styles: Sequence[Style], unit: Unit, load: Load) -> alt.LayerChart:
    """A latency of single runs across load as their tool reported it, a point per run. No line joins runs.

    Rows: variant, label, load, value, run, evidence.
    """
    points = (
        alt.Chart(ROWS)
        .mark_point(filled=True, size=64, opacity=0.85)
        .encode(
            x=load_axis(load),
            y=latency_y(unit),
            color=colour(styles),
            **shapes(styles),
            tooltip=tooltips(
                label="Variant",
                load=load.title,
                run="Run",
                value=(f"Latency ({unit.symbol})", ",.6~r"),
                evidence="Source",
            ),
        )
    )
    return layered(points, *direct_labels(styles), height=HEIGHT, x="load", y="latency")


def percentile_curves(styles: Sequence[Style], unit: Unit) -> alt.LayerChart:
    """Latency by percentile, a line per run. The axis of percentiles has nines at equal distances.

    Rows: variant, label, series (one run), beyond (1 / the share of requests that took longer), share (%), value.
    """
    nines = alt.X(
        "beyond:Q",
        title="Percentile",
        scale=alt.Scale(type="log", nice=False, domainMin=1),
        axis=alt.Axis(
            values=[1, 2, 10, 100, 1000, 10_000, 100_000, 1_000_000],
            labelExpr="'p' + format(100 - 100 / datum.value, '.6~r')",
        ),
    )
    base = alt.Chart(ROWS).encode(x=nines, color=colour(styles), detail="series:N")
    latency = latency_y(unit)
    tooltip = tooltips(
        label="Variant",
        series="Run",
        share="Share of requests (%)",
        value=f"Latency at most ({unit.symbol})",
    )
    return layered(
        base.mark_line(strokeWidth=2, interpolate="step-before").encode(y=latency, **dashes(styles)),
        base.mark_point(filled=True, size=20, opacity=0.9).encode(y=latency, tooltip=tooltip, **shapes(styles)),
        *direct_labels(styles),
        height=HEIGHT,
        x="fixed",
        y="latency",
    )


def fit_line(styles: Sequence[Style], across: str, up: str) -> alt.LayerChart:
    """A line fitted over runs with the band of its mean, and the runs as points.

    Rows with `kind` ``run`` (variant, label, x, value, run, load) or ``line`` (x, line, low, high); `across` and `up`
    are the axes' titles.
    """
    base = alt.Chart(ROWS)
    x = alt.X("x:Q", title=wrapped(across), axis=alt.Axis(format=",~r"), scale=alt.Scale(nice=False, padding=12))

    def y(field: str) -> alt.Y:
        return alt.Y(field, title=wrapped(up), axis=alt.Axis(format=",.4~r"))

    line = base.transform_filter("datum.kind == 'line'").encode(x=x)
    points = base.transform_filter("datum.kind == 'run'").encode(x=x)
    return layered(
        line.mark_area(opacity=0.16, fill="var(--run)").encode(y=y("low:Q"), y2="high:Q"),
        line.mark_line(stroke="var(--run)", strokeWidth=2).encode(y=y("line:Q")),
        points.mark_point(filled=True, size=52, opacity=0.9).encode(
            y=y("value:Q"),
            color=colour(styles),
            **shapes(styles),
            tooltip=tooltips(label="Variant", load=("Load", None), run="Run", x=across, value=(up, ",.6~r")),
        ),
        height=SMALL_HEIGHT,
        x="fixed",
        y="fixed",
    )
