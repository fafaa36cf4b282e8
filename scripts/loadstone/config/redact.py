"""Removing credentials before anything is recorded or shown: in addresses, headers and environment variables.

Headers of responses and parameters of URLs are redacted by name (`Names`): the defaults below, changed by the
configuration's `redact`. Headers of requests and environment variables are also recognised by parts of their names
(`is_secret`), because a sweep declares them and may call them anything.
"""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

# Headers that carry a credential or a session by their specification (RFC 6265, 7615, 9110) or by wide use.
HEADERS = (
    "Set-Cookie", "Cookie", "Authorization", "Proxy-Authorization", "Authentication-Info", "Proxy-Authentication-Info",
    "X-Api-Key", "Api-Key", "X-Auth-Token", "X-Access-Token", "X-Csrf-Token", "X-Xsrf-Token", "X-Session-Id",
    "X-Session-Token", "X-Amz-Security-Token", "X-Goog-Api-Key", "X-Vault-Token", "X-Functions-Key",
    "Ocp-Apim-Subscription-Key", "Private-Token", "X-Shopify-Access-Token",
)  # fmt: skip
# Parameters of OAuth 2 and OpenID Connect, of presigned URLs (S3, Google Cloud Storage, Azure), of API keys, passwords
# and sessions. Names that are more often something else are left: code, state, user, id, hash, nonce.
QUERY = (
    "access_token", "api_key", "apikey", "assertion", "auth", "auth_token", "AWSAccessKeyId", "client_assertion",
    "client_secret", "credential", "id_token", "jsessionid", "jwt", "key", "pass", "passphrase", "passwd", "password",
    "pwd", "refresh_token", "secret", "session", "session_id", "sessionid", "sid", "sig", "signature",
    "subscription-key", "token", "X-Amz-Credential", "X-Amz-Security-Token", "X-Amz-Signature", "X-Goog-Credential",
    "X-Goog-Signature",
)  # fmt: skip

# Group 1 is what precedes the user of an address, also in JSON with escaped slashes, group 2 the user; also for Go.
_USER_PATTERN = r"(?i)(\b[a-z][a-z0-9+.-]{0,30}:(?:\\?/){2})([^\s/?#\"'<>\\]*)@"
_USER = re.compile(_USER_PATTERN)
_USER_IN_BYTES = re.compile(_USER_PATTERN.encode())
_EQUALS = re.compile(rb"=|%3[Dd]")
_USER_NAME = "user@"  # in `Removed`: no parameter's name
_SECRET = re.compile(
    r"(?i)authori[sz]ation|x[-_]auth|cookie|token|secret|passw|passphrase|(?:^|[-_])pass$|[-_]pwd$|credential|bearer|jwt|"
    r"session[-_]?id|(?:access|account|api|auth|encryption|functions|master|private|session|signing|ssh|subscription)[-_]?key"
)
_MARK = "redacted"
_MARKED = re.compile(rf"{_MARK}[ -][0-9a-f]{{16}}")
_VARIABLE = "LOADSTONE_REDACT"  # environment variable with the names for all processes of a command, as JSON
_MOST_NAMES = 1000  # of metadata, which somebody else may have written
_ROUNDS = 100_000  # so that a short password can't be guessed from its mark


def _normal(name: str) -> str:
    return name.lower().replace("_", "-")


