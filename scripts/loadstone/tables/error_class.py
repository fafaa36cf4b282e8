"""What kind of failure a response was. The one place that says so.

Success is what vegeta counts as success: codes 200 to 399. Code 0 means that no complete response came; its kinds are
told by the texts of Go's standard library, which vegeta passes on.
"""

from functools import lru_cache
from http import HTTPStatus

import pyarrow as pa
import pyarrow.compute as pc

_SUCCESS = (200, 400)  # from, below

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


_LONGEST = 1000  # of an error text that is looked at; a server can send megabytes


@lru_cache(maxsize=4096)
def error_class(code: int, error: str) -> str | None:
    """The class of one response, None for success.

    ``http_503``, ``http_5xx``, ``http_4xx``, ``http_other``; for code 0 ``timeout``, ``refused``, ``reset``, ``dns``,
    ``tls``, ``client_limit`` or, when the text is unknown, ``no_response``.
    """
    if _SUCCESS[0] <= code < _SUCCESS[1]:
        return None
    if code == 0:
        return next((name for name, texts in _TEXTS if any(text in error for text in texts)), "no_response")
    if code == HTTPStatus.SERVICE_UNAVAILABLE:
        return "http_503"
    return {4: "http_4xx", 5: "http_5xx"}.get(code // 100, "http_other")


def error_classes(codes: pa.Array, errors: pa.Array) -> pa.Array:
    """The same for columns of equal length."""
    failed = pc.or_(pc.less(codes, _SUCCESS[0]), pc.greater_equal(codes, _SUCCESS[1]))
    if not pc.any(failed).as_py():
        return pa.nulls(len(codes), pa.string())
    pairs = zip(codes.to_pylist(), errors.to_pylist(), strict=True)
    return pa.array([error_class(code, error[:_LONGEST]) for code, error in pairs], pa.string())
