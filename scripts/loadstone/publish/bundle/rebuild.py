"""Makes a bundle's tables again from its raw results and compares them to the byte.

The workflow itself builds them, in a folder of its own, with no key of the bundle's configuration except `analysis` and
`tags`.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from loadstone.archive.durable import sha256_of
from loadstone.config import SETTINGS
from loadstone.errors import LoadstoneError, printable
from loadstone.process import ask
from loadstone.publish.bundle import check
from loadstone.publish.bundle.check import Checked
from loadstone.publish.bundle.contents import TABLES, of_tables, software
from loadstone.publish.site.publish import counted, megabytes
from loadstone.tables import VERSION, verify
from loadstone.tables.layout import prepare_folder

_LONGEST_TEXT = 4000

Log = Callable[[str], None]


def verify_bundle(path: Path, tables: Path, command: Sequence[str], log: Log) -> None:
    """Check a bundle in all that can be checked here, in a folder below `tables` that is removed again.

    `command` makes the tables of a folder with a ``config/config.yaml`` when that folder is its last argument.

    Raises LoadstoneError when the bundle is damaged, altered or hostile, or its tables are not what its raw results
    give. Tables made by other versions of programs can't be told from altered ones, which is said.
    """
    checked = check.check(path)
    log(f"{path}: {counted(len(checked.sums), 'file')}, {megabytes(checked.size)}, each what the manifest says")
    with _scratch(tables) as folder:
        check.unpack(checked, folder)
        wrong = _against_own_checksums(folder, log)
        _configure(folder, checked)
        _make(command, folder)
        differing = _differing(checked, folder / "tables")
    other = _other_software(checked.provenance["software"], checked.provenance.get("tables"))
    if not differing:
        log(f"{counted(_tables_of(checked), 'table file')} made again from the raw results, all the same to the byte")
    elif other:
        log(f"not checked: {len(differing)} of {_tables_of(checked)} table files, which were made with {other}")
    else:
        wrong += [f"made again from the raw results, {fault}" for fault in differing]
    log("not checked: that pages can be made again; they are what the manifest says")
    if wrong:
        raise LoadstoneError("\n".join([f"{path} is not what it says:", *map(printable, wrong)]))
    unknown = ", but whether its tables come from its raw results was not checked"
    log(f"{path} is sound{unknown if differing else ''}")


@contextmanager
def _scratch(tables: Path) -> Iterator[Path]:
    prepare_folder(tables, tables)
    folder = Path(tempfile.mkdtemp(dir=tables, prefix=".verified-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _against_own_checksums(folder: Path, log: Log) -> list[str]:
    """What the checksums that lie beside runs since they were collected say of them."""
    if not (folder / "archive").is_dir():
        return ["it holds no raw results"]
    found = verify.verify(folder / "archive", folder / "tables", lambda _: None)
    log(f"raw results: {found.summary()}")
    return [line for line in found.lines() if not line.startswith("appeared")]


def _configure(folder: Path, checked: Checked) -> None:
    """The configuration under which its tables were made; JSON is YAML too."""
    places = {"archive": "archive", "tables": "tables", "reports": "reports", "host": "verified"}
    (folder / "config").mkdir(exist_ok=True)
    settings = checked.provenance["settings"]
    content = {name: settings[name] for name in SETTINGS if name in settings} | places
    (folder / "config/config.yaml").write_text(json.dumps(content))


def _make(command: Sequence[str], folder: Path) -> None:
    made = ask([*command, str(folder)])
    if made.code:
        raise LoadstoneError(f"the tables cannot be made again:\n{made.errors[-_LONGEST_TEXT:]}")


def _tables_of(checked: Checked) -> int:
    return sum(name.startswith(TABLES) for name in checked.sums)


def _differing(checked: Checked, tables: Path) -> list[str]:
    """What the tables made again and those of the bundle do not share, by name."""
    again = {TABLES + path.relative_to(tables).as_posix(): path for path in of_tables(tables)}
    faults = []
    for name in sorted(name for name in checked.sums if name.startswith(TABLES)):
        if name not in again:
            faults.append(f"{name} is not among them")
        elif _sha256(again[name]) != checked.sums[name]:
            faults.append(f"{name} is another")
    if checked.provenance.get("whole"):
        faults += [f"{name} is missing in the bundle" for name in sorted(again.keys() - checked.sums.keys())]
    return faults


def _other_software(named: Mapping[str, str], tables: object) -> str:
    """In what the programs that made a bundle differ from those here."""
    here = software()
    changed = sorted(name for name in named.keys() | here.keys() if named.get(name) != here.get(name))
    found = [f"{name} {named.get(name, 'unknown')} (here {here.get(name, 'none')})" for name in changed]
    if tables != VERSION:
        found.append(f"version {tables} of the tables (here {VERSION})")
    return ", ".join(found)


def _sha256(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise LoadstoneError(f"{path} cannot be read: {error.strerror}") from None
