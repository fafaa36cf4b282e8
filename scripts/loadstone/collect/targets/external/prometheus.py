"""CPU and memory of an external target, from a Prometheus server that already scrapes it."""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from loadstone.collect.targets.base import ResourceSample, UnsampledError
from loadstone.collect.targets.identity import NO_RESPONSE, Request, ask
from loadstone.config.connection import Connection

_TIMEOUT_S = 2.0  # there is another sample soon
_MOST = 1e15  # of millicores or MiB
_COLUMNS = ("cpu_millicores", "memory_mib")
# A series is named after the first of these labels that it has, else after any.
_LABELS = ("pod", "namespace", "node", "instance")
_ANY = "target"  # name of a series without labels


class PrometheusSampler:
    """Instant queries of PromQL, one per column, as declared in ``target.resources.prometheus``.

    Each series of a result is one part of the target. Its time is that of the query's evaluation.
    """

    def __init__(self, declared: Mapping[str, Any]) -> None:
        self._url = declared["url"].rstrip("/")
        self._queries = {column: declared[column] for column in _COLUMNS if column in declared}
        self._connection = Connection.of(declared, "target.resources.prometheus")
        self._headers = dict(declared.get("headers", {}))

    def sample(self) -> list[ResourceSample]:
        """A sample per part. Raises UnsampledError, with what is known, when a query fails."""
        found: dict[tuple[str, str], dict[str, float]] = {}
        measured_at: datetime | None = None
        for column, query in self._queries.items():
            for part, at, value in self._query(column, query):
                measured_at = max(measured_at or at, at)
                if column in found.setdefault(part, {}):
                    raise UnsampledError(
                        f"target.resources.prometheus.{column}: several series of the query are named {part[1]}; "
                        "aggregate them, for example with sum by (namespace, pod) or sum by (instance)"
                    )
                found[part][column] = value
        return [
            ResourceSample(measured_at or datetime.now(UTC), scope, name, *map(values.get, _COLUMNS))
            for (scope, name), values in sorted(found.items())
        ]

    def _query(self, column: str, query: str) -> Iterator[tuple[tuple[str, str], datetime, float]]:
        where = f"target.resources.prometheus.{column}"
        url = f"{self._url}/api/v1/query?{urlencode({'query': query})}"
        try:
            response = ask(Request("GET", url, self._headers), _TIMEOUT_S, self._connection)
            content = json.loads(response.body)
            if content["status"] != "success":
                raise UnsampledError(f"{where}: Prometheus rejects the query: {content.get('error')}")
            if content["data"]["resultType"] not in ("vector", "scalar"):
                raise UnsampledError(f"{where}: the query does not return an instant vector")
            series = content["data"]["result"]
            for each in series if content["data"]["resultType"] == "vector" else [{"metric": {}, "value": series}]:
                at, text = each["value"]
                if math.isfinite(value := float(text)):  # a ratio of 0 to 0 is NaN
                    if not 0 <= value < _MOST:
                        raise UnsampledError(f"{where}: the query returns {text}, which is no {column}")
                    yield _scope_and_name(each["metric"]), datetime.fromtimestamp(float(at), UTC), value
        except NO_RESPONSE as error:
            raise UnsampledError(f"{where}: {self._url} does not answer: {error}") from None
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError) as error:
            raise UnsampledError(f"{where}: {self._url} is not Prometheus: {type(error).__name__}") from None


def _scope_and_name(labels: Mapping[str, str]) -> tuple[str, str]:
    """Scope and name of a series in table `resources`."""
    label = next((name for name in (*_LABELS, *labels) if labels.get(name)), "")
    name = str(labels.get(label, _ANY))
    if label == "pod" and "namespace" in labels:
        name = f"{labels['namespace']}/{name}"
    return label if label in ("pod", "namespace") else "process", name
