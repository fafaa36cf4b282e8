"""What a sweep requires before it is opened: programs and their versions, files, the cluster as it is declared.

In: the configuration. Out: an opened campaign (`open_checked`), or LoadstoneError that names everything missing.
"""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone.archive import Campaign
from loadstone.collect import sweep
from loadstone.collect.generators import k6
from loadstone.collect.targets.base import Log
from loadstone.errors import LoadstoneError
from loadstone.process import find, output_of

# Only of programs known to answer: an unknown one might start serving.
_ASKED = {
    "vegeta": "-version",
    "k6": "version",
    "artillery": "--version",
    "envoy": "--version",
    "nginx": "-v",
    "haproxy": "-v",
    "traefik": "version",
}


# Arguments that end so are files which a program reads, and hardly ever the path of an address (/api.json).
_READ = frozenset((".yaml", ".yml", ".toml", ".conf", ".cfg", ".ini", ".lua", ".py", ".wasm", ".pem", ".crt", ".key"))


def versions(config: Mapping[str, Any]) -> dict[str, str]:
    """Program name -> what it says of its version: the generator and the target's processes.

    A program that can't be asked has an empty text. Raises LoadstoneError that names every program and every file of
    a command that is not there.
    """
    commands = _commands(config)
    programs = {name: name for name in _generators(config)}
    programs |= {Path(command[0]).name: command[0] for command in commands.values()}
    _require(programs, commands)
    paths = {name: find(program) for name, program in programs.items()}
    answers = {name: output_of([path, _ASKED[name]]) if name in _ASKED else "" for name, path in paths.items()}
    for name in {"serial", "paced"} & answers.keys():  # built from the same library as vegeta
        answers[name] = answers["vegeta"]
    return {"python": platform.python_version()} | {name: _version(text) for name, text in answers.items()}


def _generators(config: Mapping[str, Any]) -> list[str]:
    """The programs that make the load: vegeta, with what is beside it, or another tool."""
    generator = config.get("sweep", {}).get("generator", "vegeta")
    if generator not in ("vegeta", "serial"):
        return [generator]
    return ["vegeta", "serial" if generator == "serial" else "paced"]


def _commands(config: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """The command of each process of this machine that the sweep's variants need."""
    target = config.get("target", {})
    declared = [target.get("variants", {}).get(name, {}) for name in config.get("sweep", {}).get("variants", [])]
    needed = dict.fromkeys(process for variant in declared for process in variant.get("processes", []))
    return {process: target["processes"][process]["command"] for process in needed}


def _require(programs: Mapping[str, str], commands: Mapping[str, Sequence[str]]) -> None:
    faults = []
    for program in programs.values():
        try:
            find(program)
        except LoadstoneError as error:
            faults.append(f"{error}{_seen_from(program) if os.sep in program else ''}")
    for process, command in commands.items():
        for argument in command[1:]:
            text = argument.partition("=")[2] if argument.startswith("-") else argument
            if Path(text).suffix in _READ and not re.search(r"\s|://", text) and not _exists(Path(text)):
                faults.append(f"the process {process!r} names the file {text}, which does not exist{_seen_from(text)}")
    if faults:
        raise LoadstoneError("the sweep cannot be opened:\n" + "\n".join(f"  {text}" for text in faults))


def _seen_from(path: str) -> str:
    return "" if Path(path).is_absolute() else f" (relative paths count from {Path.cwd()})"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long for a name, or not ours to look at
        return True


def _version(text: str) -> str:
    if found := re.search(r"^Artillery: +(\S+)$", text, re.MULTILINE):  # behind a picture made of letters
        return found[1]
    first = next((line for line in text.splitlines() if line.strip()), "")
    return first.partition("ersion:")[2].strip()[:200] or first.strip()[:200]


def open_checked(config: Mapping[str, Any], log: Log) -> Campaign:
    """Open it, or say which campaign is still open. Raises LoadstoneError, with nothing written, for what is wrong."""
    tools = versions(config)
    sweep.resumable(config)
    if config.get("target", {}).get("kind") == "kubernetes":  # its client library takes a second to load
        from loadstone.collect.targets.kubernetes.plan import check  # noqa: PLC0415

        check(config, set(config["sweep"]["variants"]), log)
    return sweep.open_sweep(config, tools, log, k6.script_files(config))
