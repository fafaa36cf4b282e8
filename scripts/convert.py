"""Entry point of the rule convert."""

from pathlib import Path

from loadstone.workflow.deterministic import Folders, job
from loadstone.archive import scan_campaign
from loadstone.config.variants import Variants
from loadstone.tables.convert import convert_campaign
from loadstone.workflow.markers import write_marker
from loadstone.workflow.snapshot import tables_fingerprint

with job(snakemake.log[0]) as log:
    wildcards, params = snakemake.wildcards, snakemake.params
    folders = Folders(params.folders)
    campaign = folders.campaign((wildcards.app, wildcards.host, wildcards.timestamp))
    # Listed before the results are read, so that later changes are converted by the next job.
    listing = scan_campaign(campaign)
    convert_campaign(campaign, folders.tables, Variants(params.variants).canonical, workers=snakemake.threads, log=log)
    write_marker(Path(snakemake.output[0]), tables_fingerprint(folders.tables, listing))
