"""The page of methods: every formula with its source and its assumptions, one part per topic.

A part is a template in ``templates/methods/``: ``<section id="TOPIC">`` with an ``<h2>``.
"""

import re
from html import unescape
from typing import Any

from markupsafe import Markup

from loadstone.analysis.caveats import CAVEATS, WEIGHTS
from loadstone.analysis.provenance import MADE_BY
from loadstone.report.output import partials, template_text

_FOLDER = "methods"
# Parts that a reader needs before others; all further ones follow by name.
FIRST = ("words", "exclusion", "percentiles", "intervals", "averages", "pooled")
_SECTION = re.compile(r'<section id="([^"]+)".*?<h2[^>]*>(.*?)</h2>', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


def context(about: dict[str, Any]) -> dict[str, Any]:
    """The variables of ``methods.html``: the parts and what they are about."""
    names = sorted(partials(_FOLDER), key=_place)
    declared = {"claims": list(CAVEATS.values()), "weights": WEIGHTS, "made_by": MADE_BY}
    parts = [template_text(name, {**declared, **about}) for name in names]
    return {"parts": parts, "contents": [entry for part in parts for entry in _contents(part)]}


def _place(name: str) -> tuple[int, str]:
    topic = name.removeprefix(f"{_FOLDER}/").removesuffix(".html")
    return FIRST.index(topic) if topic in FIRST else len(FIRST), name


def _contents(part: Markup) -> list[tuple[str, str]]:
    found = _SECTION.findall(str(part))
    return [(identifier, unescape(_TAG.sub("", heading)).strip()) for identifier, heading in found]
