"""Charts of what happened during runs: latency over time, requests one by one, resource usage, traces."""

from collections.abc import Sequence

import altair as alt

from loadstone.config.variants import Style
from loadstone.report.charts import Load
from loadstone.report.charts.base import (
    ROWS,
    SMALL_HEIGHT,
    axes,
    colour,
    dashes,
    direct_labels,
    latency_y,
    layered,
    load_axis,
    shapes,
    tooltips,
)


def latency_over_time(styles: Sequence[Style], unit: str) -> alt.LayerChart:
    """One statistic of latency per time bin since the start of the test, a line per variant; the warm-up is shaded.

    Rows: variant, label, phase (test or warmup), time (the bin's middle, s), value, text, requests.
    """
    title = "Time since the start of the test (s)"
    time = alt.X("time:Q", title=title, scale=alt.Scale(nice=False, zero=False))
    base = alt.Chart(ROWS).encode(x=time, color=colour(styles))
    latency = latency_y(unit)
    points = base.encode(
        y=latency,
        tooltip=tooltips(
            label="Variant",
            phase="Phase",
            time="Time (s)",
            text=f"Latency ({unit})",
            requests="Requests",
        ),
    )
    warmup = (
        alt.Chart(ROWS)
        .transform_filter("datum.phase == 'warmup'")
        .transform_aggregate(first="min(start)", last="max(end)")
    )
    shade = warmup.transform_filter("isValid(datum.first)").encode(x=alt.X("first:Q", title=title))
    return layered(
        shade.mark_rect(fill="var(--shade)", opacity=1).encode(x2="last:Q"),
        # Above the plot, where it crosses no line.
        shade.mark_text(align="left", baseline="bottom", dy=-4, fill="var(--ink-soft)", fontSize=11).encode(
            text=alt.value("warm-up"), y=alt.value(0)
        ),
        base.mark_line(strokeWidth=1.75).encode(y=latency, detail="phase:N", **dashes(styles)),
        points.mark_point(filled=True, size=22, opacity=0.9).encode(**shapes(styles)),
        *direct_labels(styles),
        height=SMALL_HEIGHT,
        x="other",
        y="latency",
    )


def run_distribution(unit: str) -> alt.LayerChart:
    """Distribution of one run: the share (%) of its requests that took at most a latency.

    Rows: latency, share.
    """
    latency = alt.X("latency:Q", title=f"Latency ({unit})", axis=alt.Axis(format=",.4~r"))
    base = alt.Chart(ROWS).encode(x=latency)
    share = alt.Y("share:Q", title="Requests that took at most this long (%)", scale=alt.Scale(domain=[0, 100]))
    tooltip = tooltips(share=("Share of requests (%)", ".4~r"), latency=f"Latency at most ({unit})")
    line = base.mark_line(stroke="var(--run)", strokeWidth=2).encode(y=share)
    points = base.mark_point(filled=True, fill="var(--run)", size=16, opacity=0.9).encode(y=share, tooltip=tooltip)
    return layered(line, points, height=SMALL_HEIGHT, x="latency", y="other")


def run_requests(unit: str) -> alt.LayerChart:
    """Latency of every request of one run, in order; failed ones are crosses.

    Rows: number, latency, failed, outcome.
    """
    base = alt.Chart(ROWS).encode(
        x=_request_number(),
        y=latency_y(unit, "latency"),
        tooltip=tooltips(number="Request", latency=f"Latency ({unit})", outcome="Outcome"),
    )
    good = base.transform_filter("!datum.failed").mark_point(filled=True, fill="var(--run)", size=12, opacity=0.7)
    failed = base.transform_filter("datum.failed").mark_point(
        shape="cross", filled=True, fill="var(--bad)", angle=45, size=46, opacity=0.9
    )
    return layered(good, failed, height=SMALL_HEIGHT, x="other", y="latency")


