"""The configuration: config/*.yaml, checked against their schemas, with errors that name file, key and remedy.

In: YAML files and ``--config``. Out: checked mappings, `Variants`, `Catalogue`, comparisons, load shapes, targets.
"""

import json
import socket
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadstone.archive import encode, parse_timestamp
from loadstone.config import connection, load_shapes, redact
from loadstone.config.variants import Variants, cycle
from loadstone.errors import LoadstoneError
from loadstone.percentiles import STATISTICS

GATE_FILE = "gate.json"  # in the reports folder: the outcome of the last gate
# The same for other tools, see loadstone/analysis/gate_reports.py.
GATE_REPORTS = ("gate.md", "gate.junit.xml", "gate.benchmark.json", "gate.bencher.json", "gate.openmetrics.txt")

# Sections that tables depend on, besides variants, catalogue and comparisons.
SETTINGS = ("analysis", "tags")

CONFIG = Path("config/config.yaml")
_LONGEST_NAME = 220  # bytes, of the 255 of file systems: names of files have more parts


def check(config: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the merged configuration and fill in the schema's defaults. Raises LoadstoneError."""
    from loadstone.config.yaml_files import fill_defaults, validate  # noqa: PLC0415 - jobs read no YAML

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
    fill_defaults(checked, "config.schema.json")
    checked["host"] = checked.get("host") or socket.gethostname()
    _check_gate(checked["gate"])
    _check_places(checked)
    _check_no_passwords(checked)
    _check_redact(checked["redact"])
    if "sweep" in checked:
        _check_sweep(checked)
    return checked


def _check_gate(gate: Mapping[str, Any]) -> None:
    """A timestamp names a folder, so one that is not a time would silently match none."""
    if unknown := [name for name in gate["statistics"] if name not in STATISTICS]:
        raise LoadstoneError(f"the configuration: gate.statistics: {unknown[0]!r} is none of {', '.join(STATISTICS)}")
    words = ("previous", "newest", "best of last ")
    for key in ("reference", "candidate"):
        if not gate[key].startswith(words) and parse_timestamp(gate[key]) is None:
            raise LoadstoneError(
                f"the configuration: gate.{key}: {gate[key]!r} is not an ISO 8601 time with an offset, such as "
                "2024-04-09T20:14:12-04:00"
            )
    for position, override in enumerate(gate["overrides"]):
        if not {"app", "variant"} & override.keys() or not {"ratio", "error_fraction"} & override.keys():
            raise LoadstoneError(
                f"the configuration: gate.overrides.{position}: needs an app or a variant, and what it allows: a ratio "
                "or an error_fraction"
            )


def share(declared: str | float) -> float:
    """A declared share, ``5%`` or ``0.05``, as a number."""
    return float(declared.removesuffix("%")) / 100 if isinstance(declared, str) else float(declared)


def size_bytes(declared: str) -> int:
    """A declared size, ``500MB``, ``100GB`` or ``1TB``, in bytes."""
    return int(declared[:-2]) * {"MB": 10**6, "GB": 10**9, "TB": 10**12}[declared[-2:]]


def lag_limit(config: Mapping[str, Any]) -> dict[str, float]:
    """The send lag from which a run is limited by its generator: fields of `LagLimit`."""
    declared = config["analysis"]["lag_limit"]
    times = {f"{name}_ns": load_shapes.seconds(declared[name]) * 1e9 for name in ("time", "apart")}
    return times | {"share": share(declared["share"])}


def limits(config: Mapping[str, Any]) -> dict[str, int]:
    """How often failed runs are retried, and how many failures in a row stop a sweep."""
    sweep = config.get("sweep", {})
    return {"retries": sweep.get("retries", 1), "give_up_after": sweep.get("give_up_after", 3)}


def _check_places(config: Mapping[str, Any]) -> None:
    """Archive, tables and site must not contain each other, because derived files are also removed.

    Publications and bundles must be outside of all of them.
    """
    folders = {key: Path(config[key]).resolve() for key in ("archive", "tables", "reports")}
    for (one, inner), (other, outer) in permutations(folders.items(), 2):
        if inner.is_relative_to(outer):
            raise LoadstoneError(f"the configuration puts {one} ({inner}) into {other} ({outer}); use separate folders")
    for key in ("tables", "reports"):
        if set(config[key]) & set("{}<>"):
            raise LoadstoneError(f"the configuration: {key} can't have any of {{}}<> in its name: {config[key]}")
    for name in ("publish", "bundle"):
        if "path" in config.get(name, {}):
            path = Path(config[name]["path"]).expanduser().resolve()
            for key, folder in folders.items():
                if path.is_relative_to(folder) or folder.is_relative_to(path):
                    raise LoadstoneError(
                        f"the configuration: {name}.path ({path}) and {key} ({folder}) must not lie in each other"
                    )


def _check_no_passwords(config: Mapping[str, Any]) -> None:
    """Addresses of destinations must not contain a user or password."""
    for name, key in (
        ("publish", "remote"),
        ("publish", "endpoint"),
        ("publish", "address"),
        ("storage", "endpoint"),
    ):
        address = config.get(name, {}).get(key, "")
        if redact.has_user(address) and not (key == "remote" and address.startswith("ssh://")):
            raise LoadstoneError(f"the configuration: {name}.{key} names a user; put credentials into git or AWS_*")


def _check_redact(declared: Mapping[str, Any]) -> None:
    named = redact.Names.of({**declared, "keep": []})
    if unknown := [name for name in declared["keep"] if not named.holds(name)]:
        raise LoadstoneError(
            f"the configuration: redact.keep lists {unknown[0]}, which would not be redacted in the first place "
            "(docs/targets.md lists the names)"
        )


def _name_fault(name: str) -> str | None:
    """Why a name can't be one in the archive, which is also part of names of files and of targets of Snakemake."""
    if (size := len(encode(name).encode())) > _LONGEST_NAME:
        return f"a name of at most {_LONGEST_NAME} bytes is expected, and {name[:20]!r}... has {size}, percent-encoded"
    return None


def _check_sweep(config: Mapping[str, Any]) -> None:
    sweep, target = config["sweep"], config.get("target", {"variants": {}, "processes": {}})
    found = [
        f"  sweep.variants: {name!r} is not declared under target.variants"
        for name in sweep["variants"]
        if name not in target["variants"]
    ]
    names = {"host": config["host"], "sweep.app": sweep["app"]} | {
        f"sweep.variants.{n}": name for n, name in enumerate(sweep["variants"])
    }
    found += [f"  {where}: {fault}" for where, name in names.items() if (fault := _name_fault(name))]
    for name, variant in target["variants"].items():
        for part in ("processes", "dependencies"):
            found += [
                f"  target.variants.{name}.{part}: {used!r} is not declared under target.{part}"
                for used in variant.get(part, [])
                if used not in target.get(part, {})
            ]
        declared = target.get("processes", {})
        ports = {declared[used]["port"] for used in variant.get("processes", []) if used in declared}
        if ports and (port := _loopback_port(variant["url"])) is not None and port not in ports:
            found.append(f"  target.variants.{name}.url: none of its processes declares the port {port}")
        drawn = {header.lower() for header in variant.get("draw", {})}
        found += [
            f"  target.variants.{name}.draw: {header} has a value among headers too"
            for header in variant.get("headers", {})
            if header.lower() in drawn
        ]
    for name in sweep["variants"]:
        if name in target["variants"]:
            where, variant = f"target.variants.{name}", target["variants"][name]
            # A script of the user's own sends what it likes.
            generator = sweep.get("generator", "vegeta") if "script" not in sweep else ""
            found += [f"  {fault}" for fault in connection.faults(where, variant, generator)]
            if target["kind"] == "external":
                found += [f"  {fault}" for fault in connection.strangers(where, variant, target.get("allow", []))]
    if prometheus := target.get("resources", {}).get("prometheus"):
        found += [f"  {fault}" for fault in connection.faults("target.resources.prometheus", prometheus, "")]
    found += [f"  {where}: {_NO_USERS}" for where, url in _addresses(target) if redact.has_user(url)]
    found += [f"  sweep.{fault}" for fault in load_shapes.faults(sweep)]
    loads, only = load_shapes.loads(sweep), config["only"]
    found += [
        f"  only.variants: {name!r} is not in sweep.variants"
        for name in only.get("variants", ())
        if name not in sweep["variants"]
    ]
    found += [
        f"  only.rates: {load} is not in sweep.{'users' if 'users' in sweep else 'rates'}"
        for load in only.get("rates", ())
        if float(load) not in loads  # given on the command line, it is text
    ]
    if sweep.get("generator") == "serial":  # no program that sends one after another can draw headers yet
        drawing = [name for name in sweep["variants"] if target["variants"].get(name, {}).get("draw")]
        found += [f"  target.variants.{name}.draw: needs another generator than serial" for name in drawing]
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
    yield "target.resources.prometheus.url", target.get("resources", {}).get("prometheus", {}).get("url", "")


def _loopback_port(url: str) -> int | None:
    """The port of an address on this machine; None for any other."""
    try:
        parts = urlsplit(url)
        if parts.hostname in ("127.0.0.1", "localhost"):
            return parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        pass
    return None


def load_variants(path: Path = Path("config/variants.yaml")) -> Variants:
    """The variants' names, labels and colours. Raises LoadstoneError."""
    from loadstone.config.yaml_files import read_yaml, validate  # noqa: PLC0415

    declared = read_yaml(path) or {}
    validate(declared, "variants.schema.json", str(path))
    found = Variants(declared)
    for app, variants in found.declared.items():
        folders: dict[str, str] = {}
        for name, fields in variants.items():
            for folder in {name, *fields.get("aliases", ())}:
                if (other := folders.setdefault(folder, name)) != name:
                    raise LoadstoneError(
                        f"{path}: {app}: the folder name {folder!r} is claimed by both {other!r} and {name!r}"
                    )
            _check_history(f"{path}: {app}: {name}", [former["until"] for former in fields.get("history", ())])
        _check_layers(f"{path}: {app}", found.over(app))
    return found


def _check_layers(where: str, over: dict[str, tuple[str, ...]]) -> None:
    for name, belows in over.items():
        if unknown := [below for below in belows if below not in over]:
            raise LoadstoneError(
                f"{where}: {name}: over: {unknown[0]!r} is not a canonical name of a variant of this app"
            )
    if circle := cycle(over):
        raise LoadstoneError(f"{where}: `over` is circular for these variants: {' over '.join(circle)}")


def _check_history(where: str, ends: list[str]) -> None:
    instants = []
    for text in ends:
        if (instant := parse_timestamp(text)) is None:
            raise LoadstoneError(f"{where}: history: {text!r} is not an ISO 8601 time with an offset")
        instants.append(instant)
    if instants != sorted(set(instants)):
        raise LoadstoneError(f"{where}: history: list labels from the oldest to the newest, each with a different end")
