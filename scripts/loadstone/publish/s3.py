"""S3-compatible storage through pyarrow. Credentials are the environment's or a profile's, as with Amazon's tools.

pyarrow is installed anyway and can set content types and cache headers. It has no conditional writes, so a publication
looks at the mark a second time before it leads readers anywhere, and a push writes its claim before it looks for
others. It completes an object of several parts even if one was lost; so an object of the archive is written by one
request, or gets its name by a copy of a complete one.
"""

import getpass
import hashlib
import json
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from loadstone.archive.durable import open_raw, sha256_of
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from pyarrow import fs

PUSHING = "pushing"  # below it lies who is writing now
_AT_ONCE = 8
_ONE_REQUEST_BYTES = 8 << 20  # below what the library writes in several parts
_CHUNK = 1 << 20
_DENIED = ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE", "UNRECOGNIZED_CLIENT", "INVALID_CLIENT_TOKEN")
_CREDENTIALS = (
    "Credentials are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the profile in ~/.aws that "
    "AWS_PROFILE names"
)


@contextmanager
def connected(endpoint: str | None, region: str | None, *, single: bool = False) -> Iterator["fs.S3FileSystem"]:
    """A client of the storage at `endpoint`, an address; without one it is Amazon's. An OSError says what to do.

    `single`: an object of less than 10 MiB is written by one request, so it appears whole or not at all. (Servers may
    tell readers that such an object is encoded, which no browser understands.)
    """
    from pyarrow import fs  # noqa: PLC0415 - few jobs need it

    address: dict[str, Any] = {"region": region} if region else {}
    if endpoint:
        parts = urlsplit(endpoint)
        # Without a region the library would ask Amazon for it.
        address = {"region": "us-east-1", "scheme": parts.scheme, "endpoint_override": parts.netloc} | address
    waits = {"request_timeout": 60, "connect_timeout": 10}
    try:
        yield fs.S3FileSystem(**address, **waits, background_writes=False, allow_delayed_open=single)
    except OSError as error:
        if error.errno is not None:  # this machine's, with the name of a file
            raise
        text = str(error).strip().rstrip(".")
        is_denied = any(word in text.upper() for word in _DENIED)
        raise OSError(f"{text}. {_CREDENTIALS}" if is_denied else text) from None


