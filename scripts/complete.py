"""Entry point of the rule complete."""

from pathlib import Path

from loadstone.archive import Campaign, decode
from loadstone.entry import job
from loadstone.sweep import complete

with job(snakemake.log[0]) as log:
    names = snakemake.wildcards
    key = [decode(part) for part in (names.app, names.host, names.timestamp)]
    complete(Campaign(Path(snakemake.params.folders["archive"]), *key), log)
    Path(snakemake.output[0]).touch()
