"""What the rules share about trace dumps."""

from loadstone.archive import trace_dumps as dumps


def find_dumps():
    """Every trace dump of the archive by its name among derived files."""
    campaigns = (listing.campaign for listing in STATE.listings.values())
    owned = dumps.owners(CATALOGUE.entries)
    found = {dump.key: dump for dump in dumps.find(STATE.root, campaigns, owned)}
    return {key: dump for key, dump in found.items() if STATE.planned is None or key in STATE.planned.traced}


DUMPS = find_dumps()
DUMP_SLUGS = {dump.slug: dump for dump in DUMPS.values()}


def traced(wildcards):
    """The record of every dump's rows, as they are or as they will be."""
    return [STATE.traced(dump) for dump in DUMPS.values()]


def dump_fields(wildcards):
    return DUMPS[wildcards.dump].fields()


def traced_dump(wildcards):
    """The rows behind one page."""
    if wildcards.slug not in DUMP_SLUGS:
        raise WorkflowError(f"no trace dump has the page {wildcards.slug}")
    return STATE.traced(DUMP_SLUGS[wildcards.slug])


def dump_of_slug(wildcards):
    return DUMP_SLUGS[wildcards.slug].fields()


def trace_pages(wildcards):
    return [f"<reports>/traces/{slug}.html" for slug in DUMP_SLUGS]


def every_dump(wildcards):
    return [dump.fields() for dump in DUMPS.values()]
