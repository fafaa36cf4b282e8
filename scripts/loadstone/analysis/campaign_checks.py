"""What looks wrong in one campaign: tables `problems` and `suggestions` (of tags).

Problems are mismatches between the archive, the catalogue and the declared variants. A suggestion is a tag with its
evidence and a line for config/catalogue.yaml; none is applied automatically.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from glob import escape
from itertools import groupby
from math import hypot, log
from pathlib import Path
from statistics import median
from typing import Any

from loadstone.analysis import Row
from loadstone.analysis.run_behaviour import set_back
from loadstone.analysis.run_requests import key
from loadstone.archive import ABANDONED, COMPLETION, Campaign
from loadstone.tables import layout
from loadstone.tables.exclusion import matches
from loadstone.text import ms, percent, three

# --- problems --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Declared:
    """What configuration and catalogue declare about a campaign; fields as in `analyse_campaign`."""

    tags: Sequence[Mapping[str, Any]] = ()
    excluding: Collection[str] = ()
    listed: bool = True
    completion_file: bool = True
    folders: Collection[str] | None = None


def links(root: Path, facts: Sequence[Row]) -> dict[str, str]:
    """Source of a run -> source of another run that is the same file, through links."""
    base, sources = Path(os.path.realpath(root)), [fact["source"] for fact in facts if fact["source"]]
    resolved = [(source, os.path.realpath(root / source)) for source in sources]
    first: dict[str, str] = {}
    # The file itself comes before links to it.
    for source, path in sorted(resolved, key=lambda pair: (pair[1] != str(base / pair[0]), pair)):
        first.setdefault(path, source)
    return {source: first[path] for source, path in resolved if first[path] != source}


def copies(facts: Sequence[Row], links: Mapping[str, str]) -> dict[str, str]:
    """Source of a run -> source of an earlier run with the same bytes as results; `links` are no copies."""
    found, first = {}, dict[str, str]()
    for fact in facts:
        source, digest = fact["source"], fact["results_sha256"]
        if digest and source not in links and (original := first.setdefault(digest, source)) != source:
            found[source] = original
    return found


def unfinished(campaign: Campaign, planned: Sequence[Row], declared: Declared) -> str | None:
    """Why a campaign may never have been completed. With a plan in the archive it is still open."""
    if not declared.completion_file:
        return None
    missing = sum(not run["collected"] for run in planned)
    if campaign.is_abandoned:
        return f"{ABANDONED} exists, and {missing} of {len(planned)} planned runs are missing" if missing else None
    if planned or campaign.is_completed:
        return None
    return f"{COMPLETION} is missing, which is written when all runs are collected"


def problems(campaign: Campaign, facts: Sequence[Row], planned: Sequence[Row], declared: Declared) -> Iterator[Row]:
    """Rows of the table `problems` without the campaign's key."""
    if not declared.listed:
        yield {"problem": "has no entry in config/catalogue.yaml, although other campaigns of this app have one"}
    cells = {(run["rate"], run["variant"], run["variant_dir"]) for run in (*facts, *planned)}
    folders = {folder for _, _, folder in cells}
    for folder in sorted(folders.difference(folders if declared.folders is None else declared.folders)):
        text = f"the folder name {folder!r} is not in config/variants.yaml; it is shown under its own name"
        yield {"variant": folder, "variant_dir": folder, "problem": text}
    for (rate, variant), group in groupby(sorted(cells), key=lambda cell: cell[:2]):
        names = [folder for _, _, folder in group]
        if len(names) > 1:
            text = f"the folders {' and '.join(map(repr, names))} are one variant; their runs are combined"
            yield {"variant": variant, "rate": rate, "problem": text}
    for fact in facts:
        if fact["clock_set_back_s"]:
            text = (
                f"{set_back(fact['clock_set_back_s'])}; its latencies are shown, figures that need these times are not"
            )
            yield key(fact) | {"source": fact["source"], "problem": text}
    for fact, before in _renegotiated(facts):
        text = f"TLS has changed within the campaign: {fact['tls']}, in earlier runs of the variant {before}"
        yield key(fact) | {"source": fact["source"], "problem": text}
    for tag in declared.tags:
        scoped = any(tag.get(name) for name in ("rate", "variant", "run"))
        here = str(tag.get("pattern", "")).startswith(f"{campaign.timestamp}/")
        if (scoped or here) and not any(matches(tag, fact) for fact in facts):
            scope = tag.get("pattern") or ", ".join(
                f"{name} {tag[name]}" for name in ("rate", "variant", "run") if tag.get(name)
            )
            yield {"problem": f"the catalogue tags {scope} as {tag['tag']}, which matches no run"}


