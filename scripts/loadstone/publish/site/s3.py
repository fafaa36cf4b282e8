"""S3-compatible storage as destination."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loadstone.publish import s3
from loadstone.publish.s3 import each
from loadstone.publish.site import layout
from loadstone.publish.site.destination import Write
from loadstone.publish.site.files import content_type

if TYPE_CHECKING:
    from pyarrow import fs

_FOREVER = "public, max-age=31536000, immutable"
_ASK = "no-cache"


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
        with s3.connected(self._endpoint, self._region) as storage:
            yield _BucketPlace(storage, "/".join(filter(None, (self._bucket, self._prefix))))


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
        each(self._put, files)

    def _put(self, file: Write) -> None:
        if file.copy_of is not None:
            self._storage.copy_file(self._at(file.copy_of), self._at(file.name))
            return
        is_final = file.name.startswith(f"{layout.RELEASES}/") and file.name != layout.INDEX
        told = {"Content-Type": content_type(file.name), "Cache-Control": _FOREVER if is_final else _ASK}
        content = file.read()
        # Closing the stream makes the object. One of more than 10 MiB whose parts could not all be written may be cut
        # short; nothing leads to it yet, and the next publication writes what is not of the right size again.
        with self._storage.open_output_stream(self._at(file.name), compression=None, metadata=told) as stream:
            stream.write(content)

    def remove(self, folders: Sequence[str], files: Sequence[str]) -> None:
        from pyarrow import fs  # noqa: PLC0415

        each(lambda name: self._storage.delete_file(self._at(name)), sorted(self.present(files)))
        for name in folders:
            inside = self._below(name)
            each(self._storage.delete_file, [info.path for info in inside if info.is_file])
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
