"""What may be concluded, in words: rows of `effects` and `interactions` of one scope -> a few plain sentences.

Texts are plain: whoever puts them on a page escapes them. A variant has one short sentence, and behind it what that
rests on: there, loads with the same verdict share a sentence, with the range of their shifts and the widest of their
intervals.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.analysis import effects
from loadstone.analysis.caveats import CAVEATS, CONFOUNDING
from loadstone.analysis.scope import requoted
from loadstone.report.numbers import Unit, counted, share, significant
from loadstone.report.queries import Row
from loadstone.report.verdict_rows import LEADING, STATISTICS, Group, interval_name, label, leading, spanned, widest
from loadstone.text import at, listed

# Values of `effects.verdict`, in the order in which sentences of a variant stand.
KINDS = ("slower", "faster", "more", "fewer", "equivalent", "inconclusive")
_MIXED = "slower and faster"  # in different figures of one load

_NUMBER = re.compile(r"\d[\d,.]*")
_ONE_RUN = "one run"
_FAILURES = "error_fraction"


@dataclass(frozen=True)
class Mark:
    """A kind of claim beside a verdict, with the loads where it strikes, if these are not all."""

    claim: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """On one variant: a short sentence, and `details` that it rests on.

    `kind` is the first of `KINDS` that it tells of; on a square of layers, ``warning`` or ``note``. `marks` are
    weaknesses that strike what it tells.
    """

    kind: str
    text: str
    details: tuple[str, ...]
    marks: tuple[Mark, ...] = ()


def verdicts(
    rows: Iterable[Row], labels: Mapping[str, str], unit: Unit, resolution_ns: float | None = None
) -> list[Verdict]:
    """From rows of `effects` of one scope, in the order of its variants; none without rows.

    `labels` are by the canonical names of variants. Latencies are told in whole steps of a coarse `resolution_ns`.
    """
    found = []
    for group in _by_variant(list(rows), labels, unit, resolution_ns):
        details = tuple(text for kind in KINDS for text in _told(kind, group))
        if details:
            found.append(Verdict(*_summary(group), details, tuple(_marks(group))))
    return found


def correction(rows: Sequence[Row]) -> str:
    """What all verdicts of a scope have in common; nothing where none was tested."""
    tested = max((row["n_compared"] or 0 for row in rows), default=0)
    if not tested:
        return ""
    sure = share(rows[0]["confidence"])
    of = f"{tested:,} of {len(rows):,} figures" if tested < len(rows) else counted(tested, "figure")
    text = f"{of} could be tested{', all together' if tested > 1 else ''}"
    if any(row["verdict"] in ("slower", "faster", "more", "fewer") for row in rows):
        return f"{text}: with {sure} confidence no difference told here is by chance."
    return f"{text}, at {sure} confidence: no difference is told."


def _by_variant(
    rows: Sequence[Row], labels: Mapping[str, str], unit: Unit, resolution_ns: float | None
) -> Iterator[Group]:
    def place(row: Row) -> tuple[Any, ...]:
        return row["variant"], row["load_model"], row["generator"]

    ways = {place(row)[1:] for row in rows}
    for key in dict.fromkeys(map(place, rows)):
        own = [row for row in rows if place(row) == key]
        measured = f" ({key[1]} load, {key[2]})" if len(ways) > 1 else ""
        yield Group(own, sorted({row["rate"] for row in own}), measured, labels, unit, resolution_ns)


def _told(kind: str, group: Group) -> Iterator[str]:
    own = [row for row in group.rows if row["verdict"] == kind]
    if not own:
        return
    if kind == "inconclusive":
        for reason in dict.fromkeys(_pattern(row) for row in own):
            yield _cannot_tell(_only(group, [row for row in own if _pattern(row) == reason]))
    else:
        yield _certain(kind, _only(group, own))


def _marks(group: Group) -> Iterator[Mark]:
    """Of what is told, not of what can't be."""
    told = [row for row in group.rows if row["verdict"] not in (None, "inconclusive")]
    kinds = {claim for row in told for claim in row.get("weakened", ())}
    for claim in sorted(kinds, key=lambda kind: (kind in CONFOUNDING, list(CAVEATS).index(kind))):
        rows = [row for row in told if claim in row.get("weakened", ())]
        heading = CAVEATS[claim].heading
        everywhere = {row["rate"] for row in rows} == {row["rate"] for row in told}
        yield Mark(claim, heading[0].lower() + heading[1:] + ("" if everywhere else f" {group.at(rows)}"))


def _only(group: Group, rows: Sequence[Row]) -> Group:
    return Group(rows, group.rates, group.measured, group.names, group.unit, group.resolution_ns)


# --- one sentence ----------------------------------------------------------------------------------------------------


