"""Charts of CPU and memory, across load and over time."""

from collections.abc import Sequence

import altair as alt

from loadstone.config.variants import Style
from loadstone.report.charts.base import (
    SMALL_HEIGHT,
    Data,
    Load,
    colour,
    dashes,
    direct_labels,
    layered,
    load_axis,
    shapes,
)


def use_across_load(data: Data, styles: Sequence[Style], load: Load, title: str) -> alt.LayerChart:
    """CPU or memory across load: a line per variant, its spread over runs as a band.

    Rows: variant, label, load, value, low, high, interval, runs.
    """
    shown = alt.Tooltip("load:Q", title=load.title, format=",~r")
    return _used(data, styles, load_axis(load), shown, title, kind="load")


def use_over_time(data: Data, styles: Sequence[Style], title: str) -> alt.LayerChart:
    """The same over the time since the start of the test; rows with time (s) in place of load."""
    time = alt.X("time:Q", title="Time since the start of the test (s)", scale=alt.Scale(nice=False, zero=False))
    return _used(data, styles, time, alt.Tooltip("time:Q", title="Time (s)", format=",.4~r"), title, kind="other")


def _used(
    data: Data, styles: Sequence[Style], x: alt.X, where: alt.Tooltip, title: str, *, kind: str
) -> alt.LayerChart:
    base = alt.Chart(data).encode(x=x, color=colour(styles))
    used = alt.Y("value:Q", title=title, axis=alt.Axis(format=",.4~r"), scale=alt.Scale(domainMin=0))
    spread = base.transform_filter("isValid(datum.low)").encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    tooltip = [
        alt.Tooltip("label:N", title="Variant"),
        where,
        alt.Tooltip("value:Q", title=title, format=",.4~r"),
        alt.Tooltip("interval:N", title="Spread"),
        alt.Tooltip("runs:Q", title="Runs"),
    ]
    return layered(
        spread.mark_area(opacity=0.14),
        spread.mark_rule(opacity=0.65, strokeWidth=1.5),
        base.mark_line(strokeWidth=2).encode(y=used, **dashes(styles)),
        base.mark_point(filled=True, size=34, opacity=1).encode(y=used, tooltip=tooltip, **shapes(styles)),
        *direct_labels(styles),
        height=SMALL_HEIGHT,
        x=kind,
        y="other",
    )
