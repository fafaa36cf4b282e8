"""What counts as changed by somebody else during an attack, on real deployments."""

import pytest
from cluster.api import wait_until
from loadstone.collect.targets.base import RunFailedError
from loadstone.collect.targets.kubernetes.changes import REPLICAS, Field
from loadstone.collect.targets.kubernetes.client import Cluster
from loadstone.collect.targets.kubernetes.objects import DEPLOYMENT
from loadstone.collect.targets.kubernetes.record import Changed, Record
from loadstone.collect.targets.kubernetes.running import _as_wanted
from loadstone.collect.targets.kubernetes.settings import Scaled, Variant


@pytest.fixture
def measured(plane, namespace):
    """(namespace, what checks its deployment `web`, declared with 1 pod, against an earlier answer of its own)."""
    space = namespace()
    web = space.deploy("web", 1)
    field = Field(REPLICAS, 1, {"plain": 1})
    changed = Changed(DEPLOYMENT, space.name, "web", web["metadata"]["uid"], (field,))
    record = Record("1", "me", "now", "here", (changed,))
    variant = Variant("plain", Scaled(space.name, ("web",), 1), (), ())
    return space, lambda before: _as_wanted(Cluster(), record, variant, before)


def text_of(check, before) -> str:
    with pytest.raises(RunFailedError) as raised:
        check(before)
    return str(raised.value).partition("during the run: ")[2]


def test_a_deployment_that_stays_changed_is_told_once(measured) -> None:
    space, check = measured
    before = check({})
    assert check(before) == before
    space.scale("web", 3)
    assert text_of(check, before) == f"Deployment {space.name}/web: spec.replicas is 3 instead of 1"


def test_a_change_that_no_declared_field_shows_is_told_as_such(measured) -> None:
    space, check = measured
    before = check({})
    space.scale("web", 3)
    wait_until(lambda: len(space.pods("web")) == 3, "its pods")
    space.scale("web", 1)
    text = text_of(check, before)
    assert text.startswith(
        f"Deployment {space.name}/web was changed during the attack: in fields that no variant declares"
    )
    assert text.endswith(", or only for a while")
