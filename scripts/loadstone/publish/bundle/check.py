"""Is a bundle whole and what it says? Nothing in it is believed: it may come from anybody.

Names, kinds and sizes are judged before anything is read, every byte is hashed before anything is unpacked, and only
files that the manifest names are ever written, below a folder of their own.
"""

import hashlib
import json
import re
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.archive import decode
from loadstone.errors import LoadstoneError, printable
from loadstone.publish.bundle import bag
from loadstone.publish.bundle.contents import ARCHIVE, CONFIG, CONFIGURATION, FORMAT, PROVENANCE

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_TAGS = (bag.DECLARATION, bag.INFO, bag.MANIFEST)
_MOST_TEXT_BYTES = 256 << 20  # of manifest and provenance: more than a million files
_MOST_DIRECTORY_BYTES = 512 << 20  # what a zip file says of its members is read at once
_CHUNK = 1 << 20
_SHOWN = 20
_LONGEST_NAME = 300
_DATA = f"{bag.FOLDER}{bag.DATA}"

Log = Callable[[str], None]


@dataclass(frozen=True)
class Checked:
    """A bundle all of whose bytes are what it says: SHA-256 by name (``archive/...``) and its provenance."""

    path: Path
    sums: Mapping[str, str]
    size: int
    provenance: Mapping[str, Any]


def check(path: Path) -> Checked:
    """Read a bundle to its last byte. Raises LoadstoneError that names what is wrong with it."""
    with _opened(path) as bundle:
        infos = {info.filename.removeprefix(bag.FOLDER): info for info in bundle.infolist()}
        if missing := {*_TAGS, bag.TAG_MANIFEST} - infos.keys():
            raise LoadstoneError(f"{path} is no bundle: it lacks {', '.join(sorted(missing))}")
        tags = _manifest(path, bundle, bag.TAG_MANIFEST)
        if set(tags) != set(_TAGS):
            raise LoadstoneError(f"{path} is no whole bundle: {bag.TAG_MANIFEST} does not name {', '.join(_TAGS)}")
        sums = tags | _manifest(path, bundle, bag.MANIFEST)
        _refuse(path, "holds other files than it names", _unnamed(sums, infos))
        _refuse(path, "was altered", [name for name in sums if _sha256(bundle, infos[name]) != sums[name]])
        provenance = _provenance(path, _text(path, bundle, f"{bag.DATA}{PROVENANCE}"))
        size = sum(info.file_size for info in infos.values())
    data = {name.removeprefix(bag.DATA): digest for name, digest in sums.items() if name.startswith(bag.DATA)}
    return Checked(path, data, size, provenance)


def unpack(checked: Checked, folder: Path) -> None:
    """Write raw results (``archive``) and what people say of them (``config``) below `folder`, which is empty.

    Raises LoadstoneError when that fails or the bundle has changed since it was checked.
    """
    with _opened(checked.path) as bundle:
        for name, digest in checked.sums.items():
            if name.startswith(ARCHIVE) or name in {f"{CONFIG}{each}" for each in CONFIGURATION}:
                target = folder / _unpacked(name)
                try:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    found = _copy(bundle, bundle.getinfo(_DATA + name), target)
                except OSError as error:
                    why = f"{printable(name[:_LONGEST_NAME])}: {error.strerror or error}"
                    raise LoadstoneError(f"{checked.path} cannot be unpacked into {folder}: {why}") from None
                if found != digest:
                    raise LoadstoneError(f"{checked.path} changed while it was being verified")


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The zip file, once its members are known to be harmless."""
    try:
        _judge_directory(path)
        with zipfile.ZipFile(path) as bundle:
            _judge(path, bundle.infolist())
            yield bundle
    except FileNotFoundError:
        raise LoadstoneError(f"there is no bundle {path}") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError) as error:
        raise LoadstoneError(f"{path} is damaged, cut short or no bundle: {error}") from None
    except OSError as error:
        raise LoadstoneError(f"{path} cannot be read: {error.strerror or error}") from None


def _judge_directory(path: Path) -> None:
    """A zip file ends with how long its list of members is; Python reads all of that at once."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - (1 << 16) - 22))
        tail = file.read()
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) - end < 22:
        raise zipfile.BadZipFile("its end is missing")
    length = int.from_bytes(tail[end + 12 : end + 16], "little")
    far = tail.rfind(b"PK\x06\x06", 0, end)
    if far >= 0:
        length = max(length if length != 0xFFFFFFFF else 0, int.from_bytes(tail[far + 40 : far + 48], "little"))
    if length > min(_MOST_DIRECTORY_BYTES, size):
        raise LoadstoneError(f"{path} is no bundle: it says of itself that its list of members has {length:,} bytes")


