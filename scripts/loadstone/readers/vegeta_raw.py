"""Vegeta's results: JSON lines (also as the predecessor's serial mode wrote them), CSV, and its binary form (gob).

The only module that knows vegeta's line format. A JSON line is decoded without the content of its body, which would
take several times as long where bodies are large. Binary results are decoded by vegeta itself, then read as its JSON
lines.
"""

import base64
import binascii
import codecs
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from subprocess import PIPE
from typing import Annotated, Any

import msgspec
import pyarrow as pa
from pyarrow import csv

from loadstone.process import Program, Supervisor
from loadstone.readers.base import (
    ANSWERED_SCHEMA,
    BODY,
    GO_CLIENT,
    LAST_NS,
    Format,
    Generator,
    Problems,
    batch_of,
    batches,
)
from loadstone.readers.stream import csv_records, decoded_lines, note_read_error, open_bytes, read_lines, whole_lines

_FAILED = 400  # the codes that say who failed

# --- JSON -------------------------------------------------------------------------------------------------------------

_BATCH_ROWS = 1 << 14
_BATCH_INPUT_BYTES = 32 << 20  # bounds a batch whose records are all long

# RFC 3339 with 0 to 9 decimals, within the years that nanoseconds can express; the day need not exist.
_TIME = (
    r"^(?:19|20|21)[0-9]{2}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$"
)
_GENERATOR = re.compile(r"generator-([0-9]{1,6})")
_SHARED_SCHEMA = ANSWERED_SCHEMA.append(pa.field("generator", pa.int32()))
_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Line(msgspec.Struct, gc=False):
    seq: _Count
    code: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    timestamp: str
    latency: Annotated[float, msgspec.Meta(ge=0, lt=1 << 53)]  # exact up to 104 days
    bytes_out: _Count = 0
    bytes_in: _Count = 0
    error: str | None = None
    attack: object = None


_Row = tuple[_Line, str | None, int]  # and who answered, and the number of the line

_decode = msgspec.json.Decoder(_Line).decode


