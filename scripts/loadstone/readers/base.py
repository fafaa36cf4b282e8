"""What every reader has in common: the columns it yields, and how it tells what it could not read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

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
            found.append(f"holds {self.corrupt_records} corrupt record{plural} (line{plural} {lines}{more})")
        return found


Reader = Callable[[Path, Problems], Iterator[pa.RecordBatch]]
