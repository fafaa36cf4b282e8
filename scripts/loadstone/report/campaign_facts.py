"""What a campaign page says of the campaign in words: what its figures rest on, and its facts."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from loadstone.archive.metadata import Metadata
from loadstone.archive.stages import TEST, WARMUP, Stage
from loadstone.report import clock_resolution, clusters
from loadstone.report.labels import LOAD_MODELS
from loadstone.report.numbers import counted, duration, joined, span, when
from loadstone.report.queries import Row

if TYPE_CHECKING:
    from loadstone.report.campaign_page import CampaignPage

_MOST_SHAPES = 3


def rests_on(page: "CampaignPage") -> str:
    """How many of the planned runs the page's figures rest on, in words."""
    # A run of which only the load generator's report is left counts in comparisons; here it can't.
    reported = sum(run["evidence"] != "raw" and not run["excluded"] for run in page.runs)
    counting = len(page.runs) - len(page.excluded) - reported
    left_out = f"{len(page.excluded):,} left out"
    if reported:
        left_out += (
            f"; of {reported:,} of them there is only what the load generator reported, below as it reported it "
            "and in no other figure"
        )
    if page.runs and reported == len(page.runs):
        return (
            f"{counted(reported, 'run')}; only what the load generator reported is there, shown as it did and pooled "
            "with nothing."
        )
    if page.planned is None:
        runs = counted(counting + reported, "run")
        return f"{runs}; {left_out}. How many were planned was not recorded."
    text = f"{page.planned_collected or 0:,} of {counted(page.planned, 'planned run')} collected; {left_out}"
    return (
        f"{text}."
        if not page.excluded and not reported
        else f"{text}, so the figures rest on {counted(counting, 'run')}."
    )


def facts(page: "CampaignPage") -> list[tuple[str, str]]:
    """Headline facts as (term, description); what neither tables nor metadata say is not listed."""
    runs, cells = page.runs, page.metadata
    models = joined(LOAD_MODELS.get(run["load_model"], run["load_model"]) for run in runs)
    labels = {f"{key}: {value}" for run in runs for key, value in (run["labels"] or {}).items()}
    per_cell = sorted({cell["n_runs"] for cell in page.cells})
    found = [
        ("Application", page.campaign.app),
        ("Host", page.campaign.host),
        ("Opened", f"{when(page.campaign)} ({page.campaign.timestamp})"),
        ("Load model", models),
        ("Load", f"{span(page.rates)} {page.load_unit}" if page.rates else ""),
        ("Stages", _stages(cells)),
        ("Runs per cell", span(per_cell)),
        ("Requests", f"{sum(run['requests'] or 0 for run in runs):,}" if runs else ""),
        ("Latencies in steps of", _steps(runs)),
        ("Duration of a run", joined((_durations(run["duration_s"] for run in runs), *map(_iterations, cells)))),
        ("Warm-up", "" if _stages(cells) else _warmup(cells)),
        *_pods(page),
        ("Labels", ", ".join(sorted(labels))),
    ]
    return [(term, text) for term, text in found if text]


def _pods(page: "CampaignPage") -> Iterator[tuple[str, str]]:
    if told := clusters.replicas(page.metadata):
        yield "Replicas", told
        recorded = [record for cell in page.described for record in cell.records.values()]
        yield "Pods during a run", span(sum(count for _, count in record.pods) or None for record in recorded)
    else:
        yield "Replicas", joined(str(run["replicas"]) for run in page.runs if run["replicas"] is not None)


def _steps(runs: Sequence[Row]) -> str:
    coarse_ns = {run["resolution_ns"] for run in runs if (run["resolution_ns"] or 0) >= clock_resolution.COARSE_NS}
    return joined(map(clock_resolution.resolution_text, sorted(coarse_ns)))


def _durations(seconds: Iterable[float | None]) -> str:
    known = sorted({value for value in seconds if value is not None})
    if len(known) > 3:
        return f"{duration(known[0])} to {duration(known[-1])}"
    return ", ".join(map(duration, known))


def _iterations(cell: Metadata) -> str:
    """What ends a run of users who ask so often."""
    if (stage := cell.measured) is None or not stage.iterations:
        return ""
    return f"{counted(stage.iterations, 'iteration')} per user, at most {duration(stage.duration_s)}"


def _stages(cells: list[Metadata]) -> str:
    """What was sent one after another, where that is more than a warm-up and a test; of a few rates at most."""
    shapes = dict.fromkeys(
        ", ".join(map(_stage, cell.stages)) for cell in cells if {stage.name for stage in cell.stages} - {WARMUP, TEST}
    )
    shown = list(shapes)[:_MOST_SHAPES]
    more = [f"and {len(shapes) - len(shown)} more"] if len(shapes) > len(shown) else []
    return "; ".join([*shown, *more])


def _stage(stage: Stage) -> str:
    rate, to = f"{stage.rate or 0:g}", f"{stage.to or 0:g}"
    load = f"at {rate} requests/s" if rate == to else f"from {rate} to {to} requests/s"
    return f"{stage.name} {duration(stage.duration_s)} {load}{' (measured)' if stage.measured else ''}"


def _warmup(cells: list[Metadata]) -> str:
    lengths = {cell.warmup_duration_s for cell in cells}
    if not lengths - {None, 0.0}:
        return "none" if lengths == {0.0} else ""
    rates = span(cell.warmup_rate for cell in cells)
    lasting = " or ".join(duration(length) for length in sorted(lengths - {None}, key=float))  # type: ignore[arg-type]
    return f"{lasting} at {rates} requests/s" if rates else lasting
