"""Fixtures for tests that need a Kubernetes cluster, in any folder. tests/conftest.py makes them known."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.control_plane import ControlPlane, missing
from cluster.namespace import Namespace
from cluster.network import NoNetworkError, own_network
from cluster.shop import Gateway, Shop, gateway


def _require() -> None:
    """Skip where there can be no control plane; fail instead where one is required (.ci/run)."""
    why = missing()
    if why and os.environ.get("LOADSTONE_REQUIRE_CLUSTER") == "1":
        pytest.fail(why)
    if why:
        pytest.skip(why)


@pytest.fixture(scope="session")
def _plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    _require()
    with ControlPlane(tmp_path_factory.mktemp("plane") / "plane") as plane:
        yield plane


@pytest.fixture
def plane(_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> ControlPlane:
    """The control plane of this test session; KUBECONFIG is its administrator's."""
    monkeypatch.setenv("KUBECONFIG", str(_plane.kubeconfig))
    return _plane


@pytest.fixture
def namespace(plane: ControlPlane) -> Callable[..., Namespace]:
    """Makes namespaces with names of their own: `namespace()`, `namespace("plain")`."""
    return lambda purpose="test": Namespace(plane, purpose)


@pytest.fixture
def metrics(plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with a metrics API, whose figures are in its `metrics_file`."""
    try:
        plane.start_metrics()
        yield plane
    finally:
        plane.remove_metrics()


@pytest.fixture
def networked_plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlPlane]:
    """A control plane and this test in a network of their own: a server on 0.0.0.0 answers at every pod's address."""
    _require()
    try:
        with own_network(), ControlPlane(tmp_path / "plane") as plane:
            monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
            yield plane
    except NoNetworkError as error:
        pytest.skip(str(error))


@pytest.fixture
def served() -> Iterator[Gateway]:
    with gateway() as found:
        yield found


@pytest.fixture
def shop(plane: ControlPlane) -> Shop:
    return Shop(plane)
