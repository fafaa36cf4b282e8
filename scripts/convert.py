"""Entry point of the rule convert."""

from pathlib import Path

from loadstone.workflow.deterministic import job
from loadstone.archive import Campaign, decode, scan_campaign
from loadstone.config.variants import Variants
from loadstone.tables.convert import convert_campaign
from loadstone.workflow.markers import write_marker
from loadstone.workflow.snapshot import tables_fingerprint

with job(snakemake.log[0]) as log:
    names, params = snakemake.wildcards, snakemake.params
    key = [decode(part) for part in (names.app, names.host, names.timestamp)]
    campaign = Campaign(Path(params.folders["archive"]), *key)
    # Before the results are read: what changes meanwhile is converted the next time.
    listing = scan_campaign(campaign)
    canonical, tables = Variants(params.variants).canonical, Path(params.folders["tables"])
    convert_campaign(campaign, tables, canonical, workers=snakemake.threads, log=log)
    write_marker(Path(snakemake.output[0]), tables_fingerprint(tables, listing))