@dataclass(frozen=True)
class Names:
    """The headers and URL parameters whose values are redacted; upper and lower case, ``-`` and ``_`` are the same."""

    headers: tuple[str, ...] = HEADERS
    query: tuple[str, ...] = QUERY

    @classmethod
    def of(cls, declared: Mapping[str, Any]) -> "Names":
        """The defaults and what `redact` adds, without what it keeps."""
        kept = set(map(_normal, declared.get("keep", ())))
        found = ((*own, *declared.get(part, ())) for part, own in (("headers", HEADERS), ("query", QUERY)))
        return cls(
            *(tuple({_normal(name): name for name in each if _normal(name) not in kept}.values()) for each in found)
        )

    def fields(self) -> dict[str, list[str]]:
        """As metadata record them."""
        return {"headers": list(self.headers), "query": list(self.query)}

    def settings(self) -> dict[str, Any]:
        """As `paced` and `serial` read them (envs/tools/redact)."""
        return {"headers": sorted(self._headers), "pattern": self.pattern, "user": _USER_PATTERN}

    def holds(self, name: str) -> bool:
        return self.has_header(name) or _normal(name) in map(_normal, self.query)

    def has_header(self, name: str) -> bool:
        return _normal(name) in self._headers

    @cached_property
    def _headers(self) -> frozenset[str]:
        return frozenset(map(_normal, self.headers))

    @property
    def pattern(self) -> str:
        r"""Group 1 is what precedes the value of a parameter, group 2 its name, group 3 the value; also for Go.

        Letters may be percent-encoded, and so may be an address that is itself the value of a parameter. In JSON, ``&``
        may be ``\u0026``, and a quotation mark ends the value.
        """
        if not self.query:
            return "()()()[^\\s\\S]"  # matches nothing
        names = "|".join("".join(map(_letter, name)) for name in sorted(self.query, key=len, reverse=True))
        before = r"(?:[?&#;]|\\u0026|%3F|%26|%23|%3B)"
        key = r"(?:\[[^\]=&\s]{0,100}\]|%5B[^=&\s]{0,100}?%5D)?"
        return rf"(?i)({before}({names}){key}(?:=|%3D))((?:[^&#\s\"\\]|\\[^\"u])*)"

    @cached_property
    def _parameter(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def text(self, content: str, removed: "Removed | None" = None, by: Callable[[str, str], str] | None = None) -> str:
        """The text with `by` (name, value) in place of users and values of parameters, by default a word."""

        def changed(name: str, value: str) -> str:
            if removed is not None and value:
                removed.query[name] += 1
            return by(name, value) if by else _MARK

        content = _USER.sub(lambda found: f"{found[1]}{changed(_USER_NAME, found[2])}@", content)
        return self._parameter.sub(lambda found: found[1] + changed(found[2], found[3]), content)

    def encoded(self, content: bytes, removed: "Removed") -> bytes:
        """The same for bytes such as lines of JSON: equal strings, which are many, are searched once."""
        if b"@" in content:
            content, users = _USER_IN_BYTES.subn(rb"\1" + _MARK.encode() + b"@", content)
            removed.query.update({_USER_NAME: users} if users else {})
        parts, at = [], 0
        while equals := _EQUALS.search(content, at):
            start = max(at, content.rfind(b'"', at, equals.start()) + 1)
            end = content.find(b'"', equals.start())
            end = len(content) if end < 0 else end
            text, found = self._piece(content[start:end])
            parts += [content[at:start], text]
            if found:
                removed.query.update(found)
            at = end
        return b"".join([*parts, content[at:]])

    @cached_property
    def _piece(self) -> Callable[[bytes], tuple[bytes, Counter[str]]]:
        parameter = re.compile(self.pattern.encode())

        @lru_cache(maxsize=4096)
        def redacted(content: bytes) -> tuple[bytes, Counter[str]]:
            found = Counter(match[2].decode() for match in parameter.finditer(content) if match[3])
            return parameter.sub(rb"\1" + _MARK.encode(), content), found

        return redacted


def _letter(letter: str) -> str:
    """A pattern of a letter of a name, as it is or percent-encoded."""
    if letter in "-_":
        return "(?:[-_]|%2D|%5F)"
    codes = {f"%{ord(each):02X}" for each in (letter.lower(), letter.upper())}
    return f"(?:{'|'.join((re.escape(letter), *sorted(codes)))})"


@dataclass
class Removed:
    """How many values were removed, by the name of their header or parameter."""

    headers: Counter[str] = field(default_factory=Counter)
    query: Counter[str] = field(default_factory=Counter)

    def fields(self) -> dict[str, dict[str, int]]:
        """As metadata and records of runs have it; empty when nothing was removed."""
        return {part: dict(sorted(counts.items())) for part, counts in vars(self).items() if counts}

    def add(self, fields: Mapping[str, Mapping[str, int]]) -> None:
        self.headers.update(fields.get("headers", {}))
        self.query.update(fields.get("query", {}))


def configure(declared: Mapping[str, Any]) -> None:
    """Set the names for this process and all that it starts, from the configuration's `redact`."""
    os.environ[_VARIABLE] = json.dumps(Names.of(declared).fields())


def names() -> Names:
    """The names of this process."""
    return _names(os.environ.get(_VARIABLE, ""))


@lru_cache(maxsize=16)
def _names(fields: str) -> Names:
    return Names(**{part: tuple(each) for part, each in json.loads(fields).items()}) if fields else Names()


@contextmanager
def using(recorded: object, *, own: bool = False) -> Iterator[None]:
    """The names that metadata record (`Names.fields`), none of earlier versions; with `own` this process's too."""
    before, found = os.environ.get(_VARIABLE), names().fields() if own else {"headers": [], "query": []}
    for part in found:
        listed = recorded.get(part) if isinstance(recorded, dict) else None
        if isinstance(listed, list):
            found[part] += [name for name in listed[:_MOST_NAMES] if isinstance(name, str)]
    os.environ[_VARIABLE] = json.dumps(found)
    try:
        yield
    finally:
        os.environ.pop(_VARIABLE)
        if before is not None:
            os.environ[_VARIABLE] = before


def is_secret(name: str) -> bool:
    """Whether a header or an environment variable of this name holds a credential."""
    return bool(_SECRET.search(name)) or names().has_header(name)


def has_user(url: str) -> bool:
    """Whether an address names a user (``http://user:password@host``)."""
    return bool(_USER.search(url))


def text(content: str) -> str:
    """The text without the users, passwords and credentials in parameters of the addresses in it."""
    return names().text(_USER.sub(r"\1", content))


def marked_text(content: str) -> str:
    """The text with a mark in place of each user and each credential in a parameter of an address."""
    return names().text(content, by=lambda name, value: mark(name, value).replace(" ", "-"))


def texts(content: Any, change: Callable[[str], str] = text) -> Any:
    """Plain values with each text in them changed, by default as `text` does."""
    if isinstance(content, str):
        return change(content)
    if isinstance(content, dict):
        return {key: texts(value, change) for key, value in content.items()}
    return type(content)(texts(each, change) for each in content) if isinstance(content, (list, tuple)) else content


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
        return mark(name, value) if is_secret(name) or has_user(value) else marked_text(value)

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
