"""The check before each run that a variant answers with its expected response, so that no other server is measured.

The requests use the variant's own connection settings and protocol, bypass any configured proxy, and follow redirects
like vegeta.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import httpcore

from loadstone.collect.targets.base import RunFailedError
from loadstone.config import redact
from loadstone.config.connection import H2C, HTTP1, HTTP2, Connection, address, host_port
from loadstone.config.redact import is_secret

_CONFIRMATIONS = 3
_POLL_S = 0.5
_LARGEST_BODY = 256 << 20
_MOST_REDIRECTS = 10
_REDIRECTS = (301, 302, 303, 307, 308)
_TO_GET = (301, 302, 303)  # of these, any method but HEAD becomes GET without a body
_SAFE = "%/:=&?~#+!$,;'@()*[]"  # characters of an address that stay as they are
_HEADERS = {"accept-encoding": "identity", "user-agent": "loadstone"}

# What `ask` raises when it gets no response.
NO_RESPONSE = (
    OSError,
    TypeError,
    ValueError,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)
# Part of an error of TLS -> what the user can do about it.
_REMEDIES = {
    "not valid for": "tls.server_name names another host to verify",
    "doesn't match": "tls.server_name names another host to verify",
    "CERTIFICATE_VERIFY_FAILED": "tls.ca of the variant names the authority that signed the certificate, and "
    "tls.insecure: true accepts any",
    "CERTIFICATE_REQUIRED": "the server requires a client certificate: tls.cert and tls.key of the variant",
    "EOF occurred": "the server may require a client certificate: tls.cert and tls.key of the variant",
    "HANDSHAKE_FAILURE": "the server may require a client certificate: tls.cert and tls.key of the variant",
}


@dataclass(frozen=True)
class Request:
    """One request; `headers` have one value per name."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