def each(do: Callable[[Any], object], items: Iterable[Any]) -> None:
    """Several at once; the first failure is raised once those under way have ended."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting = [pool.submit(do, item) for item in items]
        try:
            for one in waiting:
                one.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@dataclass(frozen=True)
class ObjectInfo:
    """An object as the storage lists it; `written_s` in whole seconds, as some servers give no more."""

    size: int
    written_s: int


class DamagedError(Exception):
    """An object does not match the checksum that its storage, or its run, has of it."""


class Store:
    """An open bucket, or what lies below a prefix of it, with one writer at a time. Every method raises OSError.

    Names are relative to the prefix. An object appears whole or not at all.
    """

    def __init__(self, storage: "fs.S3FileSystem", root: str, endpoint: str) -> None:
        self._storage, self._root = storage, root
        self.name, self.address = f"the bucket {root}", f"{endpoint} {root}"
        # This folder of this machine, in which one command works at a time.
        self._writer = hashlib.sha256(f"{socket.gethostname()}:{Path.cwd()}".encode()).hexdigest()[:16]

    def listing(self, folder: str) -> dict[str, ObjectInfo]:
        """The objects below a folder, by their names within it."""
        from pyarrow import fs  # noqa: PLC0415

        try:  # told to allow that nothing is there, the library allows that there is no bucket too
            found = self._storage.get_file_info(fs.FileSelector(self._at(folder), recursive=True))
        except FileNotFoundError:
            return {}
        return {info.path.removeprefix(f"{self._at(folder)}/"): _info(info) for info in found if info.is_file}

    def fetch(self, name: str) -> Iterator[bytes]:
        """The content of an object, piece by piece. Raises DamagedError when the storage itself has noticed that."""
        try:
            with self._storage.open_input_stream(self._at(name), compression=None) as file:
                while chunk := file.read(_CHUNK):
                    yield bytes(chunk)
        except OSError as error:
            if "checksum" in str(error):  # the library compares them as it reads, where servers tell one
                raise DamagedError("its storage reports another checksum") from None
            raise

    def is_same(self, name: str, path: Path) -> bool:
        """Whether an object and a file of its size have the same content; only when need be the object is read."""
        with self._storage.open_input_file(self._at(name)) as file:
            tag = file.metadata().get(b"ETag", b"").decode().strip('"')
        # Of an object written by one request, most servers give the MD5 as ETag; anything else proves nothing.
        with open_raw(path) as content:
            if tag == hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False)).hexdigest():
                return True
        digest = hashlib.sha256()
        try:
            for chunk in self.fetch(name):
                digest.update(chunk)
        except DamagedError:
            return False
        return digest.hexdigest() == sha256_of(path)

    def put(self, name: str, path: Path) -> ObjectInfo:
        """Write an object, whole or not at all."""
        size = path.stat().st_size
        if size < _ONE_REQUEST_BYTES:
            self._write(name, path.read_bytes())
        else:
            self._put_large(name, path, size)
        (info,) = self._storage.get_file_info([self._at(name)])
        if not info.is_file or info.size != size:
            raise OSError(f"{self.name} did not store {name} completely")
        return _info(info)

    def _put_large(self, name: str, path: Path, size: int) -> None:
        """The library completes an object even when a part was lost, so a whole one gets its name by a copy."""
        temporary = f"{PUSHING}/{self._writer}/{hashlib.sha256(name.encode()).hexdigest()}"
        with path.open("rb") as file, self._storage.open_output_stream(self._at(temporary), compression=None) as stream:
            while chunk := file.read(_ONE_REQUEST_BYTES):
                stream.write(chunk)
        (info,) = self._storage.get_file_info([self._at(temporary)])
        if info.size != size:
            raise OSError(f"{path} was not transferred completely")
        self._storage.copy_file(self._at(temporary), self._at(name))
        self.remove(temporary)

    def _write(self, name: str, content: bytes) -> None:
        with self._storage.open_output_stream(self._at(name), compression=None) as stream:
            stream.write(content)

    def remove(self, name: str) -> None:
        """Remove an object."""
        self._storage.delete_file(self._at(name))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one who writes. Raises LoadstoneError when another is, or was killed and has not been back.

        Each writes that it is there before it looks for others, so of two at least one sees the other. A claim of our
        own, of one that was killed, is ours.
        """
        claim = f"{self._writer}.json"
        who = {"user": _user(), "machine": socket.gethostname(), "folder": str(Path.cwd())}
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        self._write(f"{PUSHING}/{claim}", json.dumps(who | {"since": since}).encode())
        try:
            listed = self.listing(PUSHING)
            for other in sorted(name for name in listed if name.endswith(".json") and name != claim):
                raise LoadstoneError(
                    f"{self._described(other)} is pushing to {self.name}; try again when that push has ended. "
                    "If it was killed and nothing will be pushed from there again, remove the object "
                    f"{self._at(PUSHING)}/{other}"
                )
            for left in listed:
                if left.startswith(f"{self._writer}/"):
                    self.remove(f"{PUSHING}/{left}")
            yield
        finally:
            with suppress(OSError):  # it would tell others to wait; the next push of ours takes it over
                self.remove(f"{PUSHING}/{claim}")

    def _described(self, claim: str) -> str:
        try:
            found = json.loads(b"".join(self.fetch(f"{PUSHING}/{claim}")))
            return "{user} on {machine} (in {folder}, since {since})".format(**found)
        except (OSError, ValueError, KeyError, TypeError):
            return "somebody else"

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"


@contextmanager
def opened(declared: Mapping[str, Any] | None) -> Iterator[Store]:
    """The bucket that the configuration's ``storage`` names. Raises LoadstoneError when there is none.

    Other errors in the block are raised as LoadstoneError too.
    """
    if not declared:
        raise LoadstoneError(
            'storage is missing in config/config.yaml, for example `storage: {to: "s3://my-results/mesh", endpoint: '
            '"https://storage.example"}`; docs/buckets.md has every key'
        )
    parts = urlsplit(declared["to"])
    root = (parts.netloc + parts.path).rstrip("/")
    try:
        with connected(declared.get("endpoint"), declared.get("region"), single=True) as storage:
            yield Store(storage, root, declared.get("endpoint", ""))
    except OSError as error:
        if "NO_SUCH_BUCKET" in str(error):
            raise LoadstoneError(
                f"the bucket {parts.netloc} does not exist: create it, or correct `storage.to`"
            ) from None
        raise LoadstoneError(
            f"the bucket {root}: {error}. Files transferred before are complete, and nothing was replaced; run the "
            "same command again to continue"
        ) from None


def _info(info: "fs.FileInfo") -> ObjectInfo:
    return ObjectInfo(info.size, int((info.mtime_ns or 0) // 1_000_000_000))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
