"""What does not fit together between the archive, the catalogue and the declared variants of one campaign."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from loadstone.analysis.run_behaviour import set_back
from loadstone.analysis.run_requests import key
from loadstone.archive import ABANDONED, COMPLETION, Campaign
from loadstone.tables.exclusion import matches

_Row = dict[str, Any]


@dataclass(frozen=True)
class Known:
    """What people say of a campaign. The fields are those of `analyse_campaign`."""

    tags: Sequence[Mapping[str, Any]] = ()
    excluding: Collection[str] = ()
    listed: bool = True
    completion_file: bool = True
    folders: Collection[str] | None = None


def links(root: Path, facts: Sequence[_Row]) -> dict[str, str]:
    """Source of a run -> that of another run, where both are the same file by way of links."""
    found: dict[str, str] = {}
    real: dict[str, str] = {}
    sources = sorted(fact["source"] for fact in facts if fact["source"])
    # What is no link itself comes first: it is the run that counts.
    resolved = [(source, os.path.realpath(root / source)) for source in sources]
    base = Path(os.path.realpath(root))
    for source, path in sorted(resolved, key=lambda pair: (pair[1] != str(base / pair[0]), pair)):
        if (first := real.setdefault(path, source)) != source:
            found[source] = first
    return found


def copies(facts: Sequence[_Row], links: Mapping[str, str]) -> dict[str, str]:
    """Source of a run -> that of an earlier one whose results are the same bytes; `links` are no copies."""
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    for fact in facts:
        source, digest = fact["source"], fact["results_sha256"]
        if digest and source not in links and (original := first.setdefault(digest, source)) != source:
            found[source] = original
    return found


def unfinished(campaign: Campaign, planned: Sequence[_Row], known: Known) -> str | None:
    """Why a campaign may never have been completed. One whose plan is in the archive is simply still open."""
    if not known.completion_file or campaign.is_completed:
        return None
    lacking = sum(not run["collected"] for run in planned)
    if campaign.is_abandoned:
        return f"{ABANDONED} is there, and {lacking} of {len(planned)} planned runs are missing" if lacking else None
    return None if planned else f"{COMPLETION} is missing, which is written when all runs are collected"


def problems(campaign: Campaign, facts: Sequence[_Row], planned: Sequence[_Row], known: Known) -> Iterator[_Row]:
    """Rows of the table `problems` but for the campaign's key."""
    if not known.listed:
        yield {"problem": "has no entry in config/catalogue.yaml, which has others of this app"}
    cells = {(run["rate"], run["variant"], run["variant_dir"]) for run in (*facts, *planned)}
    for folder in sorted({folder for _, _, folder in cells} - set(known.folders)) if known.folders is not None else ():
        text = f"the folder name {folder!r} is not in config/variants.yaml; it is shown under its own name"
        yield {"variant": folder, "variant_dir": folder, "problem": text}
    for (rate, variant), group in groupby(sorted(cells), key=lambda cell: cell[:2]):
        names = [folder for _, _, folder in group]
        if len(names) > 1:
            text = f"the folders {' and '.join(map(repr, names))} mean one variant; their runs are taken together"
            yield {"variant": variant, "rate": rate, "problem": text}
    for fact in facts:
        if fact["clock_set_back_s"]:
            text = f"{set_back(fact['clock_set_back_s'])}, and nothing that rests on it is shown; latencies are"
            yield key(fact) | {"source": fact["source"], "problem": text}
    for tag in known.tags:
        scoped = any(tag.get(name) for name in ("rate", "variant", "run"))
        here = str(tag.get("pattern", "")).startswith(f"{campaign.timestamp}/")
        if (scoped or here) and not any(matches(tag, fact) for fact in facts):
            scope = tag.get("pattern") or ", ".join(
                f"{name} {tag[name]}" for name in ("rate", "variant", "run") if tag.get(name)
            )
            yield {"problem": f"the catalogue tags {scope} as {tag['tag']}: no run is so"}
