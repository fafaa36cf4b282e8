"""The declaration of a target and its requests, as it is recorded in the archive, and changes of it.

The archive holds each cell's request, expected response, commands, environments and the digests of the files they
name, so that a message can say what has changed since a campaign was opened. Credentials are recorded as marks
(`redact.mark`).
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from loadstone.archive import Campaign, Cell, metadata, scan_campaign
from loadstone.config import connection, redact
from loadstone.errors import LoadstoneError


def identity(target: Mapping[str, Any], variants: Sequence[str]) -> dict[str, Any]:
    """What decides whether runs are comparable, by variant: not what cleans up afterwards, which may be mended."""
    return {name: _comparable(variant_identity(target, name)) for name in variants}


def _comparable(found: dict[str, Any]) -> dict[str, Any]:
    return {part: value for part, value in found.items() if part != "cleanup"}


def variant_identity(target: Mapping[str, Any], variant: str) -> dict[str, Any]:
    """Request, expected response and connection, and what is measured: processes, deployments, or what is prepared."""
    declared = target["variants"][variant]
    found = {"kind": target["kind"], "request": request(declared), "expect": declared["expect"]}
    if connected := connection.recorded(declared):
        tls = declared.get("tls", {})
        certificates = [tls[name] for name in ("ca", "cert") if name in tls]  # of a private key nothing is recorded
        found |= {"connection": connected, "files": _file_digests(certificates)}
    if target["kind"] == "external":
        commands = {name: declared[name] for name in ("prepare", "cleanup") if name in declared}
        named = _file_digests(argument for command in commands.get("prepare", ()) for argument in command)
        read = {name: digest for name, digest in named.items() if Path(name).suffix in _READ}
        return found | commands | {"files": found.get("files", {}) | read}
    if target["kind"] == "local":
        processes = _processes_identity(target, declared)
        return found | processes | {"files": found.get("files", {}) | processes["files"]}
    used = {name: target["dependencies"][name] for name in declared.get("dependencies", [])}
    cluster = {"namespace": variant, "replicas": target.get("replicas", 1)}
    cluster |= {key: declared[key] for key in ("namespace", "deployments", "replicas", "changes") if key in declared}
    return found | {"cluster": cluster | ({"dependencies": used} if used else {})}


def _processes_identity(target: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Commands and environments of a variant's processes, and the digests of files named in a command."""
    processes = {name: target["processes"][name] for name in declared.get("processes", [])}
    commands = {name: process["command"] for name, process in processes.items()}
    files = _file_digests(chain.from_iterable(commands.values()))
    environments = {name: process["environment"] for name, process in processes.items() if "environment" in process}
    return {"commands": commands, "files": files} | ({"environments": environments} if environments else {})


# Files of these kinds are read by commands that prepare a variant; others may be written by them.
_READ = frozenset((".cfg", ".conf", ".ini", ".js", ".json", ".py", ".sh", ".tf", ".tfvars", ".toml", ".yaml", ".yml"))


def has_commands(target: Mapping[str, Any]) -> bool:
    """Whether any variant of an external target has commands, so that a keeper must run them."""
    return any(variant.get("prepare") or variant.get("cleanup") for variant in target["variants"].values())


def _file_digests(arguments: Iterable[str]) -> dict[str, str]:
    """The digests of the files that arguments name, as they are or after ``=``."""
    named = {text: _file_digest(text) for argument in arguments for text in (argument, argument.partition("=")[2])}
    return {text: digest for text, digest in named.items() if digest is not None}


def _file_digest(text: str) -> str | None:
    try:
        path = Path(text)
        return hashlib.sha256(path.read_bytes()).hexdigest() if text and path.is_file() else None
    except (OSError, ValueError):  # the name is too long, or we may not read it
        return None


