"""S3-compatible storage as destination. Credentials are the environment's or a profile's, as with Amazon's tools."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from loadstone.publishing import layout
from loadstone.publishing.destination import Write
from loadstone.publishing.files import content_type

if TYPE_CHECKING:
    from pyarrow import fs

_AT_ONCE = 8
_FOREVER = "public, max-age=31536000, immutable"
_ASK = "no-cache"
_DENIED = ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE", "UNRECOGNIZED_CLIENT", "INVALID_CLIENT_TOKEN")
_CREDENTIALS = (
    "Credentials are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the profile in ~/.aws that "
    "AWS_PROFILE names"
)


class Bucket:
    """A bucket, or what lies below a prefix of it. `endpoint` is an address; without one it is Amazon's."""

    def __init__(self, bucket: str, prefix: str = "", endpoint: str | None = None, region: str | None = None) -> None:
        self._bucket, self._prefix = bucket, prefix.strip("/")
        self._endpoint, self._region = endpoint, region

    @property
    def name(self) -> str:
        return f"the bucket {'/'.join(filter(None, (self._bucket, self._prefix)))}"

    @contextmanager
    def opened(self, *, looking: bool) -> Iterator["_BucketPlace"]:  # noqa: ARG002 - looking changes nothing anyway
        from pyarrow import fs  # noqa: PLC0415 - only this job needs it

        address: dict[str, Any] = {"region": self._region} if self._region else {}
        if self._endpoint:
            parts = urlsplit(self._endpoint)
            # Without a region the library would ask Amazon for it.
            address = {"region": "us-east-1", "scheme": parts.scheme, "endpoint_override": parts.netloc} | address
        try:
            storage = fs.S3FileSystem(**address, background_writes=False, request_timeout=60, connect_timeout=10)
            yield _BucketPlace(storage, "/".join(filter(None, (self._bucket, self._prefix))))
        except OSError as error:
            raise OSError(_explained(str(error))) from None


def _explained(text: str) -> str:
    text = text.strip().rstrip(".")
    return f"{text}. {_CREDENTIALS}" if any(word in text.upper() for word in _DENIED) else text


class _BucketPlace:
    def __init__(self, storage: "fs.S3FileSystem", root: str) -> None:
        self._storage, self._root = storage, root

    def begin(self) -> None:
        """There is no lock; `publish` looks at the mark again before it leads anybody to what it wrote."""

    def read(self, name: str) -> bytes | None:
        try:
            with self._storage.open_input_file(self._at(name)) as file:
                content: bytes = file.read()
        except FileNotFoundError:
            return None
        return content

    def sizes(self, folder: str) -> dict[str, int]:
        return {info.path.removeprefix(f"{self._root}/"): info.size for info in self._below(folder) if info.is_file}

    def present(self, names: Collection[str]) -> set[str]:
        listed = list(names)
        found = self._storage.get_file_info([self._at(name) for name in listed]) if listed else []
        return {name for name, info in zip(listed, found, strict=True) if info.is_file}

    def is_empty(self) -> bool:
        from pyarrow import fs  # noqa: PLC0415

        return not self._storage.get_file_info(fs.FileSelector(self._root, allow_not_found="/" in self._root))

    def write(self, files: Sequence[Write]) -> None:
        _each(self._put, files)

    def _put(self, file: Write) -> None:
        if file.copy_of is not None:
            self._storage.copy_file(self._at(file.copy_of), self._at(file.name))
            return
        is_final = file.name.startswith(f"{layout.RELEASES}/") and file.name != layout.INDEX
        told = {"Content-Type": content_type(file.name), "Cache-Control": _FOREVER if is_final else _ASK}
        content = file.read()
        # Closing the stream is what makes the object, unless a write failed: it appears whole or not at all.
        with self._storage.open_output_stream(self._at(file.name), compression=None, metadata=told) as stream:
            stream.write(content)

    def remove(self, folders: Sequence[str], files: Sequence[str]) -> None:
        from pyarrow import fs  # noqa: PLC0415

        _each(lambda name: self._storage.delete_file(self._at(name)), sorted(self.present(files)))
        for name in folders:
            inside = self._below(name)
            _each(self._storage.delete_file, [info.path for info in inside if info.is_file])
            # The library keeps folders whose last file went as empty objects; some servers refuse to delete one before
            # those in it.
            left = {info.path for info in inside if not info.is_file} | {self._at(name)}
            for path in sorted(left, key=lambda path: path.count("/"), reverse=True):
                if self._storage.get_file_info(path).type != fs.FileType.NotFound:
                    self._storage.delete_dir(path)

    def finish(self, message: str) -> None:
        """Nothing is left to do: each object was seen as soon as it was written."""

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _below(self, folder: str) -> "list[fs.FileInfo]":
        from pyarrow import fs  # noqa: PLC0415

        found: list[fs.FileInfo] = self._storage.get_file_info(
            fs.FileSelector(self._at(folder), recursive=True, allow_not_found=True)
        )
        return found


def _each(do: Callable[[Any], object], items: Iterable[Any]) -> None:
    """Several at once; the first failure is raised once those under way have ended."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting = [pool.submit(do, item) for item in items]
        try:
            for each in waiting:
                each.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
