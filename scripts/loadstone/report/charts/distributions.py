"""Charts over all requests of a variant at a load: latency against time and load, and the whole distribution."""

from collections.abc import Sequence

import altair as alt

from loadstone.config.variants import Style
from loadstone.report.charts.base import HEIGHT, ROWS, RUNS, Load, colour, dashes, direct_labels, layered, shapes
from loadstone.report.numbers import Unit

# Behind a panel's place, its name: see `panels` of assets/pictured.js.
_NAME = "slice(datum.value, 3)"
_NINES = [2, 10, 100, 1000, 10_000, 100_000, 1_000_000]


def latency_by_time_and_load(unit: Unit, load: Load) -> alt.FacetChart:
    """A panel per variant: the time within runs across, loads upwards, latency as a colour, the same in all panels.

    Rows: variant, label, panel, load, from, to, middle and edge (s; a bin reaches a little under the next,
    or light would show between them), value (null: not estimable, drawn as a dot on grey), text, requests, runs.
    The script gives the panels their size and the colours their domain, which has no zero.
    """
    base = alt.Chart().encode(
        y=alt.Y("load:O", title=load.title, sort="descending", axis=alt.Axis(format=",~r", ticks=False)),
        tooltip=[
            alt.Tooltip("label:N", title="Variant"),
            alt.Tooltip("load:Q", title=load.title, format=",~r"),
            alt.Tooltip("from:Q", title="From (s)", format=",.4~r"),
            alt.Tooltip("to:Q", title="To (s)", format=",.4~r"),
            alt.Tooltip("text:N", title=f"Latency ({unit.symbol})"),
            alt.Tooltip("requests:Q", title="Requests", format=","),
            alt.Tooltip("runs:Q", title="Runs"),
        ],
    )
    bins = base.encode(x=_time("from"), x2="edge:Q")
    latency = alt.Color(
        "value:Q",
        title=f"Latency ({unit.symbol})",
        scale=alt.Scale(type="log", scheme="viridis", clamp=True, nice=False),
        legend=alt.Legend(
            type="gradient",
            orient="top",
            direction="horizontal",
            gradientLength=220,
            format=",.3~r",
            titleOrient="left",
        ),
    )
    known = bins.transform_filter("isValid(datum.value)").mark_rect().encode(color=latency)
    unknown = "!isValid(datum.value)"
    panels: alt.FacetChart = (
        alt.layer(
            known,
            bins.transform_filter(unknown).mark_rect(fill="var(--shade)"),
            base.transform_filter(unknown)
            .mark_point(shape="circle", filled=True, fill="var(--axis)", size=5, opacity=1)
            .encode(x=_time("middle")),
        )
        .facet(
            facet=alt.Facet(
                "panel:N",
                title=None,
                header=alt.Header(labelExpr=_NAME, labelAnchor="start", labelColor="var(--ink)"),
            ),
            data=ROWS,
            columns=3,
        )
        .resolve_axis(x="independent")  # a last row may have fewer panels
        .properties(usermeta={"axes": {"x": "fixed", "y": "fixed"}})
    )
    return panels


def _time(field: str) -> alt.X:
    return alt.X(
        f"{field}:Q",
        title="Time in the run (s)",
        scale=alt.Scale(nice=False, zero=False),
        axis=alt.Axis(format=",~r", tickCount=5, grid=False, labelOverlap=True),
    )


def percentiles_of_variants(styles: Sequence[Style], unit: Unit) -> alt.LayerChart:
    """Latency by percentile at one load: a line per variant over the requests of all runs, each run faint behind.

    The axis has nines at equal distances. Rows: variant, label, beyond (1 / the share of requests that took longer),
    share (%), value, text, requests, runs; in `RUNS` the same of single runs: variant, series, beyond, value, run.
    """
    nines = alt.X(
        "beyond:Q",
        title="Requests that took at most so long",
        scale=alt.Scale(type="log", nice=False, domainMin=1),
        axis=alt.Axis(values=_NINES, labelExpr="format(100 - 100 / datum.value, '.6~r') + ' %'", grid=True),
    )
    latency = alt.Y("value:Q", title=f"Latency ({unit.symbol})", axis=alt.Axis(format=",.4~r"))
    pooled = alt.Chart(ROWS).encode(x=nines, y=latency, color=colour(styles))
    each = alt.Chart(RUNS).encode(
        x=nines,
        y=latency,
        color=colour(styles),
        detail="series:N",
        tooltip=[alt.Tooltip("label:N", title="Variant"), alt.Tooltip("run:N", title="Run")],
    )
    tooltip = [
        alt.Tooltip("label:N", title="Variant"),
        alt.Tooltip("share:Q", title="Share of requests (%)", format=".7~r"),
        alt.Tooltip("text:N", title=f"Latency at most ({unit.symbol})"),
        alt.Tooltip("requests:Q", title="Requests", format=","),
        alt.Tooltip("runs:Q", title="Runs"),
    ]
    return layered(
        each.mark_line(strokeWidth=1, opacity=0.38).encode(**dashes(styles)),
        pooled.mark_line(strokeWidth=2.25).encode(**dashes(styles)),
        pooled.encode(tooltip=tooltip, **shapes(styles)).mark_point(filled=True, size=18, opacity=1),
        *direct_labels(styles),
        height=HEIGHT,
        x="fixed",
        y="latency",
    )
