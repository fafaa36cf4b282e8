import pytest
from support import rawfiles


@pytest.fixture(scope="session")
def attack() -> rawfiles.Attack:
    return rawfiles.attack()
