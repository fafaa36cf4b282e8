"""Charts across load, and lines fitted over runs."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from loadstone.config.variants import Style
from loadstone.report.charts import Load
from loadstone.report.charts.base import (
    FAR,
    HEIGHT,
    KNEES,
    ROWS,
    RUNS,
    SMALL_HEIGHT,
    colour,
    dashes,
    direct_labels,
    latency_y,
    layered,
    load_axis,
    parameters,
    shapes,
    tooltips,
    within,
)

_HAS_SPREAD = "isValid(datum.low)"
_CROSS: dict[str, Any] = {"shape": "cross", "angle": 45, "filled": True, "size": 130, "opacity": 1}


def latency_across_load(styles: Sequence[Style], unit: str, load: Load) -> alt.LayerChart:
    """Latency across load: a line per variant, its spread or interval as a band; points without one are hollow.

    Rows: variant, label, load, value, low, high, estimable, interval, requests, runs, beyond and place (in words). A
    point beyond saturation is a cross; the saturation point is a dashed rule, its interval a bar at the bottom, both
    from rows of `KNEES`: variant, knee, low, high. Small points are single runs, rows of `RUNS`: variant, label, load,
    value, run, text.
    """
    knees = alt.Chart(KNEES).encode(color=colour(styles))
    x = load_axis(load)
    bottom = {"y": alt.value({"expr": "height - 6"}), "y2": alt.value("height")}
    band = knees.mark_rect(opacity=0.4).encode(x=_at(x, "low"), x2="high:Q", **bottom)
    rule = knees.mark_rule(opacity=0.8, strokeWidth=1.4, strokeDash=[5, 4]).encode(x=_at(x, "knee"))
    return _across_load(styles, unit, load, height=HEIGHT, title="Latency", below=[band, rule])


def _at(x: alt.X, field: str) -> alt.X:
    """The same axis for another field."""
    axis = x.copy()
    axis.shorthand = f"{field}:Q"
    return axis


def success_latency_across_load(styles: Sequence[Style], unit: str, load: Load) -> alt.LayerChart:
    """Latency of requests answered with 200; rows as for `latency_across_load`, hollow points are not estimable."""
    return _across_load(styles, unit, load, height=SMALL_HEIGHT, title="Latency of code 200")


def _across_load(
    styles: Sequence[Style],
    unit: str,
    load: Load,
    *,
    height: int,
    title: str,
    below: Sequence[alt.Chart] = (),
) -> alt.LayerChart:
    # Percentiles of successful requests have no interval.
    solid = _HAS_SPREAD if below else "datum.estimable"
    title = f"{title} ({unit})"
    latency = alt.Y("value:Q", title=title, axis=alt.Axis(format=",.4~r"))
    base = alt.Chart().encode(x=load_axis(load), color=colour(styles))
    spread = base.transform_filter(_HAS_SPREAD).encode(y=alt.Y("start:Q", title=title), y2="end:Q")
    tooltip = tooltips(
        label="Variant",
        load=load.title,
        value=f"Latency ({unit})",
        interval="Interval",
        requests="Requests",
        runs="Runs",
    )
    marked = base.encode(y=latency, tooltip=tooltip + (tooltips(place="Saturation point") if below else []))
    drawn_runs = alt.Chart(RUNS).transform_filter("datum.value >= lowest && datum.value <= highest")
    single = drawn_runs.encode(
        x=load_axis(load),
        y=alt.Y("value:Q", title=title),
        color=colour(styles),
        tooltip=tooltips(label="Variant", load=load.title, run="Run", text=f"Latency of the run ({unit})"),
    )
    crossed = [marked.transform_filter("datum.beyond").mark_point(**_CROSS)] if below else []
    chart = layered(
        *below,
        spread.mark_area(opacity=0.14),
        spread.mark_rule(opacity=0.65, strokeWidth=1.5),
        single.mark_point(filled=True, size=14, opacity=0.55).encode(**shapes(styles)),
        base.mark_line(strokeWidth=2).encode(y=latency, **dashes(styles)),
        marked.transform_filter(solid).mark_point(filled=True, size=46, opacity=1).encode(**shapes(styles)),
        marked.transform_filter(f"!{solid}")
        .mark_point(filled=False, fill="var(--paper)", strokeWidth=1.5, size=54, opacity=1)
        .encode(**shapes(styles)),
        *crossed,
        *direct_labels(styles),
        height=height,
        x="load",
        y="latency",
        data=ROWS,
    )
    # The interval of a few scattered runs can reach a thousand times every value, which would flatten the whole chart.
    values = "extent(pluck(data('rows'), 'value'))"
    lowest, highest = (f"{values}[0] > 0 ? {values}[0] / {FAR} : {values}[1] / 1000", f"{FAR} * {values}[1]")
    return chart.transform_calculate(
        start=f"{_HAS_SPREAD} ? max(datum.low, lowest) : null", end=f"{_HAS_SPREAD} ? min(datum.high, highest) : null"
    ).properties(params=parameters(within(lowest, highest)))


def share_across_load(styles: Sequence[Style], load: Load, title: str) -> alt.LayerChart:
    """Share of requests that failed, or that had one class of error, across load, with its spread over runs.

    Rows: variant, label, load, share (in percent, like low and high), low, high, interval.
    """
    share = alt.Y("share:Q", title=title, axis=alt.Axis(format=",.3~r"), scale=alt.Scale(domainMin=0))
    base = alt.Chart(ROWS).encode(x=load_axis(load), color=colour(styles))
    tooltip = tooltips(label="Variant", load=load.title, share=(title, ",.3~r"), interval="Spread")
    return layered(
        base.mark_rule(opacity=0.65, strokeWidth=1.5).encode(y=alt.Y("low:Q", title=title), y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(y=share, **dashes(styles)),
        base.mark_point(filled=True, size=46, opacity=1).encode(y=share, tooltip=tooltip, **shapes(styles)),
        *direct_labels(styles),
        height=SMALL_HEIGHT,
        x="load",
        y="other",
    )


def reported_across_load(styles: Sequence[Style], unit: str, load: Load) -> alt.LayerChart:
    """A latency of single runs across load as their tool reported it, a point per run; runs are not joined.

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
                value=(f"Latency ({unit})", ",.6~r"),
                evidence="Source",
            ),
        )
    )
    return layered(points, *direct_labels(styles), height=HEIGHT, x="load", y="latency")


def fit_line(styles: Sequence[Style], across: str, up: str) -> alt.LayerChart:
    """A line fitted over runs with the band of its mean, and the runs as points.

    Rows with `kind` ``run`` (variant, label, x, value, run, load) or ``line`` (x, line, low, high); `across` and `up`
    are the axes' titles.
    """
    base = alt.Chart(ROWS)
    x = alt.X("x:Q", title=[across], axis=alt.Axis(format=",~r"), scale=alt.Scale(nice=False, padding=12))

    def y(field: str) -> alt.Y:
        return alt.Y(field, title=[up], axis=alt.Axis(format=",.4~r"))

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
