"""What the readers' tests share."""

import pytest
from support import rawfiles


@pytest.fixture(scope="session")
def attack() -> rawfiles.Attack:
    """One real attack by vegeta."""
    return rawfiles.attack()
