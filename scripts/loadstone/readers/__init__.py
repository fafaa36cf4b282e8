"""Raw files of every format as the same record batches, reports and samples.

A format is one module; registering it is one line in `FORMATS`. Its functions take a path, compressed by zstd when it
is named ``.zst``, and a `Problems` to fill in. They raise LoadstoneError only for what the user has to mend on the
machine (a missing program), never for what a file holds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timezone
from pathlib import Path
from typing import Any

from loadstone.readers import (
    artillery,
    figures,
    hdr,
    hey_csv,
    k6_csv,
    k6_json,
    k6_summary,
    k6_text,
    resource_usage,
    resources,
    summary_table,
    vegeta_csv,
    vegeta_gob,
    vegeta_json,
    vegeta_summary,
    vegeta_text,
)
from loadstone.readers.base import ANSWERED_SCHEMA, SCHEMA, Problems, Reader, Report, ReportReader

# The zone is that of times that a tool wrote without one; None: nobody says it.
SampleReader = Callable[[Path, Problems, timezone | None], Iterator[dict[str, Any]]]
# The unit is that of latencies which were written without one; None: nobody says it.
UnitReader = Callable[[Path, Problems, str | None], Report | None]


@dataclass(frozen=True)
class Format:
    """What files of one name hold, and who reads it.

    `generator` is the tool that leaves such files; None: the metadata say. `requests` gives batches of `SCHEMA` within
    bounded memory, with any of the columns ``phase``, ``stream``, ``offset_ns``, ``answered_by`` and ``generator``
    more; `report` the tool's own
    figures, `bare_report` those of a file that may lack its unit, `samples` rows of resources one by one. A file may
    hold several of these. Latencies are given in whole `resolution_ns`; None: not known.
    """

    generator: str | None = None
    requests: Reader | None = None
    report: ReportReader | None = None
    bare_report: UnitReader | None = None
    samples: SampleReader | None = None
    resolution_ns: float | None = None

    def reading(self, unit: str | None) -> ReportReader | None:
        """What reads such a file's report, if it has one; `unit` is that of latencies which were written without."""
        bare = self.bare_report
        return self.report if bare is None else lambda path, problems: bare(path, problems, unit)


# By the name behind the run (`archive.RawFile.format`). When a run holds the same twice, the first of these counts.
FORMATS: dict[str, Format] = {
    "results.json": Format(requests=vegeta_json.read, resolution_ns=1),
    "results.bin": Format(requests=vegeta_gob.read, resolution_ns=1),
    "results.csv": Format(requests=vegeta_csv.read, resolution_ns=1),
    "k6.json": Format("k6", requests=k6_json.read, resolution_ns=1),
    "k6.csv": Format("k6", requests=k6_csv.read, report=k6_csv.report, resolution_ns=1),
    "artillery.json": Format("artillery", requests=artillery.read, report=artillery.report, resolution_ns=1e6),
    "hey.csv": Format("hey", requests=hey_csv.read, resolution_ns=1e5),
    "summary.json": Format(report=vegeta_summary.report, resolution_ns=1),
    "vegeta.txt": Format("vegeta", report=vegeta_text.report, resolution_ns=1),
    "k6.summary.json": Format("k6", report=k6_summary.report, resolution_ns=1),
    "k6.txt": Format("k6", report=k6_text.report, resolution_ns=1),
    "hdr.csv": Format(bare_report=lambda path, problems, unit: hdr.report(path, problems, unit or hdr.DEFAULT_UNIT)),
    "summary.csv": Format(bare_report=summary_table.report),
    "resources.csv": Format(samples=lambda path, problems, _: resources.read(path, problems)),
    "resource-usage.log": Format(samples=resource_usage.read),
    "resource-summary.txt": Format(report=resource_usage.report),
    "figures.csv": Format(report=figures.report),
}
FORMATS |= {name.replace("results", "warmups"): FORMATS[name] for name in FORMATS if name.startswith("results.")}
RANKS = {name: rank for rank, name in enumerate(FORMATS)}

__all__ = ["ANSWERED_SCHEMA", "FORMATS", "RANKS", "SCHEMA", "Format", "Problems", "Reader", "Report", "ReportReader"]