@dataclass(frozen=True)
class Response:
    """One response; `headers` are by lower-case name, `negotiated` are the protocol and the parameters of TLS."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    negotiated: Mapping[str, str]


def identify(
    declared: Mapping[str, Any],
    expect: Mapping[str, Any],
    timeout_s: float,
    connection: Connection,
    *,
    allowed: Callable[[str], bool] = lambda _: True,
) -> dict[str, Any]:
    """Send a declared request several times in a row: status, headers, body and protocol must be the expected ones.

    Returns the last response: status, headers that were checked, SHA-256 and length of the body, and what was
    negotiated. Raises RunFailedError when another server, or none, responds, or a redirect leads to a host that is not
    `allowed`.
    """
    sent = {name: ", ".join(values) for name, values in declared.get("header", {}).items()}
    content = declared["body"].encode() if declared.get("body") is not None else None
    request = Request(declared["method"], declared["url"], sent, content)
    for _ in range(_CONFIRMATIONS):
        try:
            response = ask(request, timeout_s, connection, allowed=allowed)
        except NO_RESPONSE as error:
            raise RunFailedError(f"{request.url} does not answer: {_explained(error)}") from None
        headers = {name.lower(): response.headers.get(name.lower()) for name in expect.get("headers", {})}
        seen = {
            "status": response.status,
            "headers": headers,
            "body_sha256": hashlib.sha256(response.body).hexdigest(),
            "body_bytes": len(response.body),
            "negotiated": dict(response.negotiated),
        }
        if faults := [*_faults(seen, response.body, expect, connection)]:
            raise RunFailedError(
                f"{request.url} is not the expected server, so no load was sent: {'; '.join(faults)}. Check the "
                "server. If `url` or `expect` of the variant is wrong, correct it and open a new campaign"
            )
    return seen | {"headers": redact.hidden(headers)}


def retried(
    attempt: Callable[[], dict[str, Any]], deadline: float, before_retry: Callable[[], object] = lambda: None
) -> dict[str, Any]:
    """The identity that `attempt` returns, which is called again while it raises RunFailedError, until `deadline`.

    A variant may need a moment after it was prepared, and a mesh until it routes to new pods. What `before_retry`
    raises ends it.
    """
    while True:
        try:
            return attempt()
        except RunFailedError:
            if time.monotonic() > deadline:
                raise
        before_retry()
        time.sleep(_POLL_S)


def _faults(seen: Mapping[str, Any], body: bytes, expect: Mapping[str, Any], connection: Connection) -> Iterator[str]:
    if seen["status"] != expect["status"]:
        yield f"status {seen['status']} instead of {expect['status']}"
    for name, value in expect.get("headers", {}).items():
        if seen["headers"][name.lower()] != value:
            if is_secret(name):
                yield f"another value of the header {name}, which is redacted"
                continue
            yield f"header {name}: {seen['headers'][name.lower()]!r} instead of {value!r}"
    if expect.get("body_sha256", seen["body_sha256"]) != seen["body_sha256"]:
        yield f"a body with SHA-256 {seen['body_sha256']} instead of {expect['body_sha256']}"
    if expect.get("body_contains", "").encode() not in body:
        yield f"a body without {expect['body_contains']!r}"
    if connection.protocol not in (None, protocol := seen["negotiated"]["protocol"]):
        yield f"the protocol {protocol} instead of {connection.protocol}"


def _explained(error: Exception) -> str:
    """The text of an error, with what the user can do about it."""
    text = str(error) or type(error).__name__
    remedy = next((remedy for part, remedy in _REMEDIES.items() if part in text), None)
    return f"{text}; {remedy}. After such a change, open a new campaign" if remedy else text


def ask(
    request: Request,
    timeout_s: float,
    connection: Connection,
    *,
    allowed: Callable[[str], bool] = lambda _: True,
) -> Response:
    """Send one request over a new connection, and follow redirects as Go does, to hosts that are `allowed`.

    Raises an error of `NO_RESPONSE`.
    """
    request = replace(request, headers=_HEADERS | {name.lower(): value for name, value in request.headers.items()})
    deadline = time.monotonic() + timeout_s
    backend = None
    if connection.resolve:
        backend = _Resolved(host_port(request.url), address(connection.resolve))
    for _ in range(_MOST_REDIRECTS + 1):
        with httpcore.ConnectionPool(
            ssl_context=connection.ssl_context() if urlsplit(request.url).scheme == "https" else None,
            http1=connection.protocol != H2C,
            http2=connection.protocol != HTTP1,
            network_backend=backend,
        ) as pool:
            response = _ask(pool, request, deadline, timeout_s, connection.server_name)
        location = response.headers.get("location")
        if response.status not in _REDIRECTS or not location:
            return response
        request = _redirected(request, response.status, quote(urljoin(request.url, location), safe=_SAFE))
        if not allowed(host := urlsplit(request.url).hostname or ""):
            raise ValueError(f"it redirects to {host}, which is not in target.allow")
    raise ValueError(f"more than {_MOST_REDIRECTS} redirects")


def _redirected(request: Request, status: int, url: str) -> Request:
    headers, method, body = dict(request.headers), request.method, request.body
    if status in _TO_GET and method != "HEAD":
        method, body = "GET", None
        headers.pop("content-type", None)
    if urlsplit(url).netloc != urlsplit(request.url).netloc:  # a declared Host and credentials are not for it
        headers = {name: value for name, value in headers.items() if name != "host" and not is_secret(name)}
    return Request(method, url, headers, body)


def _ask(
    pool: httpcore.ConnectionPool, request: Request, deadline: float, timeout_s: float, server_name: str | None
) -> Response:
    left_s = max(deadline - time.monotonic(), 0.001)
    extensions: dict[str, Any] = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), left_s)}
    if server_name:
        extensions["sni_hostname"] = server_name
    headers = [(name.encode(), value.encode()) for name, value in request.headers.items()]
    url = request.url.partition("#")[0]
    with pool.stream(request.method, url, headers=headers, content=request.body, extensions=extensions) as response:
        content = bytearray()
        for part in response.iter_stream():
            content += part
            # A server that sends byte by byte would otherwise hold the machine for ever.
            if time.monotonic() > deadline or len(content) > _LARGEST_BODY:
                raise TimeoutError(f"its body is not complete after {timeout_s:g} s and {len(content)} bytes")
        found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        return Response(response.status, found, bytes(content), _negotiated(response))


def _negotiated(response: httpcore.Response) -> dict[str, str]:
    """Protocol, version of TLS, cipher, and SHA-256 of the server's certificate; without TLS only the protocol."""
    tls = response.extensions["network_stream"].get_extra_info("ssl_object")
    is_http2 = response.extensions["http_version"] == b"HTTP/2"
    if tls is None:
        return {"protocol": H2C if is_http2 else HTTP1}
    return {
        "protocol": HTTP2 if is_http2 else HTTP1,
        "tls": tls.version().replace("TLSv", "TLS "),
        "cipher": tls.cipher()[0],
        "certificate": hashlib.sha256(tls.getpeercert(True)).hexdigest(),
    }


class _Resolved(httpcore.SyncBackend):
    """Connects to the address `to` where `name`, (host, port), is asked for."""

    def __init__(self, name: tuple[str, int], to: tuple[str, int]) -> None:
        self._name = name
        self._to = to

    def connect_tcp(self, host: str, port: int, *args: Any, **options: Any) -> httpcore.NetworkStream:
        host, port = self._to if (host, port) == self._name else (host, port)
        return super().connect_tcp(host, port, *args, **options)
