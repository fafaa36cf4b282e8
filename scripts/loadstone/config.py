"""The configuration: checked against its schemas, with errors that name the key."""

import json
import socket
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from loadstone import faults, redact
from loadstone.archive import parse_timestamp
from loadstone.errors import LoadstoneError
from loadstone.metadata import parse_duration
from loadstone.variants import Variants

# Tags of the catalogue that leave runs out unless the configuration says otherwise.
EXCLUDING = ("FAILED", "INVALID", "INCONSISTENT")

CONFIG = Path("config/config.yaml")
SCHEMAS = Path(__file__).resolve().parents[2] / "config" / "schemas"


def validate(content: object, schema: str, name: str, file: Path | None = None) -> None:
    """Check decoded YAML against a schema of ``config/schemas``; raises LoadstoneError that lists every fault.

    `file` is where it was written, for the lines of the faults; the one that `name` names unless given.
    """
    try:
        written = (file or Path(name)).read_text(encoding="utf-8")
    except (OSError, ValueError):
        written = None
    if found := faults.texts(content, json.loads((SCHEMAS / schema).read_text()), written):
        raise LoadstoneError(f"{name} is not valid:\n" + "\n".join(f"  {fault}" for fault in found))


def check(config: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the merged configuration and fill in what may be left out. Raises LoadstoneError."""
    try:
        checked: dict[str, Any] = json.loads(json.dumps(config, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise LoadstoneError(f"the configuration holds a value that is neither text nor a number: {error}") from None
    for key in ("archive", "tables", "reports", "host"):
        if type(checked.get(key)) in (int, float):  # `--config archive=2024` on the command line
            checked[key] = str(checked[key])
    if checked.get("host", "") is None:
        del checked["host"]
    validate(checked, "config.schema.json", "the configuration (config/config.yaml and --config)", CONFIG)
    checked["tags"] = {"exclude": list(EXCLUDING), "include": []} | checked.get("tags", {})
    checked["host"] = checked.get("host") or socket.gethostname()
    _check_folders(checked)
    if "sweep" in checked:
        _check_sweep(checked)
    return checked


def _check_folders(config: Mapping[str, Any]) -> None:
    """Archive, tables and site must not lie in one another: what is derived is also removed again."""
    folders = {key: Path(config[key]).resolve() for key in ("archive", "tables", "reports")}
    for (one, inner), (other, outer) in permutations(folders.items(), 2):
        if inner.is_relative_to(outer):
            raise LoadstoneError(f"the configuration puts {one} ({inner}) into {other} ({outer}); keep them apart")
    for key in ("tables", "reports"):
        if set(config[key]) & set("{}<>"):
            raise LoadstoneError(f"the configuration: {key} can't have any of {{}}<> in its name: {config[key]}")


def _check_sweep(config: Mapping[str, Any]) -> None:
    sweep, target = config["sweep"], config.get("target", {"variants": {}, "processes": {}})
    found = [
        f"  sweep.variants: {name!r} is not declared under target.variants"
        for name in sweep["variants"]
        if name not in target["variants"]
    ]
    for name, variant in target["variants"].items():
        found += [
            f"  target.variants.{name}.processes: {process!r} is not declared under target.processes"
            for process in variant.get("processes", [])
            if process not in target.get("processes", {})
        ]
        declared = target.get("processes", {})
        ports = {declared[used]["port"] for used in variant.get("processes", []) if used in declared}
        if ports and (port := _loopback_port(variant["url"])) is not None and port not in ports:
            found.append(f"  target.variants.{name}.url: none of its processes declares the port {port}")
    found += [f"  {where}: {_NO_USERS}" for where, url in _addresses(target) if redact.has_user(url)]
    if not parse_duration(sweep["duration"]):
        found.append("  sweep.duration: must be longer than zero")
    for rate in sweep["rates"]:
        if rate * (parse_duration(sweep["duration"]) or 0) < 1:
            found.append(f"  sweep.rates: {rate} requests/s for {sweep['duration']} is less than one request")
    warmup = sweep.get("warmup", {})
    if warmup.get("min_rate", 0) > warmup.get("max_rate", 100):
        found.append("  sweep.warmup: min_rate is above max_rate")
    if found:
        raise LoadstoneError("the configuration contradicts itself:\n" + "\n".join(found))


_NO_USERS = (
    "names a user, which would be written into archive and pages; give it as a header, "
    'such as headers: {Authorization: "Basic ..."}'
)


def _addresses(target: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every address that a target declares, with its key."""
    for name, variant in target["variants"].items():
        yield f"target.variants.{name}.url", variant.get("url", "")
    for name, process in target.get("processes", {}).items():
        yield f"target.processes.{name}.ready", process.get("ready", "")


def _loopback_port(url: str) -> int | None:
    """The port of an address on this machine; None for any other."""
    try:
        parts = urlsplit(url)
        if parts.hostname in ("127.0.0.1", "localhost"):
            return parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        pass
    return None


class _StrictLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML in which a key appears once, and a time is a text as it was written (folders are named so)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        "reading a mapping", node.start_mark, f"the key {key.value!r} appears twice", key.start_mark
                    )
                seen.add(key.value)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


_StrictLoader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(path: Path) -> Any:
    """Decode a YAML file; a key given twice is an error. Raises LoadstoneError that names the file and line."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _StrictLoader)  # noqa: S506 - derived from SafeLoader
    except FileNotFoundError:
        raise LoadstoneError(f"{path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LoadstoneError(f"{path} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        what = " ".join(filter(None, (getattr(error, "context", None), getattr(error, "problem", None)))) or error
        raise LoadstoneError(f"{path} is not valid YAML{where}: {what}") from None


def readable(path: str) -> str:
    """The same path; what is there is known to hold YAML. Snakemake says neither file nor line of what it can't read.

    Raises LoadstoneError.
    """
    if Path(path).exists():
        read_yaml(Path(path))
    return path


def load_variants(path: Path = Path("config/variants.yaml")) -> Variants:
    """The variants' names, labels and colours. Raises LoadstoneError."""
    declared = read_yaml(path) or {}
    validate(declared, "variants.schema.json", str(path))
    folders: dict[tuple[str, str], str] = {}
    for app, variants in declared.items():
        for name, fields in variants.items():
            for folder in {name, *(fields or {}).get("aliases", ())}:
                if folders.setdefault((app, folder), name) != name:
                    other = folders[app, folder]
                    raise LoadstoneError(f"{path}: {app}: the folder name {folder!r} stands for {other!r} and {name!r}")
            _check_history(f"{path}: {app}: {name}", [former["until"] for former in (fields or {}).get("history", ())])
    return Variants(declared)


def _check_history(where: str, untils: list[str]) -> None:
    instants = []
    for text in untils:
        if (instant := parse_timestamp(text)) is None:
            raise LoadstoneError(f"{where}: history: {text!r} is no time with an offset")
        instants.append(instant)
    if instants != sorted(set(instants)):
        raise LoadstoneError(f"{where}: history: the oldest label comes first, and each ends at a time of its own")
