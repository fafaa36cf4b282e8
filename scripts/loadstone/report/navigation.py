"""What every page of the site links to and loads: one list each."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """One entry of the header: `name` is what a template sets ``here`` to; `path` is relative to the site's folder."""

    name: str
    title: str
    path: str


ENTRIES = (
    Entry("start", "Start", "index.html"),
    Entry("campaigns", "Campaigns", "campaigns.html"),
    Entry("comparisons", "Comparisons", "comparisons.html"),
    Entry("variants", "Variants", "variants.html"),
    Entry("quality", "Data quality", "quality.html"),
    Entry("ask", "Ask", "ask.html"),
    Entry("methods", "Methods", "methods.html"),
    Entry("progress", "Progress", "progress.html"),
)

GATE = "gate.json"  # the verdict of the last gate, beside the pages

# Pages over all campaigns; the start page is the last of them to be written.
OVER_ALL = ("campaigns.html", "comparisons.html", "quality.html", "methods.html", "index.html")

# Scripts of a page with charts, in their order.
CHART_SCRIPTS = (
    "vega.js",
    "dom.js",
    "parquet.js",
    "downloads.js",
    "choices.js",
    "chart.js",
    "figures.js",
    "inspector.js",
    "page.js",
)

# What a page may do: show and run the site's own files, nothing else. Pictures made in the page are data: addresses.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'"
)


def present(reports: Path) -> list[Entry]:
    """Those entries whose page is there already."""
    return [entry for entry in ENTRIES if (reports / entry.path).is_file()]
