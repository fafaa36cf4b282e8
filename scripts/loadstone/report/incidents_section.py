"""What happened to a cluster's pods while they were attacked: to which runs, how often, and what became of those."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.archive.run_records import RunRecord
from loadstone.report.numbers import counted
from loadstone.report.queries import Questions, Row, in_order
from loadstone.tables.exclusion import DOUBTFUL

SHOWN = 200  # runs
_EACH = 12  # incidents of a run
_LONGEST = 300  # characters of a text from the cluster

# Kinds of incidents in words; the plain plural stands before a number. Kinds of later versions keep their own name.
WORDS = DOUBTFUL | {"warning": "warnings", "added": "pods created"}
# No incidents themselves: nobody knows what happened, or nobody wrote down the rest.
_UNKNOWN, _MORE = "unknown", "more"


@dataclass(frozen=True)
class Incidents:
    """`runs` to which anything happened, the worst first, and the `kinds` of what happened."""

    runs: list[Row]
    kinds: list[Row]


def gather(questions: Questions) -> Incidents:
    """Ask for everything that happened."""
    doubtful = list(DOUBTFUL)
    return Incidents(
        questions.rows("page_incidents", doubtful=doubtful, shown=SHOWN, each=_EACH),
        questions.rows("page_incident_kinds", doubtful=doubtful, shown=SHOWN),
    )


def context(found: Incidents, recorded: Sequence[RunRecord], labels: Mapping[str, str]) -> dict[str, Any]:
    """The variables of ``incidents.html``.

    `recorded` are the records of all runs, `labels` those of variants, in the order of charts and tables.
    """
    runs = sorted(in_order(found.runs, labels), key=lambda row: row["worst"])
    first = found.runs[0] if found.runs else {"n_runs": 0, "n_doubtful": 0, "n_doubtful_counting": 0}
    in_cluster = [record for record in recorded if record.in_cluster]
    aside = {kind["kind"]: kind["n_runs"] for kind in found.kinds}
    return {
        "incident_runs": [_run(row, labels) for row in runs],
        "incident_kinds": [
            kind | {"words": _words(kind["kind"]).capitalize(), "is_doubtful": kind["kind"] in DOUBTFUL}
            for kind in found.kinds
            if kind["kind"] not in (_UNKNOWN, _MORE)
        ],
        "n_incident_runs": first["n_runs"],
        "n_doubtful": first["n_doubtful"],
        "n_doubtful_counting": first["n_doubtful_counting"],
        "n_cluster_runs": len(in_cluster),
        "n_unwatched": sum(not record.watched for record in in_cluster),
        "n_incidents_unknown": aside.get(_UNKNOWN, 0),
        "n_incidents_more": aside.get(_MORE, 0),
    }


def _run(row: Row, labels: Mapping[str, str]) -> Row:
    return {
        "rate": row["rate"],
        "variant": labels.get(row["variant"], row["variant"]),
        "run": row["run"],
        "is_doubtful": row["is_doubtful"],
        "happened": ", ".join(map(_counted, row["kinds"])),
        "incidents": list(map(_told, row["incidents"])),
        "n_more": row["n_incidents"] - len(row["incidents"]),
        "meaning": _meaning(row),
    }


def _counted(kind: Row) -> str:
    if kind["kind"] == _UNKNOWN:
        return "not known"
    if kind["kind"] == _MORE:
        return "more than was recorded"
    return f"{_words(kind['kind'])}: {kind['n']:,}"


def _words(kind: str) -> str:
    return WORDS.get(kind, _cut(kind))


def _told(incident: Row) -> tuple[str, str]:
    """What it was about, and what happened."""
    about = incident["object"] or ""
    if incident["container"]:
        about += f", container {incident['container']}"
    text = str(incident["text"] or WORDS.get(incident["kind"], incident["kind"]))
    if incident["reason"] and incident["reason"] not in text:
        text = f"{incident['reason']}: {text}"
    times = f" ({incident['count']:,} times)" if incident["kind"] == "warning" and incident["count"] > 1 else ""
    return _cut(about), _cut(text) + times


def _meaning(row: Row) -> str:
    """What became of the run, in words."""
    if row["excluded"] is None:
        return "has no result"
    if row["excluded"]:
        return f"left out: {_cut(row['exclusion_reason'] or 'no reason recorded')}"
    if row["tags"]:
        return f"counts; tagged {_cut(', '.join(row['tags']))}"
    return f"counts; tag {row['suggested']} is suggested" if row["suggested"] else "counts"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def notice(incidents: Mapping[str, Any], n_runs: int) -> str:
    """What stands at the top of the page when a run's figures are in doubt, else nothing; `incidents` as `context`."""
    if not (doubtful := incidents["n_doubtful"]):
        return ""
    counting = incidents["n_doubtful_counting"]
    those = f"{counting:,} of these count" if counting else "none of these counts"
    those = "it counts" if doubtful == counting == 1 else "it is left out" if doubtful == 1 else those
    return (
        f"In {doubtful:,} of {counted(n_runs, 'run')} pods or containers died, restarted or were moved while load was "
        f"sent; {those} in the figures here."
    )
