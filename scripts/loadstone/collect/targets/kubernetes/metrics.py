"""CPU and memory of pods from the metrics API (``metrics.k8s.io``), as metrics-server and others offer it.

A namespace is the sum of its pods in a round. So all of its pods are written as soon as one of them has a new
measurement, and none otherwise.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from http import HTTPStatus
from typing import Any

from loadstone.collect.targets.base import ResourceSample, UnsampledError
from loadstone.collect.targets.kubernetes.client import POD_METRICS, Cluster, ClusterError, Object

# Of one call: there is another sample soon.
_PATIENCE_S = 1.0

# Name of each pod -> what it used, and when that was measured by the cluster's clock.
_Windows = Mapping[str, tuple[str, ResourceSample]]


class PodMetrics:
    """What the pods of some namespaces use.

    It has a connection of its own, and little patience: it runs beside an attack. `sample` may be called from another
    thread than the rest of the target.
    """

    def __init__(self, context: str | None, namespaces: Iterable[str]) -> None:
        self._cluster = Cluster(context, patience_s=_PATIENCE_S)
        self._namespaces = tuple(dict.fromkeys(namespaces))
        self._last: dict[str, dict[str, str]] = {}

    def sample(self) -> list[ResourceSample]:
        """A sample per pod of every namespace in which any pod was measured anew since the last call.

        Metrics are measured every 15 s or so, however often they are asked for. All pods of such a namespace are in the
        answer, so that their sum is that of the namespace. The first answer of a namespace was measured before the
        attack: it is only remembered. Raises UnsampledError for what can't be asked, with the samples of the rest.
        """
        found: list[ResourceSample] = []
        problems: list[str] = []
        for namespace in self._namespaces:
            try:
                windows = _windows(namespace, self._cluster.list(POD_METRICS, namespace))
            except ClusterError as error:
                problems.append(_problem(namespace, error))
                if error.status == HTTPStatus.FORBIDDEN:
                    continue
                break  # so it is for all of them
            measured = {name: window for name, (window, _) in windows.items()}
            before = self._last.get(namespace)
            self._last[namespace] = measured
            if before is not None and any(before.get(name) != window for name, window in measured.items()):
                found += [sample for _, sample in windows.values()]
        if problems:
            raise UnsampledError("; ".join(dict.fromkeys(problems)), found)
        return found


def _windows(namespace: str, items: Iterable[Object]) -> _Windows:
    """Metrics that can't be understood are left out."""
    found = {}
    for item in items:
        try:
            name, window = item["metadata"]["name"], item["timestamp"]
            measured_at = datetime.fromisoformat(window)
            cpu = _sum(item["containers"], "cpu", Fraction(1000))
            memory = _sum(item["containers"], "memory", Fraction(1, 1 << 20))
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
        if measured_at.tzinfo is not None:
            found[name] = (window, ResourceSample(measured_at, "pod", f"{namespace}/{name}", cpu, memory))
    return found


def _sum(containers: Iterable[Mapping[str, Any]], resource: str, factor: Fraction) -> float | None:
    """Of all containers of a pod; None when one of them is not known."""
    quantities = [parse_quantity(container["usage"].get(resource)) for container in containers]
    known = [quantity for quantity in quantities if quantity is not None]
    return float(sum(known) * factor) if known and len(known) == len(quantities) else None


def _problem(namespace: str, error: ClusterError) -> str:
    """Always the same text for the same reason."""
    if error.status == HTTPStatus.NOT_FOUND:
        return "the cluster has no metrics API (metrics.k8s.io), so CPU and memory of its pods are not known"
    if error.status == HTTPStatus.FORBIDDEN:
        return f"CPU and memory of the pods in {namespace} are not known: {error}"
    return f"the metrics API does not answer, so CPU and memory of pods are not known (status {error.status})"


_NUMBER = r"[+-]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})"
_QUANTITY = re.compile(rf"({_NUMBER})(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{{1,2}}))?", re.ASCII)
_THOUSANDS = {"n": -3, "u": -2, "m": -1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def parse_quantity(text: object) -> Fraction | None:
    """The number that a quantity stands for (cores, bytes); None when it is none.

    As in Kubernetes' ``resource.Quantity``: a decimal or binary suffix, or a decimal exponent. ``E`` alone is 10^18.
    """
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    number, suffix, exponent = Fraction(match[1]), match[2] or "", int(match[3] or 0)
    if suffix in _BINARY:
        return number * Fraction(1024) ** _BINARY[suffix]
    return number * Fraction(10) ** (3 * _THOUSANDS.get(suffix, 0) + exponent)
