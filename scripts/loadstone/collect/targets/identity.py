"""Asking a target who it is, so that never another server is measured."""

import hashlib
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

from loadstone.collect.targets.base import RunFailedError

_CONFIRMATIONS = 3
_LARGEST_BODY = 256 << 20


def identify(request: Mapping[str, Any], expect: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    """Ask the target who it is, several times in a row: status, headers and body must be the expected ones.

    Returns what was seen (status, headers that were checked, SHA-256 and length of the body). Raises RunFailedError
    when another server, or none, answers.
    """
    for _ in range(_CONFIRMATIONS):
        seen = _fingerprint(request, timeout_s)
        faults = _faults(seen, expect)
        if faults:
            raise RunFailedError(f"{request['url']} is not the expected server, nothing was sent: " + "; ".join(faults))
    kept = {name.lower(): seen["headers"][name.lower()] for name in expect.get("headers", {})}
    return {
        "status": seen["status"],
        "headers": kept,
        "body_sha256": seen["body_sha256"],
        "body_bytes": len(seen["body"]),
    }


def _faults(seen: Mapping[str, Any], expect: Mapping[str, Any]) -> list[str]:
    faults = []
    if seen["status"] != expect["status"]:
        faults.append(f"status {seen['status']} instead of {expect['status']}")
    for name, value in expect.get("headers", {}).items():
        if seen["headers"].get(name.lower()) != value:
            faults.append(f"header {name}: {seen['headers'].get(name.lower())!r} instead of {value!r}")
    if expect.get("body_sha256", seen["body_sha256"]) != seen["body_sha256"]:
        faults.append(f"a body with SHA-256 {seen['body_sha256']} instead of {expect['body_sha256']}")
    if expect.get("body_contains", "").encode() not in seen["body"]:
        faults.append(f"a body without {expect['body_contains']!r}")
    return faults


def _fingerprint(request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    headers = {name: ", ".join(values) for name, values in request.get("header", {}).items()}
    body = request.get("body")
    try:
        status, answered, content = ask(
            request["method"], request["url"], headers, None if body is None else body.encode(), timeout_s
        )
    except (OSError, HTTPException, ValueError) as error:
        raise RunFailedError(f"{request['url']} does not answer: {error}") from None
    digest = hashlib.sha256(content).hexdigest()
    return {"status": status, "headers": answered, "body": content, "body_sha256": digest}


def ask(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout_s: float
) -> tuple[int, dict[str, str], bytes]:
    """One request, past any configured proxy. Status, headers by lower-case name, body."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    asked = urllib.request.Request(url, data=body, headers=dict(headers), method=method)  # noqa: S310 - schema: http(s)
    try:
        with opener.open(asked, timeout=timeout_s) as answer:
            return answer.status, _lower(answer.headers), _read(answer, timeout_s)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _lower(error.headers), _read(error, timeout_s)


def _read(answer: Any, timeout_s: float) -> bytes:
    """A body, all of it within the time; a server that drips bytes would otherwise hold the machine for ever."""
    deadline, body = time.monotonic() + timeout_s, bytearray()
    while part := answer.read1(1 << 16):
        body += part
        if time.monotonic() > deadline or len(body) > _LARGEST_BODY:
            raise TimeoutError(f"its body is not complete after {timeout_s:g} s and {len(body)} bytes")
    return bytes(body)


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
