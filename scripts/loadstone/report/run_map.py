"""The map of a campaign's runs: loads as rows, variants as columns, a mark for each run, and the same in words."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup

from loadstone.report.numbers import listed
from loadstone.text import rate_text

Runs = Sequence[tuple[int, str]]  # number and state of each run of a cell


def run_map(
    cells: Mapping[tuple[float, str], Runs], labels: Mapping[str, str], marks: Mapping[str, str], *, is_drawn: bool
) -> dict[str, Any]:
    """The variables of the macro ``run_map``: `cells` by load and variant, the variants of `labels` as columns.

    `marks` are by state, in the order in which words name states. If not `is_drawn`, a cell has words alone.
    """
    rows = []
    for rate in sorted({rate for rate, _ in cells}):
        runs = [cells.get((rate, variant), ()) for variant in labels]
        rows.append(
            (rate_text(rate), [(_marks(each, marks) if is_drawn else "", _words(each, marks)) for each in runs])
        )
    return {"variants": list(labels.values()), "rows": rows}


def _marks(runs: Runs, marks: Mapping[str, str]) -> Markup:
    """Neighbours in one state share an element."""
    groups = ((state, len(list(group))) for state, group in groupby(state for _, state in runs))
    elements = (f'<i class="{state.replace(" ", "-")}">{marks[state] * number}</i>' for state, number in groups)
    return Markup("".join(elements))  # noqa: S704 - made of `marks` alone


def _words(runs: Runs, states: Iterable[str]) -> str:
    """``runs 1–3 collected, run 4 failed``."""
    parts = []
    for state in states:
        numbers = [number for number, each in runs if each == state]
        if numbers:
            parts.append(f"{'run' if len(numbers) == 1 else 'runs'} {listed(numbers)} {state}")
    return ", ".join(parts) or "none planned"
