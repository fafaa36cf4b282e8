"""What a cluster lacks until a variant can be measured, of real deployments, pods and Services."""

import copy

from cluster.api import wait_until
from loadstone.collect.targets.kubernetes.client import Cluster
from loadstone.collect.targets.kubernetes.ready import not_ready


def test_pods_of_another_deployment_with_the_same_labels_are_not_counted(plane, namespace) -> None:
    space = namespace()
    web = space.deploy("web", 1)
    # Its selector is narrower, so that the first one's matches its pods too.
    spec = copy.deepcopy(web["spec"])
    spec["selector"]["matchLabels"]["track"] = spec["template"]["metadata"]["labels"]["track"] = "canary"
    space.create("Deployment", "web-canary", spec=spec | {"replicas": 2})
    wait_until(lambda: len(space.pods("web")) == 3, "the pods of both")
    cluster = Cluster()
    wait_until(lambda: not not_ready(cluster, {(space.name, "web"): 1}, services=False), "the deployment")
    wait_until(lambda: not not_ready(cluster, {(space.name, "web-canary"): 2}, services=False), "the other")
    space.scale("web", 0)
    wait_until(lambda: not not_ready(cluster, {(space.name, "web"): 0}, services=False), "no pods of it")
    assert len(space.pods("web")) == 2


def test_an_endpoint_that_somebody_else_made_is_named(plane, namespace) -> None:
    space = namespace()
    space.deploy("web", 1)
    space.serve("web")
    wanted, cluster = {(space.name, "web"): 1}, Cluster()
    wait_until(lambda: not not_ready(cluster, wanted, services=True), "the Service")
    space.create(
        "EndpointSlice",
        "theirs",
        metadata={"labels": {"kubernetes.io/service-name": "web"}},
        addressType="IPv4",
        endpoints=[{"addresses": ["10.1.2.3"]}],
        ports=[{"port": 8080}],
    )
    (what,) = not_ready(cluster, wanted, services=True)
    assert f"the Service {space.name}/web also routes to 10.1.2.3" in what
