"""Tests that tables of promises name are there."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
TABLES = {"tests/README.md": PROJECT / "tests", ".github/SECURITY.md": PROJECT}
_NAMED = re.compile(r"\| ([\w/]+\.py)(?:::(\w+))? \|")


@pytest.mark.parametrize("table", TABLES)
def test_each_named_test_is_there(table: str) -> None:
    named = _NAMED.findall((PROJECT / table).read_text())
    assert len(named) > 10
    for file, test in named:
        path = TABLES[table] / file
        assert path.is_file(), f"{table} names {file}"
        assert not test or re.search(rf"^def {test}\(", path.read_text(), re.MULTILINE), f"{table} names {file}::{test}"
