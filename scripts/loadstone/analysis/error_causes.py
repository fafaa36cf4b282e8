"""Why requests failed, by code, text and responder: table `error_causes`. All causes are listed here.

`side` says where to look first: at the ``client`` (the load generator and its machine), at the ``server`` (everything
that is attacked), at a ``proxy`` before the service, or ``unknown``. Causes are recognised by texts that are known to
come from Go's standard library (vegeta, hey; k6 has its own texts: lib/netext/httpext/error_codes.go of v1.8.1) and
from Node.js (Artillery). Go writes "while awaiting headers" also while it connects, so the side of such a timeout is
unknown. An HTTP status is attributed to proxy or service only where the response says so (`requests.answered_by`).
Texts that match no cause are listed as they are.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from loadstone import sql
from loadstone.analysis import run_requests
from loadstone.analysis.run_requests import Source
from loadstone.archive import Campaign
from loadstone.tables import database

CLIENT, SERVER, PROXY, UNKNOWN = "client", "server", "proxy", "unknown"

# How many different texts of a run and stream are listed; the others are summed up by cause.
MOST_TEXTS = 40
_NO_RESPONSE = (0, 1)  # the code of a request without a complete response: from, below
_LAST = 1 << 31


@dataclass(frozen=True)
class Cause:
    """A cause, and how it is recognised: a code in the range `codes` (first, below), any of `texts`, who answered.

    `texts` are patterns of SQL's LIKE, separated by ``|``. Without `answered_by` it does not matter who answered.
    `text` describes it for readers.
    """

    cause: str
    side: str
    text: str
    texts: str = "%"
    codes: tuple[int, int] = _NO_RESPONSE
    answered_by: str | None = None


# The first match applies.
CAUSES = (
    Cause(
        "file_descriptors",
        CLIENT,
        "the load generator had no file descriptors left",
        "%too many open files%|%EMFILE%|%ENFILE%",
    ),
    Cause(
        "ports",
        CLIENT,
        "the load generator had no free port left for a connection",
        "%cannot assign requested address%|%EADDRNOTAVAIL%|%address already in use%|%EADDRINUSE%",
    ),
    Cause(
        "buffers", CLIENT, "the load generator's machine had no buffers left", "%no buffer space available%|%ENOBUFS%"
    ),
    Cause(
        "dns",
        CLIENT,
        "the name was not resolved",
        "%: lookup %|lookup %|%no such host%|%server misbehaving%|%name resolution%"
        "|%getaddrinfo%|%ENOTFOUND%|%EAI_AGAIN%|error_code 11__",
    ),
    Cause(
        "no_route",
        CLIENT,
        "no route through the network",
        "%no route to host%|%network is unreachable%|%network is down%|%host is down%"
        "|%EHOSTUNREACH%|%ENETUNREACH%|%ENETDOWN%",
    ),
    Cause(
        "timeout_connecting",
        CLIENT,
        "the connection was not established in time",
        "%dial%i/o timeout%|%connection timed out%|%connect ETIMEDOUT%|%while waiting for connection%|error_code 1211",
    ),
    Cause("timeout_tls", SERVER, "the TLS handshake did not finish in time", "%TLS handshake timeout%"),
    Cause("timeout_body", SERVER, "the headers arrived in time, the body did not", "%while reading body%"),
    Cause("timeout_headers", SERVER, "connected, but no headers in time", "%timeout awaiting response headers%"),
    Cause(
        "timeout_before_headers",
        UNKNOWN,
        "no headers in time, while connecting, in the TLS handshake or waiting for them",
        "%while awaiting headers%",
    ),
    Cause(
        "timeout",
        CLIENT,
        "the client's own timeout; the phase is unknown",
        "%deadline exceeded%|%Client.Timeout%|%timeout%|%timed out%|%ETIMEDOUT%|%ESOCKETTIMEDOUT%|error_code 1050",
    ),
    Cause("cancelled", CLIENT, "cancelled by the load generator", "%context canceled%|%operation was canceled%"),
    Cause(
        "request",
        CLIENT,
        "the load generator could not send such a request",
        "%unsupported protocol scheme%|%invalid argument%|%no Host in request%|%invalid URL%"
        "|%is blacklisted%|%hostname is blocked%|error_code 1020",
    ),
    Cause("refused", SERVER, "nobody listened", "%connection refused%|%ECONNREFUSED%|error_code 1212"),
    Cause(
        "tls",
        SERVER,
        "no TLS connection",
        "%tls:%|%x509:%|%certificate%|%HTTP response to HTTPS client%|%EPROTO%|error_code 13__",
    ),
    Cause("http2", SERVER, "HTTP/2 stream or connection ended", "%GOAWAY%|%GoAway%|%stream error%|%http2:%"),
    Cause(
        "malformed",
        SERVER,
        "the response was not HTTP",
        "%malformed HTTP%|%transport connection broken%|%Parse Error%|%HPE_%|error_code 1701",
    ),
    Cause("body_cut", SERVER, "the response was cut short", "%unexpected EOF%|%Premature close%"),
    Cause(
        "reset",
        SERVER,
        "the connection was reset",
        "%connection reset%|%broken pipe%|%ECONNRESET%|%EPIPE%|error_code 1220|error_code 1201",
    ),
    Cause(
        "closed",
        SERVER,
        "the connection was closed without a response",
        "%EOF|%server closed%|%connection closed%|%closed network connection%|%socket hang up%",
    ),
    Cause("redirects", SERVER, "redirected too often", "%stopped after % redirects%"),
    Cause("no_text", UNKNOWN, "no response, and no error text", ""),
    Cause("unknown", UNKNOWN, "no response, with an unknown error text"),
    Cause("grpc_deadline", CLIENT, "the client's own timeout for a gRPC call", codes=(4, 5)),
    Cause("grpc", SERVER, "a gRPC status other than OK", codes=(1, 17)),
    Cause("http_4xx_by_proxy", PROXY, "4xx by a proxy", codes=(400, 500), answered_by="proxy"),
    Cause("http_4xx", SERVER, "4xx", codes=(400, 500)),
    Cause("http_503_by_proxy", PROXY, "503 by a proxy", codes=(503, 504), answered_by="proxy"),
    Cause("http_503_by_service", SERVER, "503 by the service", codes=(503, 504), answered_by="service"),
    Cause("http_503", UNKNOWN, "503, by proxy or service", codes=(503, 504)),
    Cause("http_5xx_by_proxy", PROXY, "5xx by a proxy", codes=(500, 600), answered_by="proxy"),
    Cause("http_5xx_by_service", SERVER, "5xx by the service", codes=(500, 600), answered_by="service"),
    Cause("http_5xx", UNKNOWN, "5xx, by proxy or service", codes=(500, 600)),
    Cause("http_other", UNKNOWN, "a status that is neither success nor 4xx or 5xx", codes=(1, _LAST)),
)
BY_NAME = {each.cause: each for each in CAUSES}

# Causes by which the load generator ran out of a resource, and the share of requests from which that limits a run: its
# p99 may then be that of requests that were never sent.
EXHAUSTED = ("file_descriptors", "ports", "buffers")
EXHAUSTED_SHARE = 0.01


def rows(source: Source, facts: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of `error_causes` for the runs of a campaign (rows of `facts`), excluded ones too."""
    patterns = _patterns()
    source.connection.register("patterns", patterns)
    found = source.of_runs("error_causes", facts, also=patterns.to_pylist(), most=MOST_TEXTS)
    for fact, rows in zip(facts, found, strict=True):
        for row in rows:
            yield run_requests.key(fact) | row


