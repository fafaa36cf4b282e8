"""What all readers share: columns of requests, figures, problems, and the parsing of numbers and times."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

# A row is one request. `seq` counts in the order of sending, as far as the tool records it: latency over time and send
# lag depend on it. `sent_at` is the tool's time stamp in UTC, null where unknown or in steps above 2 % of the run.
# `code` 0 means that no complete response came, null that the tool does not record it.
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

# The same for tools that keep responses: who sent an unsuccessful one, see `vegeta_raw.answered_by`.
ANSWERED_SCHEMA = SCHEMA.append(pa.field("answered_by", pa.string()))

_NAMED_LINES = 5


@dataclass
class Problems:
    """What was wrong with one raw file. Filled in while its reader is consumed; complete when that has ended.

    `truncated` and `damaged` say why the rest of the file could not be read; the rows before are kept.
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

    def invalid(self, what: str) -> None:
        """Report that the file is not of its format, unless it is reported already that it could not be read."""
        self.corrupt_records = 0
        self.corrupt_lines.clear()
        if not self.texts():
            self.damaged = f"it is not a valid {what}"

    def texts(self) -> list[str]:
        """One phrase per problem, to follow the file's name; empty when everything was read."""
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


def bounded(figures: list[Any], most: int, problems: Problems) -> list[Any]:
    """The first `most` figures of a report; more of them are a problem."""
    if len(figures) > most:
        problems.damaged = problems.damaged or f"it has more than {most:,} figures; the rest is ignored"
    return figures[:most]


def batch_of(columns: Mapping[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Columns of equal length as a batch of `schema`; those that are not given are null."""
    nulls = pa.nulls(len(next(iter(columns.values()))))
    return pa.RecordBatch.from_pydict({name: columns.get(name, nulls) for name in schema.names}, schema)


_BATCH_ROWS = 1 << 14
_BATCH_TEXT = 32 << 20


def batches(rows: Iterable[tuple[Any, ...]], names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Requests as batches of `schema`, each within bounded memory; a row has the columns `names`, with ``error``."""
    waiting: list[tuple[Any, ...]] = []
    error, text = names.index("error"), 0

    def batch() -> pa.RecordBatch:
        return batch_of(dict(zip(names, zip(*waiting, strict=True), strict=True)), schema)

    for row in rows:
        waiting.append(row)
        text += len(row[error])
        if len(waiting) == _BATCH_ROWS or text >= _BATCH_TEXT:
            yield batch()
            waiting, text = [], 0
    if waiting:
        yield batch()


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
class Block:
    """One result within a document, or one row of a table: what becomes the file of a run.

    `kind` is the name of such a file after the run's number (``vegeta.txt``); `headings` are those above it, the
    highest first. `number` counts the blocks of this kind under these headings from 1, so the three name a block.
    `text` is the document's bytes from `start` on, in line `line` (from 1). A row has the table's line(s) of names in
    `head`, and in `labels` its texts in the columns that are not figures, by their names.
    """

    kind: str
    headings: tuple[str, ...]
    number: int
    text: bytes
    start: int
    line: int
    head: bytes = b""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        """The bytes of the run's file."""
        return self.head + self.text


@dataclass(frozen=True)
class Sample:
    """CPU and memory of one thing at one moment: the columns of table ``resources`` after its key, and a note's label.

    Times are in UTC; `asked_at` is when a round of samples was asked for. What is not known is None.
    """

    sampled_at: datetime
    scope: str
    name: str
    cpu_millicores: float | None
    memory_mib: float | None
    asked_at: datetime | None = None
    label: str | None = None


@dataclass(frozen=True)
class Phase:
    """A phase as it was declared to the tool: requests/s (or users) at its start and at its end; None: not known."""

    name: str
    duration_s: float | None = None
    rate: float | None = None
    to_rate: float | None = None


@dataclass
class Report:
    """What one file of a tool reports about a run, without single requests.

    `summary` has columns of table ``summaries`` after its key; what the tool does not report is absent.
    `facts` is what else the tables and checks need, by name: ``load_model``, ``started_at`` (ISO 8601 with offset),
    ``duration_s``, ``users``, ``clock_resolution_ns``, ``across_phases`` (see `artillery.report`).
    """

    summary: dict[str, Any] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    histogram: list[Bin] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)


# None when the file can't be read at all; `Problems` then has the reason.
ReportReader = Callable[[Path, Problems], Report | None]
# The unit is that of latencies without a unit of their own; None: not known.
UnitReader = Callable[[Path, Problems, str | None], Report | None]
# The zone is that of times without a zone of their own; None: not known.
SampleReader = Callable[[Path, Problems, timezone | None], Iterator[Sample]]


@dataclass(frozen=True)
class Format:
    """What files of one name hold, how imports recognize them, and which functions read them.

    `generator` is the tool that leaves such files; None: the metadata say. `requests` gives batches of `SCHEMA` within
    bounded memory, which may have any of the further columns ``phase``, ``stream``, ``offset_ns``, ``answered_by`` and
    ``generator``; `report` the tool's own figures, `unit_report` those of a file that may lack its unit, `samples` rows
    of resources one by one. A file may hold several of these. Latencies are given in whole `resolution_ns`; None: not
    known.

    An import recognizes a file by a regular expression: `begins` matches at its beginning, `contains` anywhere (text
    that may come after other text, as in a terminal or a Markdown document; ``^`` is the start of any line).
    `phases`: its requests may be of named phases of the run.

    A report's figures are compared with the run's requests: they may differ by the relative `rounding`, and, where
    `is_printed`, by one in their last digit. Where not `counts_requests`, a report without a number of requests is
    taken to be of all of them.
    """

    generator: str | None = None
    requests: Reader | None = None
    report: ReportReader | None = None
    unit_report: UnitReader | None = None
    samples: SampleReader | None = None
    resolution_ns: float | None = None
    begins: bytes = b""
    contains: bytes = b""
    phases: bool = False
    rounding: float = 0.001
    is_printed: bool = False
    counts_requests: bool = True

    def reading(self, unit: str | None) -> ReportReader | None:
        """The function that reads such a file's report, if it has one; `unit` is that of latencies without a unit."""
        read = self.unit_report
        return self.report if read is None else lambda path, problems: read(path, problems, unit)


# --- numbers and times as tools print them ----------------------------------------------------------------------------

UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 1000, "\u00b5s": 1000, "\u03bcs": 1000, "ns": 1}  # micro sign, Greek mu
DURATION_UNITS_NS = UNITS_NS | {"h": 3600 * 10**9, "m": 60 * 10**9}
NS_PER_MS = 1_000_000
LAST_NS = (1 << 63) - 1  # the last moment that nanoseconds since 1970 express, and Go's longest duration: 292 years

