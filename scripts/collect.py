"""Entry point of the rule collect."""

from pathlib import Path

from loadstone.archive import Campaign, Cell, decode
from loadstone.collect import collect_run
from loadstone.entry import job

with job(snakemake.log[0]) as log:
    names = snakemake.wildcards
    key = [decode(part) for part in (names.app, names.host, names.timestamp)]
    cell = Cell(Campaign(Path(snakemake.params.folders["archive"]), *key), names.rate, decode(names.variant))
    programs = Path(snakemake.log[0]).with_suffix("")
    collect_run(cell, int(names.run), snakemake.params.target, host=snakemake.params.host, logs=programs, log=log)
    Path(snakemake.output[0]).touch()
