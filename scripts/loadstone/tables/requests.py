"""A raw file's requests with all columns of table `requests`, each in its phase."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from loadstone.archive.stages import Stage, phase_names
from loadstone.readers import Problems, Reader
from loadstone.tables import schema
from loadstone.tables.error_class import error_classes

TEST, WARMUP = "test", "warmup"
_OUTSIDE = "outside"  # of all phases that the tool names
_NEVER_MEASURED = ("setup", "teardown")  # unless asked for by name


def complete(
    batch: pa.RecordBatch, constant: dict[str, Any], measured: str | None = None, *, stamps_the_end: bool = False
) -> pa.RecordBatch:
    """A reader's batch with all columns of the `requests` table; `constant` has those that it may lack.

    `measured` is the tool's own name of the phase that is measured. The predecessor's serial mode (metadata 3 and 4)
    stamped a request when it had ended; `sent_at` is always the start.
    """
    columns = {name: batch.column(name) for name in batch.schema.names}
    if stamps_the_end:
        latency = columns["latency_ns"].cast(pa.duration("ns"))
        columns["sent_at"] = pc.subtract(columns["sent_at"], latency)
    if "phase" in columns:
        columns["phase"] = _phases(columns["phase"], measured)
    columns.setdefault("offset_ns", pa.nulls(len(batch), pa.int64()))
    columns.setdefault("answered_by", pa.nulls(len(batch), pa.string()))
    columns["error_class"] = error_classes(columns["code"], columns["error"], columns["answered_by"])
    columns.setdefault("generator", pa.nulls(len(batch), pa.int32()))
    arrays = [
        _of_type(columns[field.name], field.type)
        if field.name in columns
        else pa.repeat(pa.scalar(constant[field.name], field.type), len(batch))
        for field in schema.REQUESTS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.REQUESTS)


def _of_type(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else column.cast(wanted)


def _phases(named: pa.Array, measured: str | None) -> pa.Array:
    """`measured` becomes ``test``; others keep the tool's own name unless that is ``test``."""
    named = named.cast(pa.string())
    if measured != TEST:
        named = pc.if_else(pc.equal(named, TEST), f"{TEST} (not measured)", named)
    is_measured = pc.equal(named, measured) if measured is not None else pc.is_null(named)
    return pc.fill_null(pc.if_else(is_measured, TEST, named), TEST if measured is None else _OUTSIDE)


def bordering(batch: pa.RecordBatch, measured: str | None) -> int:
    """Requests of a reader's batch that are of the measured phase or of one beside it (``A / B``), unknown which."""
    if measured is None or "phase" not in batch.schema.names:
        return 0
    named = batch.column("phase").cast(pa.string())
    among = pc.match_substring(pc.binary_join_element_wise("", named, "", " / "), f" / {measured} / ")
    return pc.sum(pc.and_(among, pc.not_equal(named, measured))).as_py() or 0


def in_stages(batch: pa.RecordBatch, stages: Sequence[Stage]) -> pa.RecordBatch:
    """Requests that are not measured, with the stage of each as column ``phase``: they are numbered through all."""
    names, ends = phase_names(stages)
    if not names or "phase" in batch.schema.names:
        return batch
    index = np.searchsorted(ends, batch.column("seq").to_numpy(zero_copy_only=False), side="right")
    return batch.append_column("phase", pa.array(names).take(pa.array(np.minimum(index, len(names) - 1))))


def last_phase(reader: Reader, path: Path) -> str | None:
    """The phase of a file's last request that is in one that can be meant; None when no request is."""
    last = None
    for batch in reader(path, Problems()):
        if "phase" not in batch.schema.names:
            return None
        named = batch.column("phase").cast(pa.string()).drop_null()
        named = named.filter(pc.invert(pc.is_in(named, pa.array(_NEVER_MEASURED))))
        last = named[-1].as_py() if len(named) else last
    return last
