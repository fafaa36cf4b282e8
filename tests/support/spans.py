"""Traces in the JSON of Jaeger's query service, written by hand."""

import json
from collections.abc import Mapping
from typing import Any


def span(
    span_id: str,
    started_us: Any,
    duration_us: int,
    parent_id: str = "",
    *,
    follows: bool = False,
    service: str = "front",
    operation: str = "GET /",
    tags: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One span with its process inside; `trace` moves that to where Jaeger has it."""
    kind = "FOLLOWS_FROM" if follows else "CHILD_OF"
    return {
        "spanID": span_id,
        "flags": 1,
        "operationName": operation,
        "references": [{"refType": kind, "spanID": parent_id}] if parent_id else [],
        "startTime": started_us,
        "duration": duration_us,
        "tags": [{"key": key, "type": "string", "value": value} for key, value in (tags or {}).items()],
        "logs": [],
        "processID": service,
        "warnings": None,
    }


def trace(trace_id: str, spans: list[dict[str, Any]]) -> dict[str, Any]:
    """One trace; its spans and their references get its ID, its processes are numbered."""
    services = sorted({each["processID"] for each in spans})
    numbers = {service: f"p{number}" for number, service in enumerate(services, 1)}
    for each in spans:
        each["traceID"] = trace_id
        each["processID"] = numbers[each["processID"]]
        for reference in each["references"]:
            reference.setdefault("traceID", trace_id)
    processes = {number: {"serviceName": service, "tags": []} for service, number in numbers.items()}
    return {"traceID": trace_id, "spans": spans, "processes": processes, "warnings": None}


def dump(*traces: dict[str, Any]) -> bytes:
    """What ``/api/traces`` answers."""
    content = {"data": list(traces), "total": 0, "limit": 0, "offset": 0, "errors": None}
    return json.dumps(content, separators=(",", ":")).encode()
