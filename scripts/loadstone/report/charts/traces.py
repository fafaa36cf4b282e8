"""Charts of traces."""

import altair as alt

from loadstone.report.charts.base import SMALL_HEIGHT, Data, layered


def share_of_response(data: Data) -> alt.LayerChart:
    """How much of the response's time services and operations took, spread over traces: one line of the picture each.

    Rows: name, p5, p25, p50, p75, p95 (shares in percent), traces. The page's script makes it as high as they need.
    """
    title = "Share of the response's time (%)"
    name = alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=300, labelColor="var(--ink)"))
    base = alt.Chart(data).encode(y=name)
    median = base.encode(
        x=alt.X("p50:Q", title=title),
        tooltip=[
            alt.Tooltip("name:N", title="Of"),
            alt.Tooltip("p50:Q", title="Median (%)", format=".3~r"),
            alt.Tooltip("p5:Q", title="5th percentile (%)", format=".3~r"),
            alt.Tooltip("p95:Q", title="95th percentile (%)", format=".3~r"),
            alt.Tooltip("traces:Q", title="Traces", format=","),
        ],
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
