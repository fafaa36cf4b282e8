"""Whether layers add up, in words: rows of `interactions` of one scope -> plain sentences, as in `verdict_words`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from loadstone.report.numbers import Unit
from loadstone.report.queries import Row
from loadstone.report.verdict_rows import STATISTICS, Group, interval_name, label, leading
from loadstone.report.verdict_words import Verdict

_SQUARE = ("bottom", "left", "right", "top")


def interactions(
    rows: Iterable[Row], labels: Mapping[str, str], unit: Unit, resolution_ns: float | None = None
) -> list[Verdict]:
    """Whether layers add up, a verdict per square of variants, from rows of `interactions`."""
    known = [row for row in rows if row["interaction_ns"] is not None]
    found = []
    for square in dict.fromkeys(tuple(row[name] for name in _SQUARE) for row in known):
        own = [row for row in known if tuple(row[name] for name in _SQUARE) == square]
        group = Group(own, sorted({row["rate"] for row in own}), "", labels, unit, resolution_ns)
        sure = [row for row in own if row["warning"]]
        bottom, left, right, top = (label(labels, name) for name in square)
        head = f"{top} over {bottom}: what {left} and {right} add"
        if not sure:
            kind, text = "note", f"{head} may add up; no figure says otherwise."
        else:
            kind, text = "warning", f"{head} does not add up. {' '.join(_together(group, leading(sure)))}"
        details = tuple(text for rows in group.by_statistic.values() for text in _together(group, rows))
        found.append(Verdict(kind, text, details))
    return found


def _together(group: Group, rows: Sequence[Row]) -> Iterator[str]:
    """By how much layers take more together, and by how much less."""
    for word, sign in (("more", 1), ("less", -1)):
        own = [row for row in rows if (row["interaction_ns"] >= 0) == (sign > 0)]
        if own:
            name = STATISTICS[own[0]["statistic"]]
            size = group.latencies([abs(row["interaction_ns"]) for row in own])
            ends = [sign * row[name] for row in own for name in ("interaction_low_ns", "interaction_high_ns")]
            interval = f"{interval_name(own)} {group.latencies([min(ends), max(ends)])}"
            text = f"{name[0].upper()}{name[1:]}: together {size} {word} than the two added up"
            yield f"{text} ({interval}), {group.at(own)}."
