"""Talking to a Kubernetes API server. The only module that imports the client library.

Objects are plain dictionaries as the API describes them. Every call is tried again while the server is away or busy,
so a change may arrive twice: those who change something read it first and send it back with its ``resourceVersion``.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from kubernetes import client, config

from loadstone.errors import LoadstoneError

Object = dict[str, Any]
Log = Callable[[str], None]

FIELD_MANAGER = "loadstone"
_TRANSIENT = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_CONNECT_S, _READ_S = 5.0, 30.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_PAGE = 500
_AUTH = ["BearerToken"]


class ClusterError(LoadstoneError):
    """The API server refused a call, or did not answer for too long. `status` is 0 without an answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class NotFoundError(ClusterError):
    """There is no such object (or no such kind)."""


class ConflictError(ClusterError):
    """The object exists already, or was changed since it was read."""


class ForbiddenError(ClusterError):
    """The user may not do that."""


@dataclass(frozen=True)
class Kind:
    """A kind of objects: its API ``version`` (``v1``, ``apps/v1``) and its name in paths (``deployments``)."""

    version: str
    plural: str
    name: str

    @property
    def group(self) -> str:
        return self.version.rpartition("/")[0]

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """The address of one object, or of all in a namespace."""
        root = f"/apis/{self.version}" if self.group else f"/api/{self.version}"
        parts = ["namespaces", namespace] if namespace else []
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join([root, *(quote(part, safe="") for part in parts)])


