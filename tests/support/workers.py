"""Files that are made once for all workers of pytest."""

import fcntl
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

Made = TypeVar("Made")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]) -> Made:
    """What `make` returns for an empty folder: made by the first worker that asks, shared by all.

    It must be picklable, and no test may change the files.
    """
    workers = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        workers = workers.parent
    folder, kept = workers / name, workers / f"{name}.pickle"
    with (workers / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed
            folder.mkdir()
            kept.write_bytes(pickle.dumps(make(folder)))
        made: Made = pickle.loads(kept.read_bytes())
    return made
