"""Proposes tags for runs that look wrong, each with its evidence and a line for config/catalogue.yaml. Applies none."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from itertools import groupby
from math import hypot, log
from statistics import median
from typing import Any

from loadstone.archive import Campaign
from loadstone.digits import ms, three
from loadstone.tables import layout

# Nearly all requests failed; most did not. The gap between them keeps overload, which fails some, out of it.
NEARLY_ALL = 0.9
FEW = 0.5
WELL = 0.1

# Runs of a cell that must fail mostly, beside some that go well, before the cell and not a run is to blame.
SEVERAL = 2

# An outlier is this many robust deviations from the median, and at least so many times larger or smaller: with few runs
# that agree well, a deviation alone would find outliers everywhere. 3.5 is the cutoff of Iglewicz & Hoaglin 1993,
# *How to Detect and Handle Outliers*, section 3, for the modified z-score. Of two or three runs nobody knows how runs
# differ: there the deviation is that of their requests within each, which is the least that runs differ by.
ROBUST_Z = 3.5
OUTLIER_RATIO = 4 / 3
_FEWEST_RUNS = 4
_MAD_TO_DEVIATION = 1.4826  # of a normal distribution

_WORD = re.compile(r"(FAILED|INVALID|INCONSISTENT|GENERATOR_LIMITED|interrupted|doubtful|outlier|unsettled)")

_TOLD = 5  # per campaign in a log


@dataclass(frozen=True)
class Profile:
    """What a run's requests say. `sound` is False for one that is short, broken or a link: no sibling is judged by it.

    Latencies are in ns; a share is of all requests, and None where nothing is known. `noise` is the standard error of
    its mean as a share of it. `unsettled`, `late`, `exhausted` and `apart` say in words what keeps it from being of a
    steady state, that it was sent late, that its generator lacked what requests take, and that its several generators
    did not keep time with each other.
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
    apart: str | None = None
    tags: Sequence[str] = ()
    trouble: str | None = None  # what happened to its target, in words
    copy_of: str | None = None  # path of an earlier run's results, which are the same bytes
    results_sha256: str | None = None


@dataclass(frozen=True)
class Suggestion:
    """One proposed tag; without `run` of the cell, without `rate` of the campaign. `tagged`: it is there already."""

    kind: str
    tag: str
    evidence: str
    variant: str | None = None
    rate: float | None = None
    run: int | None = None
    tagged: bool = False


def suggest(profiles: Iterable[Profile], unfinished: str | None = None) -> list[Suggestion]:
    """Everything that looks wrong in one campaign; `unfinished` says why it may never have been completed."""
    found = [] if unfinished is None else [Suggestion("unfinished", "interrupted", unfinished)]
    ordered = sorted(profiles, key=lambda profile: (profile.rate, profile.variant, profile.run))
    for _, group in groupby(ordered, key=lambda profile: (profile.rate, profile.variant)):
        cell = list(group)
        found += _cut_short(cell)
        found += _troubled(cell)
        found += _copied(cell)
        sound = [profile for profile in cell if profile.sound]
        for check in (_failures, _outliers, _unsettled):
            found += check(sound)
        found += _limited([profile for profile in cell if profile.sound or _is_short(profile)])
        found += _apart(sound)
    return found


def lines(suggestion: Suggestion, campaign: Mapping[str, str]) -> str:
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
    """A double-quoted YAML scalar on one line; our own tags stay bare."""
    if _WORD.fullmatch(text):
        return text
    shown = (letter if letter.isprintable() and letter not in '"\\' else f"\\U{ord(letter):08x}" for letter in text)
    return '"' + "".join(shown) + '"'


def told(suggestions: Sequence[Suggestion], campaign: Campaign) -> Iterator[str]:
    """The suggestions that are not followed yet, for a log: evidence, and the line to paste; the first few of many."""
    new = [suggestion for suggestion in suggestions if not suggestion.tagged]
    key = layout.campaign_key(campaign)
    for suggestion in new[:_TOLD]:
        place = f"{suggestion.rate:.15g}/{suggestion.variant}" if suggestion.rate is not None else ""
        where = "/".join(part for part in (str(campaign), place, str(suggestion.run or "")) if part)
        yield f"suggested tag: {where}: {suggestion.evidence}; to follow it, add to config/catalogue.yaml under tagged:"
        yield lines(suggestion, key)
    if len(new) > _TOLD:
        yield f"{campaign}: {len(new) - _TOLD} more suggested tags are in the table suggestions and on its page"


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
        if _is_short(profile):
            text = f"holds {profile.requests:,} of {profile.expected:,} requests"
            yield _of_run(profile, "cut short", "interrupted", text)