def run_request_bins(unit: str) -> alt.LayerChart:
    """Latency of one run in bins of consecutive requests: minimum to maximum, median and 99th percentile.

    Rows: number (the bin's middle), first, last, min, p50, p99 (null: not estimable), p99_text, max, failed.
    """
    base = alt.Chart(ROWS).encode(
        x=_request_number(),
        tooltip=tooltips(
            first="First request",
            last="Last request",
            min=f"Minimum ({unit})",
            p50=f"Median ({unit})",
            max=f"Maximum ({unit})",
            p99_text=f"99th percentile ({unit})",
            failed="Failed requests",
        ),
    )
    title = f"Latency ({unit})"
    extent = base.mark_rule(stroke="var(--run)", opacity=0.3, strokeWidth=2).encode(
        y=latency_y(unit, "min"), y2="max:Q"
    )
    tail = base.mark_line(stroke="var(--run)", strokeWidth=1.25, strokeDash=[4, 3]).encode(
        y=alt.Y("p99:Q", title=title)
    )
    median = base.mark_line(stroke="var(--run)", strokeWidth=2.25).encode(y=alt.Y("p50:Q", title=title))
    return layered(extent, tail, median, height=SMALL_HEIGHT, x="other", y="latency")


def run_histogram(unit: str) -> alt.Chart:
    """How many requests of one run fell into each range of latency. Rows: low, high, count."""
    bars: alt.Chart = (
        alt.Chart(ROWS, width="container", height=SMALL_HEIGHT, usermeta=axes("latency", "other"))
        .mark_rect(fill="var(--run)", opacity=0.85, stroke="var(--paper)", strokeWidth=0.75)
        .encode(
            x=alt.X(
                "low:Q",
                title=f"Latency ({unit})",
                axis=alt.Axis(format=",.4~r"),
                scale=alt.Scale(nice=False, zero=False),
            ),
            x2="high:Q",
            y=alt.Y("count:Q", title="Requests", axis=alt.Axis(format=",~r", tickMinStep=1)),
            y2=alt.datum(0),
            tooltip=tooltips(low=f"From ({unit})", high=f"To ({unit})", count="Requests"),
        )
    )
    return bars


def _request_number() -> alt.X:
    return alt.X(
        "number:Q", title="Request number", axis=alt.Axis(format=",~r"), scale=alt.Scale(nice=False, zero=False)
    )


# --- Traces -----------------------------------------------------------------------------------------------------------


def share_of_response() -> alt.LayerChart:
    """How much of the response's time services and operations took, spread over traces: one line each.

    Rows: name, p5, p25, p50, p75, p95 (shares in percent), traces. The page's script sets the height.
    """
    title = "Share of the response's time (%)"
    name = alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=300, labelColor="var(--ink)"))
    base = alt.Chart(ROWS).encode(y=name)
    median = base.encode(
        x=alt.X("p50:Q", title=title),
        tooltip=tooltips(
            name="Of",
            p50=("Median (%)", ".3~r"),
            p5=("5th percentile (%)", ".3~r"),
            p95=("95th percentile (%)", ".3~r"),
            traces="Traces",
        ),
    )
    x = alt.X("p5:Q", title=title, scale=alt.Scale(domain=[0, 100]))
    return layered(
        base.mark_rule(stroke="var(--run)", strokeWidth=2).encode(x=x, x2="p95:Q"),
        base.mark_rule(stroke="var(--run)", strokeWidth=10, opacity=0.5).encode(
            x=alt.X("p25:Q", title=title), x2="p75:Q"
        ),
        median.mark_point(filled=True, fill="var(--run)", stroke="var(--paper)", strokeWidth=1, size=90, opacity=1),
        height=SMALL_HEIGHT,
        x="fixed",
        y="fixed",
    )


# --- Resource usage ---------------------------------------------------------------------------------------------------


def use_across_load(styles: Sequence[Style], load: Load, title: str) -> alt.LayerChart:
    """CPU or memory across load: a line per variant, its spread over runs as a band.

    Rows: variant, label, load, value, low, high, interval, runs.
    """
    return _usage(styles, load_axis(load), tooltips(load=load.title), title, kind="load")


def use_over_time(styles: Sequence[Style], title: str) -> alt.LayerChart:
    """The same over the time since the start of the test; rows with time (s) in place of load."""
    time = alt.X("time:Q", title="Time since the start of the test (s)", scale=alt.Scale(nice=False, zero=False))
    return _usage(styles, time, tooltips(time="Time (s)"), title, kind="other")


def _usage(styles: Sequence[Style], x: alt.X, where: list[alt.Tooltip], title: str, *, kind: str) -> alt.LayerChart:
    base = alt.Chart(ROWS).encode(x=x, color=colour(styles))
    used = alt.Y("value:Q", title=title, axis=alt.Axis(format=",.4~r"), scale=alt.Scale(domainMin=0))
    spread = base.transform_filter("isValid(datum.low)").encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    tooltip = [
        *tooltips(label="Variant"),
        *where,
        *tooltips(value=title, interval="Spread", runs="Runs"),
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
