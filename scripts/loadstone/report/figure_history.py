"""The rows that assets/history.js draws of a variant through time, for figures that are made without it."""

from collections.abc import Iterator, Sequence

from loadstone.report.figure_rows import Page, Row
from loadstone.report.numbers import significant

ERRORS = "error_fraction"
_LINES, _LONGEST = 3, 60


def hosts(page: Page) -> list[str]:
    """The machines of the page, the one with the most figures first."""
    found: list[str] = page.data["choices"]["host"]
    return found


def rows(page: Page, host: str, load: str, statistic: str) -> list[Row]:
    """Levels, changes of them, and figures, in this order; empty where the host has none at this load."""
    points = list(_points(page, host, load, statistic))
    levels = [
        {
            "kind": "level",
            "at": row["at"],
            "variant": row["variant"],
            "label": row["label"],
            "value": row["level_value"],
        }
        for row in points
    ]
    return [*levels, *_changes(page, points, statistic), *points]


def _points(page: Page, host: str, load: str, statistic: str) -> Iterator[Row]:
    data = page.data
    found = data["history"].get(host, {}).get(load, {}).get(statistic, [])
    for campaign, way, value, low, high, _, level, change, level_value, differs, _ in sorted(
        found, key=lambda row: row[1]
    ):
        at, when, note = data["campaigns"][campaign]
        style = data["variants"][way]
        named = {"kind": "point", "variant": style["name"], "label": style["label"], "at": at, "when": when, "way": way}
        figures = {"value": value, "low": low, "high": high, "level": level, "change": change}
        yield named | figures | {"level_value": level_value, "differs": data["differs"][differs], "note": note or ""}


def _changes(page: Page, points: Sequence[Row], statistic: str) -> Iterator[Row]:
    """A line where a level begins, with what people noted of that campaign."""
    dated = [row for row in points if row["at"] is not None]
    begun = [row for row in dated if row["change"] and _before(points, row) is not None]
    middle = (min(row["at"] for row in dated) + max(row["at"] for row in dated)) / 2 if dated else 0
    for place, row in enumerate(begun):
        note = row["note"]
        yield {
            "kind": "change",
            "at": row["at"],
            "said": _said(page, points, row, statistic),
            "line": place % _LINES,
            "side": "right" if row["at"] <= middle else "left",
            "text": f"{note[:_LONGEST]}…" if len(note) > _LONGEST else note or row["when"],
        }


def _before(points: Sequence[Row], row: Row) -> Row | None:
    """A figure of the level that this one's follows."""
    own = [each for each in points if each["variant"] == row["variant"] and each["level"] == row["level"] - 1]
    return own[-1] if own else None


def _said(page: Page, points: Sequence[Row], row: Row, statistic: str) -> str:
    before = _before(points, row)
    unit = "%" if statistic == ERRORS else page.data["unit"]
    levels = [significant(each["level_value"]) for each in (before, row) if each]
    return f"{row['when']}: from {' to '.join(levels)} {unit}" + (f". {row['note']}" if row["note"] else "")