def read_json(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `ANSWERED_SCHEMA` from ``.json`` or ``.json.zst``, in the file's order (that of completion).

    Where requests name one of several generators, as ``generator-3``, its number is the column ``generator``.
    """
    return parse_json(read_lines(path, problems), problems)


def parse_json(chunks: Iterator[tuple[bytearray, int]], problems: Problems) -> Iterator[pa.RecordBatch]:
    """The same from chunks of whole lines as `loadstone.readers.stream.whole_lines` yields them."""
    rows: list[_Row] = []
    lines, consumed_bytes = 0, 0
    for buffer, end in chunks:
        lines += _parse_chunk(buffer, end, rows, lines, problems)
        consumed_bytes += end
        if len(rows) >= _BATCH_ROWS or consumed_bytes >= _BATCH_INPUT_BYTES:
            yield from _json_batches(rows, problems)
            rows, consumed_bytes = [], 0
    yield from _json_batches(rows, problems)


def _parse_chunk(buffer: bytearray, end: int, rows: list[_Row], lines_before: int, problems: Problems) -> int:
    """Append the rows of ``buffer[:end]``; returns how many lines it holds."""
    find, decode = buffer.find, _decode
    position, lines, key_bytes = 0, 0, len(_BODY_KEY)
    while position < end:
        lines += 1
        line_end = find(b"\n", position, end)
        body = find(_BODY_KEY, position, line_end) + key_bytes
        behind_body = find(b'"', body, line_end)
        # Without a body there is nothing to leave out; one with a backslash is not base64.
        if body < key_bytes or behind_body < 0 or buffer[behind_body - 1] == _BACKSLASH:
            body = behind_body = line_end
        try:
            line = decode(buffer[position:body] + buffer[behind_body:line_end])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if buffer[position:line_end].strip():
                problems.corrupt(lines_before + lines)
        else:
            answered = _answered_in_line(bytes(buffer[position:line_end])) if line.code >= _FAILED else None
            rows.append((line, answered, lines_before + lines))
        position = line_end + 1
    return lines


def _sent_at(rows: list[_Row]) -> pa.Array | None:
    """The times of these rows; None if one of them is no time."""
    import pyarrow.compute as pc  # noqa: PLC0415 - pages import all readers, and this takes a tenth of that time

    times = pa.array([line.timestamp for line, _, _ in rows], pa.string())
    if not pc.all(pc.match_substring_regex(times, _TIME), min_count=0).as_py():
        return None
    try:
        return pc.cast(times, pa.timestamp("ns", "UTC"))
    except pa.ArrowInvalid:  # no such day
        return None


def _json_batches(rows: list[_Row], problems: Problems) -> Iterator[pa.RecordBatch]:
    """A batch of these rows, without those whose time is none; nothing without any row."""
    import pyarrow.compute as pc  # noqa: PLC0415 - as in `_sent_at`

    sent_at = _sent_at(rows)
    if sent_at is None:
        timed = [row for row in rows if _sent_at([row]) is not None]
        for number in sorted({number for _, _, number in rows} - {number for _, _, number in timed}):
            problems.corrupt(number)
        rows, sent_at = timed, _sent_at(timed)
    if not rows:
        return
    lines = [line for line, _, _ in rows]
    attacks = [line.attack if isinstance(line.attack, str) else "" for line in lines]
    named = [_GENERATOR.fullmatch(attack) if attack else None for attack in attacks]
    columns = {
        "generator": pa.array([found and int(found[1]) for found in named], pa.int32()),
        "seq": pa.array([line.seq for line in lines]),
        "code": pa.array([line.code for line in lines]),
        "sent_at": sent_at,
        "latency_ns": pc.round(pa.array([line.latency for line in lines])),
        "bytes_out": pa.array([line.bytes_out for line in lines]),
        "bytes_in": pa.array([line.bytes_in for line in lines]),
        "error": pa.array([line.error or "" for line in lines]),
        "answered_by": pa.array([answered for _, answered, _ in rows], pa.string()),
    }
    # Nearly all runs are of one generator, and name none.
    yield batch_of(columns, ANSWERED_SCHEMA if columns["generator"].null_count == len(rows) else _SHARED_SCHEMA)


# --- CSV --------------------------------------------------------------------------------------------------------------

_COLUMNS = ("sent_at", "code", "latency_ns", "bytes_out", "bytes_in", "error", "body", "attack", "seq")
_MORE_COLUMNS = ("method", "url", "headers")  # since v12.8
_NAMES = _COLUMNS + _MORE_COLUMNS
# The columns of the response, by the number of columns.
_RESPONSE = {len(_COLUMNS): ["body"], len(_NAMES): ["body", "headers"]}
_SENT_AT, _CODE, _LATENCY, _BYTES_OUT, _BYTES_IN, _ERROR, _BODY, _SEQ, _HEADERS = 0, 1, 2, 3, 4, 5, 6, 8, 11
_NUMBER = re.compile(r"[0-9]{1,18}")
_UNIX_NS = re.compile(r"[0-9]{1,19}")
# Columns of numbers, with their most digits.
_DIGITS = dict.fromkeys(("seq", "latency_ns", "code", "bytes_out", "bytes_in"), 18) | {"sent_at": 19}
_BYTES = "surrogateescape"  # bytes that are not UTF-8 pass unchanged


def read_csv(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `ANSWERED_SCHEMA` from ``.csv`` or ``.csv.zst``, in the file's order.

    Columns, without a header line: Unix nanoseconds, code, latency, bytes out, bytes in, error, body, attack, seq, and
    since v12.8 method, url, headers. Windows line ends are accepted.

    Arrow parses lines without quotes in a tenth of the time of Python's csv. That parses the rest of the file, from the
    first lines on that have quotes or a corrupt record.
    """
    blocks = read_lines(path, problems)
    width = lines = 0
    for buffer, end in blocks:
        block = bytes(memoryview(buffer)[:end])
        columns = width or block.split(b"\n", 1)[0].count(b",") + 1
        if (batch := _csv_batch(block, columns)) is None:
            rows = _csv_rows(decoded_lines(chain([(buffer, end)], blocks), _BYTES), width, lines, problems)
            yield from batches(rows, ANSWERED_SCHEMA.names, ANSWERED_SCHEMA)
            return
        width, lines = columns, lines + block.count(b"\n")
        yield batch


def _csv_batch(block: bytes, width: int) -> pa.RecordBatch | None:
    """Whole lines as a batch; None unless each is a record without quotes that `_csv_row` accepts."""
    import pyarrow.compute as pc  # noqa: PLC0415 - as in `_sent_at`

    if width not in _RESPONSE or b'"' in block or b"\r" in block or block.startswith(codecs.BOM_UTF8):
        return None
    try:
        read = _csv_columns(block, width, [*_DIGITS, "error"])
        columns = {"error": read["error"]}
        for name, digits in _DIGITS.items():
            texts = read[name]
            if not pc.all(pc.ascii_is_decimal(texts)).as_py() or pc.max(pc.binary_length(texts)).as_py() > digits:
                return None
            columns[name] = texts.cast(pa.int64()).cast(ANSWERED_SCHEMA.field(name).type)
        answers = pa.nulls(len(read), pa.string())
        failed = pc.greater_equal(columns["code"], _FAILED)
        if pc.any(failed).as_py():
            responses = _csv_columns(block, width, _RESPONSE[width]).filter(failed).to_pydict()
            found = [_answered(*response) for response in zip(*responses.values(), strict=True)]
            answers = pc.replace_with_mask(answers, failed, pa.array(found, pa.string()))
    except ValueError:  # another number of columns, bytes that are not UTF-8, too large a number, no record
        return None
    return batch_of(columns | {"answered_by": answers}, ANSWERED_SCHEMA)


def _csv_columns(block: bytes, width: int, names: list[str]) -> pa.RecordBatch:
    """Some of the `width` columns of whole lines, as text. Raises ValueError as Arrow does."""
    (read,) = csv.read_csv(
        pa.BufferReader(block),
        csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=_NAMES[:width]),
        csv.ParseOptions(quote_char=False),
        csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[], include_columns=names),
    ).to_batches()
    return read


