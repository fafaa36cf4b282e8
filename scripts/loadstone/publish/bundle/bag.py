"""Writing a bundle: a zip file in the layout of BagIt (RFC 8493), so that other tools can check it too.

The same content gives the same bytes anywhere: members are sorted, have no times and are not compressed (raw results
and tables are already, and compressors differ between versions).
"""

import hashlib
import os
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from loadstone.archive.durable import open_raw, sha256_of, sync
from loadstone.errors import LoadstoneError
from loadstone.publish.bundle.contents import FORMAT, Member
from loadstone.publish.site.publish import counted, megabytes

FOLDER = "loadstone-bundle/"  # all that a bundle holds is in it, whatever its file is called
DATA = "data/"
DECLARATION, INFO = "bagit.txt", "bag-info.txt"
MANIFEST, TAG_MANIFEST = "manifest-sha256.txt", "tagmanifest-sha256.txt"
_BAGIT = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip file knows
_CHUNK = 1 << 20
_NAME_AT = 30  # of the first member's name in a zip file

Log = Callable[[str], None]


@dataclass(frozen=True)
class Written:
    """A finished bundle."""

    path: Path
    files: int
    size: int
    sha256: str

    def line(self) -> str:
        """All in one sentence."""
        return f"{self.path}: {counted(self.files, 'file')}, {megabytes(self.size)}, SHA-256 {self.sha256}"


def write(path: Path, members: Iterable[Member]) -> Written:
    """Write a bundle; it appears complete or not at all. Replaces a former bundle and nothing else.

    Memory does not grow with the size of files. Raises LoadstoneError when it can't be written, `path` is another
    file, or a file changed meanwhile.
    """
    temporary = path.with_name(f".{path.name}.part")  # one name, so that what a killed command left is used again
    try:
        if path.exists() and not is_bundle(path):
            raise LoadstoneError(f"{path} is there already and no bundle; name another file or remove it")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            count = _fill(temporary, members)
            sync(temporary)
            size, digest = temporary.stat().st_size, sha256_of(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync(path.parent)
    except OSError as error:
        raise LoadstoneError(f"the bundle {path} cannot be written: {error.strerror or error}") from None
    return Written(path, count, size, digest)


def is_bundle(path: Path) -> bool:
    """Whether a file begins as bundles do."""
    first = f"{FOLDER}{DECLARATION}".encode()
    try:
        with path.open("rb") as file:
            return file.read(_NAME_AT + len(first))[_NAME_AT:] == first
    except OSError:
        return False


def _fill(temporary: Path, members: Iterable[Member]) -> int:
    sums: dict[str, str] = {}
    size = 0
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED, allowZip64=True) as bundle:
        tags = {DECLARATION: _add(bundle, DECLARATION, _BAGIT)[0]}
        for member in members:
            sums[f"{DATA}{member.name}"], length = _add(bundle, f"{DATA}{member.name}", member.content)
            size += length
        about = f"Bag-Software-Agent: Loadstone bundle {FORMAT}\nPayload-Oxum: {size}.{len(sums)}\n".encode()
        tags[INFO] = _add(bundle, INFO, about)[0]
        tags[MANIFEST] = _add(bundle, MANIFEST, manifest(sums))[0]
        _add(bundle, TAG_MANIFEST, manifest(tags))
    return len(sums)


def manifest(sums: dict[str, str]) -> bytes:
    """Lines as sha256sum writes them; BagIt escapes three characters of names."""
    lines = (f"{digest}  {escaped(name)}\n" for name, digest in sorted(sums.items()))
    return "".join(lines).encode()


def escaped(name: str) -> str:
    """A name as a manifest has it."""
    return name.replace("%", "%25").replace("\n", "%0A").replace("\r", "%0D")


def unescaped(name: str) -> str:
    """Inverse of `escaped`."""
    return name.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def _add(bundle: zipfile.ZipFile, name: str, content: Path | bytes) -> tuple[str, int]:
    """One member; its SHA-256 and size."""
    info = zipfile.ZipInfo(FOLDER + name, _EPOCH)
    info.create_system = 3  # Unix, wherever it is written
    info.external_attr = 0o100644 << 16
    if isinstance(content, bytes):
        bundle.writestr(info, content)
        return hashlib.sha256(content).hexdigest(), len(content)
    digest = hashlib.sha256()
    with _opened(content) as source:
        info.file_size = size = os.fstat(source.fileno()).st_size
        with bundle.open(info, "w") as target:
            left = size
            while chunk := source.read(min(_CHUNK, left)):
                digest.update(chunk)
                target.write(chunk)
                left -= len(chunk)
        if left or source.read(1):
            raise LoadstoneError(f"{content} changed while it was bundled; run again")
    return digest.hexdigest(), size


def _opened(content: Path) -> FileIO:
    try:
        return open_raw(content)
    except OSError as error:
        raise LoadstoneError(f"{content} cannot be read, and is not bundled: {error.strerror or error}") from None
