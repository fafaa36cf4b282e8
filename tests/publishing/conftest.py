"""The three destinations: a folder, a branch of a local bare repository, and a bucket of a local server."""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from publishing.made import BranchReader, BucketReader, FolderReader, Reader
from publishing.storage import Storage, running

_BUCKETS = count()


@pytest.fixture(scope="session")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with running(tmp_path_factory.mktemp("storage") / "buckets") as found:
        yield found


@pytest.fixture
def bucket(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Callable[[], BucketReader]:
    """Makes a bucket; this process has the credentials for it."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in storage.environment.items():
        monkeypatch.setenv(name, value)
    return lambda: BucketReader(storage, f"bucket-{os.getpid()}-{next(_BUCKETS)}")


@pytest.fixture(params=["folder", "branch", "bucket"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    if request.param == "bucket":
        return request.getfixturevalue("bucket")()
    return FolderReader(tmp_path) if request.param == "folder" else BranchReader(tmp_path)