def _csv_rows(lines: Iterator[str], width: int, before: int, problems: Problems) -> Iterator[tuple[Any, ...]]:
    """Rows of the lines after the first `before`, whose records have `width` columns (0: as many as the next one)."""
    for line, record in csv_records(lines, problems, before):
        width = width or len(record)
        row = _csv_row(record) if len(record) == width else None
        if row is None:
            problems.corrupt(line)
        else:
            yield row


def _csv_row(record: list[str]) -> tuple[Any, ...] | None:
    """The fields in the order of `ANSWERED_SCHEMA`, or None when the record is corrupt."""
    if len(record) not in _RESPONSE or _UNIX_NS.fullmatch(record[_SENT_AT]) is None:
        return None
    numbers = [record[column] for column in (_SEQ, _LATENCY, _CODE, _BYTES_OUT, _BYTES_IN)]
    if any(_NUMBER.fullmatch(number) is None for number in numbers):
        return None
    sent_at_ns, error = int(record[_SENT_AT]), record[_ERROR]
    seq, latency_ns, code, bytes_out, bytes_in = map(int, numbers)
    if sent_at_ns > LAST_NS or code >= 1 << 31 or not _is_utf8(error):
        return None
    headers = record[_HEADERS] if len(record) > _HEADERS else ""
    answered = _answered(record[_BODY], headers) if code >= _FAILED else None
    return seq, sent_at_ns, latency_ns, code, error, bytes_out, bytes_in, answered


def _answered(body: str, headers: str = "") -> str | None:
    return answered_by(_decoded(body.encode(errors=_BYTES)), _decoded(headers.encode(errors=_BYTES), full=True))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- the binary form --------------------------------------------------------------------------------------------------

_COPY_BYTES = 1 << 18
_LOG_TIME = re.compile(r"[0-9/]{10} [0-9:]{8} ")

# A message of gob is at most 1 GiB. Vegeta reads anything else as lines of any length, which needs a limit.
MOST_BYTES = 3 << 30


