"""Declarations of clusters: the examples of the documentation hold, and each form means what it says."""

import copy
import re
from typing import Any

import pytest
import yaml
from conftest import PROJECT
from loadstone import config
from loadstone.collect.targets.kubernetes.rights import needed, roles, useful
from loadstone.collect.targets.kubernetes.settings import Declared
from loadstone.config.target import variant_identity
from loadstone.errors import LoadstoneError

EXAMPLES = [
    found["target"]
    for block in re.findall(
        r"^```yaml\n(.*?)^```", (PROJECT / "docs/kubernetes.md").read_text(), re.DOTALL | re.MULTILINE
    )
    if isinstance(found := yaml.safe_load(block), dict) and found.get("target", {}).get("kind") == "kubernetes"
]


def checked(target: dict[str, Any], host: str = "moone") -> Declared:
    sweep = {"app": "shop", "variants": list(target["variants"]), "rates": [10], "runs": 1, "duration": "1s"}
    whole = {"archive": "a", "tables": "t", "reports": "r", "host": host, "sweep": sweep, "target": target}
    return Declared.of(config.check(whole)["target"], host)


def test_there_is_an_example_for_each_of_five_set_ups() -> None:
    assert len(EXAMPLES) == 6  # and one with load generators as pods


@pytest.mark.parametrize("target", EXAMPLES, ids=lambda target: next(iter(target["variants"])))
def test_an_example_is_valid_and_its_variants_differ(target: dict[str, Any]) -> None:
    declared = checked(target)
    identities = [str(variant_identity(target, name) | {"namespace": ""}) for name in declared.variants]
    assert len(set(identities)) == len(identities)
    manifests = roles(declared, {"kind": "ServiceAccount", "name": "loadstone", "namespace": declared.namespace})
    granted = {
        (manifest["metadata"]["namespace"], rule["apiGroups"][0], rule["resources"][0], verb)
        for manifest in manifests
        if manifest["kind"] == "Role"
        for rule in manifest["rules"]
        for verb in rule["verbs"]
    }
    rights = {(each.namespace, each.group, each.resource, each.verb) for each in [*needed(declared), *useful(declared)]}
    assert granted == rights


def test_replicas_by_host_and_by_deployment() -> None:
    target = copy.deepcopy(next(target for target in EXAMPLES if "plain" in target["variants"]))
    target["variants"]["plain"] |= {"deployments": {"redis": 1, "web": None}}
    for host, count in (("moone", 2), ("elsewhere", 10)):
        scaled = checked(target, host).variants["plain"].scaled
        assert (scaled.pods_of("web"), scaled.pods_of("redis")) == (count, 1)
    target["replicas"] = {"moone": 2}
    with pytest.raises(LoadstoneError, match="not for the host 'elsewhere'"):
        checked(target, "elsewhere")


def test_image_environment_and_patch_become_one_patch() -> None:
    target = copy.deepcopy(next(target for target in EXAMPLES if "cache" in target["variants"]))
    target["variants"]["cache"]["changes"][0] |= {
        "env": {"rancher": {"ON": "1", "OFF": None}},
        "patch": {"spec": {"template": {"spec": {"nodeName": "n", "containers": [{"name": "rancher", "tty": True}]}}}},
    }
    (change,) = checked(target).variants["cache"].changes
    assert change.patch == {
        "spec": {
            "template": {
                "spec": {
                    "nodeName": "n",
                    "containers": [
                        {
                            "name": "rancher",
                            "image": "rancher/rancher:v2.7.5",
                            "env": [
                                {"name": "ON", "value": "1", "valueFrom": None},
                                {"name": "OFF", "$patch": "delete"},
                            ],
                            "tty": True,
                        },
                    ],
                }
            }
        }
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dependencies": ["nobody"]}, "'nobody' is not declared under target.dependencies"),
        ({"namespace": "Not/aName"}, "Not/aName"),
        ({"replicas": 0}, "replicas"),
        ({"processes": ["app"]}, "processes"),
        ({"changes": [{"deployment": "web"}]}, "changes"),
    ],
)
def test_a_wrong_declaration_is_named(change: dict[str, Any], said: str) -> None:
    target = copy.deepcopy(next(target for target in EXAMPLES if "plain" in target["variants"]))
    target["variants"]["plain"] |= change
    with pytest.raises(LoadstoneError, match=said):
        checked(target)


def test_generators_need_jobs_and_a_way_to_their_pods() -> None:
    target = copy.deepcopy(next(target for target in EXAMPLES if "plain" in target["variants"]))
    without = set(needed(checked(target)))
    target["generators"] = {"image": "load:1"}
    declared = checked(target)
    assert declared.generators is not None
    assert (declared.generators.command, declared.generators.cpu) == (("paced",), "1")
    more = {(right.namespace, right.resource, right.verb) for right in set(needed(declared)) - without}
    assert {(resource, verb) for _, resource, verb in more} == {
        *(("jobs", verb) for verb in ("get", "list", "create", "delete")),
        *(("pods", verb) for verb in ("get", "list")),
        *(("pods/proxy", verb) for verb in ("get", "create")),
    }
    assert {namespace for namespace, _, _ in more} == {declared.namespace}
    target["generators"] |= {"namespace": "load", "cpu": "x"}
    with pytest.raises(LoadstoneError, match=r"generators\.cpu"):
        checked(target)
