"""A small shop in a cluster: three variants in namespaces of their own, what they depend on, Flux, and a sweep of it.

The pods of the control plane answer nothing, so the variants' URL is that of a server on loopback, as an ingress would
be; it notes when it was asked for which variant.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support.checkout import Checkout

from cluster.api import Object
from cluster.control_plane import ControlPlane
from cluster.namespace import Namespace

VARIANTS = ("plain", "istio", "filter")
# Pods of each deployment before any sweep: another number than while a variant is measured.
FOUND = {"plain": 0, "istio": 1, "filter": 3}
MEASURED = 2


@contextmanager
def gateway() -> Iterator["Gateway"]:
    """The server, on a free port."""
    served = Gateway()
    threading.Thread(target=served.server.serve_forever, daemon=True).start()
    try:
        yield served
    finally:
        served.server.shutdown()
        served.server.server_close()


class Gateway:
    """`asked` holds (when, variant) of every request of an attack."""

    def __init__(self) -> None:
        self.asked: list[tuple[datetime, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                variant = self.path.strip("/")
                if self.headers.get("User-Agent") != "loadstone":
                    outer.asked.append((datetime.now(UTC), variant))
                body = f"the page of {variant}".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


class Shop:
    """Its namespaces, and the configuration of a sweep of it."""

    def __init__(self, plane: ControlPlane, *, slow: bool = False) -> None:
        self.plane = plane
        times = {"ready_after": "1s", "gone_after": "1s"} if slow else {}
        self.control = Namespace(plane, "loadstone")
        self.spaces = {name: Namespace(plane, name) for name in (*VARIANTS, "presidio", "flux")}
        for name, count in FOUND.items():
            space = self.spaces[name]
            for deployment in ("front", "back"):
                space.deploy(deployment, count, env={"LOG": "warn", "LEVEL": "1"}, **times)
            space.serve("front")
        self.spaces["presidio"].deploy("presidio", 1, **times)
        self.spaces["flux"].flux("Kustomization", "apps")
        self.spaces["flux"].flux("Kustomization", "paused", suspend=True)
        self.spaces["flux"].flux("HelmRelease", "gateway", suspend=False)
        self.wait_as_found()

    def name(self, purpose: str) -> str:
        return self.spaces[purpose].name

    @property
    def namespaces(self) -> set[str]:
        return {space.name for space in self.spaces.values()}

    def wait_as_found(self) -> None:
        """Until every pod of the first state is up."""
        for name, count in FOUND.items():
            for deployment in ("front", "back"):
                self.spaces[name].wait_ready(deployment, count)
        self.spaces["presidio"].wait_ready("presidio", 1)

    def state(self) -> dict[str, dict[str, Object]]:
        """Everything declared in its namespaces."""
        return {purpose: space.state() for purpose, space in self.spaces.items()}

    def target(self, url: str) -> dict[str, Any]:
        """What a configuration says of it."""
        variants: dict[str, Any] = {
            name: {
                "namespace": self.name(name),
                "url": f"{url}/{name}",
                "expect": {"status": 200, "body_contains": f"the page of {name}"},
            }
            for name in VARIANTS
        }
        variants["filter"]["dependencies"] = ["presidio"]
        variants["filter"]["changes"] = [
            {
                "deployment": "front",
                "image": {"app": "example/app:2"},
                "env": {"app": {"FILTER": "on", "LEVEL": None}},
                "patch": {"spec": {"template": {"metadata": {"labels": {"filtered": "yes"}}}}},
            }
        ]
        flux = [("Kustomization", "apps"), ("Kustomization", "paused"), ("HelmRelease", "gateway")]
        return {
            "kind": "kubernetes",
            "context": "plane",
            "namespace": self.control.name,
            "lease_duration": "5s",
            "ready_timeout": "60s",
            "replicas": MEASURED,
            "flux": [{"kind": kind, "namespace": self.name("flux"), "name": name} for kind, name in flux],
            "dependencies": {"presidio": {"namespace": self.name("presidio"), "restart": True}},
            "variants": variants,
        }


def shop_sweep(pristine: Path, path: Path, shop: Shop, url: str, **sweep: Any) -> Checkout:
    """A checkout whose sweep measures the shop; `sweep` replaces its keys."""
    checkout = Checkout(pristine, path)
    small = {"app": "shop", "variants": list(VARIANTS), "rates": [30, 60], "runs": 2, "duration": "400ms"}
    warmup = {"duration": "100ms", "min_rate": 20}
    checkout.replace(sweep={**small, "warmup": warmup, **sweep}, target=shop.target(url), host="here")
    return checkout


def record_of(shop: Shop) -> Object | None:
    """What the cluster itself says is still to be restored."""
    return record_of_namespace(shop.control)


def record_of_namespace(control: Namespace) -> Object | None:
    """The same, by the namespace of Loadstone's record."""
    for each in control.all("ConfigMap"):
        if each["metadata"]["name"] == "loadstone-record" and "record.json" in (each.get("data") or {}):
            return json.loads(each["data"]["record.json"])
    return None