def _renegotiated(facts: Sequence[Row]) -> Iterator[tuple[Row, str]]:
    """Runs by whose TLS parameters differ from those of the variant's first run, with these."""
    first: dict[str, str] = {}
    for fact in sorted(facts, key=lambda fact: (str(fact["started_at"]), fact["run"])):
        if fact["tls"] and (before := first.setdefault(fact["variant_dir"], fact["tls"])) != fact["tls"]:
            yield fact, before


# --- suggestions -----------------------------------------------------------------------------------------------------

# Shares of failed requests: of a run that failed, that failed mostly, and that was successful. The gap between them
# excludes overload, in which some requests fail.
FAILED_SHARE = 0.9
MOSTLY_SHARE = 0.5
SUCCESSFUL_SHARE = 0.1

# So many runs of a cell must fail mostly, while others succeed, for the cell to be suggested instead of a run.
SEVERAL = 2

# An outlier is this many robust deviations from the median, and larger or smaller by this ratio at least: with few runs
# that agree well, the deviation alone would find outliers everywhere. 3.5 is the cutoff of Iglewicz & Hoaglin 1993,
# *How to Detect and Handle Outliers*, section 3, for the modified z-score. The variation between two or three runs is
# unknown: there the deviation is that of requests within each run, the least by which runs differ.
ROBUST_Z = 3.5
OUTLIER_RATIO = 4 / 3
_FEWEST_RUNS = 4
_MAD_TO_DEVIATION = 1.4826  # of a normal distribution

_WORD = re.compile(r"(FAILED|INVALID|INCONSISTENT|GENERATOR_LIMITED|interrupted|doubtful|outlier|unsettled)")

_LOGGED = 5  # suggestions per campaign


@dataclass(frozen=True)
class Profile:
    """What suggestions for a run depend on. `sound` is False for a run that is short, broken or a link.

    Latencies are in ns; shares are of all requests, None where they are unknown. `noise` is the standard error of the
    mean as a share of it. The following are texts, or None: `unsettled` (not in a steady state), `late` (sent late),
    `exhausted` (the load generator ran out of a resource), `out_of_sync` (the load generators were not synchronised),
    `target_problem` (what happened to the target). `changed`: its files are not those that were collected.
    """

    variant: str
    rate: float
    run: int
    requests: int | None
    expected: int | None
    sound: bool
    failed_share: float | None
    mean_ns: float | None
    unsettled: str | None = None
    noise: float | None = None
    late: str | None = None
    exhausted: str | None = None
    out_of_sync: str | None = None
    target_problem: str | None = None
    changed: bool = False
    tags: Sequence[str] = ()
    copy_of: str | None = None  # path of an earlier run's results, which are the same bytes
    results_sha256: str | None = None


@dataclass(frozen=True)
class Suggestion:
    """A suggested tag, without `run` for a cell, without `rate` for a campaign. `tagged`: it is in the catalogue."""

    kind: str
    tag: str
    evidence: str
    variant: str | None = None
    rate: float | None = None
    run: int | None = None
    tagged: bool = False