def request(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The request that a variant declares, in the archive's form (``header`` maps to lists)."""
    given = {name: [value] for name, value in declared.get("headers", {}).items()}
    if "host" not in {name.lower() for name in given}:
        given["Host"] = [declared["url"].split("/")[2].rpartition("@")[2]]
    found = {"method": declared.get("method", "GET"), "url": declared["url"], "header": given}
    if drawn := drawn_values(declared):
        # Only a mark is recorded, which shows whether the values have changed.
        found["draw"] = {
            name: {"values": len(values), "mark": redact.mark(name, "\n".join(values))}
            for name, values in drawn.items()
        }
    return found | ({"body": declared["body"]} if "body" in declared else {})


def sent(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The request of the identity check, with the first of the values that are drawn."""
    first = {name: [values[0]] for name, values in drawn_values(declared).items()}
    found = request(declared)
    return found | {"header": found["header"] | first}


def replicas_for(declared: int | Mapping[str, int], host: str) -> int:
    """A declared number of pods on a host: one number, or one per host, where ``*`` is any other host.

    Raises LoadstoneError when none is declared for it.
    """
    if isinstance(declared, int):
        return declared
    if host not in declared and "*" not in declared:
        raise LoadstoneError(
            f"replicas are declared for {', '.join(declared)}, but not for the host {host!r} (nor '*')"
        )
    return declared.get(host, declared.get("*", 0))


def identity_digest(target: Mapping[str, Any], variant: str) -> str:
    """The digest that ``target.identity`` in a cell's metadata must equal for its runs to be collected now."""
    return digest(_comparable(recordable(variant_identity(target, variant))))


def changes(planned: metadata.Metadata, target: Mapping[str, Any], variant: str) -> list[str]:
    """Changes since the campaign was opened, one phrase each; empty when its runs are comparable."""
    now = variant_identity(target, variant)
    with redact.using(planned.target.get("redact")):
        digests = identity_digest(target, variant), digest(now)  # older versions recorded credentials as they are
    if planned.target.get("identity") in digests:
        return []
    recorded = {**planned.target, "request": planned.request}
    with redact.using(planned.target.get("redact"), own=True):
        return identity_changes(recorded, now) or ["something that its metadata does not record"]


def check_declared(cells: Iterable[Cell], target: Mapping[str, Any]) -> None:
    """Raise LoadstoneError unless the variants of planned cells are declared as when their campaigns were opened."""
    if faults := dict.fromkeys(_declaration_faults(cells, target)):
        raise LoadstoneError("\n".join(faults))


def _declaration_faults(cells: Iterable[Cell], target: Mapping[str, Any]) -> Iterator[str]:
    for cell in cells:
        campaign, variant = cell.campaign, cell.variant_dir
        if variant not in target.get("variants", {}):
            yield (
                f"{campaign}: the configuration declares no target variant {variant!r}, which is planned. "
                f"Declare it, or give the campaign up: {campaign.give_up_command}"
            )
        elif phrases := changes(metadata.read_cell(cell), target, variant):
            yield (
                f"{campaign}: the target variant {variant!r} has changed since the campaign was opened, so its runs "
                "would not be comparable:\n"
                + "".join(f"  {phrase}\n" for phrase in phrases)
                + f"Undo these changes, or {_other_remedy(campaign)} and open a new one"
            )


def _other_remedy(campaign: Campaign) -> str:
    """What else to do with a campaign that can't be collected as it was planned."""
    cells = scan_campaign(campaign).cells
    if any(cell.runs() or any(cell.cell.path.glob(".*.part")) for cell in cells):  # a staged run may be complete
        return f"give the campaign up ({campaign.give_up_command})"
    return f"remove the campaign, which has no result yet ({campaign.path}),"


def digest(content: object) -> str:
    """SHA-256 of plain values, independent of the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# Keys of the declared sweep -> keys of a cell's metadata.
_PLAN = {
    "sweep.runs": ("runs",),
    "sweep.duration": ("testOptions", "duration"),
    "sweep.timeout": ("testOptions", "timeout"),
    "sweep.warmup.duration": ("warmupOptions", "duration"),
    "sweep.warmup.min_rate": ("min_warmup_rate",),
    "sweep.warmup.max_rate": ("max_warmup_rate",),
    "sweep.generator": ("generator", "name"),
    "sweep.generators": ("generator", "count"),
    "sweep.connections": ("generator", "connections"),
    "whether target.generators is declared": ("generator", "in"),
    "the load's stages": ("stages",),
    "the measured stage": ("measuredPhase",),
    "the content of sweep.script.file": ("script", "sha256"),
    "sweep.script.environment": ("script", "environment"),
    "sweep.order": ("order", "kind"),
    "sweep.labels": ("labels",),
}


def recordable(identity: Mapping[str, Any]) -> dict[str, Any]:
    """A variant's identity as it is recorded: with marks in place of credentials in headers, environments and URLs."""
    request = identity["request"] | {"header": redact.marked(identity["request"]["header"])}
    found = {**identity, "request": request | {"url": redact.marked_text(request.get("url", ""))}}
    for part in ("commands", "prepare", "cleanup"):
        if part in found:
            found[part] = redact.texts(found[part], redact.marked_text)
    expected = found.get("expect", {}).get("headers", {})
    if expected:
        kept = {name: value for name, value in expected.items() if redact.names().has_header(name)}
        others = redact.texts({name: value for name, value in expected.items() if name not in kept}, redact.marked_text)
        found["expect"] = found["expect"] | {"headers": expected | redact.marked(kept) | others}
    if "environments" in identity:
        found["environments"] = {name: redact.marked(values) for name, values in identity["environments"].items()}
    if "changes" in identity.get("cluster", {}):
        changed = [_recordable_change(change) for change in identity["cluster"]["changes"]]
        found["cluster"] = identity["cluster"] | {"changes": changed}
    return found


def removed(identity: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """How many values `recordable` removes from the request, by the name of their header or parameter."""
    found = redact.Removed()
    for name, values in identity["request"]["header"].items():
        if redact.is_secret(name):
            found.headers[name] += len(values)
    redact.names().text(identity["request"]["url"], found)
    return found.fields()


def _recordable_change(change: Mapping[str, Any]) -> dict[str, Any]:
    env = {container: redact.marked(values) for container, values in change.get("env", {}).items()}
    return {**redact.inside(change, redact.marked), **({"env": env} if env else {})}


# How messages call these parts of an identity. Of files, metadata have only digests.
_NAMED_PARTS = {
    "commands": "the command of the process",
    "environments": "the environment of the process",
    "files": "the content of the file",
}


def identity_changes(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Differences between a recorded identity (``request`` and the parts of ``target``) and the current one."""
    try:
        was = recordable(recorded)  # older versions recorded credentials as they are
    except (AttributeError, KeyError, TypeError):  # metadata of another form
        was = dict(recorded)
    return [
        phrase
        for part, value in recordable(now).items()
        if was.get(part) is not None and part != "cleanup"
        for phrase in _differences(
            _NAMED_PARTS.get(part, part),
            was[part],
            value,
            " " if part in _NAMED_PARTS else ".",
            is_file=part == "files",
        )
    ]


def _differences(key: str, was: Any, now: Any, separator: str = ".", *, is_file: bool = False) -> Iterator[str]:
    """Differences between plain values, one phrase each; `separator` comes between the key and those in its value.

    Of a file only the digest is known.
    """
    if isinstance(was, dict) and isinstance(now, dict):
        for name in dict.fromkeys((*was, *now)):
            yield from _differences(f"{key}{separator}{name}", was.get(name), now.get(name), is_file=is_file)
    elif was != now and (is_file or "redacted" in f"{was}{now}"):
        yield f"{key} {'is gone' if now is None else 'was not recorded' if was is None else 'has changed'}"
    elif was != now:
        yield f"{key}: {_shown(was)} became {_shown(now)}"


def plan_changes(
    was: Mapping[tuple[str, str], Any], now: Mapping[tuple[str, str], Any], without: Collection[str] = ()
) -> list[str]:
    """Differences of the sweep, not the target, between two plans: metadata by cell (rate, variant).

    `without` names keys of the configuration that may differ: ``sweep.runs``.
    """
    phrases = []
    for key, position in (("sweep.rates", 0), ("sweep.variants", 1)):
        if key not in without:
            before, after = ({place[position] for place in plan} for plan in (was, now))
            phrases += [f"{key}: {name} is new" for name in sorted(after - before)]
            phrases += [f"{key}: {name} is gone" for name in sorted(before - after)]
    for place in sorted(was.keys() & now.keys())[:1]:
        for name, path in _PLAN.items():
            before, after = _at(was[place], path), _at(now[place], path)
            if before != after and name not in without:
                phrases.append(f"{name}: {_shown(before)} became {_shown(after)}")
    return phrases


def _at(content: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _shown(value: Any) -> str:
    """A value on one line, without credentials in URLs."""
    if value is None:
        return "nothing"
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = redact.text(text)
    return repr(text if len(text) <= 120 else f"{text[:117]}...")


_MODULES = (".js", ".mjs", ".cjs", ".ts")


def drawn_values(declared: Mapping[str, Any]) -> dict[str, list[str]]:
    """The headers whose value is drawn at random for each request -> their values, the lines of a file.

    Raises LoadstoneError when a file has none.
    """
    found = {}
    for name, source in declared.get("draw", {}).items():
        try:
            lines = Path(source["file"]).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise LoadstoneError(f"values of the header {name} can't be read: {source['file']}: {reason}") from None
        if not (values := [line.strip() for line in lines if line.strip()]):
            raise LoadstoneError(f"{source['file']} holds no value of the header {name}: one is expected per line")
        found[name] = values
    return found


def recorded_script(declared: Mapping[str, Any], files: Iterable[str] = ()) -> dict[str, Any]:
    """A user's own script as it is recorded: content and digest, and its variables, without credentials.

    `files` are the files that it reads, relative to its folder: modules are recorded in the same way; other files may
    hold credentials, so only a mark is recorded. Raises LoadstoneError when one can't be read.
    """
    path = Path(declared["file"])
    found = {"file": declared["file"]} | _recorded_file(path, declared["file"], is_module=True)
    found["environment"] = redact.marked(declared.get("environment", {}))
    read = {name: _recorded_file(path.parent / name, name, is_module=Path(name).suffix in _MODULES) for name in files}
    return found | ({"files": read} if read else {})


def script_changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Differences between two scripts as `recorded_script` returns them, one phrase each."""
    if not was or not now:
        return ["sweep.script"] if was or now else []
    phrases = ["sweep.script.file"] if was.get("file") != now.get("file") else []
    environments = [redact.marked(each.get("environment", {})) for each in (was, now)]
    phrases += ["sweep.script.environment"] if environments[0] != environments[1] else []
    phrases += ["the content of sweep.script.file"] if was.get("sha256") != now.get("sha256") else []
    before, after = was.get("files", {}), now.get("files", {})
    return phrases + [
        f"the content of {name}, which it reads"
        for name in dict.fromkeys((*before, *after))
        if _digest_of(before.get(name)) != _digest_of(after.get(name))
    ]


def _digest_of(recorded: Mapping[str, str] | None) -> str | None:
    return None if recorded is None else recorded.get("sha256", recorded.get("mark"))


def _recorded_file(path: Path, name: str, *, is_module: bool) -> dict[str, str]:
    try:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        return (
            {"sha256": digest, "content": redact.marked_text(content.decode())}
            if is_module
            else {"mark": redact.mark(name, digest)}
        )
    except UnicodeDecodeError:
        reason = "it is not text"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a valid file name"
    raise LoadstoneError(f"the script {name} can't be read: {reason}")
