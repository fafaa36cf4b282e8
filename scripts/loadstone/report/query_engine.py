"""DuckDB for browsers as files of the site: scripts, for a page that was opened from a file may load nothing else.

``assets/duckdb/<part>-<nn>.js`` each give ``loadstone.receive`` a piece of gzip-compressed, base64-encoded data. Of the
part ``module`` that is DuckDB's WebAssembly; of ``worker`` the script around it, with Apache Arrow and our
``ask_worker.js``. ``LICENSES.txt``, written last, says what they were made from.
"""

import base64
import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.report.output import as_json, asset, write_text

# What envs/setup.sh ask installs, below its folder of packages.
_DUCKDB = "@duckdb/duckdb-wasm/dist"
_WASM = f"{_DUCKDB}/duckdb-eh.wasm"
_LIBRARY = f"{_DUCKDB}/duckdb-browser-blocking.cjs"
_ARROW = "apache-arrow/Arrow.es2015.min.js"
_LICENSES = (
    ("Apache Arrow", "apache-arrow/LICENSE.txt"),
    ("Apache Arrow, its notice", "apache-arrow/NOTICE.txt"),
    ("FlatBuffers, in Apache Arrow", "flatbuffers/LICENSE"),
    ("tslib, in Apache Arrow", "tslib/LICENSE.txt"),
)
_PIECE = 1 << 20  # characters of a file, so that loading it has a progress

# Both libraries look for what a page or Node.js gives them; here they find each other.
_WORKER = """\
{offline}
(function () {{
{arrow}
}}).call(self);
const duckdb = (function (require) {{
const module = {{ exports: {{}} }}, exports = module.exports;
{library}
return module.exports;
}})((name) => (name === "apache-arrow" ? self.Arrow : {{}}));
{worker}"""


@dataclass(frozen=True)
class Part:
    """One part of the engine: its files, relative to the site, and how many bytes they have together."""

    name: str
    files: list[str]
    size: int


def write_engine(packages: Path, reports: Path) -> list[Part]:
    """Write DuckDB into the site, unless it is there. `packages` is where npm put it. LoadstoneError if it didn't."""
    folder = reports / "assets" / "duckdb"
    sources = _sources(packages)
    made_of = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in sources.values())).hexdigest()
    told = f"{asset('ask_licenses.txt')}\nMade from {made_of[:32]}"
    record = licenses(reports)
    if not (record.is_file() and _is_whole(record.read_text("utf-8"), told, folder)):
        record.unlink(missing_ok=True)
        for file in folder.glob("*.js"):
            file.unlink()
        for name, content in sources.items():
            for number, piece in enumerate(pieces(content)):
                text = f"loadstone.receive({as_json(name)},{number},{as_json(piece)});\n"
                write_text(folder / f"{name}-{number:02}.js", text)
        write_text(record, f"{told}: {_names(folder)}\n{_texts(packages)}")
    return [_part(folder, name) for name in sources]


def licenses(reports: Path) -> Path:
    """The licenses of DuckDB and what is in it, with what it was made from."""
    return reports / "assets" / "duckdb" / "LICENSES.txt"


def pieces(content: bytes) -> Iterator[str]:
    """Compressed and encoded, in pieces of bounded size; the same bytes give the same text."""
    # Level 9 takes twice the time for 1 % less.
    text = base64.b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode()
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def _is_whole(record: str, told: str, folder: Path) -> bool:
    """Whether the folder holds what its record says, and that is what would be written."""
    return record.startswith(f"{told}: {_names(folder)}\n")


def _names(folder: Path) -> str:
    return " ".join(sorted(file.name for file in folder.glob("*.js")))


def _sources(packages: Path) -> dict[str, bytes]:
    try:
        worker = _WORKER.format(
            offline=asset("ask_offline.js"),
            arrow=(packages / _ARROW).read_text("utf-8"),
            library=(packages / _LIBRARY).read_text("utf-8"),
            worker=asset("ask_worker.js"),
        )
        return {"worker": worker.encode(), "module": (packages / _WASM).read_bytes()}
    except OSError as error:
        raise _incomplete(packages, error) from None


def _texts(packages: Path) -> str:
    try:
        return "".join(
            f"\n{'=' * 80}\n{name}\n{'=' * 80}\n\n{(packages / path).read_text('utf-8')}" for name, path in _LICENSES
        )
    except OSError as error:
        raise _incomplete(packages, error) from None


def _incomplete(packages: Path, error: OSError) -> LoadstoneError:
    return LoadstoneError(f"DuckDB for browsers in {packages} is incomplete ({error}): make ask installs it again")


def _part(folder: Path, name: str) -> Part:
    files = sorted(folder.glob(f"{name}-*.js"))
    return Part(name, [f"assets/duckdb/{file.name}" for file in files], sum(file.stat().st_size for file in files))