def reported(connection: duckdb.DuckDBPyConnection, tables: Path, campaign: Campaign) -> list[dict[str, Any]]:
    """Rows of errors that are only known from the counts in a report (Artillery)."""
    database.add_view(connection, tables, "figures", [campaign])
    connection.register("patterns", _patterns())
    return database.rows(connection, sql.load("error_causes_reported"), most=MOST_TEXTS)


def exhausted(rows: Sequence[dict[str, Any]], requests: int | None) -> str | None:
    """Says that the load generator ran out of a resource in a run of so many requests; None where it did not.

    `rows` are those of `error_causes` of the run's main stream.
    """
    counts = Counter[str]()
    for row in rows:
        if row["cause"] in EXHAUSTED:
            counts[row["cause"]] += row["count"]
    if not requests or counts.total() < EXHAUSTED_SHARE * requests:
        return None
    parts = (f"{BY_NAME[cause].text} ({count:,})" for cause, count in counts.most_common())
    return f"{counts.total():,} of its {requests:,} requests failed at the client: {', '.join(parts)}"


def _patterns() -> pa.Table:
    """A row per text of each cause; the first match applies."""
    found = [
        {
            "rank": rank,
            "cause": each.cause,
            "side": each.side,
            "from_code": each.codes[0],
            "below_code": each.codes[1],
            "answered_by": each.answered_by,
            "text": text,
        }
        for rank, each in enumerate(CAUSES)
        for text in each.texts.split("|")
    ]
    return pa.Table.from_pylist(found)
