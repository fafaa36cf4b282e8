"""A bucket, or what lies below a prefix of it: objects that appear whole or not at all, and one writer at a time."""

import getpass
import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from loadstone.archive import encode
from loadstone.archive.durable import replace, sha256_of
from loadstone.errors import LoadstoneError
from loadstone.publish import s3
from loadstone.tables.layout import prepare_folder
from loadstone.text import counted, megabytes

if TYPE_CHECKING:
    from pyarrow import NativeFile, fs

ARCHIVE, TABLES, PUSHING = "archive", "tables", "pushing"
_ONE_REQUEST_BYTES = 8 << 20  # below what the library writes in several parts
_CHUNK = 1 << 20


@dataclass(frozen=True)
class ObjectInfo:
    """An object as the storage lists it; `written_s` in whole seconds, as some servers give no more."""

    size: int
    written_s: int


class DamagedError(Exception):
    """An object does not match the checksum that its storage has of it."""


class Store:
    """An open bucket; names are relative to its prefix. Every method raises OSError."""

    def __init__(self, storage: "fs.S3FileSystem", root: str, endpoint: str) -> None:
        self._storage, self._root = storage, root
        self.name, self.address = f"the bucket {root}", f"{endpoint} {root}"
        self._parts = f"{PUSHING}/{_machine()}"

    def listing(self, folder: str) -> dict[str, ObjectInfo]:
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
        # Of an object written by one request, most servers give the MD5 as ETag; anything else proves nothing.
        if tag == _md5_of(path):
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
        return _held(info)

    def _put_large(self, name: str, path: Path, size: int) -> None:
        """The library completes an object even when a part was lost, so a whole one gets its name by a copy."""
        temporary = f"{self._parts}/{hashlib.sha256(name.encode()).hexdigest()}"
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
        claim = f"{_machine()}.json"
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
        with s3.connected(declared.get("endpoint"), declared.get("region"), single=True) as storage:
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


def _md5_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _held(info: "fs.FileInfo") -> ObjectInfo:
    return ObjectInfo(info.size, int((info.mtime_ns or 0) // 1_000_000_000))


def _machine() -> str:
    """This folder of this machine, in which one command works at a time."""
    return hashlib.sha256(f"{socket.gethostname()}:{Path.cwd()}".encode()).hexdigest()[:16]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


_COMPARED = ".stored"
_ABOVE = "above"


class ComparedFiles:
    """Of one campaign (`group`: its folders) or of what lies elsewhere. `where` names the bucket that is meant."""

    def __init__(self, tables: Path, where: str, group: tuple[str, ...]) -> None:
        *folders, name = map(encode, group or (_ABOVE,))
        self._tables, self._where = tables, where
        self._path = tables.joinpath(_COMPARED, *folders, f"{name}.json")
        self._found = self._read()
        self._is_new = False

    def _read(self) -> dict[str, list[int]]:
        try:
            content = json.loads(self._path.read_bytes())
            return dict(content["files"]) if content["where"] == self._where else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def is_same(self, path: str, status: os.stat_result, held: ObjectInfo) -> bool:
        """Whether file and object are those that were compared."""
        return self._found.get(path) == _identity(status, held)

    def note(self, path: str, status: os.stat_result, held: ObjectInfo) -> None:
        """That they have the same content."""
        self._found[path], self._is_new = _identity(status, held), True

    def save(self) -> None:
        """Once per campaign. What can't be noted is compared again."""
        if self._is_new:
            content = {"where": self._where, "files": self._found}
            with suppress(OSError, LoadstoneError):
                prepare_folder(self._tables, self._path.parent)
                replace(self._path, json.dumps(content).encode("utf-8", "surrogateescape"))


def _identity(status: os.stat_result, held: ObjectInfo) -> list[int]:
    return [status.st_size, status.st_mtime_ns, held.size, held.written_s]


_SAY_EVERY_S = 10.0

Log = Callable[[str], None]


@dataclass
class TransferLog:
    """Of several threads. `problems` make the command fail at its end; `notices` are worth saying."""

    log: Log
    files: int = 0
    bytes: int = 0
    same: int = 0
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    _said: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def moved(self, size: int) -> None:
        """One more file was transferred."""
        with self._lock:
            self.files, self.bytes = self.files + 1, self.bytes + size
            if time.monotonic() - self._said > _SAY_EVERY_S:
                self._said = time.monotonic()
                self.log(f"so far {self.moves()}")

    def was_there(self, number: int = 1) -> None:
        with self._lock:
            self.same += number

    def problem(self, text: str) -> None:
        self.problems.append(text)

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def moves(self) -> str:
        return f"{counted(self.files, 'file')} ({megabytes(self.bytes)})"
