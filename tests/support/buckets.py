"""A small archive with something of everything, and a bucket as a test sees it."""

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loadstone.archive import Campaign
from loadstone.errors import LoadstoneError
from loadstone.publish.bucket import transfer

from support.rawfiles import compress, write_cell
from support.storage import Storage

MORNING, EVENING = "2026-11-20T08:00:00+01:00", "2026-11-20T20:00:00+01:00"
STRANGE = "größe {0} %2F*"
LARGE = 9 << 20  # bytes: more than is written by one request


def write_archive(root: Path) -> None:
    """Two campaigns, the first complete; a run without checksums, a failure, a document, dumps."""
    for variant in ("plain", STRANGE):
        for at in (MORNING, EVENING):
            _cell(root, at, variant)
    campaign = Campaign(root, "demo", "here", MORNING).path
    (campaign / "completion_time.txt").write_text("2026-11-20T09:00:00+01:00\n")
    (campaign / "_imported").mkdir()
    (campaign / "_imported/0123456789abcdef.md").write_text("a document")
    for folder in (root, campaign):
        (folder / "_trace_dumps").mkdir()
        (folder / "_trace_dumps/traces-1714682252555.json.zst").write_bytes(b"dump")
    cell = campaign / "100/plain"
    (cell / "3.results.json.zst").write_bytes(b"of an older tool")
    (cell / "4.failure.1.json").write_text("{}")


def at_home(root: Path) -> set[str]:
    """Adds what is never pushed; its names."""
    found = {
        "notes.txt": "mine",
        f"demo/here/{MORNING}/100/plain/_set_aside/1.summary.json.20261120T080000Z": "old",
        f"demo/here/{MORNING}/100/plain/1.results.json.zst.tmp": "half",
        f"demo/here/{MORNING}/100/plain/.2.part.old": "half",
        "_backup/x/y/1.results.json.zst": "mine",
    }
    for name, text in found.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return set(found)


def _cell(root: Path, at: str, variant: str) -> Path:
    cell = write_cell(root, {}, variant=variant, at=at).path
    for run in (1, 2):
        write_run(cell, run)
    return cell


def write_run(cell: Path, run: int, size: int = 300) -> None:
    """A run with its checksums, of bytes that no other run has."""
    chosen = random.Random(f"{cell.parent.parent.name}{cell.name}{run}")
    files = {
        f"{run}.results.json.zst": chosen.randbytes(size),
        f"{run}.warmups.json.zst": compress(b"{}"),
        f"{run}.run.json": json.dumps({"run": run}).encode(),
    }
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    for name, content in (files | {f"{run}.sha256": sums.encode()}).items():
        (cell / name).write_bytes(content)


def write_tables(tables: Path, *names: str, says: str = "rows") -> None:
    for name in names:
        path = tables / "runs" / f"app_dir=demo/host_dir=here/timestamp_dir={name}/part.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(says)


def contents(root: Path) -> dict[str, bytes]:
    """Every file below a folder that is not hidden, by its path."""
    found = (path for path in root.rglob("*") if path.is_file())
    paths = {path.relative_to(root).as_posix(): path for path in found}
    return {name: path.read_bytes() for name, path in paths.items() if "/." not in f"/{name}"}


class Bucket:
    """A bucket of its own; `folder` is where the server keeps its objects as files of their names."""

    def __init__(self, storage: Storage, name: str) -> None:
        (storage.folder / name).mkdir()
        self.client = storage.client()
        self.name, self.endpoint = name, storage.endpoint
        self.folder = storage.folder / name / "some/where"

    def declared(self, **changes: Any) -> dict[str, Any]:
        return {"to": f"s3://{self.name}/some/where", "endpoint": self.endpoint, **changes}

    def objects(self) -> dict[str, bytes]:
        return contents(self.folder) if self.folder.is_dir() else {}

    def replace(self, name: str, content: bytes) -> None:
        """As others may, through the server; `put` is behind its back."""
        with self.client.open_output_stream(f"{self.name}/some/where/{name}", compression=None) as file:
            file.write(content)

    def put(self, name: str, content: bytes) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(content)

    def check_runs(self) -> None:
        """No run's main results are there without all that its checksums name, nor what plans and closes too early."""
        there = self.objects()
        for name in there:
            folder, _, last = name.rpartition("/")
            if last.endswith(".results.json.zst") and (sums := there.get(f"{folder}/{last.partition('.')[0]}.sha256")):
                for line in sums.decode().splitlines():
                    digest, named = line.split("  ")
                    assert hashlib.sha256(there[f"{folder}/{named}"]).hexdigest() == digest, name


def pushed(archive: Path, bucket: Bucket, **changes: Any) -> str:
    """What was said."""
    said: list[str] = []
    transfer.push(archive, archive.parent / "tables", bucket.declared(**changes), said.append)
    return "\n".join(said)


def pulled(archive: Path, bucket: Bucket, **changes: Any) -> str:
    said: list[str] = []
    transfer.pull(archive, archive.parent / "tables", bucket.declared(**changes), said.append)
    return "\n".join(said)


def refused(work: Callable[..., object], archive: Path, bucket: Bucket, **changes: Any) -> str:
    """What was said before the error, and the error."""
    said: list[str] = []
    with pytest.raises(LoadstoneError) as error:
        work(archive, archive.parent / "tables", bucket.declared(**changes), said.append)
    return "\n".join([*said, str(error.value)])
