"""What is said where rights or whole namespaces are missing."""

from pathlib import Path
from typing import Any

import pytest
from loadstone.collect.targets.kubernetes.client import Cluster
from loadstone.collect.targets.kubernetes.rights import check, needed
from loadstone.collect.targets.kubernetes.settings import Declared
from loadstone.errors import LoadstoneError


def declared(control: str, *namespaces: str) -> Declared:
    variants = {name: {"namespace": name, "url": "http://x/"} for name in namespaces}
    target: dict[str, Any] = {"kind": "kubernetes", "namespace": control, "variants": variants}
    return Declared.of(target, "here")


def test_a_namespace_that_does_not_exist_is_no_list_of_rights(
    plane, namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, there = namespace("control"), namespace("there")
    wanted = declared(control.name, there.name, "nobody-s")
    check(Cluster(), wanted)  # an administrator may do all, also where nothing is
    control.create("ServiceAccount", "tester")
    for space in (control, there):
        rules = [
            {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
            for right in needed(wanted)
            if right.namespace == space.name
        ]
        control.bind("tester", rules, space.name)
    monkeypatch.setenv("KUBECONFIG", str(control.token_kubeconfig(tmp_path / "kubeconfig", "tester")))

    with pytest.raises(LoadstoneError) as caught:
        check(Cluster(), wanted)
    assert "list pods in the namespace nobody-s" in str(caught.value)
    assert "you may not see whether the namespace nobody-s exists" in str(caught.value)
    assert there.name not in str(caught.value)

    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}]
    name = f"looks-{control.name}"
    plane.api.create("ClusterRole", {"metadata": {"name": name}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": "tester", "namespace": control.name}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    plane.api.create("ClusterRoleBinding", binding)
    cluster = Cluster()
    while cluster.has_namespace("nobody-s") is None:
        pass  # until the server heeds the role
    with pytest.raises(LoadstoneError) as caught:
        check(cluster, wanted)
    assert "there is no namespace nobody-s" in str(caught.value)
    assert "pods" not in str(caught.value)
