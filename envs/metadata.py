"""Writes what says which version this is, from pyproject.toml: `make metadata`; with `--check`, names what differs.

Citation File Format for people who cite, CodeMeta and Zenodo's for archives of software, and the library's own
`__version__`. All but the version is written by hand in these files.
"""

import re
import sys
import tomllib
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
# What stands before the version in each file, and after it.
PLACES = {
    "CITATION.cff": (r"^version: ", "$"),
    "codemeta.json": (r'^  "version": "', '",?$'),
    ".zenodo.json": (r'^  "version": "', '",?$'),
    "scripts/loadstone/__init__.py": (r'^__version__ = "', '"$'),
    "docs/deploying.md": (r"--tag v", "$"),
}


def version(root: Path = _ROOT) -> str:
    """That of pyproject.toml."""
    found: str = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    return found


def outdated(root: Path = _ROOT, *, write: bool = False) -> list[str]:
    """The files that name another version, or none; with `write`, they are corrected."""
    found = []
    for name, (before, after) in PLACES.items():
        text = (root / name).read_text()
        pattern = rf"({before})[^\"\n]*?({after})"
        changed, count = re.subn(pattern, rf"\g<1>{version(root)}\g<2>", text, flags=re.MULTILINE)
        if count != 1 or changed != text:
            found.append(name)
        if write and count == 1:
            (root / name).write_text(changed)
    return found


if __name__ == "__main__":
    checking = "--check" in sys.argv
    names = outdated(write=not checking)
    print(f"metadata: {version()}", *([f"differs: {name}" for name in names] if checking else names), sep="\n  ")
    sys.exit(int(checking and bool(names)))