def suggest(profiles: Iterable[Profile], unfinished: str | None = None) -> list[Suggestion]:
    """All suggestions for a campaign; `unfinished` says why it may never have been completed."""
    found = [] if unfinished is None else [Suggestion("unfinished", "interrupted", unfinished)]
    ordered = sorted(profiles, key=lambda profile: (profile.rate, profile.variant, profile.run))
    for _, group in groupby(ordered, key=lambda profile: (profile.rate, profile.variant)):
        cell = list(group)
        sound = [profile for profile in cell if profile.sound]
        found += _cut_short(cell)
        found += _by_text(cell, [profile.target_problem for profile in cell], "target problem", "doubtful")
        found += _copied(cell)
        found += _failures(sound)
        found += _outliers(sound)
        found += _by_text(sound, [profile.unsettled for profile in sound], "unsettled run", "unsettled")
        found += _limited([profile for profile in cell if profile.sound or _is_short(profile)])
        found += _by_text(sound, [profile.out_of_sync for profile in sound], "unsynchronised generators", "doubtful")
    return found


def catalogue_line(suggestion: Suggestion, campaign: Mapping[str, str]) -> str:
    """The line to paste at the end of config/catalogue.yaml, as one of ``tagged``; `campaign`: app, host, timestamp."""
    row: dict[str, str] = {"tag": suggestion.tag, **campaign}
    if suggestion.rate is not None:
        row["rate"] = f"{suggestion.rate:.15g}"
    if suggestion.variant is not None:
        row["variant"] = escape(suggestion.variant)
    if suggestion.run is not None:
        row["run"] = str(suggestion.run)
    row["reason"] = suggestion.evidence
    return "  - {" + ", ".join(f"{name}: {_quoted(value)}" for name, value in row.items()) + "}"


def _quoted(text: str) -> str:
    """A double-quoted YAML scalar on one line; without quotes for one of the suggested tags."""
    if _WORD.fullmatch(text):
        return text
    shown = (letter if letter.isprintable() and letter not in '"\\' else f"\\U{ord(letter):08x}" for letter in text)
    return '"' + "".join(shown) + '"'


def log_lines(suggestions: Sequence[Suggestion], campaign: Campaign) -> Iterator[str]:
    """For the log: the first suggestions that are not tagged yet, with evidence and the line to paste."""
    new = [suggestion for suggestion in suggestions if not suggestion.tagged]
    names = layout.campaign_key(campaign)
    for suggestion in new[:_LOGGED]:
        place = f"{suggestion.rate:.15g}/{suggestion.variant}" if suggestion.rate is not None else ""
        where = "/".join(part for part in (str(campaign), place, str(suggestion.run or "")) if part)
        yield f"suggested tag: {where}: {suggestion.evidence}; to apply it, add to config/catalogue.yaml under tagged:"
        yield catalogue_line(suggestion, names)
    if len(new) > _LOGGED:
        yield f"{campaign}: {len(new) - _LOGGED} more suggested tags are in the table suggestions and on its page"


# --- what looks wrong ------------------------------------------------------------------------------------------------


def _of_run(profile: Profile, kind: str, tag: str, evidence: str) -> Suggestion:
    return Suggestion(kind, tag, evidence, profile.variant, profile.rate, profile.run, tag in profile.tags)


def _of_cell(cell: Sequence[Profile], kind: str, tag: str, evidence: str) -> Suggestion:
    tagged = all(tag in profile.tags for profile in cell)
    return Suggestion(kind, tag, evidence, cell[0].variant, cell[0].rate, tagged=tagged)


def _is_short(profile: Profile) -> bool:
    requests, expected = profile.requests, profile.expected
    return requests is not None and expected is not None and requests < 0.99 * expected


