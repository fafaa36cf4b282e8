"""Talking to a Kubernetes API server. The only module that imports the client library.

Objects are plain dictionaries as the API describes them. Every call is tried again while the server is away or busy,
so a change may arrive twice: those who change something read it first and send it back with its ``resourceVersion``.

That library takes a second to load, so nothing that Snakemake or a local run imports may import this module.
"""

import contextlib
import copy
import json
import math
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
import yaml
from kubernetes import client, config, utils

from loadstone.archive.locks import Waiting
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
_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_CONNECT_S, _READ_S, _SHORTEST_S = 5.0, 30.0, 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_STARTING_S = 10.0
_NO_ANSWER = (urllib3.exceptions.HTTPError, client.ApiException, OSError)
_MERGE = "application/strategic-merge-patch+json"


class ClusterError(LoadstoneError):
    """The API server refused a call, or did not answer for too long. `status` is 0 without an answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status

    @property
    def is_transient(self) -> bool:
        """Whether the same call may succeed later."""
        return self.status == 0 or self.status in _TRANSIENT


class NotFoundError(ClusterError):
    """There is no such object (or no such kind)."""


class ConflictError(ClusterError):
    """The object exists already, or was changed since it was read."""


class ForbiddenError(ClusterError):
    """The user may not do that."""


@contextlib.contextmanager
def noting_refusals(refused: list[str], what: object) -> Iterator[None]:
    """Add to `refused` what the cluster does not allow, and go on; what may succeed later is raised."""
    try:
        yield
    except ClusterError as error:
        if error.is_transient:
            raise
        refused.append(f"{what}: {error}")


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
JOB = Kind("batch/v1", "jobs", "Job")
DEPLOYMENT = Kind("apps/v1", "deployments", "Deployment")
ENDPOINT_SLICE = Kind("discovery.k8s.io/v1", "endpointslices", "EndpointSlice")
AUTOSCALER = Kind("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
LEASE = Kind("coordination.k8s.io/v1", "leases", "Lease")
ACCESS_REVIEW = Kind("authorization.k8s.io/v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview")
POD_METRICS = Kind("metrics.k8s.io/v1beta1", "pods", "PodMetrics")
KUSTOMIZATION = Kind("kustomize.toolkit.fluxcd.io/v1", "kustomizations", "Kustomization")
HELM_RELEASE = Kind("helm.toolkit.fluxcd.io/v2", "helmreleases", "HelmRelease")


@dataclass(frozen=True)
class _Answer:
    """What came of one try: `status` 200 and the decoded `content`, or another status (0: no answer) and a `reason`."""

    status: int
    content: Object
    reason: str = ""
    retry_after_s: float = 0.0


class Cluster:
    """One API server as one user. `patience_s` is for how long a call is tried again while the server is away."""

    def __init__(self, context: str | None = None, *, patience_s: float = 120.0, log: Log | None = None) -> None:
        settings = _settings(context)
        settings.retries = False
        self.host: str = settings.host
        self.patience_s = patience_s
        self._away = Waiting(log or (lambda _: None))  # of all copies
        self._log = log or (lambda _: None)
        self._client = client.ApiClient(settings)
        self._client.user_agent = FIELD_MANAGER

    def with_patience(self, patience_s: float) -> "Cluster":
        """The same server and user for calls that have another time to come to an end."""
        other = copy.copy(self)
        other.patience_s = patience_s
        return other

    def get(self, kind: Kind, namespace: str, name: str, subresource: str = "") -> Object | None:
        """One object; None when there is none of that name."""
        try:
            return self._call("GET", kind.path(namespace, name, subresource))
        except NotFoundError:
            return None

    def list(self, kind: Kind, namespace: str, labels: Mapping[str, str] | None = None) -> list[Object]:
        """All objects of a namespace, those with all of `labels` if any are given."""
        selector = ",".join(f"{name}={value}" for name, value in sorted((labels or {}).items()))
        found: list[Object] | None = self._call("GET", kind.path(namespace), {"labelSelector": selector}).get("items")
        return found or []

    def create(self, kind: Kind, namespace: str, body: Object) -> Object:
        """Raises ConflictError when there is one already."""
        whole = {"apiVersion": kind.version, "kind": kind.name, **body}
        return self._call("POST", kind.path(namespace), {"fieldManager": FIELD_MANAGER}, whole)

    def replace(self, kind: Kind, namespace: str, body: Object, subresource: str = "") -> Object:
        """Write an object that was read before; raises ConflictError when it has changed since."""
        path = kind.path(namespace, body["metadata"]["name"], subresource)
        return self._call("PUT", path, {"fieldManager": FIELD_MANAGER}, body)

    def patched(self, kind: Kind, namespace: str, name: str, patch: Object) -> Object:
        """What a strategic merge patch would make of an object of Kubernetes' own kinds; nothing changes.

        A field that does not exist is refused.
        """
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", "dryRun": "All"}
        return self._call("PATCH", kind.path(namespace, name), query, patch, _MERGE)

    def delete(self, kind: Kind, namespace: str, name: str, uid: str | None = None, *, cascade: bool = False) -> None:
        """Delete an object (only that with the given `uid`); one that is gone already is no error.

        `cascade`: what it has made goes too, which is not so of a Job's pods by itself.
        """
        options: Object = {"preconditions": {"uid": uid}} if uid else {}
        options |= {"propagationPolicy": "Background"} if cascade else {}
        with contextlib.suppress(NotFoundError):
            self._call("DELETE", kind.path(namespace, name), {}, options or None)

    def through(
        self,
        namespace: str,
        pod: str,
        port: int,
        method: str,
        path: str,
        *,
        body: Object | None = None,
        headers: Mapping[str, str] | None = None,
        is_worth_waiting: Callable[[], bool] = lambda: True,
    ) -> bytes:
        """What a server in a pod answers, through the API server's proxy.

        Tried again while the API server or the pod does not answer, as long as `is_worth_waiting`; so a call may come
        twice. Raises ClusterError for an answer that is no success.
        """
        address = POD.path(namespace, f"{pod}:{port}", "proxy") + f"/{path}"
        pause_s, given_up = _FIRST_PAUSE_S, time.monotonic() + self.patience_s
        while True:
            try:
                status, _, content = self._send(method, address, body, "application/json", _READ_S, more=headers)
            except _NO_ANSWER as error:
                status, content = 0, str(error).encode()
            if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
                return content
            what = f"{method} {path} of the pod {namespace}/{pod}: {content[:500].decode(errors='replace').strip()}"
            if (status and status not in _TRANSIENT) or time.monotonic() > given_up or not is_worth_waiting():
                raise _refused(what, status)
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def version(self) -> str:
        """What the server says of its version, such as ``v1.36.3``."""
        return str(self._call("GET", "/version").get("gitVersion", ""))

    def has_namespace(self, name: str) -> bool | None:
        """Whether there is a namespace; None when the user may not know."""
        try:
            return self.get(NAMESPACE, "", name) is not None
        except ForbiddenError:
            return None

    def is_ready(self, *, to_anybody: bool = False) -> bool:
        """Whether the server says that it has started: before, it takes most users for allowed nothing.

        `to_anybody`: as it answers those who don't say who they are.
        """
        try:
            return self._send("GET", "/readyz", None, "", _CONNECT_S, anonymous=to_anybody)[0] == HTTPStatus.OK
        except _NO_ANSWER:
            return False

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
        refused_since, was_ready, said = math.inf, False, False
        while True:
            read_s = min(_READ_S, max(given_up - time.monotonic(), _SHORTEST_S))
            answer = self._once(method, address, body, content_type, read_s)
            now = time.monotonic()
            if answer.status == HTTPStatus.OK:
                if self._away.over():
                    self._log(f"the API server {self.host} answers again")
                return answer.content
            what = f"{method} {path} on {self.host}: {answer.reason}"
            if answer.status not in _REFUSED:
                refused_since, was_ready = math.inf, False
                if answer.status and answer.status not in _TRANSIENT:
                    raise _refused(what, answer.status)
            else:
                # Believed of a server that said before that it has started, or that says nothing else for long.
                refused_since = min(refused_since, now)
                if was_ready or now - refused_since > _STARTING_S:
                    raise _refused(what, answer.status)
                # A user that it does not know gets no other answer from it.
                if was_ready := self.is_ready(to_anybody=answer.status == HTTPStatus.UNAUTHORIZED):
                    continue
            if (left_s := given_up - now) <= 0:
                raise ClusterError(f"{what} (tried for {self.patience_s:.0f} s)", answer.status)
            if not said:
                self._away.say(self.host, f"the API server does not answer, trying again: {what}")
                said = True
            time.sleep(min(max(pause_s, answer.retry_after_s), left_s))
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _once(self, method: str, address: str, body: Object | None, content_type: str, read_s: float) -> _Answer:
        """One try. Raises ClusterError for what can't get better by waiting."""
        try:
            return _decode(*self._send(method, address, body, content_type, read_s))
        except config.ConfigException as error:
            raise ClusterError(f"there are no credentials for {self.host}: {error}") from None
        except _NO_ANSWER as error:
            reason = " ".join(str(getattr(error, "reason", None) or error).split())
            if _is_another_server(error):
                raise ClusterError(f"{self.host} is not the server that the kubeconfig means: {reason}") from None
            return _Answer(0, {}, reason)

    def _send(
        self,
        method: str,
        address: str,
        body: Object | None,
        content_type: str,
        read_s: float,
        *,
        anonymous: bool = False,
        more: Mapping[str, str] | None = None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        headers = {"Accept": "application/json"} | ({"Content-Type": content_type} if body is not None else {})
        headers |= more or {}
        who = [] if anonymous else ["BearerToken"]
        # Each time anew: a token that has expired is fetched again.
        request = self._client.param_serialize(method, address, header_params=headers, auth_settings=who)
        response = self._client.rest_client.request(  # type: ignore[no-untyped-call]
            method, request[1], headers=request[2], body=body, _request_timeout=(min(_CONNECT_S, read_s), read_s)
        )
        return response.status, response.headers or {}, response.read()


def parse_quantity(text: str) -> Decimal:
    """A number of cores or bytes. Raises ValueError when it is none."""
    quantity = Decimal(utils.parse_quantity(text))  # type: ignore[no-untyped-call]
    if not math.isfinite(float(quantity)):
        raise ValueError("a quantity without bounds")
    return quantity


def _settings(context: str | None) -> client.Configuration:
    """Of a context of the kubeconfig, or, in a pod and without a kubeconfig, of its ServiceAccount."""
    settings = client.Configuration()
    # The library looks at KUBECONFIG once, when it is imported, and takes it for one file.
    files = os.environ.get("KUBECONFIG", "")
    usual = Path("~/.kube/config").expanduser()
    try:
        if files or context or usual.exists() or "KUBERNETES_SERVICE_HOST" not in os.environ:
            config.load_kube_config(files or str(usual), context, settings)  # type: ignore[no-untyped-call]
        else:
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
    except (config.ConfigException, yaml.YAMLError, OSError, TypeError, ValueError) as error:
        where = f"the context {context!r}" if context else "the current context"
        raise LoadstoneError(f"{where} of the kubeconfig can't be used: {error}") from None
    return settings


def _is_another_server(error: BaseException | None) -> bool:
    """Whether the certificate was refused, however deep the libraries have wrapped that."""
    while error is not None:
        if any(isinstance(each, ssl.SSLCertVerificationError) for each in (error, *error.args)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _decode(status: int, headers: Mapping[str, str], content: bytes) -> _Answer:
    try:
        decoded = json.loads(content)
    except ValueError:
        decoded = None
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        if isinstance(decoded, dict):
            return _Answer(HTTPStatus.OK, decoded)
        return _Answer(0, {}, "an answer that is not of a Kubernetes API server")
    after = headers.get("Retry-After", "")
    reason = decoded.get("message") if isinstance(decoded, dict) else None
    return _Answer(status, {}, str(reason or f"status {status}"), float(after) if after.isdigit() else 0.0)


def _refused(text: str, status: int) -> ClusterError:
    kinds: dict[int, type[ClusterError]] = {
        HTTPStatus.NOT_FOUND: NotFoundError,
        HTTPStatus.CONFLICT: ConflictError,
        HTTPStatus.FORBIDDEN: ForbiddenError,
        HTTPStatus.UNAUTHORIZED: ForbiddenError,
    }
    return kinds.get(status, ClusterError)(text, status)
