"""What the rules share about how variants look on pages (loadstone/report/undeclared_variants.py)."""

from loadstone.report import undeclared_variants as seen

SEEN = seen.first_seen(VARIANTS, STATE.listings.values())


def shown(campaigns):
    """How variants look on a page of these campaigns."""
    listings = [STATE.listings[key] for key in campaigns]
    return {"declared": VARIANTS.declared, "seen": seen.seen_by(VARIANTS, SEEN, listings)}


def shown_of_slug(wildcards):
    return shown([STATE.slugs[wildcards.slug]])


def shown_of_comparison(wildcards):
    return shown(campaigns_compared(wildcards.comparison))
