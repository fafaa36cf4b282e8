"""A raw file's requests with all columns of table `requests`, among them the phase and the class of a failure.

Success is what vegeta counts as success: codes 200 to 399; and what a reader marks as `ok`, such as status 0 of gRPC.
Any other code 0 means that no complete response came; its kinds are known by the texts of Go's standard library, which
vegeta passes on. A status that a proxy gave by itself is a class of
its own, as is a 5xx that came from the service behind one; the names are those of `error_causes`.
"""

from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from loadstone.archive.stages import Stage, phase_names
from loadstone.config import redact
from loadstone.readers import Problems, Reader
from loadstone.tables import schema

TEST, WARMUP = "test", "warmup"
_OUTSIDE = "outside"  # outside all phases that the tool names
_NEVER_MEASURED = ("setup", "teardown")  # unless asked for by name


def complete(
    batch: pa.RecordBatch, constant: dict[str, Any], measured: str | None = None, *, stamps_the_end: bool = False
) -> pa.RecordBatch:
    """A reader's batch with all columns of the `requests` table; `constant` has those that it may lack.

    `measured` is the tool's own name of the phase that is measured. The predecessor's serial mode (metadata 3 and 4)
    stamped a request when it had ended; `sent_at` is always the start.
    """
    columns = dict.fromkeys(("offset_ns", "answered_by", "generator"), pa.nulls(len(batch)))
    columns |= {name: batch.column(name) for name in batch.schema.names}
    if stamps_the_end:
        latency = columns["latency_ns"].cast(pa.duration("ns"))
        columns["sent_at"] = pc.subtract(columns["sent_at"], latency)
    if "phase" in columns:
        columns["phase"] = _phases(columns["phase"], measured)
    codes = columns["code"]
    if "ok" in columns:
        codes = pc.if_else(columns.pop("ok"), _SUCCESS[0], codes)
    columns["error_class"] = error_classes(codes, columns["error"], columns["answered_by"])
    for name in constant.keys() - columns.keys():
        columns[name] = pa.repeat(constant[name], len(batch))
    columns["error"] = _redacted(columns["error"])
    return pa.RecordBatch.from_pydict(columns, schema.TABLES["requests"])


def _redacted(errors: pa.Array) -> pa.Array:
    """Texts of errors without credentials in the addresses that they quote."""
    if not pc.any(pc.match_substring(errors, "=")).as_py():
        return errors
    texts = errors.unique().to_pylist()
    redacted = pa.array([text and redact.text(text) for text in texts], errors.type)
    return redacted.take(pc.index_in(errors, pa.array(texts, errors.type)))


def _phases(named: pa.Array, measured: str | None) -> pa.Array:
    """`measured` becomes ``test``; others keep the tool's own name unless that is ``test``."""
    named = named.cast(pa.string())
    if measured != TEST:
        named = pc.if_else(pc.equal(named, TEST), f"{TEST} (not measured)", named)
    is_measured = pc.equal(named, measured) if measured is not None else pc.is_null(named)
    return pc.fill_null(pc.if_else(is_measured, TEST, named), TEST if measured is None else _OUTSIDE)


def bordering(batch: pa.RecordBatch, measured: str | None) -> int:
    """Requests of a reader's batch that are of the measured phase or of one next to it (``A / B``), unknown which."""
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
    """The phase of the last request that is not of setup or teardown; None when there is none."""
    last = None
    for batch in reader(path, Problems()):
        if "phase" not in batch.schema.names:
            return None
        named = batch.column("phase").cast(pa.string()).drop_null()
        named = named.filter(pc.invert(pc.is_in(named, pa.array(_NEVER_MEASURED))))
        last = named[-1].as_py() if len(named) else last
    return last


# --- the class of a failure -------------------------------------------------------------------------------------------

_SUCCESS = (200, 400)  # from, below
_GRPC_BELOW, _DEADLINE_EXCEEDED = 17, 4  # statuses of gRPC

# In this order: "lookup x: i/o timeout" is a failure of name resolution, not a slow answer.
_TEXTS = (
    ("client_limit", ("too many open files", "cannot assign requested address", "no buffer space available")),
    ("dns", ("no such host", "server misbehaving", "name resolution", ": lookup ")),
    ("refused", ("connection refused",)),
    ("timeout", ("deadline exceeded", "Client.Timeout", "timeout", "timed out")),
    ("tls", ("tls:", "x509:", "certificate")),
    (
        "reset",
        ("connection reset", "broken pipe", "EOF", "server closed", "connection closed", "GOAWAY", "stream error"),
    ),
)

# A 4xx is the service's unless the answer names a proxy.
_BY = ("_by_proxy", "_by_service")
_CLASSES_BY_SENDER = {"http_503": _BY, "http_5xx": _BY, "http_4xx": _BY[:1]}

_LONGEST = 1000  # of an error text that is looked at; a server can send megabytes


@lru_cache(maxsize=4096)
def error_class(code: int | None, error: str, answered_by: str | None = None) -> str | None:
    """The class of one response, None for success, and where the tool does not give its code.

    ``http_503``, ``http_5xx``, each with ``_by_proxy`` or ``_by_service`` where the answer says so; ``http_4xx``, also
    ``http_4xx_by_proxy``; ``http_other``. For code 0 ``timeout``, ``refused``, ``reset``, ``dns``, ``tls``,
    ``client_limit`` or, when the text is unknown, ``no_response``. For a status of gRPC ``timeout`` or ``grpc``.
    """
    if code is None or _SUCCESS[0] <= code < _SUCCESS[1]:
        return None
    if 0 < code < _GRPC_BELOW:
        return "timeout" if code == _DEADLINE_EXCEEDED else "grpc"
    if code == 0:
        return next((name for name, texts in _TEXTS if any(text in error for text in texts)), "no_response")
    name = {4: "http_4xx", 5: "http_5xx"}.get(code // 100, "http_other")
    if code == HTTPStatus.SERVICE_UNAVAILABLE:
        name = "http_503"
    by = f"_by_{answered_by}"
    return name + by if by in _CLASSES_BY_SENDER.get(name, ()) else name


def error_classes(codes: pa.Array, errors: pa.Array, answered_by: pa.Array) -> pa.Array:
    """The same for columns of equal length."""
    failed = pc.or_(pc.less(codes, _SUCCESS[0]), pc.greater_equal(codes, _SUCCESS[1]))
    if not pc.any(failed).as_py():
        return pa.nulls(len(codes), pa.string())
    rows = zip(codes.to_pylist(), errors.to_pylist(), answered_by.to_pylist(), strict=True)
    return pa.array([error_class(code, (error or "")[:_LONGEST], by) for code, error, by in rows], pa.string())
