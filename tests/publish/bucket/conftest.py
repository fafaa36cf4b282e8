"""What these tests share: an archive, and a bucket of a real server."""

import os
from itertools import count
from pathlib import Path

import pytest
from support.buckets import Bucket, write_archive
from support.storage import Storage

_NUMBERS = count()


@pytest.fixture
def bucket(credentials: Storage) -> Bucket:
    return Bucket(credentials, f"archive-{os.getpid()}-{next(_NUMBERS)}")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    root = tmp_path / "here/archive"
    write_archive(root)
    return root


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Where another machine keeps its archive; nothing is there yet."""
    return tmp_path / "elsewhere/archive"
