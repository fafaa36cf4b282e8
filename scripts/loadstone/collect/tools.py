"""Versions of the programs that a sweep uses, for its metadata."""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadstone.process import find, output_of

# Only of programs known to answer: an unknown one might start serving.
_ASKED = {"vegeta": "-version", "envoy": "--version", "nginx": "-v", "haproxy": "-v", "traefik": "version"}


def versions(config: Mapping[str, Any]) -> dict[str, str]:
    """Program name -> what it says of its version: the generator and the target's processes.

    A program that can't be asked has an empty text. Raises LoadstoneError when a program is not there.
    """
    sweep, target = config.get("sweep", {}), config.get("target", {})
    programs = {"vegeta": "vegeta", "serial": "serial"} if sweep.get("generator") == "serial" else {"vegeta": "vegeta"}
    for name in sweep.get("variants", []):
        for process in target.get("variants", {}).get(name, {}).get("processes", []):
            program = target["processes"][process]["command"][0]
            programs[Path(program).name] = program
    paths = {name: find(program) for name, program in programs.items()}
    answers = {name: output_of([path, _ASKED[name]]) if name in _ASKED else "" for name, path in paths.items()}
    if "serial" in answers:  # built from the same library as vegeta
        answers["serial"] = answers["vegeta"]
    return {"python": platform.python_version()} | {name: _version(text) for name, text in answers.items()}


def _version(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return first.partition("ersion:")[2].strip()[:200] or first.strip()[:200]
