"""Raw files as large as real ones, and how much memory reading them takes."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import zstandard

from support import rawfiles

BODY_BYTES = 5000
_CHILD = """
import sys
from pathlib import Path
from loadstone import archive
from loadstone.tables.convert import read_cell
campaign = next(archive.campaigns(Path(sys.argv[1])))
for listing in archive.scan_campaign(campaign).cells:
    read_cell(listing, "plain", Path(sys.argv[2]))
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def lines(requests: int, rate: float = 1000.0) -> bytes:
    """Requests with bodies of 5 kB, all the same as in most load tests, and headers as a mesh sends them."""
    generator = random.Random(1)
    body = generator.randbytes(BODY_BYTES)
    headers = {
        "Content-Length": [str(BODY_BYTES)],
        "Content-Type": ["text/html; charset=utf-8"],
        "Date": ["Sat, 21 Nov 2026 11:00:00 GMT"],
        "Server": ["istio-envoy"],
    }
    return b"".join(
        rawfiles.line(
            seq,
            int(generator.lognormvariate(15, 0.5)),
            sent_ns=rawfiles.START_NS + round(seq * 1e9 / rate),
            offset_h=-4,
            bytes_in=BODY_BYTES,
            body=rawfiles.base64.b64encode(body).decode(),
            headers=headers | {"X-Envoy-Upstream-Service-Time": [str(generator.randrange(100))]},
        )
        for seq in range(requests)
    )


def write_repeated(path: Path, block: bytes, times: int) -> None:
    """A compressed file that holds `block` so many times."""
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
    with path.open("wb") as file, compressor.stream_writer(file) as writer:
        for _ in range(times):
            writer.write(block)


def peak_memory_mib(archive: Path, tables: Path) -> float:
    """Peak memory of a process of its own that converts every cell of an archive with one campaign."""
    import loadstone  # noqa: PLC0415 - only to find it

    scripts = str(Path(loadstone.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": scripts}
    command = [sys.executable, "-c", _CHILD, str(archive), str(tables)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout) / 1024
