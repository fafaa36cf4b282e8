"""What the configuration declares of a target, and whether it is still what a campaign was opened with."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone import archive
from loadstone.archive import Cell, metadata
from loadstone.config import changes as changed
from loadstone.config import input_files
from loadstone.errors import LoadstoneError


def identity(target: Mapping[str, Any], variants: Sequence[str]) -> dict[str, Any]:
    """What decides which server answers, per variant: see `variant_identity`."""
    return {name: variant_identity(target, name) for name in variants}


def variant_identity(target: Mapping[str, Any], variant: str) -> dict[str, Any]:
    """Request, expected answer, and what is measured: processes on this machine, or deployments of a cluster."""
    declared = target["variants"][variant]
    found = {"kind": target["kind"], "request": request(declared), "expect": declared["expect"]}
    if target["kind"] == "local":
        return found | _processes_identity(target, declared)
    used = {name: target["dependencies"][name] for name in declared.get("dependencies", [])}
    cluster = {"namespace": variant, "replicas": target.get("replicas", 1)}
    cluster |= {key: declared[key] for key in ("namespace", "deployments", "replicas", "changes") if key in declared}
    return found | {"cluster": cluster | ({"dependencies": used} if used else {})}


def _processes_identity(target: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Commands and environments of a variant's processes; files named in a command count by content."""
    processes = {name: target["processes"][name] for name in declared.get("processes", [])}
    commands = {name: process["command"] for name, process in processes.items()}
    files = {}
    for command in commands.values():
        for argument in command:
            for text in (argument, argument.partition("=")[2]):
                if (content := _file_digest(text)) is not None:
                    files[text] = content
    environments = {name: process["environment"] for name, process in processes.items() if "environment" in process}
    return {"commands": commands, "files": files} | ({"environments": environments} if environments else {})


def _file_digest(text: str) -> str | None:
    try:
        path = Path(text)
        return hashlib.sha256(path.read_bytes()).hexdigest() if text and path.is_file() else None
    except (OSError, ValueError):  # too long for a name, or not ours to read
        return None


def request(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The request that a variant declares, in the archive's form (``header`` maps to lists)."""
    given = {name: [value] for name, value in declared.get("headers", {}).items()}
    if "host" not in {name.lower() for name in given}:
        given["Host"] = [declared["url"].split("/")[2].rpartition("@")[2]]
    found = {"method": declared.get("method", "GET"), "url": declared["url"], "header": given}
    if drawn := input_files.draws(declared):
        found["draw"] = {name: input_files.drawn(name, values) for name, values in drawn.items()}
    return found | ({"body": declared["body"]} if "body" in declared else {})


def sent(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The request as it is sent to see who answers: with the first of the values that are drawn."""
    first = {name: [values[0]] for name, values in input_files.draws(declared).items()}
    found = request(declared)
    return found | {"header": found["header"] | first}


def replicas_for(declared: int | Mapping[str, int], host: str) -> int:
    """A declared number of pods on a host: one number, or one by host, ``*`` being all others.

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
    """What ``target.identity`` in a cell's metadata must equal for its runs to be collected now."""
    return digest(changed.recordable(variant_identity(target, variant)))


def changes(planned: metadata.Metadata, target: Mapping[str, Any], variant: str) -> list[str]:
    """What is declared otherwise than when the campaign was opened, one phrase each; none: its runs are comparable."""
    now = variant_identity(target, variant)
    # Before credentials were kept out of the archive, the digest was of the identity as it is.
    if planned.target.get("identity") in (identity_digest(target, variant), digest(now)):
        return []
    recorded = {**planned.target, "request": planned.request}
    return changed.since(recorded, now) or ["something that its metadata do not tell"]


def check_declared(cells: Iterable[Cell], target: Mapping[str, Any]) -> None:
    """Raise LoadstoneError unless the variants of planned cells are declared as when their campaigns were opened."""
    faults: dict[str, None] = {}
    for cell in cells:
        variant, give_up = cell.variant_dir, f"touch '{cell.campaign.path / archive.ABANDONED}'"
        if variant not in target.get("variants", {}):
            faults[
                f"{cell.campaign}: the configuration declares no target variant {variant!r}, which is planned. "
                f"Declare it, or give the campaign up: {give_up}"
            ] = None
        elif phrases := changes(metadata.read(cell.path / archive.METADATA), target, variant):
            faults[
                f"{cell.campaign}: the target variant {variant!r} is declared otherwise than when the campaign was "
                "opened, so its runs would not be comparable:\n"
                + "".join(f"  {phrase}\n" for phrase in phrases)
                + f"Put that back, or give the campaign up ({give_up}) and open a new one"
            ] = None
    if faults:
        raise LoadstoneError("\n".join(faults))


def digest(content: object) -> str:
    """Of plain values, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
