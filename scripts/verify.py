"""Entry point of the rule verify."""

import sys
from pathlib import Path

from loadstone.workflow.deterministic import Folders, job
from loadstone.config import size_bytes
from loadstone.publish.bundle_check import verify_bundle
from loadstone.tables.verify import verify_archive

with job(snakemake.log[0]) as log:
    params = snakemake.params
    folders = Folders(params.folders)
    if params.bundle:
        workflow = [sys.executable, "-m", "snakemake", "--snakefile", params.snakefile, "tables"]
        command = [*workflow, f"--cores={snakemake.threads}", "--directory"]
        verify_bundle(Path(params.bundle), folders.tables, command, log, size_bytes(params.limit))
    else:
        verify_archive(folders.archive, folders.tables, log)
