"""The limits of `make house`, and what CONTRIBUTING.md says of imports and of rule files."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from toolchain.house import LIBRARY, LIMITS, figures

# It passes its limit.
TOO_MANY = {"code lines of the library"}


def imported_names(file: Path) -> Iterator[str]:
    """Module and name of each name that a file imports from a module of the library."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("loadstone"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_limits_are_kept() -> None:
    found = figures()
    assert found.keys() == LIMITS.keys()
    assert {name: value for name, value in found.items() if value > LIMITS[name]}.keys() <= TOO_MANY


def test_one_rule_file_has_functions(root: Path) -> None:
    found = {
        file.name for file in root.glob("rules/*.smk") if re.search(r"^(async )?def ", file.read_text(), re.MULTILINE)
    }
    assert found == {"common.smk"}


def test_no_name_with_an_underscore_is_imported(root: Path) -> None:
    files = [*LIBRARY.rglob("*.py"), *root.glob("scripts/*.py")]
    names = [name for file in files for name in imported_names(file)]
    assert len(names) > 1000
    assert [name for name in names if re.search(r"\._(?!_)", name)] == []
