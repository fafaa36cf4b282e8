"""Removing credentials before anything is recorded or shown: in addresses, headers and environment variables."""

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

_USER = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/?#\"'<>]*@")
_SECRET = re.compile(
    r"(?i)authori[sz]ation|x[-_]auth|cookie|token|secret|passw|passphrase|[-_]pass$|[-_]pwd$|credential|bearer|jwt|"
    r"session[-_]?id|(?:access|account|api|auth|encryption|master|private|session|signing|ssh|subscription)[-_]?key"
)
_MARK = "redacted"
_MARKED = re.compile(rf"{_MARK} [0-9a-f]{{16}}")
_ROUNDS = 100_000  # so that a short password can't be guessed from its mark


def is_secret(name: str) -> bool:
    """Whether a header or an environment variable of this name holds a credential."""
    return bool(_SECRET.search(name))


def has_user(url: str) -> bool:
    """Whether an address names a user (``http://user:password@host``)."""
    return bool(_USER.search(url))


def text(content: str) -> str:
    """The text without the users and passwords of the addresses in it."""
    return _USER.sub(r"\1", content)


@lru_cache(maxsize=1000)
def mark(name: str, value: str) -> str:
    """The mark of a credential in the archive: equal for equal values of one name. A mark is returned unchanged."""
    if _MARKED.fullmatch(value):
        return value
    digest = hashlib.pbkdf2_hmac("sha256", value.encode("utf-8", "surrogatepass"), name.lower().encode(), _ROUNDS)
    return f"{_MARK} {digest.hex()[:16]}"


def marked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Headers or variables (values are texts or lists of texts) with a mark in place of each credential.

    An address with a user is a credential, whatever its name.
    """

    def change(name: str, value: str) -> str:
        return mark(name, value) if is_secret(name) or has_user(value) else value

    return _changed(values, change)


def hidden(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same for pages: credentials and their marks become one word, and users are removed from addresses."""

    def change(name: str, value: str) -> str:
        return f"({_MARK})" if is_secret(name) or _MARKED.fullmatch(value) else text(value)

    return _changed(values, change)


def inside(value: Any, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    """An object of a cluster, or part of one, with its variables (``name`` and ``value``) and texts changed."""
    if isinstance(value, list):
        return [inside(each, change) for each in value]
    if isinstance(value, str):
        return change({"": value})[""]
    if not isinstance(value, dict):
        return value
    name = value.get("name")
    if isinstance(name, str) and value.keys() == {"name", "value"}:
        return {"name": name, "value": change({name: value["value"]})[name]}
    return {key: inside(each, change) for key, each in value.items()}


def _changed(values: Mapping[str, Any], change: Callable[[str, str], str]) -> dict[str, Any]:
    def each(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [each(name, one) for one in value]
        is_text = isinstance(value, str) or (value is not None and is_secret(name))
        return change(name, str(value)) if is_text else value

    return {name: each(name, value) for name, value in values.items()}
