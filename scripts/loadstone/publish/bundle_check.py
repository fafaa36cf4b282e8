"""Verifies a bundle: is it complete and unaltered, and do its tables follow from its raw results?

Nothing in it is trusted: it may come from anybody. Names, types and sizes are checked before anything is read, every
byte is hashed before anything is unpacked, and only files that the manifest lists are written, below a folder of their
own. Then its tables are rebuilt from its raw results and compared byte by byte.
"""

import hashlib
import json
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from pathlib import Path

import msgspec
import zstandard

from loadstone.archive import decode
from loadstone.archive.durable import sha256_of
from loadstone.config import SETTINGS
from loadstone.errors import LoadstoneError, printable
from loadstone.process import ask
from loadstone.publish.bundle import (
    ARCHIVE,
    CONFIG,
    CONFIGURATION,
    DATA,
    DECLARATION,
    FOLDER,
    FORMAT,
    INFO,
    MANIFEST,
    PROVENANCE,
    TABLES,
    TAG_MANIFEST,
    Provenance,
    software,
    table_files,
    unescaped,
)
from loadstone.tables import VERSION, verify
from loadstone.tables.layout import prepare_folder
from loadstone.text import counted, megabytes

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_TAGS = (DECLARATION, INFO, MANIFEST)
_MOST_TEXT_BYTES = 256 << 20  # of manifest and provenance: more than a million files
_SHOWN = 20
_LONGEST_NAME = 300
_LONGEST_TEXT = 4000
_DATA = f"{FOLDER}{DATA}"
_HEADER_BYTES = 18  # the longest of a zstd frame
_PIECE_BYTES = 1 << 20

Log = Callable[[str], None]


@dataclass(frozen=True)
class VerifiedBundle:
    """A bundle whose bytes match its manifests: SHA-256 by name (``archive/...``), size in bytes, provenance."""

    path: Path
    sums: Mapping[str, str]
    size: int
    provenance: Provenance


def check(path: Path) -> VerifiedBundle:
    """Read all of a bundle. Raises LoadstoneError that names what is wrong with it."""
    with _opened(path) as bundle:
        infos = {info.filename.removeprefix(FOLDER): info for info in bundle.infolist()}
        if missing := {*_TAGS, TAG_MANIFEST} - infos.keys():
            raise LoadstoneError(f"{path} is not a bundle: {', '.join(sorted(missing))} missing")
        tags = _manifest(path, bundle, TAG_MANIFEST)
        if set(tags) != set(_TAGS):
            raise LoadstoneError(f"{path} is not a complete bundle: {TAG_MANIFEST} does not list {', '.join(_TAGS)}")
        sums = tags | _manifest(path, bundle, MANIFEST)
        _refuse(path, "does not hold exactly the files that its manifests list", _differing_names(sums, infos))
        _refuse(path, "was altered", [name for name in sums if _sha256(bundle, infos[name]) != sums[name]])
        provenance = _provenance(path, _text(path, bundle, f"{DATA}{PROVENANCE}"))
        size = sum(info.file_size for info in infos.values())
    data = {name.removeprefix(DATA): digest for name, digest in sums.items() if name.startswith(DATA)}
    return VerifiedBundle(path, data, size, provenance)


def check_expansion(checked: VerifiedBundle, limit: int) -> None:
    """Raise LoadstoneError when the raw results of a bundle are larger than `limit` bytes, decompressed.

    First by the sizes that they declare, then by decompressing them piece by piece; nothing is written.
    """
    with _opened(checked.path) as bundle:
        infos = [bundle.getinfo(_DATA + name) for name in checked.sums if name.startswith(ARCHIVE)]
        for sizes in (map(partial(_declared, bundle), infos), chain.from_iterable(map(partial(_sizes, bundle), infos))):
            if any(total > limit for total in accumulate(sizes)):
                raise LoadstoneError(
                    f"{checked.path} was not unpacked: decompressed, its raw results are larger than {limit:,} bytes. "
                    "If you know who made it, allow more: --config verify_limit=1TB"
                )


def _is_compressed(info: zipfile.ZipInfo) -> bool:
    """By the name that the member has when it is unpacked."""
    return decode(info.filename).endswith(".zst")


