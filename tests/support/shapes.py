"""Metadata as the collectors of 2024 and 2025 wrote it, one function per generation, with values of our own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadstone.archive import Campaign, Cell

SUFFIXES = {
    "warmupsFileSuffix": ".warmups.json.zst",
    "resultsFileSuffix": ".results.json.zst",
    "summaryFileSuffix": ".summary.json",
}
_PRESIDIO = {
    f"presidio{key[0].upper()}{key[1:]}": f".presidio{suffix}"
    for key, suffix in SUFFIXES.items()
    if key.endswith("Suffix")
}


def write(cell: Cell, metadata: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """One cell's folder as the collectors wrote it."""
    cell.path.mkdir(parents=True, exist_ok=True)
    (cell.path / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")
    for name, content in files.items():
        (cell.path / name).write_bytes(content)


def cell(root: Path, timestamp: str, rate: str, variant_dir: str, *, app: str = "shop", host: str = "shiver") -> Cell:
    """A cell by the names of its folders."""
    return Cell(Campaign(root, app, host, timestamp), rate, variant_dir)


def summary(mean_ns: float, codes: Mapping[str, int]) -> bytes:
    """What `vegeta report -type json` says that matters here; `codes` maps status codes to counts."""
    requests = sum(codes.values())
    success = sum(count for code, count in codes.items() if 200 <= int(code) < 400)
    report = {
        "latencies": {"mean": mean_ns},
        "requests": requests,
        "success": success / requests,
        "status_codes": {code: count for code, count in codes.items() if count},
    }
    return json.dumps(report, indent=2).encode()


def _common(host: str, rate: str, variant: str, replicas: int | str, *, named_with: bool) -> dict[str, Any]:
    namespace = "shop-plain" if variant == "plain" else f"shop-with-{variant}"
    name = namespace if named_with else f"shop-{variant}"
    return {
        "req": {"method": "GET", "url": "https://10.0.0.9/page?u=test", "header": {"Host": [f"{name}.example.com"]}},
        "testOptions": {"duration": "10s", "rate": rate},
        "workloadInfo": {
            "variant": variant,
            "namespace": namespace,
            "hostname": host,
            "test_replicas": replicas,
        },
    }


def version_0b(timestamp: str, host: str, rate: str, variant: str) -> dict[str, Any]:
    """The first metadata: no word of any file."""
    return {"timestamp": timestamp} | _common(host, rate, variant, "2", named_with=False)


def version_0c(timestamp: str, host: str, rate: str, variant: str) -> dict[str, Any]:
    """Names the one results file in full."""
    name = {"resultsFile": f"{timestamp}_{host}_{variant}.results.json.zst"}
    return version_0b(timestamp, host, rate, variant) | name


def version_1a(timestamp: str, host: str, rate: str, variant: str) -> dict[str, Any]:
    """Numbered runs, no summary's suffix yet."""
    own = {"timestamp": timestamp, "resultsFileSuffix": SUFFIXES["resultsFileSuffix"]}
    return own | _common(host, rate, variant, "10", named_with=False)


def version_1b(timestamp: str, host: str, rate: str, variant: str) -> dict[str, Any]:
    """With the summary's suffix; flat at first, in nested folders from 1-c on."""
    found = version_1a(timestamp, host, rate, variant)
    return found | {"summaryFileSuffix": SUFFIXES["summaryFileSuffix"]}


def version_1d(timestamp: str, host: str, rate: str, variant: str) -> dict[str, Any]:
    """Says that there was a warm-up."""
    found = version_1b(timestamp, host, rate, variant)
    return found | {"testOptions": {"includesWarmup": True, "duration": "10s", "rate": rate}}


def version_1e(timestamp: str, host: str, rate: str, variant: str) -> dict[str, Any]:
    """Says at which rate, and counts replicas as a number."""
    found = version_1b(timestamp, host, rate, variant)
    found["workloadInfo"]["test_replicas"] = 10
    return found | {"testOptions": {"includesWarmup": True, "warmupRate": "100", "duration": "10s", "rate": rate}}


def version_2(timestamp: str, host: str, rate: str, variant: str) -> dict[str, Any]:
    """The warm-up has options and a file of its own."""
    common = _common(host, rate, variant, 10, named_with=False)
    return {
        "version": "2",
        "timestamp": timestamp,
        **SUFFIXES,
        "req": common["req"],
        "warmupOptions": {"duration": "10s", "rate": "100"},
        "testOptions": common["testOptions"],
        "workloadInfo": common["workloadInfo"],
    }


def version_3(timestamp: str, host: str, rate: str, variant: str, mode: str = "vegeta") -> dict[str, Any]:
    """With a mode, and the namespace as the host's name."""
    request = _common(host, rate, variant, 10, named_with=True)["req"]
    return version_2(timestamp, host, rate, variant) | {"version": "3", "testMode": mode, "req": request}


def version_31(
    timestamp: str, host: str, rate: str, variant: str, said: str = "3.1", *, content_type: bool = True
) -> dict[str, Any]:
    """A side attack beside the main one; the collector itself said 3."""
    header = {"header": {"Content-Type": ["application/json"]}} if content_type else {}
    request = {"method": "POST", "url": "http://10.0.0.9:3000/analyze", **header, "body": "e30="}
    found = version_3(timestamp, host, rate, variant)
    return found | _PRESIDIO | {"version": said, "presidioReq": request}


def version_32(timestamp: str, host: str, rate: str, variant: str, said: str = "3.2") -> dict[str, Any]:
    """Three side attacks."""
    template = {"method": "POST", "url": "http://10.0.0.9:3000/analyze", "header": {"Content-Type": ["text/json"]}}
    bodies = [{"id": 0}, {"id": 1, "nested": {"a": [1, 2]}}, {"id": 2}]
    own = {"version": said, "presidioReqTemplate": template, "presidioReqBodies": bodies}
    return version_3(timestamp, host, rate, variant) | _PRESIDIO | own


def version_4(timestamp: str, host: str, rate: str, variant: str) -> dict[str, Any]:
    """The warm-up's rate follows that of the test: half of it, rounded down, within bounds."""
    warmup = {"duration": "10s", "rate": str(max(0, min(100, int(rate) // 2)))}
    bounds = {"min_warmup_rate": "0", "max_warmup_rate": "100"}
    return version_3(timestamp, host, rate, variant) | {"version": "4", "warmupOptions": warmup} | bounds
