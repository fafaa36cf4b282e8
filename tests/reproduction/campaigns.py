"""Writes an archive that gives the published figures, in the metadata and under the folder names of its time."""

import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from reproduction import samples
from reproduction.published import RAW, SUMMARIES, Figure, Key, Target
from support import shapes

_NS = 1e9
_SECONDS = 10

# From which campaign on metadata had which shape.
_SHAPES: tuple[tuple[str, Callable[[str, str, str, str], dict[str, Any]]], ...] = (
    ("2025-01-02T11:48:47", shapes.version_4),
    ("2025-01-01T17:34:04", shapes.version_3),
    ("2024-04-17T23:03:57", shapes.version_2),
    ("2024-04-09", shapes.version_1e),
    ("2024-03-31T22:39:07", shapes.version_1b),
    ("2024-03-30", shapes.version_1a),
)
_RENAMED = "2024-04-28"  # when folders got their canonical names
_OLD_FOLDERS = {
    "istio": "envoy",
    "passthrough-filter": "filter-passthrough",
    "tooling-filter": "filter-traces-opa-singleton",
    "prose-filter": "filter",
    "prose-filter-97776ef1": "filter-97776ef1",
}
_COLLECTED_AS = {  # variants whose folders were renamed on disk, not in their metadata
    "prose-filter-97776ef1": "filter",
    "prose-filter-8ec667ab": "prose-filter",
    "prose-no-presidio-filter-939db60b": "prose-no-presidio-filter",
}


def folder_of(timestamp: str, variant: str) -> str:
    """The folder of a canonical variant at that time."""
    return _OLD_FOLDERS.get(variant, variant) if timestamp < _RENAMED else variant


def write_archive(root: Path, targets: Mapping[Key, Target], raw_rates: float) -> None:
    """Write every cell: runs with summaries, and with requests where figures of those were published.

    Requests are written only up to `raw_rates` requests/s: they are what takes time.
    """
    for (timestamp, variant, rate), target in targets.items():
        folder = folder_of(timestamp, variant)
        named = _COLLECTED_AS.get(variant, folder)
        shape = next(shape for since, shape in _SHAPES if timestamp >= since)
        cell = shapes.cell(root, timestamp, rate, folder, app="bookinfo")
        random = np.random.default_rng(zlib.crc32(str(cell).encode()))
        codes = _codes(target, _SECONDS * int(rate), random)
        files = _summaries(target, codes)
        if float(rate) <= raw_rates and ("latency", RAW) in target.figures:
            files |= _results(target, codes, timestamp, int(rate), random)
        shapes.write(cell, shape(timestamp, "shiver", rate, named), files)


def _codes(target: Target, requests: int, random: np.random.Generator) -> list[dict[str, int]]:
    """Status code -> count, per run. Where whole runs can't give a fraction, some had a few requests fewer."""
    classes = {code: target.figures.get((f"error_{code}", SUMMARIES)) for code in ("503", "0")}
    if not any(classes.values()):
        classes = {"503": target.figures.get(("error", SUMMARIES), Figure(0, None))}
    wanted = [figure or Figure(0, None) for figure in classes.values()]
    counts, sizes = samples.failures(wanted, target.runs, requests, random)
    return [
        {"200": int(size) - int(failed.sum())} | dict(zip(classes, map(int, failed), strict=True))
        for size, failed in zip(sizes, counts.T, strict=True)
    ]


def _summaries(target: Target, codes: list[dict[str, int]]) -> dict[str, bytes]:
    figure = target.figures.get(("latency", SUMMARIES)) or target.figures["latency", RAW]
    spread = figure.std if ("latency", SUMMARIES) in target.figures else 0.0
    means = samples.run_means(target.runs, figure.mean * _NS, (spread or 0.0) * _NS)
    return {
        f"{run}.summary.json": shapes.summary(mean_ns, counts)
        for run, (mean_ns, counts) in enumerate(zip(means, codes, strict=True), start=1)
    }


# --- requests ---------------------------------------------------------------------------------------------------------


def _results(
    target: Target, codes: list[dict[str, int]], timestamp: str, rate: int, random: np.random.Generator
) -> dict[str, bytes]:
    total = target.figures["latency", RAW]
    good = sum(counts["200"] for counts in codes)
    failed = sum(sum(counts.values()) for counts in codes) - good
    ok = target.figures.get(("success_latency", RAW), total) if failed else total
    slow = _rest(total, ok, good, failed)
    of_good = random.permutation(samples.latencies(good, ok.mean * _NS, (ok.std or 0) * _NS))
    of_failed = random.permutation(samples.latencies(failed, slow.mean * _NS, (slow.std or 0) * _NS))
    files, taken_good, taken_failed = {}, 0, 0
    for run, counts in enumerate(codes, start=1):
        status = np.repeat([int(code) for code in counts], list(counts.values()))
        random.shuffle(status)
        latencies_ns = np.empty(len(status), dtype=np.int64)
        is_good = status == 200
        latencies_ns[is_good] = of_good[taken_good : taken_good + is_good.sum()]
        latencies_ns[~is_good] = of_failed[taken_failed : taken_failed + (~is_good).sum()]
        taken_good += is_good.sum()
        taken_failed += (~is_good).sum()
        files[f"{run}.results.json.zst"] = results(timestamp, rate, latencies_ns.tolist(), status.tolist())
    return files


def _rest(total: Figure, ok: Figure, good: int, failed: int) -> Figure:
    """What failed requests must be like, given all and the good ones."""
    if not failed:
        return ok
    count = good + failed
    mean = max((count * total.mean - good * ok.mean) / failed, total.mean * 1e-3)
    second = count * ((total.std or 0) ** 2 + total.mean**2) - good * ((ok.std or 0) ** 2 + ok.mean**2)
    return Figure(mean, max(0.0, second / failed - mean**2) ** 0.5)


_ERRORS = {200: "", 503: "503 Service Unavailable", 0: "context deadline exceeded (Client.Timeout exceeded)"}
_ANSWERED = (
    '"error":"%s","body":"PGh0bWw+","method":"GET","url":"https://10.0.0.9/page?u=test",'
    '"headers":{"Content-Type":["text/html"]}}\n'
)
_UNANSWERED = '"error":"%s","body":null,"method":"GET","url":"https://10.0.0.9/page?u=test","headers":null}\n'
_TAILS = {code: (_ANSWERED if code else _UNANSWERED) % error for code, error in _ERRORS.items()}
_BYTES_IN = {200: 4183, 503: 91, 0: 0}


def results(timestamp: str, rate: float, latencies_ns: list[int], codes: list[int]) -> bytes:
    """A run's compressed lines as vegeta wrote them, sent on the clock within the minute of the campaign's start."""
    day, offset = timestamp[:13], timestamp[-6:]
    written = []
    for seq, (latency_ns, code) in enumerate(zip(latencies_ns, codes, strict=True)):
        sent_ns = round(seq * 1e9 / rate)
        at = f"{day}:30:{sent_ns // 10**9:02d}.{sent_ns % 10**9:09d}{offset}"
        written.append(
            f'{{"attack":"","seq":{seq},"code":{code},"timestamp":"{at}","latency":{latency_ns},'
            f'"bytes_out":0,"bytes_in":{_BYTES_IN[code]},{_TAILS[code]}'
        )
    return zstandard.ZstdCompressor(level=1).compress("".join(written).encode())


def describe(root: Path) -> str:
    """How large the archive is, for people."""
    files = [file for file in root.rglob("*") if file.is_file()]
    return json.dumps({"files": len(files), "bytes": sum(file.stat().st_size for file in files)})
