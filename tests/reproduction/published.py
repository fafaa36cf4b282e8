"""The published figures of the real archive (aggregates.csv), and what each cell must hold to give all of them."""

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Key = tuple[str, str, str]  # timestamp, canonical variant, rate as written
KINDS = ("latency", "success_latency", "error", "error_503", "error_0", "error_other")
SUMMARIES, RAW = "vegeta-summaries", "all-raw-data"

# As "vegeta-summaries" and "all-raw-data" are named in table comparisons; the second is the spread's column.
COLUMNS = {
    ("latency", SUMMARIES): "vegeta_summaries_mean_ns",
    ("latency", RAW): "all_raw_data_mean_ns",
    ("success_latency", RAW): "all_raw_data_ok_mean_ns",
    ("error", SUMMARIES): "error_fraction",
    ("error_503", SUMMARIES): "error_503_fraction",
    ("error_0", SUMMARIES): "error_0_fraction",
    ("error_other", SUMMARIES): "error_other_fraction",
}


@dataclass(frozen=True)
class Figure:
    """One mean with its spread, in seconds or as a fraction, and the largest error with which each was read."""

    mean: float
    std: float | None
    mean_error: float = 0.0
    std_error: float = 0.0


@dataclass(frozen=True)
class Published:
    """One row of the file. `sources` are the timestamps whose `runs` runs it joins."""

    comparison: str
    sources: tuple[str, ...]
    runs: int
    variant: str
    rate: str
    kind: str
    method: str
    figure: Figure


@dataclass
class Target:
    """What one cell must give: figures by kind and method, over `runs` runs."""

    runs: int
    figures: dict[tuple[str, str], Figure] = field(default_factory=dict)


def read(path: Path) -> Iterator[Published]:
    """The figures of graphs 1 to 19, and the error fractions that stood as numbers in a script."""
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["graph"] == "hatch-plot" or row["graph"].startswith("bookinfo_shiver_"):
                yield _published(row)


def _published(row: dict[str, str]) -> Published:
    def number(name: str) -> float | None:
        return float(row[name]) if row[name] else None

    latency = row["kind"].endswith("latency")
    mean, std = ("mean_s", "std_s") if latency else ("error_rate", "error_rate_std")
    graph = "bookinfo_shiver_12" if row["graph"] == "hatch-plot" else row["graph"]
    # Graphs 8 and 14 were drawn twice: of one campaign, and joined with later ones.
    first = graph in ("bookinfo_shiver_8", "bookinfo_shiver_14") and ";" not in row["timestamps"]
    return Published(
        comparison=f"{graph}-first" if first else graph,
        sources=tuple(row["source_timestamps"].split(";")),
        runs=int(row["source_runs"]),
        variant=row["variant"],
        rate=row["rate"],
        kind=row["kind"],
        method=row["method"],
        figure=Figure(
            number(mean) or 0.0, number(std), number("mean_precision") or 0.0, number("std_precision") or 0.0
        ),
    )


def targets(figures: list[Published]) -> dict[Key, Target]:
    """What every cell must hold. Where a figure joins cells of which one alone is unknown, that one follows."""
    found: dict[Key, Target] = {}
    for published in figures:
        for timestamp in published.sources:
            found.setdefault(
                (timestamp, published.variant, published.rate), Target(published.runs // len(published.sources))
            )
    readings = defaultdict(list)
    for published in figures:
        what = published.kind, published.method
        readings[published.sources, published.variant, published.rate, what].append(published.figure)
    for (sources, variant, rate, what), several in sorted(readings.items(), key=lambda item: len(item[0][0])):
        _share(_middle(several), [found[timestamp, variant, rate] for timestamp in sources], what)
    return found


def _middle(readings: list[Figure]) -> Figure:
    """The same figure read from several graphs: the middle between the lowest and the highest reading."""
    means = [figure.mean for figure in readings]
    stds = [figure.std for figure in readings if figure.std is not None]
    return Figure(
        (min(means) + max(means)) / 2,
        (min(stds) + max(stds)) / 2 if stds else None,
        max(figure.mean_error for figure in readings),
        max(figure.std_error for figure in readings),
    )


def _share(figure: Figure, parts: list[Target], what: tuple[str, str]) -> None:
    """Give the cells without this figure what is left of the joined one: equal cells, if there are several."""
    known = [(part.runs, part.figures[what]) for part in parts if what in part.figures]
    unknown = [part for part in parts if what not in part.figures]
    if not unknown:
        return
    # Means and second moments of joined runs are weighted by the number of runs (or requests, which is the same here).
    total = sum(part.runs for part in parts)
    left = sum(part.runs for part in unknown)
    mean = (total * figure.mean - sum(runs * own.mean for runs, own in known)) / left
    std = None
    if figure.std is not None:
        second = total * (figure.std**2 + figure.mean**2) - sum(
            runs * ((own.std or 0) ** 2 + own.mean**2) for runs, own in known
        )
        std = max(0.0, second / left - mean**2) ** 0.5
    for part in unknown:
        part.figures[what] = Figure(
            max(mean, 0.0), std, figure.mean_error * total / left, figure.std_error * total / left
        )
