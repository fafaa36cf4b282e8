"""What the tables' tests share."""

import pytest
from support import rawfiles
from tables.tabling import Project


@pytest.fixture(scope="session")
def attack() -> rawfiles.Attack:
    """One real attack by vegeta."""
    return rawfiles.attack()


@pytest.fixture
def project(tmp_path) -> Project:
    """An empty archive and no tables."""
    return Project(tmp_path)
