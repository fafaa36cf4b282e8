"""A real S3-compatible server on loopback: versitygw over a folder, built by `make storage`."""

import hashlib
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyarrow import fs

from support.checkout import free_ports

FOLDER = Path(__file__).resolve().parents[1] / "support/storage_server"
KEY, SECRET = "an-access-key", "a-secret-that-no-log-may-hold"


def binary() -> Path:
    """Where envs/setup.sh puts it."""
    key = hashlib.sha256(b"".join((FOLDER / name).read_bytes() for name in ("go.mod", "go.sum"))).hexdigest()[:16]
    home = os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or "/", ".cache")
    return Path(home, "loadstone/storage", key, "versitygw")


class Storage:
    """A running server with one bucket; `folder` is what it serves."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.endpoint = folder, f"http://127.0.0.1:{port}"
        self.environment = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/nonexistent",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        }

    def client(self) -> fs.S3FileSystem:
        address = self.endpoint.removeprefix("http://")
        return fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region="us-east-1",
            scheme="http",
            endpoint_override=address,
            background_writes=False,
        )


@contextmanager
def running(folder: Path) -> Iterator[Storage]:
    if not binary().is_file():
        if os.environ.get("LOADSTONE_REQUIRE_STORAGE") == "1":
            pytest.fail("there is no S3-compatible server: make storage")
        pytest.skip("there is no S3-compatible server: make storage")
    folder.mkdir(parents=True)
    (port,) = free_ports(1)
    with (folder.parent / "storage.log").open("wb") as log:
        process = subprocess.Popen(
            [binary(), "--port", f"127.0.0.1:{port}", "--quiet", "posix", folder],
            env={**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
            stdout=log,
            stderr=log,
        )
    storage = Storage(folder, port)
    try:
        _wait(storage, process)
        yield storage
    finally:
        process.kill()
        process.wait()


def _wait(storage: Storage, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            storage.client().get_file_info(fs.FileSelector("", recursive=False))
            return
        except OSError:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture(scope="session")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with running(tmp_path_factory.mktemp("storage") / "buckets") as found:
        yield found


@pytest.fixture
def credentials(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """The server, with its credentials in the environment of this process."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in storage.environment.items():
        monkeypatch.setenv(name, value)
    return storage
