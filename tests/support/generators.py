"""Load generators that `make setup` leaves out: tests that need one are skipped where it is absent, but not in CI."""

import os

import pytest
from loadstone.errors import LoadstoneError
from loadstone.process import find


def require(program: str) -> None:
    """Skip the test, or fail it where LOADSTONE_REQUIRE_GENERATORS is set, unless `program` is there."""
    try:
        find(program)
    except LoadstoneError as error:
        if os.environ.get("LOADSTONE_REQUIRE_GENERATORS") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))
