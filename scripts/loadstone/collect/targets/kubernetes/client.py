"""Talks to a Kubernetes API server. The only module that imports the client library.

Every call is repeated while the server is away or busy, so a change may arrive twice: whoever changes an object reads
it first and sends it back with its ``resourceVersion``.

The client library takes a second to load, so nothing that Snakemake or a local run imports may import this module.
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

import urllib3
import yaml
from kubernetes import client, config, utils

from loadstone.archive.locks import Waiting
from loadstone.collect.targets.base import Log, ignore
from loadstone.collect.targets.kubernetes.objects import NAMESPACE, POD, Kind, Object
from loadstone.errors import LoadstoneError

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
    """Add a refusal by the cluster to `refused` and go on; an error that may pass by itself is raised."""
    try:
        yield
    except ClusterError as error:
        if error.is_transient:
            raise
        refused.append(f"{what}: {error}")


@dataclass(frozen=True)
class _Answer:
    """One try's result: `status` 200 and the decoded `content`, or another status (0: no answer) and a `reason`."""

    status: int
    content: Object
    reason: str = ""
    retry_after_s: float = 0.0


class Cluster:
    """One API server as one user. `patience_s` is how long a call is repeated while the server does not answer."""

    def __init__(self, context: str | None = None, *, patience_s: float = 120.0, log: Log = ignore) -> None:
        settings = _settings(context)
        settings.retries = False
        self.host: str = settings.host
        self.patience_s = patience_s
        self._log = log
        self._outage = Waiting(log)  # shared by all copies, so that an outage is logged once
        self._client = client.ApiClient(settings)
        self._client.user_agent = FIELD_MANAGER

    def with_patience(self, patience_s: float) -> "Cluster":
        """The same server and user, with another limit for repeating a call."""
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
        found: list[Object] | None = self._call("GET", kind.path(namespace), query={"labelSelector": selector}).get(
            "items"
        )
        return found or []

    def create(self, kind: Kind, namespace: str, body: Object) -> Object:
        """Create an object; raises ConflictError when one of that name exists."""
        content = {"apiVersion": kind.version, "kind": kind.name, **body}
        return self._call("POST", kind.path(namespace), query={"fieldManager": FIELD_MANAGER}, body=content)

    def replace(self, kind: Kind, namespace: str, body: Object, subresource: str = "") -> Object:
        """Write an object that was read before; raises ConflictError when it has changed since."""
        path = kind.path(namespace, body["metadata"]["name"], subresource)
        return self._call("PUT", path, query={"fieldManager": FIELD_MANAGER}, body=body)

    def patched(self, kind: Kind, namespace: str, name: str, patch: Object) -> Object:
        """An object as a strategic merge patch would leave it. A dry run: nothing changes.

        Only for kinds of Kubernetes itself. Raises ClusterError when the patch has an unknown field.
        """
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", "dryRun": "All"}
        return self._call("PATCH", kind.path(namespace, name), query=query, body=patch, content_type=_MERGE)

    def delete(self, kind: Kind, namespace: str, name: str, uid: str | None = None, *, cascade: bool = False) -> None:
        """Delete an object (with `uid`: only the one with this uid); it is no error when there is none.

        `cascade` deletes its dependents too; the pods of a Job would stay otherwise.
        """
        options: Object = {"preconditions": {"uid": uid}} if uid else {}
        options |= {"propagationPolicy": "Background"} if cascade else {}
        with contextlib.suppress(NotFoundError):
            self._call("DELETE", kind.path(namespace, name), body=options or None)

    def proxy(
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
        """The answer of a server in a pod, through the API server's proxy.

        The request is repeated while the API server or the pod does not answer and `is_worth_waiting`, so it may arrive
        twice. Raises ClusterError for an answer that is no success.
        """
        address = POD.path(namespace, f"{pod}:{port}", "proxy") + f"/{path}"
        pause_s, deadline = _FIRST_PAUSE_S, time.monotonic() + self.patience_s
        while True:
            try:
                status, _, content = self._send(method, address, body=body, headers=headers)
            except _NO_ANSWER as error:
                status, content = 0, str(error).encode()
            if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
                return content
            text = f"{method} {path} of the pod {namespace}/{pod}: {content[:500].decode(errors='replace').strip()}"
            if (status and status not in _TRANSIENT) or time.monotonic() > deadline or not is_worth_waiting():
                raise _error(text, status)
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def version(self) -> str:
        """The version of the server, such as ``v1.36.3``."""
        return str(self._call("GET", "/version").get("gitVersion", ""))

    def has_namespace(self, name: str) -> bool | None:
        """Whether a namespace exists; None when the user may not read it."""
        try:
            return self.get(NAMESPACE, "", name) is not None
        except ForbiddenError:
            return None

    def is_ready(self, *, anonymous: bool = False) -> bool:
        """Whether the server says that it has started: before, it refuses most users everything.

        `anonymous`: ask without credentials.
        """
        try:
            return self._send("GET", "/readyz", read_s=_CONNECT_S, anonymous=anonymous)[0] == HTTPStatus.OK
        except _NO_ANSWER:
            return False

    def _call(self, method: str, path: str, **request: Any) -> Object:
        """The decoded answer to a request with the keyword arguments of `_send`."""
        pause_s, deadline = _FIRST_PAUSE_S, time.monotonic() + self.patience_s
        refused_since, was_ready = math.inf, False
        while True:
            read_s = min(_READ_S, max(deadline - time.monotonic(), _SHORTEST_S))
            answer = self._try(method, path, read_s=read_s, **request)
            now = time.monotonic()
            if answer.status == HTTPStatus.OK:
                if self._outage.over():
                    self._log(f"the API server {self.host} responds again")
                return answer.content
            text = f"{method} {path} on {self.host}: {answer.reason}"
            if answer.status not in _REFUSED:
                refused_since, was_ready = math.inf, False
                if answer.status and answer.status not in _TRANSIENT:
                    raise _error(text, answer.status)
            else:
                # A refusal is final once the server has said that it is ready, or when it repeats it for long.
                refused_since = min(refused_since, now)
                if was_ready or now - refused_since > _STARTING_S:
                    raise _error(text, answer.status)
                # A user that the server does not know is refused /readyz too.
                if was_ready := self.is_ready(anonymous=answer.status == HTTPStatus.UNAUTHORIZED):
                    continue
            if (left_s := deadline - now) <= 0:
                raise ClusterError(f"{text} (tried for {self.patience_s:.0f} s)", answer.status)
            self._outage.say(self.host, f"the API server does not respond, trying again: {text}")
            time.sleep(min(max(pause_s, answer.retry_after_s), left_s))
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _try(self, method: str, path: str, **request: Any) -> _Answer:
        """One try. Raises ClusterError when trying again can't help."""
        try:
            return _decode(*self._send(method, path, **request))
        except config.ConfigException as error:
            raise ClusterError(f"there are no credentials for {self.host}: {error}") from None
        except _NO_ANSWER as error:
            reason = " ".join(str(getattr(error, "reason", None) or error).split())
            if _is_certificate_refused(error):
                raise ClusterError(f"{self.host} is not the server that the kubeconfig means: {reason}") from None
            return _Answer(0, {}, reason)

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        read_s: float = _READ_S,
        anonymous: bool = False,
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send one request; returns status, headers and body of the answer."""
        sent = {"Accept": "application/json", **(headers or {})}
        if body is not None:
            sent["Content-Type"] = content_type
        auth = [] if anonymous else ["BearerToken"]
        # Serialized for each request, because that fetches a new token when the last one has expired.
        request = self._client.param_serialize(
            method, path, query_params=query, header_params=sent, body=body, auth_settings=auth
        )
        response = self._client.call_api(*request, _request_timeout=(min(_CONNECT_S, read_s), read_s))
        return response.status, response.headers, response.read()  # type: ignore[no-untyped-call]


def parse_quantity(text: str) -> Decimal:
    """A number of cores or bytes. Raises ValueError when it is none."""
    quantity = Decimal(utils.parse_quantity(text))  # type: ignore[no-untyped-call]
    if not math.isfinite(float(quantity)):
        raise ValueError("a quantity without bounds")
    return quantity


def _settings(context: str | None) -> client.Configuration:
    """Those of a context of the kubeconfig, or, in a pod without a kubeconfig, of its ServiceAccount."""
    settings = client.Configuration()
    # The library reads KUBECONFIG once, when it is imported, and takes it for one file.
    files = os.environ.get("KUBECONFIG", "")
    default = Path("~/.kube/config").expanduser()
    try:
        if files or context or default.exists() or "KUBERNETES_SERVICE_HOST" not in os.environ:
            config.load_kube_config(files or str(default), context, settings)  # type: ignore[no-untyped-call]
        else:
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
    except (config.ConfigException, yaml.YAMLError, OSError, TypeError, ValueError) as error:
        where = f"the context {context!r}" if context else "the current context"
        raise LoadstoneError(f"{where} of the kubeconfig can't be used: {error}") from None
    return settings


def _is_certificate_refused(error: BaseException | None) -> bool:
    """Whether the server's certificate was refused, however deep the libraries have wrapped that error."""
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
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        after = headers.get("Retry-After", "")
        reason = decoded.get("message") if isinstance(decoded, dict) else None
        return _Answer(status, {}, str(reason or f"status {status}"), float(after) if after.isdigit() else 0.0)
    if isinstance(decoded, dict):
        return _Answer(HTTPStatus.OK, decoded)
    return _Answer(0, {}, "a response that is not from a Kubernetes API server")


def _error(text: str, status: int) -> ClusterError:
    kinds: dict[int, type[ClusterError]] = {
        HTTPStatus.NOT_FOUND: NotFoundError,
        HTTPStatus.CONFLICT: ConflictError,
        HTTPStatus.FORBIDDEN: ForbiddenError,
        HTTPStatus.UNAUTHORIZED: ForbiddenError,
    }
    return kinds.get(status, ClusterError)(text, status)
