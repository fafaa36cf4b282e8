"""A few lines to speak with the API server as its administrator, independent of the client under test."""

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

Object = dict[str, Any]
TOO_MANY_REQUESTS = 429

# kind -> API version and name in paths
KINDS = {
    "APIService": ("apiregistration.k8s.io/v1", "apiservices"),
    "ConfigMap": ("v1", "configmaps"),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "Deployment": ("apps/v1", "deployments"),
    "EndpointSlice": ("discovery.k8s.io/v1", "endpointslices"),
    "Event": ("v1", "events"),
    "HelmRelease": ("helm.toolkit.fluxcd.io/v2", "helmreleases"),
    "Job": ("batch/v1", "jobs"),
    "HorizontalPodAutoscaler": ("autoscaling/v2", "horizontalpodautoscalers"),
    "Kustomization": ("kustomize.toolkit.fluxcd.io/v1", "kustomizations"),
    "Lease": ("coordination.k8s.io/v1", "leases"),
    "Namespace": ("v1", "namespaces"),
    "Node": ("v1", "nodes"),
    "PersistentVolume": ("v1", "persistentvolumes"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "Pod": ("v1", "pods"),
    "PodMetrics": ("metrics.k8s.io/v1beta1", "pods"),
    "Role": ("rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings"),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "Secret": ("v1", "secrets"),
    "Service": ("v1", "services"),
    "ServiceAccount": ("v1", "serviceaccounts"),
}


class ApiError(Exception):
    """An answer that is no success, with its `status`."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status, self.text = status, text


class Api:
    """Only answers that ask for it are tried again (429): a test that stops the API server sees what happens."""

    def __init__(self, address: str, token: str, certificate: Path | None) -> None:
        self.address, self.token = address, token
        context = ssl.create_default_context(cafile=str(certificate) if certificate else None)
        if certificate is None:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        # Without the environment's proxies.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )

    def call(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", tries: int = 30
    ) -> Any:
        """The decoded answer, as text where it is not JSON. Raises ApiError, or OSError without an answer."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=60) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            # A server that has just started answers so until its caches are filled.
            if error.code == TOO_MANY_REQUESTS and tries > 1:
                time.sleep(1)
                return self.call(method, path, body, content_type, tries - 1)
            raise ApiError(error.code, error.read().decode()) from None
        try:
            return json.loads(text)
        except ValueError:
            return text

    def get(self, kind: str, namespace: str = "", name: str = "") -> Object:
        return self.call("GET", path_of(kind, namespace, name))

    def all(self, kind: str, namespace: str = "") -> list[Object]:
        return self.get(kind, namespace)["items"]

    def create(self, kind: str, body: Object, namespace: str = "") -> Object:
        return self.call("POST", path_of(kind, namespace), {"apiVersion": KINDS[kind][0], "kind": kind, **body})

    def patch(self, kind: str, namespace: str, name: str, body: Object, subresource: str = "") -> Object:
        """A JSON merge patch."""
        path = path_of(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, kind: str, namespace: str, name: str) -> None:
        self.call("DELETE", path_of(kind, namespace, name))

    def apply(self, manifest: Object) -> Object:
        """Create one decoded manifest, or merge it into what is there."""
        kind, metadata = manifest["kind"], manifest["metadata"]
        namespace = metadata.get("namespace", "")
        try:
            return self.create(kind, manifest, namespace)
        except ApiError as error:
            if error.status != 409:
                raise
            return self.patch(kind, namespace, metadata["name"], manifest)


def path_of(kind: str, namespace: str = "", name: str = "") -> str:
    version, plural = KINDS[kind]
    parts = ["apis" if "/" in version else "api", version]
    parts += (["namespaces", namespace] if namespace else []) + [plural] + ([name] if name else [])
    return "/" + "/".join(parts)


def wait_until(condition: Callable[[], Any], what: str, limit_s: float = 120.0) -> Any:
    """The first true value of `condition`; the limit only ends a test that hangs."""
    deadline = time.monotonic() + limit_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {limit_s:.0f} s in vain for {what}"
        time.sleep(0.05)
    return value
