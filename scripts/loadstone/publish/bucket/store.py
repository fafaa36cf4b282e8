"""A bucket, or what lies below a prefix of it: objects that appear whole or not at all, and one writer at a time."""

import getpass
import hashlib
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from loadstone.archive.durable import sha256_of
from loadstone.errors import LoadstoneError
from loadstone.publish import s3

if TYPE_CHECKING:
    from pyarrow import NativeFile, fs

ARCHIVE, TABLES, PUSHING = "archive", "tables", "pushing"
_ONE_REQUEST_BYTES = 8 << 20  # below what the library writes in several parts
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Held:
    """An object as the storage lists it. Seconds are all that every server tells of its time."""

    size: int
    written_s: int


class DamagedError(Exception):
    """An object is not what its storage knows of it."""


class Store:
    """An open bucket; names are relative to its prefix. Every method raises OSError."""

    def __init__(self, storage: "fs.S3FileSystem", root: str, endpoint: str) -> None:
        self._storage, self._root = storage, root
        self.name, self.address = f"the bucket {root}", f"{endpoint} {root}"
        self._parts = f"{PUSHING}/{_machine()}"

    def listing(self, folder: str) -> dict[str, Held]:
        """The objects below a folder, by their names within it."""
        from pyarrow import fs  # noqa: PLC0415

        try:  # told to allow that nothing is there, the library allows that there is no bucket too
            found = self._storage.get_file_info(fs.FileSelector(self._at(folder), recursive=True))
        except FileNotFoundError:
            return {}
        return {info.path.removeprefix(f"{self._at(folder)}/"): _held(info) for info in found if info.is_file}

    def fetch(self, name: str) -> Iterator[bytes]:
        """The content of an object, piece by piece. Raises DamagedError when the storage itself has noticed that."""
        with self._storage.open_input_stream(self._at(name), compression=None) as file:
            while chunk := self._piece(file):
                yield chunk

    @staticmethod
    def _piece(file: "NativeFile") -> bytes:
        try:
            return bytes(file.read(_CHUNK))
        except OSError as error:
            if "checksum" in str(error):  # the library compares them as it reads, where servers tell one
                raise DamagedError from None
            raise

    def is_same(self, name: str, path: Path) -> bool:
        """Whether an object and a file of its size have the same content; only when need be the object is read."""
        with self._storage.open_input_file(self._at(name)) as file:
            tag = file.metadata().get(b"ETag", b"").decode().strip('"')
        # Of what was written by one request most servers tell the MD5; anything else proves nothing.
        if tag == _md5_of(path):
            return True
        digest = hashlib.sha256()
        try:
            for chunk in self.fetch(name):
                digest.update(chunk)
        except DamagedError:
            return False
        return digest.hexdigest() == sha256_of(path)

    def put(self, name: str, path: Path) -> Held:
        """Write an object, whole or not at all."""
        size = path.stat().st_size
        if size < _ONE_REQUEST_BYTES:
            self._write(name, path.read_bytes())
        else:
            self._put_large(name, path, size)
        (info,) = self._storage.get_file_info([self._at(name)])
        if not info.is_file or info.size != size:
            raise OSError(f"{self.name} does not hold {name} as it was written")
        return _held(info)

    def _put_large(self, name: str, path: Path, size: int) -> None:
        """The library completes an object even when a part was lost, so a whole one gets its name by a copy."""
        temporary = f"{self._parts}/{hashlib.sha256(name.encode()).hexdigest()}"
        with path.open("rb") as file, self._storage.open_output_stream(self._at(temporary), compression=None) as stream:
            while chunk := file.read(_ONE_REQUEST_BYTES):
                stream.write(chunk)
        (info,) = self._storage.get_file_info([self._at(temporary)])
        if info.size != size:
            raise OSError(f"{path} was not transferred as a whole")
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
        claim = f"{_machine()}.json"
        who = {"user": _user(), "machine": socket.gethostname(), "folder": str(Path.cwd())}
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        self._write(f"{PUSHING}/{claim}", json.dumps(who | {"since": since}).encode())
        try:
            listed = self.listing(PUSHING)
            for other in sorted(name for name in listed if name.endswith(".json") and name != claim):
                raise LoadstoneError(
                    f"{self._described(other)} is pushing to {self.name}; try again when that has ended. If it was "
                    f"killed and will never be pushed from there again, remove the object {self._at(PUSHING)}/{other}"
                )
            for left in listed:
                if left.startswith(f"{_machine()}/"):
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

    Whatever else goes wrong in the block is told as a LoadstoneError too.
    """
    if not declared:
        raise LoadstoneError(
            'config/config.yaml names no storage, for example `storage: {to: "s3://my-results/mesh", endpoint: '
            '"https://storage.example"}`; docs/buckets.md has every key'
        )
    parts = urlsplit(declared["to"])
    root = (parts.netloc + parts.path).rstrip("/")
    try:
        with s3.connected(declared.get("endpoint"), declared.get("region"), single=True) as storage:
            yield Store(storage, root, declared.get("endpoint", ""))
    except OSError as error:
        if "NO_SUCH_BUCKET" in str(error):
            raise LoadstoneError(f"there is no bucket {parts.netloc}: make it first, or mend `storage.to`") from None
        raise LoadstoneError(
            f"the bucket {root}: {error}. What was transferred before is whole, and nothing was replaced; the same "
            "command goes on from there"
        ) from None


def _md5_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _held(info: "fs.FileInfo") -> Held:
    return Held(info.size, int((info.mtime_ns or 0) // 1_000_000_000))


def _machine() -> str:
    """This folder of this machine, in which one command works at a time."""
    return hashlib.sha256(f"{socket.gethostname()}:{Path.cwd()}".encode()).hexdigest()[:16]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
