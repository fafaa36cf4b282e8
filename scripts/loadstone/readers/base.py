"""What every reader has in common: the columns it yields, and how it tells what it could not read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

# A row is one request. `sent_at` is as the tool stamped it, in UTC; `code` 0 means no complete response came.
SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("sent_at", pa.timestamp("ns")),
        ("latency_ns", pa.int64()),
        ("code", pa.int32()),
        ("error", pa.string()),
        ("bytes_out", pa.int64()),
        ("bytes_in", pa.int64()),
    ]
)

# The same of tools that keep responses: who gave an answer that is no success, see `loadstone.readers.answered`.
ANSWERED_SCHEMA = SCHEMA.append(pa.field("answered_by", pa.string()))

_NAMED_LINES = 5


@dataclass
class Problems:
    """What was wrong with one raw file. Filled in while its reader is consumed; complete when that has ended.

    `truncated` and `damaged` say why the rest of the file could not be read; the rows before that were kept.
    """

    truncated: str = ""
    damaged: str = ""
    corrupt_records: int = 0
    corrupt_lines: list[int] = field(default_factory=list)

    def corrupt(self, line: int) -> None:
        """Count one record that can't be understood; `line` counts from 1."""
        self.corrupt_records += 1
        if len(self.corrupt_lines) < _NAMED_LINES:
            self.corrupt_lines.append(line)

    def texts(self) -> list[str]:
        """One sentence part per problem, to stand behind the file's name; empty when all was read."""
        found = []
        if self.truncated:
            found.append(f"is truncated: {self.truncated}")
        if self.damaged:
            found.append(f"is damaged: {self.damaged}")
        if self.corrupt_records:
            lines = ", ".join(map(str, self.corrupt_lines))
            more = ", ..." if self.corrupt_records > len(self.corrupt_lines) else ""
            plural = "s" if self.corrupt_records > 1 else ""
            where = f" (line{plural} {lines}{more})" if lines else ""  # not every format has lines
            found.append(f"holds {self.corrupt_records} corrupt record{plural}{where}")
        return found


Reader = Callable[[Path, Problems], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Figure:
    """One figure that a tool printed of a run.

    `section` is what it is about within the run (a period's start, a phase, a scenario, a group; empty: all of it),
    `metric` and `statistic` are in the tool's own words (``http_req_duration``, ``p(95)``). `value` is in `unit`:
    ``ns``, ``bytes``, ``bytes/s``, ``requests/s``, ``millicores``, ``MiB``, ``share`` (0 to 1), or empty for a count.
    `text` is as printed.
    """

    section: str
    metric: str
    statistic: str
    value: float
    unit: str
    text: str


@dataclass(frozen=True)
class Bin:
    """How many requests took more than `lower_ns` and at most `upper_ns`."""

    lower_ns: float
    upper_ns: float
    count: int


@dataclass(frozen=True)
class Phase:
    """A phase as the tool was told it: requests/s (or users) at its start and at its end; None: not said."""

    name: str
    duration_s: float | None = None
    rate: float | None = None
    to_rate: float | None = None


@dataclass
class Report:
    """What one file of a tool says of a run besides single requests.

    `summary` holds columns of table ``summaries`` behind its key; what the tool does not say is absent. `samples` are
    rows as `loadstone.readers.resources.read` yields them. `said` is what else the tables and checks need, by name:
    ``load_model``, ``version``, ``started_at`` (ISO 8601 with offset), ``duration_s``, ``users``.
    """

    summary: dict[str, Any] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    histogram: list[Bin] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)


# None when the file can't be read at all; `Problems` then says why.
ReportReader = Callable[[Path, Problems], Report | None]
