"""Charts of one cell through the campaigns of the archive."""

from collections.abc import Sequence

import altair as alt

from loadstone.config.variants import Style
from loadstone.report.charts.base import HEIGHT, ROWS, colour, dashes, direct_labels, layered, shapes, tooltips

_ROOM = 56  # above the figures, for the texts of changes
_BELOW = 0.1  # of what the figures span

# An axis shows at least this range around each figure: with equal figures alone it would have a single label.
_LATENCY_ROOM = ("0.98 * datum.value", "1.02 * datum.value")
_SHARE_ROOM = ("max(0, datum.value - 0.5)", "datum.value + 0.5")  # percentage points

# Around a single campaign the axis would show fractions of a second.
_FINE = "^([.]|[A-Z][a-z][a-z] [0-9])"  # fractions of a second, or days of a week
_SECONDS = "^:"
_HOURS = "^[0-9][0-9](:[0-9][0-9]| [AP]M)$"
_DATED = (
    f"test(regexp('{_HOURS}'), datum.label) ? utcFormat(datum.value, '%-d %b %H:%M')"
    f" : test(regexp('{_SECONDS}'), datum.label) ? utcFormat(datum.value, '%-d %b %H:%M:%S')"
    f" : test(regexp('{_FINE}'), datum.label) ? utcFormat(datum.value, '%-d %b %Y') : datum.label"
)


def latency_through_time(styles: Sequence[Style], unit: str) -> alt.LayerChart:
    """A latency with its interval in each campaign, its levels as steps, and where they change.

    Rows by `kind`, all with at (ms since 1970): ``point`` (variant, which is a way of measuring; label, value, low,
    high, level_value, differs, and the texts of the tooltip: when, text, interval, runs, level, differs, note) and
    ``change`` (text, line (0, 1 or 2), side (left or right), tooltip).
    """
    return _through_time(styles, f"Latency ({unit})", "latency", _LATENCY_ROOM)


def share_through_time(styles: Sequence[Style]) -> alt.LayerChart:
    """The same of the share of failed requests, in percent."""
    return _through_time(styles, "Failed requests (%)", "other", _SHARE_ROOM)


def _through_time(styles: Sequence[Style], title: str, y: str, room: tuple[str, str]) -> alt.LayerChart:
    at = alt.X(
        "at:T",
        title="Start of the campaign (UTC)",
        scale=alt.Scale(type="utc", nice=False, padding=22),
        axis=alt.Axis(labelExpr=_DATED),
    )
    value = alt.Y(
        "value:Q",
        title=title,
        axis=alt.Axis(format=",.4~r"),
        scale=alt.Scale(zero=False, padding=_ROOM, nice=False, domainMin=alt.ExprRef(_least(room))),
    )
    points = alt.Chart(ROWS).transform_filter("datum.kind == 'point'").encode(x=at, color=colour(styles))
    levels = points.encode(y=alt.Y("level_value:Q", title=title))
    tooltip = tooltips(
        when="Campaign",
        text=title,
        interval="Interval",
        runs=("Runs", None),
        level="Level",
        label="Measured by",
        differs="Differs from before",
        note="Note",
    )
    marked = points.encode(y=value, tooltip=tooltip)
    return layered(
        *_changes(at),
        points.transform_calculate(least=room[0], most=room[1])
        .mark_rule(opacity=0, aria=False)
        .encode(y=alt.Y("least:Q", title=title), y2="most:Q"),
        levels.mark_line(interpolate="step-after", strokeWidth=2, opacity=0.55).encode(**dashes(styles)),
        points.transform_filter("isValid(datum.low)")
        .mark_rule(opacity=0.65, strokeWidth=1.5)
        .encode(y=alt.Y("low:Q", title=title), y2="high:Q"),
        marked.transform_filter("!datum.differs").mark_point(filled=True, size=52, opacity=1).encode(**shapes(styles)),
        marked.transform_filter("datum.differs")
        .mark_point(filled=False, fill="var(--paper)", strokeWidth=1.75, size=58, opacity=1)
        .encode(**shapes(styles)),
        *direct_labels(styles),
        height=HEIGHT,
        x="fixed",
        y=y,
    )


def _least(room: tuple[str, str]) -> str:
    """The start of a linear axis before padding; with padding it is a little below all figures, but not below zero.

    Vega pads both ends by as many pixels, which are `_ROOM / (height - 2 * _ROOM)` of the axis's range without padding.
    """
    ends = [f"extent(pluck(data('rows'), '{name}'))[{end}]" for end, name in enumerate(("low", "high"))]
    values = [f"extent(pluck(data('rows'), 'value'))[{end}]" for end in (0, 1)]
    roomy = [expression.replace("datum.value", value) for expression, value in zip(room, values, strict=True)]
    low, high = (
        f"{name}({one}, isValid({end}) ? {end} : {one})"
        for name, one, end in zip(("min", "max"), roomy, ends, strict=True)
    )
    least = f"max(0, {1 + _BELOW} * {low} - {_BELOW} * {high})"
    return f"({least} * (height - {2 * _ROOM}) + {_ROOM} * {high}) / (height - {_ROOM})"


def _changes(at: alt.X) -> list[alt.Chart]:
    """A vertical line where a level begins, and at its upper end the annotations of that campaign."""
    base = alt.Chart(ROWS).transform_filter("datum.kind == 'change'").encode(x=at)
    change = tooltips(tooltip="Change")
    rule = base.mark_rule(stroke="var(--axis)", strokeDash=[3, 3], strokeWidth=1.25)
    texts = [
        base.transform_filter(f"datum.side == '{side}' && datum.line == {line}")
        .mark_text(
            align="left" if side == "right" else "right",
            baseline="top",
            dx=5 if side == "right" else -5,
            y=2 + 16 * line,
            limit=260,
            fontSize=11,
            fill="var(--ink-soft)",
        )
        .encode(text="text:N", tooltip=change)
        for side in ("right", "left")
        for line in range(3)
    ]
    return [rule.encode(tooltip=change), *texts]
