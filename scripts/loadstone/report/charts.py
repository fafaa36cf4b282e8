"""The charts of the site: one function per chart, data in, Altair chart out.

A page holds each chart's specification once, over data sets that its script fills by name: ``rows`` (their fields are
named in each function) and ``labels`` (variant, label, y in pixels: the variants' names beside the ends of their
lines). Latencies are in the page's unit, loads in requests/s, shares in percent. ``usermeta.axes`` says what an
axis shows (``load``, ``latency`` or ``other``), for the reader's choice of linear and logarithmic axes.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

from loadstone.report.numbers import Unit
from loadstone.variants import Style

Data = alt.NamedData | alt.InlineData

ROWS = alt.NamedData("rows")
LABELS = alt.NamedData("labels")

HEIGHT = 320
SMALL_HEIGHT = 240
_TICKS = 10
_USED = {"cpu": "CPU (millicores)", "memory": "Memory (MiB)"}

# Colours are the page's CSS variables, so charts follow light, dark and print without being drawn again.
CONFIG: dict[str, Any] = {
    "background": None,
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--ink-soft)",
        "titleColor": "var(--ink)",
        "gridColor": "var(--grid)",
        "domainColor": "var(--axis)",
        "tickColor": "var(--axis)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 500,
        "titlePadding": 10,
        "labelOverlap": "greedy",
        "labelSeparation": 4,
        "tickCount": 6,
    },
    "axisX": {"grid": False},
    "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
    "text": {"fill": "var(--ink)", "fontSize": 12},
}


def specifications(styles: Sequence[Style], unit: Unit, rates: Sequence[float]) -> dict[str, Any]:
    """The Vega-Lite specification of every chart of a campaign page, by name, and ``config``, which all share."""
    made: dict[str, alt.Chart | alt.LayerChart] = {
        "latency": latency_across_load(ROWS, styles, unit, rates),
        "success": success_latency_across_load(ROWS, styles, unit, rates),
        "failed": failed_share_across_load(ROWS, styles, rates),
        "errors": errors_across_load(ROWS, styles, rates),
        "time": latency_over_time(ROWS, styles, unit),
        "cdf": run_distribution(ROWS, unit),
        "points": run_requests(ROWS, unit),
        "bins": run_request_bins(ROWS, unit),
        "histogram": run_histogram(ROWS, unit),
        **{f"use-{what}": use_across_load(ROWS, styles, rates, title) for what, title in _USED.items()},
        **{f"use-time-{what}": use_over_time(ROWS, styles, title) for what, title in _USED.items()},
    }
    return {name: _plain(chart) for name, chart in made.items()} | {"config": CONFIG}


def latency_across_load(data: Data, styles: Sequence[Style], unit: Unit, rates: Sequence[float]) -> alt.LayerChart:
    """Latency across load: a line per variant, its spread or interval as a band; hollow where not estimable.

    Rows: variant, label, load, value, low, high, estimable, interval, requests, runs.
    """
    return _across_load(data, styles, unit, rates, height=HEIGHT, title="Latency")


def success_latency_across_load(
    data: Data, styles: Sequence[Style], unit: Unit, rates: Sequence[float]
) -> alt.LayerChart:
    """Latency of the requests answered with 200, across load; rows as for `latency_across_load`."""
    return _across_load(data, styles, unit, rates, height=SMALL_HEIGHT, title="Latency of code 200")


def _across_load(
    data: Data, styles: Sequence[Style], unit: Unit, rates: Sequence[float], *, height: int, title: str
) -> alt.LayerChart:
    title = f"{title} ({unit.symbol})"
    latency = alt.Y("value:Q", title=title, axis=alt.Axis(format=",.4~r"))
    base = alt.Chart(data).encode(x=_load(rates), color=_colour(styles))
    spread = base.transform_filter("isValid(datum.low)").encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    marked = base.encode(
        y=latency,
        tooltip=[
            alt.Tooltip("label:N", title="Variant"),
            alt.Tooltip("load:Q", title="Load (requests/s)", format=",~r"),
            alt.Tooltip("value:Q", title=f"Latency ({unit.symbol})", format=",.4~r"),
            alt.Tooltip("interval:N", title="Interval"),
            alt.Tooltip("requests:Q", title="Requests", format=","),
            alt.Tooltip("runs:Q", title="Runs"),
        ],
    )
    return _layered(
        spread.mark_area(opacity=0.14),
        spread.mark_rule(opacity=0.65, strokeWidth=1.5),
        base.mark_line(strokeWidth=2).encode(y=latency),
        marked.transform_filter("datum.estimable").mark_point(filled=True, size=46, opacity=1),
        marked.transform_filter("!datum.estimable").mark_point(
            filled=False, fill="var(--paper)", strokeWidth=1.5, size=54, opacity=1
        ),
        *_direct_labels(styles),
        height=height,
        x="load",
        y="latency",
    )


def failed_share_across_load(data: Data, styles: Sequence[Style], rates: Sequence[float]) -> alt.LayerChart:
    """Share of requests that failed, across load, with its spread over runs.

    Rows: variant, label, load, share (in percent, like low and high), low, high, interval.
    """
    return _share_across_load(data, styles, rates, "Failed requests (%)")


def errors_across_load(data: Data, styles: Sequence[Style], rates: Sequence[float]) -> alt.LayerChart:
    """Share of requests with one class of error, across load; rows as for `failed_share_across_load`."""
    return _share_across_load(data, styles, rates, "Share of requests (%)")


def _share_across_load(data: Data, styles: Sequence[Style], rates: Sequence[float], title: str) -> alt.LayerChart:
    share = alt.Y("share:Q", title=title, axis=alt.Axis(format=",.3~r"), scale=alt.Scale(domainMin=0))
    base = alt.Chart(data).encode(x=_load(rates), color=_colour(styles))
    points = base.encode(
        y=share,
        tooltip=[
            alt.Tooltip("label:N", title="Variant"),
            alt.Tooltip("load:Q", title="Load (requests/s)", format=",~r"),
            alt.Tooltip("share:Q", title=title, format=",.3~r"),
            alt.Tooltip("interval:N", title="Spread"),
        ],
    )
    return _layered(
        base.mark_rule(opacity=0.65, strokeWidth=1.5).encode(y=alt.Y("low:Q", title=title), y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(y=share),
        points.mark_point(filled=True, size=46, opacity=1),
        *_direct_labels(styles),
        height=SMALL_HEIGHT,
        x="load",
        y="other",
    )


def latency_over_time(data: Data, styles: Sequence[Style], unit: Unit) -> alt.LayerChart:
    """One statistic of latency per time bin since the start of the test, a line per variant; the warm-up is shaded.

    Rows: variant, label, phase (test or warmup), time (the bin's middle, s), value, requests.
    """
    title = "Time since the start of the test (s)"
    time = alt.X("time:Q", title=title, scale=alt.Scale(nice=False, zero=False))
    base = alt.Chart(data).encode(x=time, color=_colour(styles))
    latency = alt.Y("value:Q", title=f"Latency ({unit.symbol})", axis=alt.Axis(format=",.4~r"))
    points = base.encode(
        y=latency,
        tooltip=[
            alt.Tooltip("label:N", title="Variant"),
            alt.Tooltip("phase:N", title="Phase"),
            alt.Tooltip("time:Q", title="Time (s)", format=",.4~r"),
            alt.Tooltip("value:Q", title=f"Latency ({unit.symbol})", format=",.4~r"),
            alt.Tooltip("requests:Q", title="Requests", format=","),
        ],
    )
    warmup = (
        alt.Chart(data)
        .transform_filter("datum.phase == 'warmup'")
        .transform_aggregate(first="min(start)", last="max(end)")
    )
    shade = warmup.transform_filter("isValid(datum.first)").encode(x=alt.X("first:Q", title=title))
    return _layered(
        shade.mark_rect(fill="var(--shade)", opacity=1).encode(x2="last:Q"),
        shade.mark_text(align="left", baseline="bottom", dx=4, dy=-4, fill="var(--ink-soft)", fontSize=11).encode(
            text=alt.value("warm-up"), y=alt.value("height")
        ),
        base.mark_line(strokeWidth=1.75).encode(y=latency, detail="phase:N"),
        points.mark_point(filled=True, size=22, opacity=0.9),
        *_direct_labels(styles),
        height=SMALL_HEIGHT,
        x="other",
        y="latency",
    )


def run_distribution(data: Data, unit: Unit) -> alt.LayerChart:
    """Distribution of one run: the share (%) of its requests that took at most a latency.

    Rows: latency, share.
    """
    base = alt.Chart(data).encode(x=_latency_x(unit))
    share = alt.Y("share:Q", title="Requests at most that slow (%)", scale=alt.Scale(domain=[0, 100]))
    tooltip = [
        alt.Tooltip("share:Q", title="Share of requests (%)", format=".4~r"),
        alt.Tooltip("latency:Q", title=f"Latency at most ({unit.symbol})", format=",.4~r"),
    ]
    line = base.mark_line(stroke="var(--run)", strokeWidth=2).encode(y=share)
    points = base.mark_point(filled=True, fill="var(--run)", size=16, opacity=0.9).encode(y=share, tooltip=tooltip)
    return _layered(line, points, height=SMALL_HEIGHT, x="latency", y="other")


def run_requests(data: Data, unit: Unit) -> alt.LayerChart:
    """Latency of every request of one run, in order; failed ones are crosses.

    Rows: number, latency, failed, outcome.
    """
    base = alt.Chart(data).encode(
        x=_request_number(),
        y=_latency_y(unit),
        tooltip=[
            alt.Tooltip("number:Q", title="Request", format=","),
            alt.Tooltip("latency:Q", title=f"Latency ({unit.symbol})", format=",.4~r"),
            alt.Tooltip("outcome:N", title="Outcome"),
        ],
    )
    good = base.transform_filter("!datum.failed").mark_point(filled=True, fill="var(--run)", size=12, opacity=0.7)
    failed = base.transform_filter("datum.failed").mark_point(
        shape="cross", filled=True, fill="var(--bad)", angle=45, size=46, opacity=0.9
    )
    return _layered(good, failed, height=SMALL_HEIGHT, x="other", y="latency")


def run_request_bins(data: Data, unit: Unit) -> alt.LayerChart:
    """Latency of one run in bins of consecutive requests: minimum to maximum, median and 99th percentile.

    Rows: number (the bin's middle), first, last, min, p50, p99, max, failed.
    """
    base = alt.Chart(data).encode(
        x=_request_number(),
        tooltip=[
            alt.Tooltip("first:Q", title="First request", format=","),
            alt.Tooltip("last:Q", title="Last request", format=","),
            *(
                alt.Tooltip(f"{name}:Q", title=f"{title} ({unit.symbol})", format=",.4~r")
                for name, title in (
                    ("min", "Minimum"),
                    ("p50", "Median"),
                    ("p99", "99th percentile"),
                    ("max", "Maximum"),
                )
            ),
            alt.Tooltip("failed:Q", title="Failed requests", format=","),
        ],
    )
    title = f"Latency ({unit.symbol})"
    extent = base.mark_rule(stroke="var(--run)", opacity=0.3, strokeWidth=2).encode(
        y=alt.Y("min:Q", title=title, axis=alt.Axis(format=",.4~r")), y2="max:Q"
    )
    tail = base.mark_line(stroke="var(--run)", strokeWidth=1.25, strokeDash=[4, 3]).encode(
        y=alt.Y("p99:Q", title=title)
    )
    median = base.mark_line(stroke="var(--run)", strokeWidth=2.25).encode(y=alt.Y("p50:Q", title=title))
    return _layered(extent, tail, median, height=SMALL_HEIGHT, x="other", y="latency")


def run_histogram(data: Data, unit: Unit) -> alt.Chart:
    """How many requests of one run fell into each range of latency. Rows: low, high, count."""
    bars: alt.Chart = (
        alt.Chart(data, width="container", height=SMALL_HEIGHT, usermeta=_axes("latency", "other"))
        .mark_rect(fill="var(--run)", opacity=0.85, stroke="var(--paper)", strokeWidth=0.75)
        .encode(
            x=alt.X(
                "low:Q",
                title=f"Latency ({unit.symbol})",
                axis=alt.Axis(format=",.4~r"),
                scale=alt.Scale(nice=False, zero=False),
            ),
            x2="high:Q",
            y=alt.Y("count:Q", title="Requests", axis=alt.Axis(format=",~r", tickMinStep=1)),
            y2=alt.datum(0),
            tooltip=[
                alt.Tooltip("low:Q", title=f"From ({unit.symbol})", format=",.4~r"),
                alt.Tooltip("high:Q", title=f"To ({unit.symbol})", format=",.4~r"),
                alt.Tooltip("count:Q", title="Requests", format=","),
            ],
        )
    )
    return bars


def use_across_load(data: Data, styles: Sequence[Style], rates: Sequence[float], title: str) -> alt.LayerChart:
    """CPU or memory across load: a line per variant, its spread over runs as a band.

    Rows: variant, label, load, value, low, high, interval, runs.
    """
    load = alt.Tooltip("load:Q", title="Load (requests/s)", format=",~r")
    return _used(data, styles, _load(rates), load, title, kind="load")


def use_over_time(data: Data, styles: Sequence[Style], title: str) -> alt.LayerChart:
    """The same over the time since the start of the test; rows with time (s) in place of load."""
    time = alt.X("time:Q", title="Time since the start of the test (s)", scale=alt.Scale(nice=False, zero=False))
    return _used(data, styles, time, alt.Tooltip("time:Q", title="Time (s)", format=",.4~r"), title, kind="other")


def _used(
    data: Data, styles: Sequence[Style], x: alt.X, where: alt.Tooltip, title: str, *, kind: str
) -> alt.LayerChart:
    base = alt.Chart(data).encode(x=x, color=_colour(styles))
    used = alt.Y("value:Q", title=title, axis=alt.Axis(format=",.4~r"), scale=alt.Scale(domainMin=0))
    spread = base.transform_filter("isValid(datum.low)").encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    tooltip = [
        alt.Tooltip("label:N", title="Variant"),
        where,
        alt.Tooltip("value:Q", title=title, format=",.4~r"),
        alt.Tooltip("interval:N", title="Spread"),
        alt.Tooltip("runs:Q", title="Runs"),
    ]
    return _layered(
        spread.mark_area(opacity=0.14),
        spread.mark_rule(opacity=0.65, strokeWidth=1.5),
        base.mark_line(strokeWidth=2).encode(y=used),
        base.mark_point(filled=True, size=34, opacity=1).encode(y=used, tooltip=tooltip),
        *_direct_labels(styles),
        height=SMALL_HEIGHT,
        x=kind,
        y="other",
    )


def _load(rates: Sequence[float]) -> alt.X:
    # A few loads are the ticks themselves; of many, Vega's choice of what fits would look arbitrary.
    ticks: dict[str, Any] = {"values": list(rates)} if len(rates) <= _TICKS else {}
    return alt.X(
        "load:Q",
        title="Load (requests/s)",
        axis=alt.Axis(format=",~r", **ticks),
        scale=alt.Scale(nice=False, zero=False, padding=14),
    )


def _latency_x(unit: Unit) -> alt.X:
    return alt.X("latency:Q", title=f"Latency ({unit.symbol})", axis=alt.Axis(format=",.4~r"))


def _latency_y(unit: Unit) -> alt.Y:
    return alt.Y("latency:Q", title=f"Latency ({unit.symbol})", axis=alt.Axis(format=",.4~r"))


def _request_number() -> alt.X:
    return alt.X(
        "number:Q", title="Request number", axis=alt.Axis(format=",~r"), scale=alt.Scale(nice=False, zero=False)
    )


def _colour(styles: Sequence[Style]) -> alt.Color:
    names = [style.name for style in styles]
    # The page's script defines --variant-0, --variant-1, ... for light and dark.
    colours = [f"var(--variant-{position})" for position in range(len(styles))]
    return alt.Color("variant:N", scale=alt.Scale(domain=names, range=colours), legend=None)


def _direct_labels(styles: Sequence[Style]) -> list[alt.Chart]:
    """A dot and the variant's name at the right edge; where they would overlap, the script has moved them apart."""
    place = alt.Chart(LABELS).encode(y=alt.Y("y:Q", scale=None, title=None))
    dots = place.mark_point(filled=True, size=46, opacity=1, xOffset=10, clip=False).encode(
        x=alt.value("width"), color=_colour(styles)
    )
    names = place.mark_text(align="left", baseline="middle", dx=18, limit=150).encode(
        x=alt.value("width"), text="label:N"
    )
    return [dots, names]


def _layered(*layers: alt.Chart, height: int, x: str, y: str) -> alt.LayerChart:
    chart = alt.LayerChart(layer=layers)
    return chart.properties(width="container", height=height, usermeta=_axes(x, y))


def _axes(x: str, y: str) -> dict[str, Any]:
    return {"axes": {"x": x, "y": y}}


def _plain(chart: alt.Chart | alt.LayerChart) -> dict[str, Any]:
    """The specification without what only Altair's own pages need."""
    content = chart.to_dict()
    return {key: value for key, value in content.items() if key not in ("config", "$schema")}