def _summary(group: Group) -> tuple[str, str]:
    """What is concluded on a variant at which loads: kind and text."""
    by_kind: dict[str, list[float]] = {}
    for rate in group.rates:
        kinds = {row["verdict"] for row in group.rows if row["rate"] == rate and row["statistic"] != _FAILURES}
        by_kind.setdefault(_of_load(kinds), []).append(rate)
    variant, baseline = group.label("variant"), group.label("baseline")
    failing = [text for kind in ("more", "fewer") if (text := _failing(kind, group))]
    order = [kind for kind in ("slower", "faster", _MIXED, "equivalent", "inconclusive") if kind in by_kind]
    first, *others = order
    if first == "inconclusive":
        text = f"{variant} beside {baseline}{group.measured}: can't tell{_why_short(group)}"
        return ("more" if failing else first), " ".join((f"{text}.", *failing))
    within = f"equivalent within {share(group.rows[0]['margin'])}"
    says = {"equivalent": f"is {within} to", _MIXED: "is slower in some figures and faster in others than"}
    where = {kind: at(rates, group.rates, group.load_unit) for kind, rates in by_kind.items()}
    text = f"{variant} {says.get(first, f'is {first} than')} {baseline}{group.measured} {where[first]}"
    text += _size(first, by_kind[first], group)
    brief = {_MIXED: "slower in some figures, faster in others", "equivalent": within, "inconclusive": "can't tell"}
    text += "".join(f"; {brief.get(kind, kind)} {where[kind]}{_size(kind, by_kind[kind], group)}" for kind in others)
    return first.partition(" ")[0], " ".join((f"{text}.", *failing))


def _of_load(kinds: set[str | None]) -> str:
    """The verdict on a load from those on its latencies."""
    if {"slower", "faster"} <= kinds:
        return _MIXED
    return next((kind for kind in ("slower", "faster", "equivalent") if kind in kinds), "inconclusive")


def _size(kind: str, rates: Sequence[float], group: Group) -> str:
    """By how much, in the first figure of which it is told at all these loads; else in which figures it is told."""
    if kind not in ("slower", "faster", "equivalent"):
        return ""
    own = [row for row in group.rows if row["verdict"] == kind and row["rate"] in rates]
    ratios = {name: [row["ratio"] for row in own if row["statistic"] == name] for name in LEADING}
    unknown = [STATISTICS[name] for name in STATISTICS if None in ratios.get(name, ())]
    for name, known in ratios.items():
        if kind != "equivalent" and len(known) == len(rates) and None not in known:
            least = f"; {listed(unknown)} among requests that timed out" if unknown else ""
            return f" ({STATISTICS[name]}: {spanned(known, significant)} times{least})"
    everywhere = [STATISTICS[name] for name in STATISTICS if len(ratios.get(name, ())) == len(rates)]
    if len(everywhere) == len(LEADING):
        return ""
    if everywhere:
        return f" (in {listed(everywhere)})"
    told = [STATISTICS[name] for name in STATISTICS if ratios.get(name)]
    sizes = [ratio for known in ratios.values() for ratio in known]
    times = f"{spanned(sizes, significant)} times " if kind != "equivalent" and None not in sizes else ""
    return f" ({times}in {listed(told, 'or')})"


def _failing(kind: str, group: Group) -> str | None:
    own = [row for row in group.rows if row["verdict"] == kind]
    if not own:
        return None
    value = spanned([row["value"] for row in own], share)
    return f"{kind.capitalize()} of its requests fail {group.at(own)} ({value})."


def _why_short(group: Group) -> str:
    """The reason that most figures share, and what it would take."""
    rows = [row for row in group.rows if row["verdict"] == "inconclusive" and row["statistic"] != _FAILURES]
    # What could be told with more runs goes before what one side has no figure of.
    rows = [row for row in rows if row["value"] is not None and row["baseline_value"] is not None] or rows
    if not rows:
        return ""
    patterns = [_pattern(row) for row in rows]
    most = max(dict.fromkeys(patterns), key=patterns.count)
    alike = _only(group, [row for row in rows if _pattern(row) == most])
    needed, first = _needed(leading(alike.rows)), STATISTICS[leading(alike.rows)[0]["statistic"]]
    start = ", " if len(alike.rows) == len(rows) else "; most often: "
    return "; ".join(filter(None, (f"{start}{_reason(alike)}", needed and f"{needed} ({first})")))


# --- what it rests on ------------------------------------------------------------------------------------------------


def _certain(kind: str, group: Group) -> str:
    heads = {
        "equivalent": f"Equivalent within {share(group.rows[0]['margin'])}",
        "more": "More failures",
        "fewer": "Fewer failures",
    }
    tell = {"more": _by_failures, "fewer": _by_failures, "equivalent": _by_nothing}.get(kind, _by_latency)
    return _sentence(heads.get(kind, kind.capitalize()), group, tell)


def _sentence(head: str, group: Group, tell: Any) -> str:
    """Loads stand in front where all statistics share them, else behind each."""
    parts = list(group.by_statistic.items())
    if tell is _by_latency:
        parts = [(name, part) for name, rows in parts for part in _by_what_is_known(rows)]
    told = [(tell(name, rows, group), group.at(rows)) for name, rows in parts]
    loads = {where for _, where in told}
    if len(loads) == 1:
        return f"{head} {loads.pop()}: {listed(text for text, _ in told)}."
    return f"{head}: {'; '.join(f'{text}, {where}' for text, where in told)}."


