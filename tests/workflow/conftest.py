"""A complete little sweep, collected once for all tests that start from one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.checkout import Checkout
from support.outside import Outside


@pytest.fixture(scope="session")
def _collected(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    checkout = Checkout(pristine, tmp_path_factory.mktemp("collected") / "checkout")
    checkout.run("--cores", "1", "open")
    checkout.run("--cores", "all")
    assert len(checkout.results()) == 4
    return checkout


@pytest.fixture(scope="module")
def collected(_collected: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with a complete sweep and its report, for the tests of one module."""
    return _collected.copy(tmp_path_factory.mktemp("copy") / "checkout")


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    """A target that already runs; what is prepared of it is recorded below this test's folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    found = Outside(tmp_path / "outside")
    yield found
    found.close()