def read_gob(path: Path, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of `SCHEMA` from ``.bin`` or ``.bin.zst``. Raises LoadstoneError when vegeta is missing.

    A consumer that stops early ends the program too.
    """
    with tempfile.TemporaryDirectory() as folder, Supervisor() as supervisor:
        readable, writable = os.pipe()
        feed_problems = Problems()
        feeder = threading.Thread(target=_feed, args=(path, writable, feed_problems), daemon=True)
        with os.fdopen(readable, "rb") as content:  # closing it ends the feeder, also when there is no program
            feeder.start()
            command = ["vegeta", "encode", "--to", "json"]
            log = Path(folder) / "log"
            program = Program(command, supervisor, log, stdin=content, stdout=PIPE, most_bytes=MOST_BYTES)
        try:
            decoded = whole_lines(lambda buffer: os.readv(program.stdout.fileno(), [buffer]), problems)
            yield from parse_json(decoded, problems)
            code = program.wait()
            feeder.join()
            with log.open("rb") as printed:
                ran_out = lacked_memory(printed.readline(1000))
            if code and ran_out:
                problems.damaged = f"it takes more than {MOST_BYTES / (1 << 30):g} GiB of memory to decode"
            elif feed_problems.texts():  # what is wrong with the compressed bytes comes first: the rest follows from it
                problems.truncated, problems.damaged = feed_problems.truncated, feed_problems.damaged
            else:
                _explain_exit(code, program.tail(1), problems)
        finally:
            program.stop(grace_s=0)
            program.stdout.close()
            feeder.join()


def lacked_memory(first_line: bytes) -> bool:
    """By the first line of a Go program's crash; one in a hundred uses the memory it was refused and gets SIGSEGV."""
    return b"memory" in first_line or first_line.startswith(b"SIGSEGV")


def _explain_exit(code: int, printed: str, problems: Problems) -> None:
    """What vegeta's exit code and last line say of the file."""
    if "unexpected EOF" in printed:
        problems.truncated = "it ends in the middle of a record"
    elif code or "can't detect" in printed:
        why = _LOG_TIME.sub("", printed.strip())  # else a table would differ each time that it is made
        problems.damaged = f"vegeta can't decode it ({why or f'exit code {code}'})"


def _feed(path: Path, writable: int, problems: Problems) -> None:
    """Copy a file's decompressed content into a pipe and close that, whether or not all of it was taken."""
    copied_bytes = 0
    with os.fdopen(writable, "wb", buffering=0) as pipe:
        try:
            with open_bytes(path) as stream:
                while chunk := stream.read(_COPY_BYTES):
                    copied_bytes += len(chunk)
                    pipe.write(chunk)
        except BrokenPipeError:
            pass
        except OSError as error:
            note_read_error(error, problems)
    if not copied_bytes and not problems.texts():
        problems.truncated = "it is empty"


# --- who answered -----------------------------------------------------------------------------------------------------

# Who answered a request that failed with an HTTP status: a proxy by itself, or the service behind it. Only what a
# response says of itself counts. Envoy's own replies (also as a service mesh's sidecar) have texts of their own, and a
# response that it passes on carries how long the upstream took; Linkerd names its own errors in a header.
# (Envoy: source/common/router/router.cc and source/common/http/conn_manager_impl.cc, texts of sendLocalReply;
# https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/router_filter.)

_PROXY, _SERVICE = "proxy", "service"

# How the bodies of Envoy's own replies begin.
_OWN_REPLIES = (
    b"upstream connect error or disconnect/reset before headers",
    b"no healthy upstream",
    b"upstream request timeout",
    b"upstream max stream duration reached",
    b"stream timeout",
    b"downstream duration timeout",
    b"local_rate_limited",
    b"RBAC: access denied",
    b"fault filter abort",
    b"envoy overloaded",
)
_PROXY_HEADER = b"l5d-proxy-error"
_PASSED_ON = b"x-envoy-upstream-service-time"

_BODY_START = 128  # characters of base64 that are looked at: 96 bytes of a body
_BODY_KEY = b'"body":"'
_BACKSLASH = ord("\\")


def answered_by(body: bytes, headers: bytes) -> str | None:
    """``proxy``, ``service``, or None where nothing says it.

    `body` is the start of the response's body, `headers` holds their names in any writing.
    """
    if body.startswith(_OWN_REPLIES):
        return _PROXY
    headers = headers.lower()
    if _PROXY_HEADER in headers:
        return _PROXY
    return _SERVICE if _PASSED_ON in headers else None


def _answered_in_line(line: bytes) -> str | None:
    """The same for a line of vegeta's JSON. No text within it can hold an unescaped quote, as the keys have."""
    start = line.find(_BODY_KEY) + len(_BODY_KEY)
    end = line.find(b'"', start)
    return answered_by(_decoded(line[start:end]), line[end:])


def _decoded(encoded: bytes, *, full: bool = False) -> bytes:
    """The beginning of decoded base64, or all of it if `full`; empty when it is invalid."""
    try:
        return base64.b64decode(encoded if full else encoded[:_BODY_START], validate=True)
    except (binascii.Error, ValueError):
        return b""


FORMATS = {
    "results.json": Format(requests=read_json, resolution_ns=1, begins=rb'\s*\{"attack":'),
    "results.bin": Format(requests=read_gob, resolution_ns=1, begins=rb"(?s).{0,64}Result.{0,200}Attack.{0,20}Seq"),
    "results.csv": Format(requests=read_csv, resolution_ns=1, begins=rb"\d{16,19},\d{1,3},\d+,\d+,\d+,"),
}

_VEGETA = Generator(
    generator="vegeta",
    load_models=("open",),
    starts_at=GO_CLIENT,
    ends_at=BODY,
    connecting="included: name look-up, TCP and TLS of a new connection",
    stamp="start",
    resolution_ns=1,
    source="source of v12.13.0: lib/attack.go, Attacker.hit (time.Since of the timestamp, after io.ReadAll)",
    home="https://github.com/tsenart/vegeta",
)
_SERIAL = replace(
    _VEGETA,
    generator="serial",
    load_models=("serial",),
    source="source: envs/tools/serial/main.go, which sends through vegeta's own Attacker.hit. Up to version 4 of the "
    "metadata: the predecessor's collector, which stamped the end",
)
GENERATORS = (_VEGETA, _SERIAL)