def _by_what_is_known(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Those with both figures, and those of which one falls among requests that timed out."""
    for is_known in (True, False):
        if part := [row for row in rows if (row["shift"] is not None) == is_known]:
            yield part


def _by_latency(statistic: str, rows: Sequence[Row], group: Group) -> str:
    if rows[0]["shift"] is None:
        least = f" ({rows[0]['why'].partition(':')[0]})" if len(rows) == 1 else ""
        whose = "which" if rows[0]["value"] is None else f"that of {group.label('baseline')}"
        return f"{STATISTICS[statistic]}, {whose} is among requests that timed out{least}"
    shifts = [abs(row["shift"]) for row in rows]
    text = f"{STATISTICS[statistic]} by {group.latencies(shifts)}"
    ratios = [row["ratio"] for row in rows if row["ratio"] is not None]
    inside = [f"{spanned(ratios, significant)} times"] if ratios else []
    shift = widest(rows, "shift")
    # Verdicts are on ratios. Where runs differ much, equal spreads to both sides of a shift say nothing of it.
    if shift and shift[0] * shift[1] <= 0 and (ratio := widest(rows, "ratio")):
        inside.append(f"{interval_name(rows)} {spanned(ratio, significant)} times")
    elif shift:
        inside.append(f"{interval_name(rows)} {group.latencies(sorted(map(abs, shift)))}")
    return f"{text} ({', '.join(inside)})" if inside else text


def _by_failures(_: str, rows: Sequence[Row], group: Group) -> str:
    del group
    own, base = (spanned([row[name] for row in rows], share) for name in ("value", "baseline_value"))
    text = f"{own} instead of {base}"
    bounds = widest(rows, "shift")
    if not bounds:
        return text
    ends = sorted(map(abs, bounds)) if bounds[0] * bounds[1] > 0 else bounds
    apart = spanned([abs(row["shift"]) for row in rows], share)
    return f"{text} (a difference of {apart}, {interval_name(rows)} {spanned(ends, share)})"


def _by_nothing(statistic: str, rows: Sequence[Row], group: Group) -> str:
    del rows, group
    return STATISTICS[statistic]


# --- what cannot be told ---------------------------------------------------------------------------------------------


def _pattern(row: Row) -> str:
    """Equal for reasons that differ in their numbers alone."""
    why = row["why"] or ""
    if why.startswith(_ONE_RUN):
        return why.partition(":")[0] + (effects.STEPS if effects.STEPS in why else "")
    return pattern(why.replace(row["statistic"], "@"))


def pattern(text: str) -> str:
    """Equal for texts of tables that differ in their numbers and variants alone."""
    return _NUMBER.sub("#", requoted(text, lambda _: "“”"))


def _cannot_tell(group: Group) -> str:
    said = _sentence("Can't tell", group, _by_nothing).removesuffix(".")
    return f"{'; '.join(filter(None, (f'{said} – {_reason(group)}', _needed(group.rows))))}."


def _reason(group: Group) -> str:
    row = group.rows[0]
    if (row["why"] or "").startswith(_ONE_RUN):
        each = row["n_runs"] == row["baseline_n_runs"] == 1
        runs = "one run each" if each else f"one run of {group.label('variant' if row['n_runs'] == 1 else 'baseline')}"
        return runs + (f", and {row['why'].partition(', and ')[2]}" if effects.STEPS in row["why"] else "")
    texts = list(dict.fromkeys(each["why"] for each in group.rows if each["why"]))
    if not texts:
        return "nothing is known of it"
    text = relabelled(texts[0], group.names)
    return text if len(texts) == 1 else f"for example {text}"


def _needed(rows: Sequence[Row]) -> str | None:
    """The runs that it would take, where more runs would help, and what that supposes."""
    known = [row for row in rows if row["runs_needed"]]
    helped = [row for row in rows if _would_help(row)]
    if not known:
        return "more than 1,000 runs each would be needed" if helped else None
    more = ", for some more than 1,000" if len(known) < len(helped) else ""
    needed = spanned([row["runs_needed"] for row in known], lambda number: f"{number:,.0f}")
    return f"{_supposed(known)}about {needed} runs each would tell{more}"


def _would_help(row: Row) -> bool:
    why = row["why"] or ""
    if row["value"] is None or row["baseline_value"] is None or effects.STEPS in why:
        return False
    return bool(row["runs_needed"]) or why.startswith((_ONE_RUN, "the runs differ"))


def _supposed(rows: Iterable[Row]) -> str:
    """By how much runs are supposed to differ where there is one run."""
    found = (row["why"].partition(effects.SUPPOSED)[2] for row in rows if row["why"])
    supposed = listed(dict.fromkeys(filter(None, found)) or ("",), "or")
    return f"if runs differ {supposed}, " if supposed else ""


# --- words -----------------------------------------------------------------------------------------------------------


def relabelled(text: str, labels: Mapping[str, str]) -> str:
    """A table's text with variants as pages call them: tables quote their canonical names (`scope.quoted`)."""
    return requoted(text, lambda name: label(labels, name))
