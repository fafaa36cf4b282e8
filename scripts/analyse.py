"""Entry point of the rule analyse."""

from pathlib import Path

from loadstone.archive import Campaign, decode
from loadstone.entry import job
from loadstone.tables.analyse import analyse_campaign

with job(snakemake.log[0]) as log:
    names, folders = snakemake.wildcards, snakemake.params.folders
    key = [decode(part) for part in (names.app, names.host, names.timestamp)]
    analyse_campaign(Campaign(Path(folders["archive"]), *key), Path(folders["tables"]))
