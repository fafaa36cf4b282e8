"""Two folders of tables with one parent would share its database."""

import shutil
from pathlib import Path

import pytest
from loadstone.errors import LoadstoneError
from loadstone.tables import layout


def test_a_database_is_not_taken_from_tables_that_are_still_there(tmp_path: Path) -> None:
    first, second = tmp_path / "results/first", tmp_path / "results/second"
    (first / ".done").mkdir(parents=True)
    layout.check_database_owner(first)
    layout.claim_database(first)
    layout.check_database_owner(first)
    with pytest.raises(LoadstoneError, match=r"shows the tables in .*first; those in .*second need a folder"):
        layout.check_database_owner(second)
    # The folder above can be copied and moved, and tables renamed.
    layout.check_database_owner(Path(shutil.copytree(tmp_path / "results", tmp_path / "copy")) / "first")
    first.rename(second)
    layout.check_database_owner(second)
