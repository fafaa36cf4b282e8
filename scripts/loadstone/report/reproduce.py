"""What it takes to make a page again: versions, seeds and the checksums of the files that its figures rest on."""

import hashlib
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from loadstone import __version__
from loadstone.archive.metadata import Metadata
from loadstone.report.numbers import counted, joined
from loadstone.report.queries import Questions, Row

SUFFIX = ".sha256"
# First line of a list of checksums; sha256sum takes it for a comment.
MADE_HERE = "# Made by Loadstone: SHA-256 of the results behind a page, to be checked in the archive's folder"
_LIBRARIES = ("duckdb", "pyarrow", "numpy", "scipy", "altair")


@dataclass(frozen=True)
class Inputs:
    """The checksums of a page's inputs: one line per file, as sha256sum writes and checks them."""

    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The content of the file beside the page."""
        return "\n".join([MADE_HERE, *self.lines, ""])

    @property
    def digest(self) -> str:
        """SHA-256 of that content: one number for all inputs."""
        return hashlib.sha256(self.text.encode("utf-8", "backslashreplace")).hexdigest()


def inputs(questions: Questions, takes: Callable[[Row], bool]) -> Inputs:
    """The files behind a page; `takes` says of a run whether the page is about it. Asks table ``facts`` too."""
    rows = filter(takes, questions.rows("page_inputs"))
    return Inputs(tuple(dict.fromkeys(_line(row["results_sha256"], row["source"]) for row in rows)))


def _line(digest: str, source: str) -> str:
    """A line of ``sha256sum``, which escapes what would break it."""
    escaped = source.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if escaped == source else chr(92)}{digest}  {escaped}"


def context(name: str, found: Inputs, described: Iterable[Metadata]) -> dict[str, Any]:
    """The variables of ``reproduce.html`` on the page `name`; `described` are the metadata of all cells behind it."""
    cells = list(described)
    seeds = joined(str(cell.seed) for cell in cells if cell.seed is not None)
    orders = joined(cell.order for cell in cells)
    generators = joined(" ".join(filter(None, (cell.generator, cell.generator_version))) for cell in cells)
    tools: dict[str, str] = {}
    for cell in cells:
        tools |= cell.tools
    facts = [
        ("Made with", ", ".join([f"Loadstone {__version__}", *_libraries()])),
        ("Collected with", joined([generators, *(f"{tool} {text}" for tool, text in sorted(tools.items()))])),
        ("Seed of the order of runs", f"{seeds} (order: {orders or 'not recorded'})" if seeds else "not recorded"),
        ("Seed of intervals", "none to set: made from each cell's name, so that the same data give the same interval"),
        ("Inputs", _inputs(found)),
    ]
    return {
        "made_with": [(term, text) for term, text in facts if text],
        "inputs_file": f"{name}{SUFFIX}" if found.lines else None,
        "inputs_digest": found.digest,
        "crate_file": f"{name}-ro-crate-metadata.json",
    }


def python_version() -> str:
    """What decides how Python computes: ``3.12``."""
    return ".".join(platform.python_version_tuple()[:2])


def _libraries() -> list[str]:
    return [f"Python {python_version()}", *(f"{name} {version(name)}" for name in _LIBRARIES)]


def _inputs(found: Inputs) -> str:
    return f"{counted(len(found.lines), 'file')} of the archive" if found.lines else "no checksums recorded"
