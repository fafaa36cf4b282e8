"""Charts over all requests of a variant at a load: latency against time and load, and percentile curves."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from loadstone.config.variants import Style
from loadstone.report.charts import Load
from loadstone.report.charts.base import (
    HEIGHT,
    ROWS,
    RUNS,
    colour,
    dashes,
    direct_labels,
    latency_y,
    layered,
    parameters,
    shapes,
    tooltips,
)

_BEYOND = "100 / (100 - datum.share)"  # of how many requests one took longer
_NINES = [2, 10, 100, 1000, 10_000, 100_000, 1_000_000]


# The values in the legend of colours: round ones, as many as fit, or else the ends of its gradient. A gradient draws
# values beyond its ends at its ends, so that the lists hold only values within.
_LOW, _HIGH = "domain('color')[0]", "domain('color')[1]"
_FINE = [f"{digit}e{power} * decade" for power in range(12) for digit in (1, 2, 5)]
_LEGEND_PARAMETERS = [
    {"name": "decade", "expr": f"pow(10, floor(log({_LOW}) / LN10 + 1e-9))"},
    {"name": "last", "expr": f"pow(10, floor(log({_HIGH}) / LN10 + 1e-9))"},
    {"name": "decades", "expr": "round(log(last / decade) / LN10)"},
    {"name": "above", "expr": " + ".join(f"({digit} * decade < {_LOW} ? 1 : 0)" for digit in (1, 2, 5))},
    {
        "name": "below",
        "expr": "3 * decades + " + " + ".join(f"({digit} * last <= {_HIGH} ? 1 : 0)" for digit in (1, 2, 5)),
    },
    {"name": "fine", "expr": f"slice([{', '.join(_FINE)}], above, below)"},
    {"name": "coarse", "expr": f"slice([{', '.join(_FINE[::3])}], above > 0 ? 1 : 0, decades + 1)"},
]
_LEGEND = f"length(fine) < 2 ? [{_LOW}, {_HIGH}] : length(fine) <= 5 || length(coarse) < 2 ? slice(fine, 0, 5) : coarse"


def latency_by_time_and_load(styles: Sequence[Style], unit: str, load: Load) -> alt.FacetChart:
    """A panel per variant: the time within runs across, loads upwards, latency as a colour, the same in all panels.

    Rows: variant, label, load, from, to (s), value (null if not estimable: a dot on grey), text, requests, runs.
    The script gives the panels their size.
    """
    least, most = (f"extent(pluck(data('rows'), 'value'))[{end}]" for end in (0, 1))
    domain = [{"expr": f"{least} > 0 ? {least} : {most} / 1000"}, {"expr": most}]
    base = alt.Chart().encode(
        y=alt.Y("load:O", title=load.title, sort="descending", axis=alt.Axis(format=",~r", ticks=False)),
        tooltip=tooltips(
            label="Variant",
            load=load.title,
            **{"from": "From (s)", "to": "To (s)"},
            text=f"Latency ({unit})",
            requests="Requests",
            runs="Runs",
        ),
    )
    bins = base.encode(x=_time("from"), x2="edge:Q")
    latency = alt.Color(
        "value:Q",
        title=f"Latency ({unit})",
        scale=alt.Scale(type="log", scheme="viridis", clamp=True, nice=False, domain=domain),
        legend=alt.Legend(
            type="gradient",
            orient="top",
            direction="horizontal",
            gradientLength=220,
            format=",.3~r",
            titleOrient="left",
            values={"expr": _LEGEND},
            tickCount=20,
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
                "label:N",
                title=None,
                sort=[style.label for style in styles],
                header=alt.Header(labelAnchor="start", labelColor="var(--ink)"),
            ),
            data=ROWS,
            columns=3,
        )
        .resolve_axis(x="independent")  # the last row may have fewer panels
        .properties(usermeta={"axes": {"x": "fixed", "y": "fixed"}}, params=parameters(_LEGEND_PARAMETERS))
    )
    # A bin reaches a little under the next one: otherwise there would be a gap between them.
    end = "extent(pluck(data('rows'), 'to'))[1]"
    return panels.transform_calculate(
        middle="(datum.from + datum.to) / 2", edge=f"min(1.05 * datum.to - 0.05 * datum.from, {end})"
    )


def _time(field: str) -> alt.X:
    return alt.X(
        f"{field}:Q",
        title="Time in the run (s)",
        scale=alt.Scale(nice=False, zero=False),
        axis=alt.Axis(format=",~r", tickCount=5, grid=False, labelOverlap=True),
    )


def percentile_curves(styles: Sequence[Style], unit: str) -> alt.LayerChart:
    """Latency by percentile at one load: a line per variant over all its requests, and behind it a faint line per run.

    On the axis, each further nine has the same width. Rows: variant, label, share (%), value, text, requests, runs; in
    `RUNS` the same of single runs: variant, series, share, value, run.
    """
    nines = _percentile_axis("Requests that took at most this long", _NINES, "format({}, '.6~r') + ' %'", grid=True)
    latency = latency_y(unit)
    pooled = alt.Chart(ROWS).transform_calculate(beyond=_BEYOND).encode(x=nines, y=latency, color=colour(styles))
    single = alt.Chart(RUNS).transform_calculate(beyond=_BEYOND).encode(x=nines, y=latency, color=colour(styles))
    tooltip = tooltips(
        label="Variant",
        share="Share of requests (%)",
        text=f"Latency at most ({unit})",
        requests="Requests",
        runs="Runs",
    )
    return layered(
        single.mark_line(strokeWidth=1, opacity=0.38).encode(
            detail="series:N", tooltip=tooltips(label="Variant", run="Run"), **dashes(styles)
        ),
        pooled.mark_line(strokeWidth=2.25).encode(**dashes(styles)),
        pooled.encode(tooltip=tooltip, **shapes(styles)).mark_point(filled=True, size=18, opacity=1),
        *direct_labels(styles),
        height=HEIGHT,
        x="fixed",
        y="latency",
    )


def reported_percentile_curves(styles: Sequence[Style], unit: str) -> alt.LayerChart:
    """Latency by percentile, a line per run. On the axis of percentiles, each further nine has the same width.

    Rows: variant, label, series (one run), beyond (1 / the share of requests that took longer), share (%), value.
    """
    nines = _percentile_axis("Percentile", [1, *_NINES], "'p' + format({}, '.6~r')")
    base = alt.Chart(ROWS).encode(x=nines, color=colour(styles), detail="series:N")
    latency = latency_y(unit)
    tooltip = tooltips(
        label="Variant",
        series="Run",
        share="Share of requests (%)",
        value=f"Latency at most ({unit})",
    )
    return layered(
        base.mark_line(strokeWidth=2, interpolate="step-before").encode(y=latency, **dashes(styles)),
        base.mark_point(filled=True, size=20, opacity=0.9).encode(y=latency, tooltip=tooltip, **shapes(styles)),
        *direct_labels(styles),
        height=HEIGHT,
        x="fixed",
        y="latency",
    )


def _percentile_axis(title: str, values: list[int], label: str, **axis: Any) -> alt.X:
    """The axis of percentiles; the percentile is put into the expression `label`."""
    return alt.X(
        "beyond:Q",
        title=title,
        scale=alt.Scale(type="log", nice=False, domainMin=1),
        axis=alt.Axis(values=values, labelExpr=label.format("100 - 100 / datum.value"), **axis),
    )
