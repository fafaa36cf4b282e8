"""The control plane for tests is built once per user, whole or not at all. A stand-in for Go builds at once."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster import control_plane

# `go list -m` answers with a version; `go build ... -o OUT .` is noted in STARTED, takes as long as the file HOLD is
# there, and fails where BROKEN is.
GO = """
case $1 in
    build)
        echo building >>"$STARTED"
        while [ -e "$HOLD" ]; do sleep 0.05; done
        if [ -e "$BROKEN" ]; then echo 'no space left on device' >&2; exit 1; fi
        while [ "$1" != -o ]; do shift; done
        echo built >"$2"; chmod +x "$2" ;;
    *) echo v1.36.3 ;;
esac
"""


class Building:
    def __init__(self, root: Path, copy: Path, path: str) -> None:
        self.copy = copy
        shutil.copytree(root / "tests/cluster/plane", copy / "tests/cluster/plane")
        self.home = copy.parent / "home"
        self.files = {name: copy.parent / name.lower() for name in ("STARTED", "HOLD", "BROKEN")}
        self.environment = {
            "PATH": os.pathsep.join([path, os.environ["PATH"]]),
            "HOME": str(self.home),
            "PYTHON": sys.executable,
            **{name: str(file) for name, file in self.files.items()},
        }

    def start(self, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", "envs/setup.sh", "cluster"],
            cwd=self.copy,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, **environment: str) -> tuple[int, str]:
        process = self.start(**environment)
        output, _ = process.communicate()
        return process.returncode, output

    def started(self) -> int:
        file = self.files["STARTED"]
        return len(file.read_text().splitlines()) if file.exists() else 0

    def wait_started(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while self.started() < count:
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture
def building(root: Path, copy: Path, path_of: Callable[..., str]) -> Building:
    return Building(root, copy, path_of(go=GO))


def test_built_once_where_the_tests_look_for_it(building: Building, monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = building.run()
    assert (code, building.started()) == (0, 1)
    assert "built once, 3 to 6 minutes" in output
    monkeypatch.setenv("HOME", str(building.home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert control_plane.binary().read_text() == "built\n"
    assert building.run() == (0, "")
    assert building.started() == 1

    with (building.copy / "tests/cluster/plane/main.go").open("a") as source:
        source.write("// changed\n")
    assert building.run()[0] == 0
    assert building.started() == 2


def test_two_at_once_build_once(building: Building) -> None:
    building.files["HOLD"].touch()
    first = building.start()
    building.wait_started(1)
    second = building.start()
    assert second.stdout is not None
    assert "waiting for it to end" in second.stdout.readline()
    building.files["HOLD"].unlink()
    assert first.wait() == second.wait() == 0
    assert building.started() == 1


def test_a_killed_build_leaves_nothing_that_is_taken_for_whole(building: Building) -> None:
    building.files["HOLD"].touch()
    killed = building.start()
    building.wait_started(1)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    building.files["HOLD"].unlink()
    assert not list(building.home.glob(".cache/plane/*/plane"))
    assert building.run()[0] == 0
    assert len(list(building.home.glob(".cache/plane/*/*"))) == 1


def test_a_failed_build_says_why_and_fails_only_where_it_is_required(building: Building) -> None:
    building.files["BROKEN"].touch()
    code, output = building.run()
    assert code == 0
    assert "no space left on device" in output
    assert "the tests that need it are skipped" in output
    code, output = building.run(LOADSTONE_REQUIRE_CLUSTER="1")
    assert code != 0
    assert "could not be built" in output
