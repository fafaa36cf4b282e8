"""A file system that passes everything on to a folder, but for the faults that are asked of it. Linux with FUSE 3."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Storage:
    """Mounted at `path`; what is written there lies in `behind`."""

    path: Path
    behind: Path
    _faults: Path

    def set(self, **faults: Any) -> None:
        """What is not named works. `links`: False, as SMB has none. `read_only`: as after an error of the disk.

        `full_at`: the number of the write, counted from now, from which on there is no space; with `files`,
        the number of the file.
        """
        temporary = self._faults.with_suffix(".new")
        temporary.write_text(json.dumps({**faults, "at": time.time_ns()}))
        temporary.replace(self._faults)


@contextmanager
def faulty_storage(folder: Path) -> Iterator[Storage]:
    """Storage in `folder`, without faults at first. Skips where there is no FUSE."""
    try:
        import mfusepy  # noqa: F401, PLC0415 - raises OSError where the library is not installed
    except OSError:
        pytest.skip("FUSE 3 is not installed (fuse3)")
    if not os.access("/dev/fuse", os.W_OK):
        pytest.skip("/dev/fuse is not there")
    storage = Storage(folder / "mounted", folder / "behind", folder / "faults.json")
    storage.path.mkdir(parents=True)
    storage.behind.mkdir()
    storage.set()
    server = Path(__file__).with_name("faulty_server.py")
    command = [sys.executable, str(server), str(storage.behind), str(storage.path), str(folder / "faults.json")]
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 30
        while not os.path.ismount(storage.path):
            assert process.poll() is None and time.monotonic() < deadline, "nothing was mounted"
            time.sleep(0.01)
        yield storage
    finally:
        subprocess.run(["fusermount3", "-u", "-z", str(storage.path)], check=False)
        process.wait(timeout=30)
