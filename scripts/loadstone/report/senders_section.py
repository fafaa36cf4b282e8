"""Several generators that shared the load: where each ran, how late it was, how its clock stood."""

from typing import Any

from loadstone.report.labels import SHOWN
from loadstone.report.queries import Questions


def context(questions: Questions) -> dict[str, Any]:
    """The variables of ``senders.html``."""
    rows = questions.rows("page_senders")
    processes = [row["place"] for row in rows if (row["place"] or "").startswith("process ")]
    return {
        "senders": rows[:SHOWN],
        "n_senders": len(rows),
        "n_generators": len({row["generator"] for row in rows}),
        "senders_share": len(set(processes)) < len(processes),
        "senders_clocks": any(row["clock_offset_ns"] is not None for row in rows),
    }
