"""Two folders of tables with one parent would share its database."""

import shutil
from pathlib import Path

import pytest
from loadstone.errors import LoadstoneError
from loadstone.tables import owner


def test_a_database_is_not_taken_from_tables_that_are_still_there(tmp_path: Path) -> None:
    first, second = tmp_path / "results/first", tmp_path / "results/second"
    (first / ".done").mkdir(parents=True)
    owner.check(first)
    owner.claim(first)
    owner.check(first)
    with pytest.raises(LoadstoneError, match=r"shows the tables in .*first; those in .*second need a folder"):
        owner.check(second)
    # The folder above can be copied and moved, and tables renamed.
    owner.check(Path(shutil.copytree(tmp_path / "results", tmp_path / "copy")) / "first")
    first.rename(second)
    owner.check(second)
