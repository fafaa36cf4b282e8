"""S3-compatible storage through pyarrow. Credentials are those of the environment or a profile, as for Amazon's tools.

pyarrow is installed anyway and can set content types and cache headers. It has no conditional writes, so a publication
reads its record a second time before it leads readers anywhere, and a push writes its claim before it looks for others.
It completes an object of several parts even if one was lost; so an object of the archive is written by one request, or
gets its name by a copy of a complete one.

Other clients, compared in 2026: boto3 would save 35 lines and cost 31 MB and an outdated python-dateutil; obstore and
minio do not know all that a profile may say (single sign-on, roles).
"""

import hashlib
import json
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from loadstone.archive.durable import open_raw, sha256_of
from loadstone.archive.locks import user
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from pyarrow import fs

PUSHING = "pushing"  # the folder of claims: who is pushing now
_AT_ONCE = 8
_ONE_REQUEST_BYTES = 8 << 20  # below what the library writes in several parts
_CHUNK = 1 << 20
_DENIED = ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE", "UNRECOGNIZED_CLIENT", "INVALID_CLIENT_TOKEN")
_CREDENTIALS = (
    "Credentials are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the profile in ~/.aws that "
    "AWS_PROFILE names"
)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@contextmanager
def connected(endpoint: str | None, region: str | None, *, single: bool = False) -> Iterator["fs.S3FileSystem"]:
    """A client of the storage at `endpoint`, a URL; without one it is Amazon's. Its errors in the block are OSErrors.

    `single`: an object of less than 10 MiB is written by one request, so it appears complete or not at all. (Servers
    may then tell readers that the object has an encoding, which no browser understands.)
    """
    from pyarrow import fs  # noqa: PLC0415 - few jobs need it

    address: dict[str, Any] = {"region": region} if region else {}
    if endpoint:
        parts = urlsplit(endpoint)
        # Without a region the library would ask Amazon for it.
        address = {"region": "us-east-1", "scheme": parts.scheme, "endpoint_override": parts.netloc} | address
    timeouts = {"request_timeout": 60, "connect_timeout": 10}
    try:
        yield fs.S3FileSystem(**address, **timeouts, background_writes=False, allow_delayed_open=single)
    except OSError as error:
        if error.errno is not None:  # of this machine's disk, with the name of a file
            raise
        text = str(error).strip().rstrip(".")
        is_denied = any(word in text.upper() for word in _DENIED)
        raise OSError(f"{text}. {_CREDENTIALS}" if is_denied else text) from None