def _judge(path: Path, infos: list[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    faults = []
    for info in infos:
        if fault := _fault(info):
            faults.append(f"{info.filename!r} {fault}")
        elif info.filename in seen:
            faults.append(f"{info.filename!r} is there twice")
        seen.add(info.filename)
    _refuse(path, "is no bundle", faults)
    if sum(info.file_size for info in infos) > path.stat().st_size:
        raise LoadstoneError(f"{path} is no bundle: its members would be larger than it is")


def _fault(info: zipfile.ZipInfo) -> str:
    """What is wrong with a member by what the zip file says of it."""
    parts = info.filename.split("/")
    mode = info.external_attr >> 16
    if not info.filename.startswith(bag.FOLDER) or "\\" in info.filename or info.filename != info.orig_filename:
        return f"is not in {bag.FOLDER}"
    if any(part in ("", ".", "..") or _is_path(decode(part)) for part in parts):
        return "leads out of its folder"
    if not stat.S_ISREG(mode):
        return "is no regular file"
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.compress_size != info.file_size:
        return "is compressed or encrypted, which nothing in a bundle is"
    return ""


def _is_path(part: str) -> bool:
    return part in ("", ".", "..") or "/" in part or "\0" in part


def _unnamed(sums: Mapping[str, str], infos: Mapping[str, object]) -> list[str]:
    lacking = [f"{name} is missing" for name in sums.keys() - infos.keys()]
    return sorted(lacking + [f"{name} is in no manifest" for name in infos.keys() - sums.keys() - {bag.TAG_MANIFEST}])


def _refuse(path: Path, why: str, faults: list[str]) -> None:
    if faults:
        more = [f"and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        shown = "\n".join(f"  {printable(fault)}" for fault in [*faults[:_SHOWN], *more])
        raise LoadstoneError(f"{path} {why}:\n{shown}")


def _text(path: Path, bundle: zipfile.ZipFile, name: str) -> str:
    try:
        info = bundle.getinfo(bag.FOLDER + name)
        if info.file_size > _MOST_TEXT_BYTES:
            raise LoadstoneError(f"{path}: {name} is too long to be what it should be")
        return bundle.read(info).decode()
    except (KeyError, UnicodeDecodeError) as error:
        raise LoadstoneError(f"{path}: {name} is missing or no text: {error}") from None


def _manifest(path: Path, bundle: zipfile.ZipFile, name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(_text(path, bundle, name).split("\n")[:-1], 1):
        match = _LINE.fullmatch(line)
        listed = bag.unescaped(match[2]) if match else ""
        if match is None or listed in found or listed.startswith(bag.DATA) != (name == bag.MANIFEST):
            raise LoadstoneError(f"{path}: line {number} of {name} is no checksum of a file of its own")
        found[listed] = match[1]
    return found


def _provenance(path: Path, text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
        known = found["format"] == FORMAT
        settings, software = found["settings"], found["software"]
        is_sound = isinstance(settings, dict) and all(isinstance(each, str) for each in software.values())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise LoadstoneError(f"{path}: {PROVENANCE} does not say how it was made") from None
    if not known or not is_sound:
        raise LoadstoneError(f"{path} was made by another Loadstone ({printable(str(software)[:200])}); use that one")
    return dict(found)


def _sha256(bundle: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    """Of one member; of one whose own short checksum is wrong, what can't be of anything."""
    try:
        with bundle.open(info) as file:
            digest = hashlib.sha256()
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
            return digest.hexdigest()
    except zipfile.BadZipFile:
        return ""


def _unpacked(name: str) -> Path:
    """Where a file lies under its own names."""
    return Path(*map(decode, name.split("/")))


def _copy(bundle: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> str:
    digest = hashlib.sha256()
    with bundle.open(info) as source, target.open("xb") as file:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()
