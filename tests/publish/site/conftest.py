"""The three destinations: a folder, a branch of a local bare repository, and a bucket of a local server."""

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from support.sites import BranchReader, BucketReader, FolderReader, Reader
from support.storage import Storage

_BUCKETS = count()


@pytest.fixture
def bucket(credentials: Storage) -> Callable[[], BucketReader]:
    """Makes a bucket; this process has the credentials for it."""
    return lambda: BucketReader(credentials, f"bucket-{os.getpid()}-{next(_BUCKETS)}")


@pytest.fixture(params=["folder", "branch", "bucket"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    if request.param == "bucket":
        return request.getfixturevalue("bucket")()
    return FolderReader(tmp_path) if request.param == "folder" else BranchReader(tmp_path)