def _declared(bundle: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """The size of a member's content, decompressed, as its first zstd frame declares it; its own size if none does."""
    with bundle.open(info) as source:
        try:
            size = zstandard.frame_content_size(source.read(_HEADER_BYTES)) if _is_compressed(info) else -1
        except zstandard.ZstdError:
            size = -1
    return max(size, info.file_size)


def _sizes(bundle: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[int]:
    """The sizes of the pieces of a member's content, decompressed, up to where it is damaged."""
    if not _is_compressed(info):
        yield info.file_size
        return
    with (
        bundle.open(info) as source,
        zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True) as content,
        suppress(zstandard.ZstdError),
    ):
        while piece := content.read(_PIECE_BYTES):
            yield len(piece)


def unpack(checked: VerifiedBundle, folder: Path) -> None:
    """Write raw results (``archive``) and declarations about them (``config``) below `folder`, which is empty.

    Raises LoadstoneError when that fails or the bundle has changed since it was checked.
    """
    with _opened(checked.path) as bundle:
        for name, digest in checked.sums.items():
            if name.startswith(ARCHIVE) or name in {f"{CONFIG}{each}" for each in CONFIGURATION}:
                target = folder.joinpath(*map(decode, name.split("/")))
                try:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with bundle.open(_DATA + name) as source, target.open("xb") as file:
                        shutil.copyfileobj(source, file)
                except OSError as error:
                    why = f"{printable(name[:_LONGEST_NAME])}: {error.strerror or error}"
                    raise LoadstoneError(f"{checked.path} cannot be unpacked into {folder}: {why}") from None
                if sha256_of(target) != digest:
                    raise LoadstoneError(f"{checked.path} changed while it was being verified")


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The zip file, after the check that its members are harmless."""
    try:
        with zipfile.ZipFile(path) as bundle:
            _check_members(path, bundle.infolist())
            yield bundle
    except FileNotFoundError:
        raise LoadstoneError(f"there is no bundle {path}") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise LoadstoneError(f"{path} is damaged, truncated or not a bundle: {error}") from None
    except OSError as error:
        raise LoadstoneError(f"{path} cannot be read: {error.strerror or error}") from None


def _check_members(path: Path, infos: list[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    faults = []
    for info in infos:
        if fault := _fault(info):
            faults.append(f"{info.filename!r} {fault}")
        elif info.filename in seen:
            faults.append(f"{info.filename!r} appears twice")
        seen.add(info.filename)
    _refuse(path, "is not a bundle", faults)
    if sum(info.file_size for info in infos) > path.stat().st_size:
        raise LoadstoneError(f"{path} is not a bundle: its members would be larger than the file")


def _fault(info: zipfile.ZipInfo) -> str:
    """What is wrong with a member, by its entry in the list of members; empty if nothing is."""
    parts = info.filename.split("/")
    mode = info.external_attr >> 16
    if not info.filename.startswith(FOLDER) or "\\" in info.filename or info.filename != info.orig_filename:
        return f"is not in {FOLDER}"
    if any(decode(part) in ("", ".", "..") or {"/", "\0"} & set(decode(part)) for part in parts):
        return "leads outside its folder"
    if not stat.S_ISREG(mode):
        return "is not a regular file"
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.compress_size != info.file_size:
        return "is compressed or encrypted; members of a bundle are neither"
    return ""


def _differing_names(sums: Mapping[str, str], infos: Mapping[str, object]) -> list[str]:
    missing = [f"{name} is missing" for name in sums.keys() - infos.keys()]
    return sorted(missing + [f"{name} is not in a manifest" for name in infos.keys() - sums.keys() - {TAG_MANIFEST}])


def _refuse(path: Path, why: str, faults: list[str]) -> None:
    if faults:
        more = [f"and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        shown = "\n".join(f"  {printable(fault)}" for fault in [*faults[:_SHOWN], *more])
        raise LoadstoneError(f"{path} {why}:\n{shown}")


def _text(path: Path, bundle: zipfile.ZipFile, name: str) -> str:
    try:
        info = bundle.getinfo(FOLDER + name)
        if info.file_size > _MOST_TEXT_BYTES:
            raise LoadstoneError(f"{path}: {name} is too large")
        return bundle.read(info).decode()
    except (KeyError, UnicodeDecodeError) as error:
        raise LoadstoneError(f"{path}: {name} is missing or not text: {error}") from None


def _manifest(path: Path, bundle: zipfile.ZipFile, name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(_text(path, bundle, name).split("\n")[:-1], 1):
        match = _LINE.fullmatch(line)
        listed = unescaped(match[2]) if match else ""
        if match is None or listed in found or listed.startswith(DATA) != (name == MANIFEST):
            raise LoadstoneError(f"{path}: line {number} of {name} is not a checksum, or repeats a file")
        found[listed] = match[1]
    return found


def _provenance(path: Path, text: str) -> Provenance:
    try:
        found = msgspec.json.decode(text, type=Provenance)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise LoadstoneError(f"{path}: {PROVENANCE} does not say how the bundle was made") from None
    if found.format != FORMAT:
        made_by = printable(str(found.software)[:200])
        raise LoadstoneError(f"{path} was made by another version of Loadstone ({made_by}); use that version")
    return found


def _sha256(bundle: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    """The SHA-256 of one member; empty where its CRC is wrong."""
    try:
        with bundle.open(info) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    except zipfile.BadZipFile:
        return ""


def verify_bundle(path: Path, tables: Path, command: Sequence[str], log: Log, limit: int) -> None:
    """Check everything of a bundle that can be checked here, in a folder below `tables` that is removed afterwards.

    `command` builds the tables of a folder with a ``config/config.yaml`` when that folder is its last argument. `limit`
    is how large its raw results may be, decompressed, in bytes.

    Raises LoadstoneError when the bundle is damaged, altered or hostile, or its tables do not follow from its raw
    results. Tables built by other versions of programs look like altered ones; the log says so.
    """
    checked = check(path)
    log(f"{path}: {counted(len(checked.sums), 'file')}, {megabytes(checked.size)}, all match the manifest")
    check_expansion(checked, limit)
    prepare_folder(tables, tables)
    with tempfile.TemporaryDirectory(dir=tables, prefix=".verified-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        unpack(checked, folder)
        wrong = _checksum_faults(folder, log)
        _configure(folder, checked)
        built = ask([*command, str(folder)])
        if built.returncode:
            output = built.stderr.decode(errors="replace")[-_LONGEST_TEXT:]
            raise LoadstoneError(f"the tables cannot be rebuilt:\n{output}")
        differing = _differing(checked, folder / "tables")
    tables_there = sum(name.startswith(TABLES) for name in checked.sums)
    other = _other_software(checked.provenance)
    if not differing:
        log(f"{counted(tables_there, 'table file')} rebuilt from the raw results, all byte-identical")
    elif other:
        log(f"not checked: {len(differing)} of {tables_there} table files, since they were made with {other}")
    else:
        wrong += [f"rebuilt from the raw results, {fault}" for fault in differing]
    log("not checked: whether the pages can be rebuilt; they match the manifest")
    if wrong:
        raise LoadstoneError("\n".join([f"{path} failed verification:", *map(printable, wrong)]))
    unknown = ", but whether its tables come from its raw results was not checked"
    log(f"{path} is valid{unknown if differing else ''}")


def _checksum_faults(folder: Path, log: Log) -> list[str]:
    """Compare raw results with the checksums that were written when they were collected: a line per fault."""
    if not (folder / "archive").is_dir():
        return ["it holds no raw results"]
    found = verify.verify(folder / "archive", folder / "tables", lambda _: None)
    log(f"raw results: {found.summary()}")
    return list(found.lines(appeared=False))


def _configure(folder: Path, checked: VerifiedBundle) -> None:
    """Write the configuration with which the tables were built; JSON is YAML too."""
    places = {"archive": "archive", "tables": "tables", "reports": "reports", "host": "verified"}
    (folder / "config").mkdir(exist_ok=True)
    settings = checked.provenance.settings
    content = {name: settings[name] for name in SETTINGS if name in settings} | places
    (folder / "config/config.yaml").write_text(json.dumps(content))


def _differing(checked: VerifiedBundle, tables: Path) -> list[str]:
    """Differences between the rebuilt tables and those of the bundle, a line each."""
    rebuilt = {TABLES + path.relative_to(tables).as_posix(): path for path in table_files(tables)}
    faults = []
    for name in sorted(name for name in checked.sums if name.startswith(TABLES)):
        if name not in rebuilt:
            faults.append(f"{name} is missing")
        elif sha256_of(rebuilt[name]) != checked.sums[name]:
            faults.append(f"{name} differs")
    if checked.provenance.whole:
        faults += [f"{name} is missing in the bundle" for name in sorted(rebuilt.keys() - checked.sums.keys())]
    return faults


def _other_software(made_by: Provenance) -> str:
    """The software that made a bundle where it differs from that here; empty if it is the same."""
    named, here = made_by.software, software()
    changed = sorted(name for name in named.keys() | here.keys() if named.get(name) != here.get(name))
    found = [f"{name} {named.get(name, 'unknown')} (here {here.get(name, 'none')})" for name in changed]
    if made_by.tables != VERSION:
        found.append(f"version {made_by.tables} of the tables (here {VERSION})")
    return ", ".join(found)
