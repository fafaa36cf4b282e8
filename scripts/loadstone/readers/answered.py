"""Who answered a request that failed with an HTTP status: a proxy by itself, or the service behind it.

Only what a response says of itself counts. Envoy's own replies (also as a service mesh's sidecar) have texts of their
own, and a response that it passes on carries how long the upstream took; Linkerd names its own errors in a header.
(Envoy: source/common/router/router.cc and source/common/http/conn_manager_impl.cc, texts of sendLocalReply;
https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/router_filter.)
"""

import base64
import binascii

PROXY, SERVICE = "proxy", "service"

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

HEAD = 128  # characters of base64 that are looked at: 96 bytes of a body
_BODY = b'"body":"'


def answered_by(body: bytes, headers: bytes) -> str | None:
    """``proxy``, ``service``, or None where nothing tells.

    `body` is the start of the response's body, `headers` holds their names in any writing.
    """
    if body.startswith(_OWN_REPLIES):
        return PROXY
    headers = headers.lower()
    if _PROXY_HEADER in headers:
        return PROXY
    return SERVICE if _PASSED_ON in headers else None


def of_line(line: bytes) -> str | None:
    """The same for a line of vegeta's JSON. No text within it can hold an unescaped quote, as the keys have."""
    start = line.find(_BODY) + len(_BODY)
    end = line.find(b'"', start)
    return answered_by(decoded(line[start:end]), line[end:])


def decoded(encoded: bytes, *, whole: bool = False) -> bytes:
    """The start of what base64 holds, or the `whole`; empty when that is none."""
    try:
        return base64.b64decode(encoded if whole else encoded[:HEAD], validate=True)
    except (binascii.Error, ValueError):
        return b""
