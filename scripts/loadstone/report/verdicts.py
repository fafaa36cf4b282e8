"""What may be concluded, in sentences: rows of `effects`, `interactions` and `knees` of one scope -> plain texts.

Pages have to escape them. A variant has one sentence; the table of all verdicts has the details.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone import percentiles
from loadstone.analysis import reasons
from loadstone.analysis.caveats import CAVEATS, CONFOUNDING
from loadstone.analysis.effects import EQUIVALENT, FASTER, FEWER, INCONCLUSIVE, MORE, SLOWER
from loadstone.percentiles import ERRORS, LATENCIES, label
from loadstone.report.numbers import Row, Unit, interval, latency_text, share, significant, span
from loadstone.text import at, counted, listed, load_unit, rate_text

_MIXED = "slower and faster"  # in different figures of one load
STATISTICS = {name: label(name).lower() for name in percentiles.STATISTICS}
# A sentence is about the first of these that has a figure.
_LEADING = ("p50", *(name for name in LATENCIES if name != "p50"))
DIAMOND = ("bottom", "left", "right", "top")


@dataclass(frozen=True)
class Mark:
    """A kind of caveat of a verdict, with the loads that it concerns, unless it concerns all."""

    claim: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """A sentence on one variant, or on a diamond of layers.

    `kind` is the first value of `effects.verdict` that it states; on a diamond, ``warning`` or ``note``. `marks` are
    caveats of what it states.
    """

    kind: str
    text: str
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class _Group:
    """The rows behind one sentence: those of one variant, of all its `rates`.

    `measured` says how they were measured, if a scope has several ways of measuring. `labels` are by canonical names.
    """

    rows: Sequence[Row]
    rates: Sequence[float]
    measured: str
    labels: Mapping[str, str]

    def name(self, variant: str) -> str:
        return self.labels.get(variant, variant)

    @property
    def load_unit(self) -> str:
        return load_unit(row["load_model"] for row in self.rows)

    def at(self, rows: Iterable[Row]) -> str:
        return at([row["rate"] for row in rows], self.rates, self.load_unit)


def verdicts(rows: Iterable[Row], labels: Mapping[str, str]) -> list[Verdict]:
    """From rows of `effects` of one scope, in the order of its variants; none without a verdict.

    `labels` are by the canonical names of variants.
    """
    groups = _by_variant([row for row in rows if row["verdict"]], labels)
    return [Verdict(*_summary(group), tuple(_marks(group))) for group in groups]


def n_tested(rows: Iterable[Row]) -> int:
    """The number of differences of a scope that were tested, for which verdicts are corrected."""
    return max((row["n_compared"] or 0 for row in rows), default=0)


def correction(rows: Sequence[Row]) -> str:
    """How many verdicts of a scope were tested, and how; nothing where none was."""
    tested = n_tested(rows)
    if not tested:
        return ""
    of = f"{tested:,} of {len(rows):,} verdicts" if tested < len(rows) else counted(tested, "verdict")
    text = f"{of} tested at {share(rows[0]['confidence'])} confidence"
    text += ", corrected for multiple comparisons" if tested > 1 else ""
    differs = any(row["verdict"] in (SLOWER, FASTER, MORE, FEWER) for row in rows)
    return f"{text}." if differs else f"{text}: no difference is significant."


def _by_variant(rows: Sequence[Row], labels: Mapping[str, str]) -> Iterator[_Group]:
    def series(row: Row) -> tuple[Any, ...]:
        return row["variant"], row["load_model"], row["generator"]

    ways = {series(row)[1:] for row in rows}
    for key in dict.fromkeys(map(series, rows)):
        own = [row for row in rows if series(row) == key]
        measured = f" ({key[1]} load, {key[2]})" if len(ways) > 1 else ""
        yield _Group(own, sorted({row["rate"] for row in own}), measured, labels)


def _marks(group: _Group) -> Iterator[Mark]:
    """Caveats of what is concluded, not of what is inconclusive."""
    concluded = [row for row in group.rows if row["verdict"] not in (None, INCONCLUSIVE)]
    kinds = {claim for row in concluded for claim in row.get("caveats", ())}
    for claim in sorted(kinds, key=lambda kind: (kind in CONFOUNDING, list(CAVEATS).index(kind))):
        rows = [row for row in concluded if claim in row.get("caveats", ())]
        heading = CAVEATS[claim].heading
        everywhere = {row["rate"] for row in rows} == {row["rate"] for row in concluded}
        yield Mark(claim, heading[0].lower() + heading[1:] + ("" if everywhere else f" {group.at(rows)}"))


def _summary(group: _Group) -> tuple[str, str]:
    """What is concluded on a variant at which loads: kind and text."""
    by_kind: dict[str, list[float]] = {}
    for rate in group.rates:
        kinds = {row["verdict"] for row in group.rows if row["rate"] == rate and row["statistic"] != ERRORS}
        by_kind.setdefault(_verdict_of_load(kinds), []).append(rate)
    variant, baseline = (group.name(group.rows[0][column]) for column in ("variant", "baseline"))
    failures = [text for kind in (MORE, FEWER) if (text := _failures(kind, group))]
    first, *others = [kind for kind in (SLOWER, FASTER, _MIXED, EQUIVALENT, INCONCLUSIVE) if kind in by_kind]
    if first == INCONCLUSIVE:
        text = f"{variant} relative to {baseline}{group.measured}: inconclusive{_short_reason(group)}"
        return (MORE if failures else first), " ".join((f"{text}.", *failures))
    within = f"equivalent within {share(group.rows[0]['margin'])}"
    says = {EQUIVALENT: f"is {within} to", _MIXED: "is slower in some figures and faster in others than"}
    where = {kind: at(rates, group.rates, group.load_unit) for kind, rates in by_kind.items()}
    text = f"{variant} {says.get(first, f'is {first} than')} {baseline}{group.measured} {where[first]}"
    text += _size(first, by_kind[first], group)
    brief = {_MIXED: "slower in some figures, faster in others", EQUIVALENT: within}
    text += "".join(f"; {brief.get(kind, kind)} {where[kind]}{_size(kind, by_kind[kind], group)}" for kind in others)
    return SLOWER if first == _MIXED else first, " ".join((f"{text}.", *failures))


def _verdict_of_load(kinds: set[str | None]) -> str:
    """The verdict on a load from those on its latencies."""
    if {SLOWER, FASTER} <= kinds:
        return _MIXED
    return next((kind for kind in (SLOWER, FASTER, EQUIVALENT) if kind in kinds), INCONCLUSIVE)


def _size(kind: str, rates: Sequence[float], group: _Group) -> str:
    """By how much, in the first figure with this verdict at all these loads; else the figures that have it."""
    if kind not in (SLOWER, FASTER, EQUIVALENT):
        return ""
    own = [row for row in group.rows if row["verdict"] == kind and row["rate"] in rates]
    ratios = {name: [row["ratio"] for row in own if row["statistic"] == name] for name in _LEADING}
    unknown = [STATISTICS[name] for name in STATISTICS if None in ratios.get(name, ())]
    for name, known in ratios.items():
        if kind != EQUIVALENT and len(known) == len(rates) and None not in known:
            timeouts = f"; {listed(unknown)} among requests that timed out" if unknown else ""
            return f" ({STATISTICS[name]}: {span(known, significant)} times{timeouts})"
    everywhere = [STATISTICS[name] for name in STATISTICS if len(ratios.get(name, ())) == len(rates)]
    if len(everywhere) == len(_LEADING):
        return ""
    if everywhere:
        return f" (in {listed(everywhere)})"
    somewhere = [STATISTICS[name] for name in STATISTICS if ratios.get(name)]
    sizes = [ratio for known in ratios.values() for ratio in known]
    times = f"{span(sizes, significant)} times " if kind != EQUIVALENT and None not in sizes else ""
    return f" ({times}in {listed(somewhere, 'or')})"


def _failures(kind: str, group: _Group) -> str | None:
    own = [row for row in group.rows if row["verdict"] == kind]
    if not own:
        return None
    return f"{kind.capitalize()} of its requests fail {group.at(own)} ({span([row['value'] for row in own], share)})."


def _short_reason(group: _Group) -> str:
    """The reason that most figures share, and the runs that would be needed."""
    rows = [row for row in group.rows if row["verdict"] == INCONCLUSIVE and row["statistic"] != ERRORS]
    # Rows where more runs would help come before rows without a figure on one side.
    rows = [row for row in rows if row["value"] is not None and row["baseline_value"] is not None] or rows
    if not rows:
        return ""
    codes = [_codes(row) for row in rows]
    most = max(dict.fromkeys(codes), key=codes.count)
    alike = [row for row in rows if _codes(row) == most]
    leading = _leading(alike)
    needed, first = _runs_needed(leading), STATISTICS[leading[0]["statistic"]]
    start = ", " if len(alike) == len(rows) else "; most often: "
    return "; ".join(filter(None, (f"{start}{_reason(alike, group.name)}", needed and f"{needed} ({first})")))


# --- why it is inconclusive ------------------------------------------------------------------------------------------


def _codes(row: Row) -> tuple[Any, ...]:
    """Equal for reasons that differ only in their numbers; one run of one variant differs from one run of each."""
    found = reasons.of_row(row)
    return tuple((each.code, each.variant if each.code == reasons.ONE_RUN else None) for each in found)


def _reason(rows: Sequence[Row], name: reasons.Naming) -> str:
    """The common reason of rows with equal codes."""
    found = reasons.of_row(rows[0])
    if found and found[0].code == reasons.ONE_RUN:
        each, rest = found[0], reasons.text(found[1:], name)
        runs = f"one run of {name(each.variant)}" if each.variant else "one run each"
        return f"{runs}, and {rest}" if rest else runs
    texts = list(dict.fromkeys(reasons.text(reasons.of_row(row), name) for row in rows if row["reasons"]))
    if not texts:
        return "no figure is known"
    return f"{texts[0]}" if len(texts) == 1 else f"for example {texts[0]}"


def _runs_needed(rows: Sequence[Row]) -> str | None:
    """The runs that would be needed, where more runs would help, and what that assumes."""
    known = [row for row in rows if row["runs_needed"]]
    helped = [row for row in rows if _would_help(row)]
    if not known:
        return "more than 1,000 runs each are needed" if helped else None
    more = ", for some more than 1,000" if len(known) < len(helped) else ""
    needed = span([row["runs_needed"] for row in known], lambda number: f"{number:,.0f}")
    return f"{_assumed(known)}about {needed} runs each are needed{more}"


def _would_help(row: Row) -> bool:
    codes = {each.code for each in reasons.of_row(row)}
    if row["value"] is None or row["baseline_value"] is None or reasons.BELOW_RESOLUTION in codes:
        return False
    return bool(row["runs_needed"]) or bool(codes & {reasons.ONE_RUN, reasons.FEW_RUNS, reasons.RUNS_VARY})


def _assumed(rows: Iterable[Row]) -> str:
    """By how much runs are assumed to differ where there is one run."""
    found = (each for row in rows for each in reasons.of_row(row))
    texts = dict.fromkeys(
        reasons.assumed_spread(each) for each in found if each.code == reasons.ONE_RUN and each.value is not None
    )
    return f"if runs differ {listed(texts, 'or')}, " if texts else ""


# --- layers ----------------------------------------------------------------------------------------------------------


def interactions(
    rows: Iterable[Row], labels: Mapping[str, str], unit: Unit, resolution_ns: float | None = None
) -> list[Verdict]:
    """Whether overheads are additive, a verdict per diamond of variants, from rows of `interactions`.

    With a coarse `resolution_ns`, latencies are whole steps of it.
    """

    def latency(value_ns: float) -> str:
        return latency_text(value_ns, unit, resolution_ns)

    known = [row for row in rows if row["interaction_ns"] is not None]
    found = []
    for diamond in dict.fromkeys(tuple(row[name] for name in DIAMOND) for row in known):
        own = [row for row in known if tuple(row[name] for name in DIAMOND) == diamond]
        group = _Group(own, sorted({row["rate"] for row in own}), "", labels)
        certain = [row for row in own if row["reasons"]]
        bottom, left, right, top = map(group.name, diamond)
        head = f"{top} over {bottom}: the overheads of {left} and {right}"
        if not certain:
            kind, text = "note", f"{head} may be additive; no figure contradicts it."
        else:
            by = " ".join(_interaction(group, _leading(certain), latency, unit))
            kind, text = "warning", f"{head} are not additive. {by}"
        found.append(Verdict(kind, text))
    return found


def _interaction(group: _Group, rows: Sequence[Row], latency: Callable[[float], str], unit: Unit) -> Iterator[str]:
    """By how much both layers take more than the sum of each alone, and by how much less."""
    for word, sign in (("more", 1), ("less", -1)):
        own = [row for row in rows if (row["interaction_ns"] >= 0) == (sign > 0)]
        if own:
            name = STATISTICS[own[0]["statistic"]]
            size = span([abs(row["interaction_ns"]) for row in own], latency)
            ends = [sign * row[name] for row in own for name in ("interaction_low_ns", "interaction_high_ns")]
            between = f"{_interval_name(own)} {interval(min(ends), max(ends), latency)}"
            text = f"{name[0].upper()}{name[1:]}: both take {size} {unit.symbol} {word} than their sum"
            yield f"{text} ({between} {unit.symbol}), {group.at(own)}."


# --- saturation points -----------------------------------------------------------------------------------------------

_BEYOND = {
    "throughput": "beyond that, fewer requests per second are answered than sent",
    "latency": "beyond that, latency leaves its plateau",
    None: "beyond that, it is overloaded",
}


def knees(rows: Iterable[Row], labels: Mapping[str, str]) -> list[str]:
    """A sentence per variant from rows of `knees`: the load at which it saturates."""
    return [text for row in rows if (text := _knee(row, labels.get(row["variant"], row["variant"])))]


def _knee(row: Row, variant: str) -> str | None:
    measured = sorted((*row["carried"], *row["near"], *row["beyond"]))
    if row["knee_rate"] is None:
        if row["carried"] and len(measured) > 1 and max(row["carried"]) == measured[-1]:
            return f"{variant} does not saturate at any measured load, up to {rate_text(measured[-1])} requests/s."
        return None
    low, high = (rate_text(row[name]) if row[name] is not None else None for name in ("low", "high"))
    between = ""
    if low and high:
        between = f" ({share(row['confidence'])} interval [{low}, {high}])"
    elif low:
        between = f" (at least {low}; no measured load bounds it from above)"
    elif high:
        between = f" (at most {high}; no measured load bounds it from below)"
    return f"{variant} saturates at {significant(row['knee_rate'])} requests/s{between}; {_BEYOND[row['by']]}."


# --- numbers ---------------------------------------------------------------------------------------------------------


def _leading(rows: Sequence[Row]) -> list[Row]:
    """The rows of the first statistic that any of them has."""
    first = min((row["statistic"] for row in rows), key=_LEADING.index)
    return [row for row in rows if row["statistic"] == first]


def _interval_name(rows: Sequence[Row]) -> str:
    """``95 % interval``, of several rows ``95 % intervals within``."""
    return f"{share(rows[0]['confidence'])} interval{'s within' if len(rows) > 1 else ''}"