def each(do: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """Call `do` for every item, several at once. The first failure cancels calls that have not begun."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(do, items))


class DamagedError(OSError):
    """An object does not match the checksum of the storage or of its run."""


class Store:
    """An open bucket, or what lies below a prefix of it. Names are relative to the prefix. Methods raise OSError."""

    def __init__(self, storage: "fs.S3FileSystem", root: str, endpoint: str = "") -> None:
        self._storage, self._root = storage, root
        self.name, self.address = f"the bucket {root}", f"{endpoint} {root}"
        # This folder of this machine, in which one command runs at a time.
        self._writer = hashlib.sha256(f"{socket.gethostname()}:{Path.cwd()}".encode()).hexdigest()[:16]

    def listing(self, folder: str) -> "dict[str, fs.FileInfo]":
        """The objects below a folder, by their names within it."""
        from pyarrow import fs  # noqa: PLC0415

        try:  # with `allow_not_found` a missing bucket would not be an error either
            found = self._storage.get_file_info(fs.FileSelector(self._at(folder), recursive=True))
        except FileNotFoundError:
            return {}
        return {info.path.removeprefix(f"{self._at(folder)}/"): info for info in found if info.is_file}

    def is_empty(self) -> bool:
        """Whether there is no object. An OSError for a missing bucket, unless there is a prefix."""
        from pyarrow import fs  # noqa: PLC0415

        return not self._storage.get_file_info(fs.FileSelector(self._root, allow_not_found="/" in self._root))

    def read(self, name: str) -> bytes | None:
        """The content of an object; None where there is none."""
        try:
            return b"".join(self.fetch(name))
        except FileNotFoundError:
            return None

    def fetch(self, name: str) -> Iterator[bytes]:
        """The content of an object in pieces. Raises DamagedError when it does not match the storage's checksum."""
        try:
            with self._storage.open_input_stream(self._at(name), compression=None) as file:
                while chunk := file.read(_CHUNK):
                    yield bytes(chunk)
        except OSError as error:
            if "checksum" in str(error):  # the library compares it while reading, where servers send one
                raise DamagedError("the storage reports another checksum") from None
            raise

    def is_same(self, name: str, path: Path) -> bool:
        """Whether an object and a file of the same size have the same content; downloads the object only if needed."""
        with self._storage.open_input_file(self._at(name)) as file:
            tag = file.metadata().get(b"ETag", b"").decode().strip('"')
        # The ETag of an object that was written by one request is its MD5 on most servers; another one proves nothing.
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

    def write(self, name: str, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Write an object; complete or not at all if it is small and the client is for `single` requests."""
        with self._storage.open_output_stream(self._at(name), compression=None, metadata=headers) as stream:
            stream.write(content)

    def put(self, name: str, path: Path) -> "fs.FileInfo":
        """Write a file as an object, complete or not at all; the client must be for `single` requests."""
        size = path.stat().st_size
        if size < _ONE_REQUEST_BYTES:
            self.write(name, path.read_bytes())
        else:  # the library completes an object even when a part was lost, so a complete one gets its name by a copy
            temporary = f"{PUSHING}/{self._writer}/{hashlib.sha256(name.encode()).hexdigest()}"
            with (
                path.open("rb") as file,
                self._storage.open_output_stream(self._at(temporary), compression=None) as stream,
            ):
                shutil.copyfileobj(file, stream, _ONE_REQUEST_BYTES)
            self._complete(temporary, size)
            self.copy(temporary, name)
            self.remove(temporary)
        return self._complete(name, size)

    def _complete(self, name: str, size: int) -> "fs.FileInfo":
        (info,) = self._storage.get_file_info([self._at(name)])
        if not info.is_file or info.size != size:
            raise OSError(f"{self.name} did not store {name} completely")
        return info

    def copy(self, source: str, name: str) -> None:
        """Copy an object within the storage, headers included."""
        self._storage.copy_file(self._at(source), self._at(name))

    def remove(self, name: str) -> None:
        """Remove an object."""
        self._storage.delete_file(self._at(name))

    def remove_folder(self, name: str) -> None:
        """Remove all objects below a folder, if there are any."""
        from pyarrow import fs  # noqa: PLC0415

        selector = fs.FileSelector(self._at(name), recursive=True, allow_not_found=True)
        found = self._storage.get_file_info(selector)
        each(self._storage.delete_file, [info.path for info in found if info.is_file])
        # The library keeps folders whose last file went as empty objects; some servers refuse to delete one before
        # those in it.
        for path in sorted({self._at(name), *(info.path for info in found if not info.is_file)}, reverse=True):
            with suppress(FileNotFoundError):
                self._storage.delete_dir(path)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one who pushes. Raises LoadstoneError if another push runs, or was killed and not repeated.

        Each writes its claim before it looks for others, so of two at least one sees the other. A killed push of this
        folder has left a claim of the same name, which is taken over.
        """
        claim = f"{self._writer}.json"
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        who = {"user": user(), "machine": socket.gethostname(), "folder": str(Path.cwd()), "since": since}
        self.write(f"{PUSHING}/{claim}", json.dumps(who).encode())
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
            with suppress(OSError):  # a claim that stays makes others wait until the next push from here ends
                self.remove(f"{PUSHING}/{claim}")

    def _described(self, claim: str) -> str:
        try:
            found = json.loads(self.read(f"{PUSHING}/{claim}") or b"")
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
