"""What kind of failure a response was. The one place that says so.

Success is what vegeta counts as success: codes 200 to 399. Code 0 means that no complete response came; its kinds are
told by the texts of Go's standard library, which vegeta passes on. A status that a proxy gave by itself is a class of
its own, as is a 5xx that came from the service behind one; the names are those of `error_causes`.
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


# A 4xx is the service's where nothing is told.
_BY = ("_by_proxy", "_by_service")
_TOLD_APART = {"http_503": _BY, "http_5xx": _BY, "http_4xx": _BY[:1]}

_LONGEST = 1000  # of an error text that is looked at; a server can send megabytes


@lru_cache(maxsize=4096)
def error_class(code: int | None, error: str, answered_by: str | None = None) -> str | None:
    """The class of one response, None for success, and where the tool does not tell its code.

    ``http_503``, ``http_5xx``, each with ``_by_proxy`` or ``_by_service`` where the answer says so; ``http_4xx``, also
    ``http_4xx_by_proxy``; ``http_other``. For code 0 ``timeout``, ``refused``, ``reset``, ``dns``, ``tls``,
    ``client_limit`` or, when the text is unknown, ``no_response``.
    """
    if code is None or _SUCCESS[0] <= code < _SUCCESS[1]:
        return None
    if code == 0:
        return next((name for name, texts in _TEXTS if any(text in error for text in texts)), "no_response")
    name = {4: "http_4xx", 5: "http_5xx"}.get(code // 100, "http_other")
    if code == HTTPStatus.SERVICE_UNAVAILABLE:
        name = "http_503"
    by = f"_by_{answered_by}"
    return name + by if by in _TOLD_APART.get(name, ()) else name


def error_classes(codes: pa.Array, errors: pa.Array, answered_by: pa.Array) -> pa.Array:
    """The same for columns of equal length."""
    failed = pc.or_(pc.less(codes, _SUCCESS[0]), pc.greater_equal(codes, _SUCCESS[1]))
    if not pc.any(failed).as_py():
        return pa.nulls(len(codes), pa.string())
    rows = zip(codes.to_pylist(), errors.to_pylist(), answered_by.to_pylist(), strict=True)
    return pa.array([error_class(code, (error or "")[:_LONGEST], by) for code, error, by in rows], pa.string())
