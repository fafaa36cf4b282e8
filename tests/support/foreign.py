"""Small results of other tools, in the form in which these write them."""

import json
from typing import Any

HEY = """\
response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset
0.0126,0.0024,0.0000,0.0000,0.0101,0.0001,200,0.0416
0.0133,0.0002,0.0000,0.0001,0.0129,0.0000,200,0.0411
0.0548,0.0000,0.0000,0.0000,0.0108,0.0440,503,0.1162
"""

AB = """\
starttime\tseconds\tctime\tdtime\tttime\twait
Wed Nov 25 03:20:35 2026\t1795576835\t0\t3\t3\t2
Wed Nov 25 03:20:36 2026\t1795576836\t0\t4\t4\t4
Wed Nov 25 03:20:35 2026\t1795576835\t1\t4\t5\t4
"""

VEGETA = """\
Requests      [total, rate, throughput]         100, 100.00, 99.90
Duration      [total, attack, wait]             1.005s, 1s, 4.971ms
Latencies     [min, mean, 50, 90, 95, 99, max]  2.089ms, 5.529ms, 4.953ms, 7.572ms, 9.11ms, 18.509ms, 79.87ms
Bytes In      [total, mean]                     61500, 615.00
Bytes Out     [total, mean]                     0, 0.00
Success       [ratio]                           100.00%
Status Codes  [code:count]                      200:100
Error Set:
"""

SAMPLES = """\
Timestamp, Namespace, Total CPU(mCPU), Max CPU(mCPU), Total Memory(MiB), Max Memory(MiB)
2025-03-10 14:05:12,nginx,11,11m,46,46Mi
2025-03-10 14:05:17,nginx,13,13m,46,46Mi
"""

HDR = """\
Value(ms)  Percentile  TotalCount  1/(1-Percentile)
1.000      0.000000    0           1.00
2.000      0.500000    50          2.00
9.000      1.000000    100         10000000.00
"""


def k6_json(latencies_ms: list[float], scenario: str = "default") -> bytes:
    """Raw lines of k6, one request per latency, a second apart."""
    lines = []
    for number, latency_ms in enumerate(latencies_ms):
        tags = {"method": "GET", "name": "http://127.0.0.1:1/", "status": "200", "scenario": scenario, "group": ""}
        for metric, value in (("http_reqs", 1), ("http_req_duration", latency_ms)):
            data = {"time": f"2026-11-21T11:00:{number:02d}.5Z", "value": value, "tags": tags}
            lines.append({"metric": metric, "type": "Point", "data": data})
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def k6_summary(requests: int) -> bytes:
    """What ``--summary-export`` writes, as far as it matters here."""
    metrics: dict[str, Any] = {
        "http_reqs": {"count": requests, "rate": 1.0},
        "http_req_duration": {"avg": 2.0, "min": 1.0, "med": 2.0, "max": 3.0, "p(90)": 2.8, "p(95)": 2.9},
    }
    return json.dumps({"metrics": metrics, "root_group": {"name": "", "path": "", "groups": {}, "checks": {}}}).encode()


def artillery(periods: list[list[float]], arrivals: float = 1) -> bytes:
    """A report of 1.7 about a warm-up and a test of 10 s each; a period of 10 s has these latencies in ms."""
    intermediate = [
        {
            "timestamp": f"2026-11-21T11:00:{10 * number:02d}.000Z",
            "scenariosCreated": len(latencies),
            "scenariosCompleted": len(latencies),
            "requestsCompleted": len(latencies),
            "latency": _latency(latencies),
            "rps": {"count": len(latencies), "mean": 1},
            "errors": {},
            "codes": {"200": len(latencies)},
            "latencies": [latency * 1_000_000 for latency in latencies],
        }
        for number, latencies in enumerate(periods, 1)
    ]
    whole = [latency for latencies in periods for latency in latencies]
    aggregate = {
        "timestamp": f"2026-11-21T11:00:{10 * len(periods):02d}.000Z",
        "scenariosCreated": len(whole),
        "scenariosCompleted": len(whole),
        "requestsCompleted": len(whole),
        "latency": _latency(whole),
        "rps": {"count": len(whole), "mean": 1},
        "errors": {},
        "codes": {"200": len(whole)},
        "phases": [
            {"duration": 20, "arrivalRate": 1, "name": "Warm up"},
            {"duration": 20, "arrivalRate": arrivals, "name": "Sustained"},
        ],
    }
    return json.dumps({"aggregate": aggregate, "intermediate": intermediate}).encode()


def _latency(latencies: list[float]) -> dict[str, float]:
    ordered = sorted(latencies)
    shares = {"min": 0.0, "median": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in shares.items()}
