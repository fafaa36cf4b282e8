"""What only some need is installed on demand; a failed installation is told, and never taken for a finished one."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = (
    "sh",
    "git",
    "python3",
    "cat",
    "cksum",
    "tr",
    "uname",
    "mkdir",
    "mv",
    "cp",
    "ln",
    "tail",
    "dirname",
    "chmod",
)
NPM = 'echo "asked npm: $1"; {does}'


def install(copy: Path, path: str, part: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "envs/setup.sh", part],
        cwd=copy,
        env={"PATH": path, "HOME": str(copy.parent), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("part", ["ask", "artillery"])
def test_a_failed_installation_is_told_and_tried_again(copy: Path, path_of: Callable[..., str], part: str) -> None:
    path = path_of(*PROGRAMS, node="exit 0", npm=NPM.format(does="echo 'no network' >&2; exit 1"))
    failed = install(copy, path, part)
    assert failed.returncode == 1
    assert "no network" in failed.stderr and f"{part} could not be installed" in failed.stderr
    again = install(copy, path, part, LOADSTONE_OPTIONAL_GENERATORS="1")
    assert again.returncode == 0
    assert "features that need it are not available" in again.stdout
    assert not (copy / ".tools/duckdb-wasm").exists() and not (copy / ".tools/bin/artillery").exists()
    npm = Path(path, "npm")
    npm.write_text("#!/bin/sh\n" + NPM.format(does="mkdir -p node_modules/artillery") + "\n")
    assert install(copy, path, part).returncode == 0
    assert (copy / ".tools" / {"ask": "duckdb-wasm", "artillery": "bin/artillery"}[part]).exists()
    npm.write_text("#!/bin/sh\nexit 1\n")
    finished = install(copy, path, part)
    place = {"ask": ".tools/duckdb-wasm", "artillery": ".tools/bin/artillery"}[part]
    assert finished.returncode == 0
    assert place in finished.stdout and len(finished.stdout.splitlines()) == 1 and "asked npm" not in finished.stdout
