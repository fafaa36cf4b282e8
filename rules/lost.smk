"""What the rules share about parts of the site that have lost a file since they were made (loadstone/report/site_files.py)."""

from loadstone.report.site_files import Look

SITE = Look(Path(config["reports"]))
# Of parts that are more than one page: the outputs of their rules, whose absence Snakemake notices itself.
OUTPUTS = {
    "assets": ["assets/site.css"],
    "variants": ["variants.html", *(f"variants/{slug}.html" for slug in VARIANT_SLUGS)],
    "index": navigation.OVER_ALL,
}


def asked_again(part):
    """None as long as a part has never lost anything; a name that does not exist yet when it has."""
    if STATE.planned:
        return STATE.planned.lost.get(part, [])
    return SITE.again(part, *OUTPUTS.get(part, [part if part.startswith("figures/") else f"{part}.html"]))


def lost(part):
    """An input of the rule that makes this part, so that neither mtimes nor Snakemake's records decide about it."""

    def names(wildcards):
        return asked_again(part.format(**dict(wildcards.items())))

    return names


def lost_of_site(wildcards):
    """The same of all parts. Targets name them as they name every page."""
    single = [*pages(wildcards), *comparison_pages(wildcards), *trace_pages(wildcards)]
    parts = [page.removeprefix("<reports>/").removesuffix(".html") for page in single]
    return [name for part in (*parts, *OUTPUTS, "ask") for name in asked_again(part)]


def lost_figures(wildcards):
    """The same of the figures of pages."""
    folders = figures_of_pages(wildcards)
    return [name for folder in folders for name in asked_again(folder.removeprefix("<reports>/"))]
