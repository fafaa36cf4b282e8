"""Which format a foreign file has, by its name or else by how it begins."""

import re
from pathlib import Path

from loadstone.archive import parse_name
from loadstone.readers.stream import open_bytes

MARKDOWN = "markdown"
_MARKDOWN_NAMES = (".md", ".markdown")
_LOOKED_AT_BYTES = 1 << 18

# By the name in the archive; the first that fits. Text that a person may have put something before is looked through.
_BEGINNINGS = {
    "results.json": rb'\s*\{"attack":',
    "k6.json": rb'\s*\{"(?:type|metric|data)":[^\n]*"(?:Metric|Point)"',
    "k6.csv": rb"metric_name,timestamp,",
    "hey.csv": rb"response-time,DNS\+dialup,",
    "resource-usage.log": rb"Timestamp, ?Namespace,",
    "resources.csv": rb"sampled_at,scope,name,",
    "figures.csv": rb"label,scope,name,",
    "results.csv": rb"\d{16,19},\d{1,3},\d+,\d+,\d+,",
    "artillery.json": rb'\s*\{\s*"aggregate"\s*:',
    "k6.summary.json": rb'(?s)\s*\{.*"metrics"\s*:',
    "summary.json": rb'\s*\{\s*"latencies"\s*:',
    "hdr.csv": rb'(?:#[^\n]*\n)*\s*"?Value[^\n]{0,20}Percentile',
    "vegeta.txt": rb"(?ms).*?^[ \t]*Requests[ \t]+\[total",
    "resource-summary.txt": rb"(?ms).*?^[ \t]*Namespace[ \t,]+CPU_min\b",
    "k6.txt": rb"(?s).*?(?:http_req_duration|iteration_duration)\.*\s*:",
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in _BEGINNINGS.items()}
_IN_DOCUMENTS = ("vegeta.txt", "k6.txt", "resource-summary.txt")
_FENCE = re.compile(rb"(?m)^[ \t]*(?:```|~~~)")
_GOB = re.compile(rb"(?s).{0,64}Result.{0,200}Attack.{0,20}Seq")


def detect(path: Path) -> str | None:
    """The name that such a file has in the archive behind its run, `MARKDOWN`, or None. Raises OSError."""
    name = path.name.removesuffix(".zst").lower()
    if name.endswith(_MARKDOWN_NAMES):
        return MARKDOWN
    for start in [0, *(found.end() for found in re.finditer(r"\.", name))]:
        parsed = parse_name(f"1.{name[start:]}")
        if parsed is not None and parsed.kind in ("results", "summary", "resources"):
            return parsed.format
    with open_bytes(path) as file:
        beginning = file.read(_LOOKED_AT_BYTES)
    beginning = beginning.removeprefix(b"\xef\xbb\xbf")
    if _GOB.match(beginning):
        return "results.bin"
    found = next((name for name, pattern in _PATTERNS.items() if pattern.match(beginning)), None)
    return MARKDOWN if found in _IN_DOCUMENTS and _FENCE.search(beginning) else found
