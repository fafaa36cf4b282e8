"""What the rules share about parts of the site that have lost a file since they were made (loadstone/report/made.py)."""

from loadstone.report.made import Look

SITE = Look(Path(config["reports"]))


def lost(part, *pages):
    """An input of the rule that makes this part: none as long as nothing was ever lost, else a name to be asked for.

    A part that has lost something has a new one, so that neither mtimes nor Snakemake's records decide about it. `pages`
    are outputs of the rule, whose absence Snakemake notices itself.
    """

    def names(wildcards):
        filled, *outputs = (text.format(**dict(wildcards.items())) for text in (part, *pages))
        if STATE.planned:
            return STATE.planned.lost.get(filled, [])
        return SITE.again(filled, *outputs)

    return names