_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")
_PART = re.compile("([0-9]{1,19})(?:[.]([0-9]{0,18}))?(h|ms|us|\u00b5s|\u03bcs|ns|m|s)")


def number(text: str, unit: str = "") -> Fraction | None:
    """The exact value of a number without a sign that ends with `unit`; None when the text is anything else."""
    figure = text.removesuffix(unit)
    if (unit and figure == text) or _NUMBER.fullmatch(figure) is None:
        return None
    return Fraction(figure)


def ms_to_ns(text: str) -> float:
    """Nanoseconds of milliseconds as they are printed, computed in decimals: 64.96357 ms are 64963570 ns."""
    return float(Decimal(text) * NS_PER_MS)


def duration_ns(text: str) -> Fraction | None:
    """The exact nanoseconds of a duration as Go prints it (``1m0.043536637s``); None when the text is anything else.

    Parts may repeat and be in any order, as in Go's ParseDuration.
    """
    position, total = 0, Fraction(0)
    while part := _PART.match(text, position):
        integer, decimals, unit = part[1], part[2] or "", part[3]
        total += Fraction(int(integer + decimals) * DURATION_UNITS_NS[unit], 10 ** len(decimals))
        position = part.end()
    return total if text and position == len(text) and total <= LAST_NS else None


_COLUMNS = {
    "min": "min_ns",
    "minimum": "min_ns",
    "mean": "mean_ns",
    "avg": "mean_ns",
    "average": "mean_ns",
    "med": "p50_ns",
    "median": "p50_ns",
    "max": "max_ns",
    "maximum": "max_ns",
    "std": "std_ns",
    "stddev": "std_ns",
    "p999": "p999_ns",
}
PERCENTILES = {
    "50": "p50_ns",
    "75": "p75_ns",
    "90": "p90_ns",
    "95": "p95_ns",
    "99": "p99_ns",
    "99.9": "p999_ns",
}
_PERCENTILE = re.compile(r"p ?\(?([0-9.]{2,4})\)?|([0-9.]{2,4}) ?(?:p|%|th)(?: percentile)?")


def latency_column(statistic: str) -> str | None:
    """The column of ``summaries`` for a statistic of latency as tools call it: ``avg``, ``p(99)``, ``99th``."""
    if match := _PERCENTILE.fullmatch(statistic):
        return PERCENTILES.get(match[1] or match[2], _COLUMNS.get(statistic))
    return _COLUMNS.get(statistic)


def json_number(value: object) -> int | float | None:
    """A finite number of a JSON document, nearer to 0 than 1e18; None for anything else, truth values too."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e18 < value < 1e18:
        return None
    return value


def json_object(value: object) -> dict[str, Any]:
    """A value of a JSON document where an object is expected; empty when it is something else."""
    return value if isinstance(value, dict) else {}


def json_text(value: str) -> str:
    """A text of a JSON document, with lone surrogates escaped: tables can't hold them."""
    return value.encode("utf-8", "backslashreplace").decode()


def instant(text: str) -> datetime:
    """A time with its offset (ISO 8601), in UTC. Raises ValueError or OverflowError."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("it has no offset")
    return found.astimezone(UTC)


# --- what latencies mean ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Generator:
    """How one tool measures by default. `source` says how that is known.

    `starts_at` and `ends_at` bound its latency; `connecting`: whether that includes a new connection.
    `stamp` is what its time of a request marks, ``start`` or ``end`` (readers always give the start), ``offset`` when
    it counts from the start of the run, or ``none``. Latencies come in whole `resolution_ns`. `home` is its website.
    """

    generator: str
    load_models: tuple[str, ...]
    starts_at: str
    ends_at: str
    connecting: str
    stamp: str
    resolution_ns: float | None
    source: str
    home: str | None = None


# Where the latency of several tools begins and ends.
GO_CLIENT = "a worker is about to build the request and to hand it to Go's HTTP client"
BODY = "the last byte of the body has been read"
