"""One namespace of the control plane, and what tests put into it."""

import copy
from pathlib import Path
from typing import Any
from uuid import uuid4

from cluster.api import Object, wait_until
from cluster.control_plane import ControlPlane


class Namespace:
    """Unique, and deleted with the control plane: deleting one takes it 5 to 10 s."""

    def __init__(self, plane: ControlPlane, purpose: str = "test") -> None:
        self.plane, self.api = plane, plane.api
        self.name = f"{purpose}-{uuid4().hex[:8]}"
        self.api.create("Namespace", {"metadata": {"name": self.name}})

    def create(self, kind: str, name: str, **body: Any) -> Object:
        """`metadata` may hold more than the name."""
        metadata = {**body.pop("metadata", {}), "name": name}
        return self.api.create(kind, {"metadata": metadata, **body}, self.name)

    def get(self, kind: str, name: str) -> Object:
        return self.api.get(kind, self.name, name)

    def all(self, kind: str) -> list[Object]:
        return self.api.all(kind, self.name)

    def deploy(
        self,
        name: str,
        replicas: int = 1,
        *,
        ready_after: str | None = None,
        gone_after: str | None = None,
        image: str = "example/app:1",
        env: dict[str, str] | None = None,
        port: int = 8080,
    ) -> Object:
        """A deployment whose pods have the label app=<name>. Times are Go durations; 1h is never, to a test."""
        # Pods need it, and after an outage the controllers take a while to make it.
        wait_until(self._has_account, f"the service account of {self.name}")
        times = {"plane/ready-after": ready_after, "plane/gone-after": gone_after}
        container = {
            "name": "app",
            "image": image,
            "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
            "ports": [{"containerPort": port}],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        }
        template = {
            "metadata": {
                "labels": {"app": name},
                "annotations": {key: value for key, value in times.items() if value},
            },
            "spec": {"containers": [container]},
        }
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        return self.create("Deployment", name, spec=spec)

    def serve(self, name: str, port: int = 8080) -> str:
        """A Service for the pods of the deployment of that name; its address."""
        ports = [{"port": port, "targetPort": port}]
        return self.create("Service", name, spec={"selector": {"app": name}, "ports": ports})["spec"]["clusterIP"]

    def flux(self, kind: str, name: str, *, suspend: bool | None = None) -> Object:
        """A Kustomization or HelmRelease."""
        return self.create(kind, name, spec={} if suspend is None else {"suspend": suspend})

    def scale(self, name: str, replicas: int) -> None:
        self.api.patch("Deployment", self.name, name, {"spec": {"replicas": replicas}}, "scale")

    def wait_ready(self, name: str, replicas: int) -> None:
        """Wait until a deployment has exactly so many pods, all of them ready."""

        def is_ready() -> bool:
            status = self.get("Deployment", name)["status"]
            return status.get("readyReplicas", 0) == status.get("replicas", 0) == replicas == len(self.pods(name))

        wait_until(is_ready, f"{replicas} ready pods of {self.name}/{name}")

    def pods(self, name: str) -> list[Object]:
        return [pod for pod in self.all("Pod") if pod["metadata"].get("labels", {}).get("app") == name]

    def state(self) -> dict[str, Object]:
        """What was declared in the namespace: every object without status and bookkeeping, by kind and name."""
        kinds = ("Deployment", "Service", "ConfigMap", "Lease", "Kustomization", "HelmRelease")
        kinds += ("HorizontalPodAutoscaler", "Role", "RoleBinding", "ServiceAccount")
        return {f"{kind} {each['metadata']['name']}": declared(each) for kind in kinds for each in self.all(kind)}

    def kubeconfig(self, file: Path, rules: list[Object], *, account: str = "tester") -> Path:
        """A kubeconfig of a ServiceAccount that may do in this namespace what `rules` (of a Role) say."""
        self.create("ServiceAccount", account)
        self.bind(account, rules)
        return self.token_kubeconfig(file, account)

    def bind(self, account: str, rules: list[Object], namespace: str | None = None) -> None:
        """Let a ServiceAccount of this namespace do what `rules` say, here or in another namespace."""
        where, name = namespace or self.name, f"{account}-of-{self.name}"
        self.api.create("Role", {"metadata": {"name": name}, "rules": rules}, where)
        self.api.create(
            "RoleBinding",
            {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.name}],
            },
            where,
        )

    def token_kubeconfig(self, file: Path, account: str) -> Path:
        """A kubeconfig with a fresh token of a ServiceAccount of this namespace."""
        path = f"/api/v1/namespaces/{self.name}/serviceaccounts/{account}/token"
        token = self.api.call("POST", path, {"spec": {"expirationSeconds": 7200}})["status"]["token"]
        return self.plane.write_kubeconfig(file, token, self.name)

    def _has_account(self) -> bool:
        return any(account["metadata"]["name"] == "default" for account in self.all("ServiceAccount"))


def declared(whole: Object) -> Object:
    """An object without its status and what the API server keeps for itself."""
    kept = copy.deepcopy({key: value for key, value in whole.items() if key != "status"})
    for key in ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"):
        kept["metadata"].pop(key, None)
    kept["metadata"].get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
    if not kept["metadata"].get("annotations"):
        kept["metadata"].pop("annotations", None)
    return kept