POD = Kind("v1", "pods", "Pod")
SERVICE = Kind("v1", "services", "Service")
EVENT = Kind("v1", "events", "Event")
CONFIG_MAP = Kind("v1", "configmaps", "ConfigMap")
NAMESPACE = Kind("v1", "namespaces", "Namespace")
DEPLOYMENT = Kind("apps/v1", "deployments", "Deployment")
ENDPOINT_SLICE = Kind("discovery.k8s.io/v1", "endpointslices", "EndpointSlice")
AUTOSCALER = Kind("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
LEASE = Kind("coordination.k8s.io/v1", "leases", "Lease")
ACCESS_REVIEW = Kind("authorization.k8s.io/v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview")
POD_METRICS = Kind("metrics.k8s.io/v1beta1", "pods", "PodMetrics")
KUSTOMIZATION = Kind("kustomize.toolkit.fluxcd.io/v1", "kustomizations", "Kustomization")
HELM_RELEASE = Kind("helm.toolkit.fluxcd.io/v2", "helmreleases", "HelmRelease")


class Cluster:
    """One API server as one user. `patience_s` is for how long a call is tried again while the server is away.

    `timeout_s` is for how long the server may take for an answer.
    """

    def __init__(
        self,
        context: str | None = None,
        *,
        patience_s: float = 120.0,
        timeout_s: float = _READ_S,
        log: Log | None = None,
    ) -> None:
        settings = client.Configuration()
        try:
            _load(context, settings)
        except (config.ConfigException, OSError, TypeError, ValueError) as error:
            where = f"the context {context!r}" if context else "the current context"
            raise LoadstoneError(f"{where} of the kubeconfig can't be used: {error}") from None
        settings.retries = False
        self.host: str = settings.host
        self.patience_s = patience_s
        self._timeouts_s = (min(_CONNECT_S, timeout_s), timeout_s)
        self._log = log or (lambda _: None)
        self._client = client.ApiClient(settings)

    def get(self, kind: Kind, namespace: str, name: str, subresource: str = "") -> Object | None:
        """One object; None when there is none of that name."""
        try:
            return self._call("GET", kind.path(namespace, name, subresource))
        except NotFoundError:
            return None

    def list(self, kind: Kind, namespace: str, labels: Mapping[str, str] | None = None) -> list[Object]:
        """All objects of a namespace, those with all of `labels` if any are given; large answers come in pages."""
        query = {"limit": str(_PAGE)}
        if labels:
            query["labelSelector"] = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
        found: list[Object] = []
        while True:
            page = self._call("GET", kind.path(namespace), query)
            found += page.get("items") or []
            if not (following := page.get("metadata", {}).get("continue")):
                return found
            query = query | {"continue": following}

    def create(self, kind: Kind, namespace: str, body: Object) -> Object:
        """Raises ConflictError when there is one already."""
        whole = {"apiVersion": kind.version, "kind": kind.name, **body}
        return self._call("POST", kind.path(namespace), {"fieldManager": FIELD_MANAGER}, whole)

    def replace(self, kind: Kind, namespace: str, body: Object, subresource: str = "") -> Object:
        """Write an object that was read before; raises ConflictError when it has changed since."""
        path = kind.path(namespace, body["metadata"]["name"], subresource)
        return self._call("PUT", path, {"fieldManager": FIELD_MANAGER}, body)

    def patch(self, kind: Kind, namespace: str, name: str, body: Object, *, dry_run: bool = False) -> Object:
        """A strategic merge patch; returns the whole object as it is (or would be) then."""
        query = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
        path = kind.path(namespace, name)
        return self._call("PATCH", path, query, body, "application/strategic-merge-patch+json")

    def delete(self, kind: Kind, namespace: str, name: str, uid: str | None = None) -> None:
        """Delete an object (only that with the given `uid`); one that is gone already is no error."""
        with contextlib.suppress(NotFoundError):
            self._call("DELETE", kind.path(namespace, name), {}, {"preconditions": {"uid": uid}} if uid else None)

    def version(self) -> str:
        """What the server says of its version, such as ``v1.36.3``."""
        return str(self._call("GET", "/version").get("gitVersion", ""))

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        address = path + (f"?{urlencode(query)}" if query else "")
        pause_s, given_up = _FIRST_PAUSE_S, time.monotonic() + self.patience_s
        said = False
        while True:
            status, answer, retry_after_s = self._once(method, address, body, content_type)
            if status == HTTPStatus.OK:
                if said:
                    self._log(f"the API server {self.host} answers again")
                return dict(answer)
            what = f"{method} {path} on {self.host}: {answer}"
            if status and status not in _TRANSIENT:
                raise _refused(what, status)
            pause_s = min(max(pause_s * 2, retry_after_s), _LONGEST_PAUSE_S)
            if time.monotonic() + pause_s > given_up:
                raise ClusterError(f"{what} (tried for {self.patience_s:.0f} s)", status)
            if not said:
                self._log(f"the API server does not answer, trying again: {what}")
                said = True
            time.sleep(pause_s)

    def _once(self, method: str, address: str, body: Object | None, content_type: str) -> tuple[int, Any, float]:
        """One try: 200 and the decoded answer, or a status (0: no answer), the reason, and when to try again."""
        headers = {"Accept": "application/json"} | ({"Content-Type": content_type} if body is not None else {})
        try:
            # Each time anew: a token that has expired is fetched again.
            request = self._client.param_serialize(
                method, address, header_params=headers, auth_settings=["BearerToken"]
            )
            answer = self._client.rest_client.request(  # type: ignore[no-untyped-call]
                method, request[1], headers=request[2], body=body, _request_timeout=self._timeouts_s
            )
            content = answer.read()
        except (urllib3.exceptions.HTTPError, client.ApiException, OSError) as error:
            return 0, str(getattr(error, "reason", None) or error), 0.0
        try:
            decoded = json.loads(content)
        except ValueError:
            decoded = {}
        if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return HTTPStatus.OK, decoded, 0.0
        after = (answer.headers or {}).get("Retry-After", "")
        reason = decoded.get("message") if isinstance(decoded, dict) else None
        return answer.status, reason or f"status {answer.status}", float(after) if after.isdigit() else 0.0


def _load(context: str | None, settings: client.Configuration) -> None:
    """The user's kubeconfig; inside a pod without one, the pod's own account."""
    # The library looks at KUBECONFIG only once, when it is imported.
    file = os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    if context is None and "KUBERNETES_SERVICE_HOST" in os.environ and not Path(file).exists():
        config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
    else:
        config.load_kube_config(file, context, settings)  # type: ignore[no-untyped-call]


def _refused(text: str, status: int) -> ClusterError:
    kinds: dict[int, type[ClusterError]] = {
        HTTPStatus.NOT_FOUND: NotFoundError,
        HTTPStatus.CONFLICT: ConflictError,
        HTTPStatus.FORBIDDEN: ForbiddenError,
        HTTPStatus.UNAUTHORIZED: ForbiddenError,
    }
    return kinds.get(status, ClusterError)(text, status)