def _troubled(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    return _told_of_all(cell, [profile.trouble for profile in cell], "troubled target", "doubtful")


def _told_of_all(cell: Sequence[Profile], texts: Sequence[str | None], kind: str, tag: str) -> Iterator[Suggestion]:
    """One for each run of a cell with a text; one for the cell where all have one, whose line tags no other run."""
    found = [(profile, text) for profile, text in zip(cell, texts, strict=True) if text is not None]
    if 1 < len(found) == len(cell):
        every = "both" if len(cell) == SEVERAL else f"all {len(cell)}"
        text = f"in {every} runs, such as run {found[0][0].run}: {found[0][1]}"
        yield _of_cell(cell, kind, tag, text)
        return
    for profile, text in found:
        yield _of_run(profile, kind, tag, text)


def _copied(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    """Requests are stamped in nanoseconds: no two attacks leave the same bytes, and one counted twice is no second."""
    for profile in cell:
        if profile.copy_of is not None:
            text = f"its results are byte for byte those of {profile.copy_of} (SHA-256 {profile.results_sha256})"
            yield _of_run(profile, "copied run", "INVALID", text)


def _failures(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    """Single runs that failed, or a cell whose runs do without a pattern."""
    shares = [(profile, profile.failed_share) for profile in cell if profile.failed_share is not None]
    badly = [share for _, share in shares if share > FEW]
    well = [share for _, share in shares if share < WELL]
    if well and (len(badly) >= SEVERAL or (badly and len(shares) == SEVERAL)):
        text = (
            f"{len(badly)} of {len(shares)} runs failed mostly ({_percent(min(badly))} to {_percent(max(badly))} of "
            f"requests), {len(well)} hardly ({_percent(min(well))} to {_percent(max(well))})"
        )
        yield _of_cell(cell, "differing success", "INCONSISTENT", text)
    for profile, share in shares:
        others = [other for twin, other in shares if twin is not profile]
        if share >= NEARLY_ALL and others and median(others) < FEW:
            text = f"{_percent(share)} of its requests failed, {_percent(median(others))} in its siblings (median)"
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
    """The one of two or three runs that is far from the others. Of two it is the slower: which is odd, nobody knows."""
    far = [profile for profile in cell if all(_is_far(profile, other) for other in cell if other is not profile)]
    if len(cell) == SEVERAL:
        far = sorted(far, key=lambda profile: profile.mean_ns or 0.0)[-1:]
    if len(cell) < SEVERAL or len(far) != 1:
        return
    (profile,) = far
    others = [other for other in cell if other is not profile]
    beside = " and ".join(f"the {ms(other.mean_ns or 0.0)} of run {other.run}" for other in others)
    text = (
        f"its mean latency of {ms(profile.mean_ns or 0.0)} is far from {beside}, beyond what requests within each vary"
    )
    yield _of_run(profile, "outlying run", "outlier", text)


def _is_far(one: Profile, other: Profile) -> bool:
    if not one.mean_ns or not other.mean_ns or one.noise is None or other.noise is None:
        return False
    ratio = abs(log(one.mean_ns / other.mean_ns))
    return ratio >= log(OUTLIER_RATIO) and ratio > ROBUST_Z * hypot(one.noise, other.noise)


def _unsettled(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    return _told_of_all(cell, [profile.unsettled for profile in cell], "unsettled run", "unsettled")


def _limited(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    """Those that are short too: what their generator could not send may be what they lack."""
    kind = "late generator" if any(profile.late for profile in cell) else "exhausted generator"
    texts = ["; ".join(filter(None, (profile.late, profile.exhausted))) or None for profile in cell]
    return _told_of_all(cell, texts, kind, "GENERATOR_LIMITED")


def _apart(cell: Sequence[Profile]) -> Iterator[Suggestion]:
    return _told_of_all(cell, [profile.apart for profile in cell], "generators apart", "doubtful")


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def row(suggestion: Suggestion, campaign: Mapping[str, str]) -> dict[str, Any]:
    """A suggestion as the table `suggestions` holds it."""
    columns = ("kind", "tag", "evidence", "variant", "rate", "run", "tagged")
    return {**campaign, **{name: getattr(suggestion, name) for name in columns}, "lines": lines(suggestion, campaign)}
