"""Carries a plan out. Every file appears complete or not at all; the next call finishes what was interrupted.

A run's files are copied into a hidden folder, flushed to the disk and linked to their final names. Then come its record
and, last, its checksums, which show that the run is complete. No existing file is replaced.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone import __version__, archive
from loadstone.archive import Campaign
from loadstone.archive.durable import open_raw, sha256_of, sync, write_new
from loadstone.archive.staging import Staging, checksums
from loadstone.errors import LoadstoneError
from loadstone.importing.plan import IMPORTED, Plan, PlannedCell, PlannedFile, PlannedRun
from loadstone.text import counted

_CHUNK_BYTES = 1 << 20

Log = Callable[[str], None]


def carry_out(plan: Plan, log: Log) -> None:
    """Copy what is missing in the archive, and close every campaign. Raises LoadstoneError when that fails half-way."""
    for notice in plan.notices:
        log(notice)
    copied = there = 0
    try:
        for cell in plan.cells:
            _write_cell(cell)
            for run in cell.runs:
                new = 0
                if run.is_done:
                    Staging(run.cell, run.run).discard()  # an import killed after the last link left it
                else:
                    new = _Run(run).write(log)
                copied, there = copied + new, there + len(run.files) - new
        for campaign in dict.fromkeys(cell.cell.campaign for cell in plan.cells):
            _close(campaign)
    except OSError as error:
        raise LoadstoneError(
            f"the import stopped at {error.filename or 'a file'}: {error.strerror or error}. {copied} files were "
            "imported completely before that; run the import again to continue"
        ) from None
    campaigns, runs = len({cell.cell.campaign for cell in plan.cells}), len(plan.runs())
    what = f"{counted(runs, 'run')} of {counted(campaigns, 'campaign')}"
    log(f"{counted(copied, 'file')} imported, {there:,} were in the archive already: {what}")
    if copied:
        log("To build tables and pages of it: snakemake --cores all report")


def _write_cell(planned: PlannedCell) -> None:
    folder = planned.cell.path
    folder.mkdir(parents=True, exist_ok=True)
    write_new(folder / archive.METADATA, _json(planned.metadata))


def _close(campaign: Campaign) -> None:
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    write_new(campaign.path / archive.COMPLETION, f"{now}\n".encode())


class _Run:
    def __init__(self, planned: PlannedRun) -> None:
        self.planned, self.cell = planned, planned.cell
        self.staging = Staging(planned.cell, planned.run)
        self.documents: dict[str, str] = {}  # below the campaign, by the file that is a block of it

    def write(self, log: Log) -> int:
        """Write a run into the archive; returns how many of its files were missing there."""
        self.staging.prepare()
        try:
            missing = [file for file in self.planned.files if not file.is_there]
            for file in missing:
                _copy(file, self.staging.path / file.name)
            sync(self.staging.path)
            self._keep_documents()
            for file in missing:
                final = self.cell.path / file.name
                if not self.staging.link(file.name) and sha256_of(final) != file.sha256:
                    raise LoadstoneError(f"{final} was created meanwhile with different content; it is kept")
                log(f"{self.cell}/{file.name} from {file.source}")
            sync(self.cell.path)
            self._write_records()
        finally:
            self.staging.discard()
        return len(missing)

    def _keep_documents(self) -> None:
        """Keep the whole document that a block comes from."""
        for file in self.planned.files:
            if (block := file.source.block) is None:
                continue
            content = file.source.path.read_bytes()
            if not content[block.start :].startswith(block.text) or block.head not in content:
                raise LoadstoneError(f"{file.source} has changed while it was imported; import it again")
            suffix = ".csv" if file.source.path.suffix.lower() == ".csv" else ".md"
            kept = Path(IMPORTED, f"{hashlib.sha256(content).hexdigest()[:16]}{suffix}")
            self.documents[file.name] = kept.as_posix()
            (self.cell.campaign.path / IMPORTED).mkdir(exist_ok=True)
            write_new(self.cell.campaign.path / kept, content)

    def _write_records(self) -> None:
        record = self.cell.path / f"{self.planned.run}.run.json"
        write_new(record, _json(self._record()))
        sums = {file.name: file.sha256 for file in self.planned.files} | {record.name: sha256_of(record)}
        write_new(self.cell.path / f"{self.planned.run}.sha256", checksums(dict(sorted(sums.items()))).encode())

    def _record(self) -> dict[str, Any]:
        found: dict[str, Any] = {"run": self.planned.run, "loadstone": __version__}
        found |= {"started": self.planned.started} if self.planned.started else {}
        found |= {"description": self.planned.description} if self.planned.description else {}
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        found["imported"] = {"at": now, "files": {file.name: self._origin(file) for file in self.planned.files}}
        return found

    def _origin(self, file: PlannedFile) -> dict[str, Any]:
        found: dict[str, Any] = {"source": str(file.source.path), "sha256": file.sha256}
        if (block := file.source.block) is not None:
            found |= {"line": block.line, "headings": list(block.headings), "document": self.documents[file.name]}
        return found


def _copy(file: PlannedFile, staged: Path) -> None:
    """Copy a source byte by byte to the disk. Raises LoadstoneError when it is no longer what was planned."""
    if file.source.block is not None:
        staged.write_bytes(file.source.block.content)
    else:
        with open_raw(file.source.path) as source, staged.open("xb") as copy:
            shutil.copyfileobj(source, copy, _CHUNK_BYTES)
    sync(staged)
    if sha256_of(staged) != file.sha256:
        raise LoadstoneError(f"{file.source} has changed while it was imported; import it again")


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=True) + "\n").encode()
