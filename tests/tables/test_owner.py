"""Two folders of tables with one parent would share its database."""

import shutil
from pathlib import Path

import pytest
from loadstone.errors import LoadstoneError
from loadstone.tables import database_owner


def test_a_database_is_not_taken_from_tables_that_are_still_there(tmp_path: Path) -> None:
    first, second = tmp_path / "results/first", tmp_path / "results/second"
    (first / ".done").mkdir(parents=True)
    database_owner.check(first)
    database_owner.claim(first)
    database_owner.check(first)
    with pytest.raises(LoadstoneError, match=r"shows the tables in .*first; those in .*second need a folder"):
        database_owner.check(second)
    # The folder above can be copied and moved, and tables renamed.
    database_owner.check(Path(shutil.copytree(tmp_path / "results", tmp_path / "copy")) / "first")
    first.rename(second)
    database_owner.check(second)
