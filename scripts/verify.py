"""Entry point of the rule verify."""

import sys
from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.publish.bundle.rebuild import verify_bundle
from loadstone.tables.verify import verify_archive

with job(snakemake.log[0]) as log:
    params = snakemake.params
    archive, tables = (Path(params.folders[name]) for name in ("archive", "tables"))
    if params.bundle:
        workflow = [sys.executable, "-m", "snakemake", "--snakefile", params.snakefile, "tables"]
        verify_bundle(Path(params.bundle), tables, [*workflow, f"--cores={snakemake.threads}", "--directory"], log)
    else:
        verify_archive(archive, tables, log)
