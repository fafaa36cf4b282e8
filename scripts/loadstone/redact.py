"""What is never written down or shown: credentials in addresses, and in headers and variables named after them."""

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

_USER = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/?#\"'<>]*@")
_SECRET = re.compile(r"(?i)authori[sz]ation|cookie|token|secret|passw|api[-_]?key|credential")
_MARK = "redacted"
_MARKED = re.compile(rf"{_MARK} [0-9a-f]{{16}}")
_ROUNDS = 100_000  # a short password must not be guessed from its mark


def is_secret(name: str) -> bool:
    """Whether a header or an environment variable of this name holds a credential."""
    return bool(_SECRET.search(name))


def has_user(url: str) -> bool:
    """Whether an address names a user (``http://user:password@host``)."""
    return bool(_USER.search(url))


def text(content: str) -> str:
    """The text without the users and passwords of the addresses in it."""
    return _USER.sub(r"\1", content)


def mark(name: str, value: str) -> str:
    """What stands for a credential in the archive: the same for equal ones of one name. A mark stands for itself."""
    if _MARKED.fullmatch(value):
        return value
    digest = hashlib.pbkdf2_hmac("sha256", value.encode("utf-8", "surrogatepass"), name.lower().encode(), _ROUNDS)
    return f"{_MARK} {digest.hex()[:16]}"


def marked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Headers or variables (values are texts or lists of texts) with a mark in place of each credential."""
    return {name: _each(value, partial(mark, name)) if is_secret(name) else value for name, value in values.items()}


def hidden(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same for readers: credentials, and their marks, become a word."""
    return {name: _each(value, lambda _: f"({_MARK})") if is_secret(name) else value for name, value in values.items()}


def _each(value: Any, change: Callable[[str], str]) -> Any:
    return [change(str(one)) for one in value] if isinstance(value, list) else change(str(value))
