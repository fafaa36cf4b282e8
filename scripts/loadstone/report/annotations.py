"""What a campaign page says of what people know: the catalogue's entry, tags, former labels, suggested tags."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from loadstone.archive import Campaign
from loadstone.config.variants import Variants
from loadstone.report.queries import Row

_EMPTY: dict[str, Any] = {"purpose": None, "notes": (), "corrections": ()}
_SAID = {"mode": "mode", "runs": "runs", "replicas": "replicas", "rates": "requests/s", "variants": "variants"}


def context(
    campaign: Campaign, runs: Sequence[Row], suggestions: Sequence[Row], variants: Variants, entry: Mapping[str, Any]
) -> dict[str, Any]:
    """Variables of ``known.html``; `entry` is the catalogue's of this campaign, empty when it has none."""
    present = {run["variant"] for run in runs}
    carried = Counter(tag for run in runs for tag in run["tags"] or ())
    return {
        "entry": _EMPTY | dict(entry),
        "trace_dumps": [(dump["file"], dump.get("of")) for dump in entry.get("trace_dumps", ())],
        "measured": [(_SAID[name], _text(value)) for name, value in entry.get("measured", {}).items()],
        "tags": [(tag, carried[tag], entry.get("tags", {}).get(tag)) for tag in sorted(carried)],
        "relabelled": variants.relabelled(campaign.app, present, campaign.instant),
        "suggestions": suggestions,
        "n_suggestions": suggestions[0]["n_suggestions"] if suggestions else 0,
    }


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
