"""Files that a sweep gives to its load generator: values of headers that are drawn, and a user's own script."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone.config import redact
from loadstone.errors import LoadstoneError

_MODULES = (".js", ".mjs", ".cjs", ".ts")


def draws(declared: Mapping[str, Any]) -> dict[str, list[str]]:
    """Headers of which each request takes one of several values, drawn at random: one per line of a file.

    Raises LoadstoneError when there are none.
    """
    found = {}
    for name, source in declared.get("draw", {}).items():
        try:
            lines = Path(source["file"]).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise LoadstoneError(f"values of the header {name} can't be read: {source['file']}: {reason}") from None
        if not (values := [line.strip() for line in lines if line.strip()]):
            raise LoadstoneError(f"{source['file']} holds no value of the header {name}: one is expected per line")
        found[name] = values
    return found


def drawn(name: str, values: Sequence[str]) -> dict[str, Any]:
    """What is recorded of the values: how many, and a mark that tells whether they changed, never what they are."""
    return {"values": len(values), "mark": redact.mark(name, "\n".join(values))}


def script(declared: Mapping[str, Any], files: Iterable[str] = ()) -> dict[str, Any]:
    """A user's own script as it is recorded: content and digest, and what is given to it, without credentials.

    `files` are those that it reads besides, relative to its folder: modules are recorded likewise, of others, which
    may hold credentials, a mark. Raises LoadstoneError when one can't be read.
    """
    path = Path(declared["file"])
    found = {"file": declared["file"]} | _module(path, declared["file"])
    found["environment"] = redact.marked(declared.get("environment", {}))
    read = {name: _module(path.parent / name, name) if _is_module(name) else _opened(path, name) for name in files}
    return found | ({"files": read} if read else {})


def changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two scripts as `script` gives them, one phrase each."""
    if not was or not now:
        return ["sweep.script"] if was or now else []
    phrases = [f"sweep.script.{name}" for name in ("file", "environment") if was.get(name) != now.get(name)]
    phrases += ["the content of sweep.script.file"] if was.get("sha256") != now.get("sha256") else []
    before, after = was.get("files", {}), now.get("files", {})
    return phrases + [
        f"the content of {name}, which it reads"
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def _is_module(name: str) -> bool:
    return Path(name).suffix in _MODULES


def _module(path: Path, name: str) -> dict[str, str]:
    content = _content(path, name)
    try:
        return {"sha256": hashlib.sha256(content).hexdigest(), "content": content.decode()}
    except ValueError:
        raise LoadstoneError(f"the script {name} can't be read: it is no text") from None


def _opened(script_file: Path, name: str) -> dict[str, str]:
    digest = hashlib.sha256(_content(script_file.parent / name, name)).hexdigest()
    return {"mark": redact.mark(name, digest)}


def _content(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no name of a file"
        raise LoadstoneError(f"the script {name} can't be read: {reason}") from None