def _cut_short(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    for profile in cell:
        if _is_short(profile) and not profile.changed:
            text = f"holds {profile.requests:,} of {profile.expected:,} requests"
            yield _of_run(profile, "cut short", "interrupted", text)


def _by_text(cell: Sequence[Profile], texts: Sequence[str | None], kind: str, tag: str) -> Iterator[Suggestion]:
    """A suggestion for each run of a cell with a text, or one for the cell if all runs have a text."""
    found = [(profile, text) for profile, text in zip(cell, texts, strict=True) if text is not None]
    if 1 < len(found) == len(cell):
        every = "both" if len(cell) == SEVERAL else f"all {len(cell)}"
        text = f"in {every} runs, such as run {found[0][0].run}: {found[0][1]}"
        yield _of_cell(cell, kind, tag, text)
        return
    for profile, text in found:
        yield _of_run(profile, kind, tag, text)


def _copied(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    """Requests have timestamps in nanoseconds, so two attacks never have the same bytes: the second is a copy."""
    for profile in cell:
        if profile.copy_of is not None:
            text = f"its results are byte for byte those of {profile.copy_of} (SHA-256 {profile.results_sha256})"
            yield _of_run(profile, "copied run", "INVALID", text)


def _failures(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    """Single runs that failed, or a cell some of whose runs failed."""
    shares = [(profile, profile.failed_share) for profile in cell if profile.failed_share is not None]
    mostly = [share for _, share in shares if share > MOSTLY_SHARE]
    successful = [share for _, share in shares if share < SUCCESSFUL_SHARE]
    if successful and (len(mostly) >= SEVERAL or (mostly and len(shares) == SEVERAL)):
        text = (
            f"in {len(mostly)} of {len(shares)} runs most requests failed ({percent(min(mostly))} to "
            f"{percent(max(mostly))}), in {len(successful)} hardly any ({percent(min(successful))} to "
            f"{percent(max(successful))})"
        )
        yield _of_cell(cell, "differing success", "INCONSISTENT", text)
    for profile, share in shares:
        others = [other for twin, other in shares if twin is not profile]
        if share >= FAILED_SHARE and others and median(others) < MOSTLY_SHARE:
            text = f"{percent(share)} of its requests failed, {percent(median(others))} in other runs (median)"
            yield _of_run(profile, "failed run", "FAILED", text)


def _outliers(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    means = [(profile, profile.mean_ns) for profile in cell if profile.mean_ns]
    if len(means) < _FEWEST_RUNS:
        yield from _far_from_few(cell)
        return
    middle = median(mean_ns for _, mean_ns in means)
    deviation = _MAD_TO_DEVIATION * median(abs(mean_ns - middle) for _, mean_ns in means)
    for profile, mean_ns in means:
        ratio = max(mean_ns / middle, middle / mean_ns)
        if ratio >= OUTLIER_RATIO and abs(mean_ns - middle) > ROBUST_Z * deviation:
            text = (
                f"its mean latency of {ms(mean_ns)} is {three(ratio)} times as "
                f"{'long' if mean_ns > middle else 'short'} as the {ms(middle)} of the cell's {len(means)} runs "
                "(median)"
            )
            yield _of_run(profile, "outlying run", "outlier", text)


def _far_from_few(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    """The one of two or three runs that is far from the others; of two the slower, since either may be the outlier."""
    far = [profile for profile in cell if all(_is_far(profile, other) for other in cell if other is not profile)]
    if len(cell) == SEVERAL:
        far = sorted(far, key=lambda profile: profile.mean_ns or 0.0)[-1:]
    if len(cell) < SEVERAL or len(far) != 1:
        return
    (profile,) = far
    others = [other for other in cell if other is not profile]
    means = " and ".join(f"the {ms(other.mean_ns or 0.0)} of run {other.run}" for other in others)
    text = (
        f"its mean latency of {ms(profile.mean_ns or 0.0)} is far from {means}, beyond the variation of requests "
        "within each"
    )
    yield _of_run(profile, "outlying run", "outlier", text)


def _is_far(one: Profile, other: Profile) -> bool:
    if not one.mean_ns or not other.mean_ns or one.noise is None or other.noise is None:
        return False
    ratio = abs(log(one.mean_ns / other.mean_ns))
    return ratio >= log(OUTLIER_RATIO) and ratio > ROBUST_Z * hypot(one.noise, other.noise)


def _limited(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    """Of short runs too: the load generator may not have been able to send the missing requests."""
    kind = "late generator" if any(profile.late for profile in cell) else "exhausted generator"
    texts = ["; ".join(filter(None, (profile.late, profile.exhausted))) or None for profile in cell]
    return _by_text(cell, texts, kind, "GENERATOR_LIMITED")


def suggestion_row(suggestion: Suggestion, campaign: Mapping[str, str]) -> Row:
    """A row of table `suggestions`."""
    return {**campaign, **asdict(suggestion), "lines": catalogue_line(suggestion, campaign)}
