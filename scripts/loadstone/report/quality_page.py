"""The page of data quality: what became of every planned run, what is wrong, and what to do about it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from loadstone.report.numbers import listed, rate_name
from loadstone.report.queries import Questions, Row, in_order
from loadstone.text import rate_text

Key = tuple[str, str, str]

SHOWN = 50  # problems, suggestions and cells with missing runs listed per campaign; beyond that their number is given
EXAMPLES = 5  # left-out runs named per reason
OUTSIDE = 50
_MOST_MARKS = 100_000  # runs of a site beyond which maps hold numbers instead of one mark per run

# State of a run (page_quality.sql) -> its mark, what a count of them is called, and what it means. The marks differ in
# shape, not in colour alone.
STATES = {
    "collected": ("■", "Counting, no tag suggested", "has a result that counts, and nothing is said against it"),
    "suggested": (
        "◆",
        "Counting, a tag suggested",
        "counts too, and a tag is suggested for it or its cell",
    ),
    "left out": ("◇", "Left out", "has a result that no statistic counts"),
    "failed": ("✕", "Failed", "was tried and gave no result"),
    "missing": ("□", "Missing", "was planned and never tried"),
}
_AMISS = ("suggested", "left out", "failed", "missing")


def key_of(row: Row) -> Key:
    """The campaign of a row."""
    return row["app"], row["host"], row["timestamp"]


def counts(cells: Iterable[Row]) -> dict[str, int]:
    """How many runs are in each state; `cells` are rows of ``page_quality.sql``."""
    found = Counter(run["state"] for cell in cells for run in cell["runs"])
    return {state: found[state] for state in STATES}


def total(entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The same over several campaigns."""
    entries = list(entries)
    return {state: sum(entry["counts"][state] for entry in entries) for state in STATES}


def context(questions: Questions, entries: Sequence[Mapping[str, Any]], outside: Sequence[str]) -> dict[str, Any]:
    """The variables of ``quality.html``; `entries` are those of `loadstone.report.index_page`."""
    exclusions = _by_campaign(questions.rows("page_exclusions", shown=EXAMPLES))
    problems = _by_campaign(questions.rows("page_problems", shown=SHOWN))
    missing = _by_campaign(questions.rows("page_missing"))
    suggested = _by_campaign(questions.rows("page_suggestions", shown=SHOWN))
    sums = total(entries)
    is_drawn = sum(sums.values()) <= _MOST_MARKS
    return {
        "states": STATES,
        "total": sums,
        "is_drawn": is_drawn,
        "campaigns": [
            {
                **entry,
                "map": _map(entry, is_drawn=is_drawn),
                "exclusions": [_exclusion(row, entry) for row in exclusions[entry["key"]]],
                "missing": in_order(missing[entry["key"]], entry["labels"]),
                "problems": in_order(problems[entry["key"]], entry["labels"]),
                "n_problems": _first(problems[entry["key"]], "n_problems"),
                "suggestions": in_order(suggested[entry["key"]], entry["labels"]),
                "n_suggestions": _first(suggested[entry["key"]], "n_suggestions"),
                "amiss": any(entry["counts"][state] for state in _AMISS),
            }
            for entry in entries
        ],
        "shown": SHOWN,
        "outside": outside[:OUTSIDE],
        "n_outside": len(outside),
    }


def _by_campaign(rows: list[Row]) -> defaultdict[Key, list[Row]]:
    grouped: defaultdict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[key_of(row)].append(row)
    return grouped


def _first(rows: Sequence[Row], name: str) -> int:
    return int(rows[0][name]) if rows else 0


def _exclusion(row: Row, entry: Mapping[str, Any]) -> Row:
    examples = [
        example | {"page": run_address(entry["page"], example) if example["shown"] else None}
        for example in in_order(row["examples"], entry["labels"])
    ]
    return row | {"examples": examples}


def run_address(page: str, run: Row) -> str:
    """Where a campaign's page shows one run, by its rate, variant and number."""
    chosen = {"rate": rate_name(run["rate"]), "variant": run["variant"], "run": run["run"]}
    return f"{page}#{urlencode(chosen, errors='backslashreplace')}"


def _map(entry: Mapping[str, Any], *, is_drawn: bool) -> dict[str, Any]:
    """Rates as rows, variants as columns; a cell is its runs' marks with the same in words."""
    labels = entry["labels"]
    by_place = {(cell["rate"], cell["variant"]): cell["runs"] for cell in entry["cells"]}
    rows = []
    for rate in sorted({rate for rate, _ in by_place}):
        cells = [by_place.get((rate, variant), []) for variant in labels]
        rows.append((rate_text(rate), [(_marks(runs) if is_drawn else "", _words(runs)) for runs in cells]))
    return {"variants": list(labels.values()), "rows": rows}


def _marks(runs: Sequence[Row]) -> Markup:
    """The marks of a cell; neighbours in one state share an element."""
    found = ""
    for position, run in enumerate(runs):
        state = run["state"]
        if position and runs[position - 1]["state"] == state:
            found = f"{found.removesuffix('</i>')}{STATES[state][0]}</i>"
        else:
            found += f'<i class="{state.replace(" ", "-")}">{STATES[state][0]}</i>'
    return Markup(found)  # noqa: S704 - made of `STATES` alone


def _words(runs: Sequence[Row]) -> str:
    """What a cell's marks say: ``runs 1–3 collected, run 4 failed``."""
    parts = []
    for state in STATES:
        numbers = [run["run"] for run in runs if run["state"] == state]
        if numbers:
            parts.append(f"{'run' if len(numbers) == 1 else 'runs'} {listed(numbers)} {state}")
    return ", ".join(parts) or "none planned"
