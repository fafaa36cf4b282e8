"""What may be concluded, for the pages of campaigns and comparisons: verdicts, layers, knees, and what weakens them.

Tables `effects`, `layers`, `knees`, `knee_shares` and `claims` have rows of one scope: the page's campaign or
comparison.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.analysis import effects
from loadstone.analysis.caveats import CAVEATS, WEIGHTS
from loadstone.analysis.scope import quoted, requoted
from loadstone.config.variants import Style
from loadstone.report import caveat_marks, interaction_words, knee_words, verdict_words
from loadstone.report.labels import SHOWN
from loadstone.report.numbers import Unit, counted, rate_name, share, significant
from loadstone.report.queries import Questions, Row
from loadstone.stats.bootstrap import ERRORS
from loadstone.text import rate_text

_BESIDE = {"ratio": "Ratio", "shift": "Shift"}
_STATISTICS = {"mean": "Mean", "p50": "Median", "p90": "p90", "p99": "p99", ERRORS: "Failed requests"}
_SAID = {effects.INCONCLUSIVE: "can't tell", None: "–"}
Naming = Callable[[Row], str]


@dataclass(frozen=True)
class Conclusions:
    """Rows of the tables of conclusions about the page's scope, with variants named as the page names its series."""

    effects: list[Row]
    layers: list[Row]
    interactions: list[Row]
    knees: list[Row]
    shares: list[Row]
    claims: list[Row]
    confidence: float = 0.95  # of all their intervals, and of those of `cells`

    @property
    def loads(self) -> list[float]:
        """Those with anything to conclude."""
        return sorted({row["rate"] for row in (*self.effects, *self.layers)})


def gather(
    questions: Questions,
    confidence: float,
    comparison: str | None = None,
    name: Naming = lambda row: row["variant"],
    labels: Mapping[str, str] | None = None,
) -> Conclusions:
    """Ask for what is concluded from a comparison or, without one, from the campaign that `questions` are about.

    `name` gives the page's name of the series of a row's variant. Where that is not the variant's own, `labels` are
    what texts of tables call variants instead, by their canonical names.
    """

    def asked(table: str, *others: str) -> list[Row]:
        return named(questions.of_scope(table, comparison), *others)

    def named(rows: Sequence[Row], *others: str) -> list[Row]:
        return [_named(_retold(row, labels or {}), others, name) for row in rows]

    claims = [_retold(row, labels or {}) for row in questions.of_scope("claims", comparison)]
    effects = caveat_marks.weakened(questions.of_scope("effects", comparison), claims)
    return Conclusions(
        named(effects, "variant", "baseline"),
        asked("layers", "variant", "below"),
        asked("interactions", "bottom", "left", "right", "top"),
        asked("knees", "variant"),
        [row for row in asked("knee_shares", "variant", "baseline") if row["value_ns"] is not None],
        claims,
        confidence,
    )


_TEXTS = ("why", "warning", "problem", "text")


def _retold(row: Row, labels: Mapping[str, str]) -> Row:
    """With labels where its texts quote names that are those of no series of the page."""
    texts = {column: row[column] for column in _TEXTS if row.get(column)}
    return row | {column: requoted(text, lambda name: quoted(labels.get(name, name))) for column, text in texts.items()}


def _named(row: Row, columns: Sequence[str], name: Naming) -> Row:
    return row | {column: name(row | {"variant": row[column]}) for column in columns if row[column] is not None}


def context(found: Conclusions, styles: Sequence[Style], unit: Unit, step: Sequence[float] | None) -> dict[str, Any]:
    """The variables of ``verdict.html``, ``effects.html``, ``layers.html``, ``knees.html`` and ``claims.html``.

    Texts of tables call variants by their canonical names; here they get their labels.

    `step` is that of `coarse.step`: latencies have no digits below it.
    """
    order = {style.name: place for place, style in enumerate(styles)}
    labels = {style.name: style.label for style in styles}
    latency = _latency_in(unit, step)

    def placed(rows: Sequence[Row]) -> list[Row]:
        return sorted((row for row in rows if row["variant"] in order), key=lambda row: order[row["variant"]])

    def place(row: Row) -> tuple[Any, ...]:
        return row["rate"], order[row["variant"]], statistics.index(row["statistic"])

    statistics, concluded = list(_STATISTICS), placed(found.effects)
    concluded.sort(key=place)
    resolution_ns = step[0] * unit.length_ns if step else None
    return {
        "verdicts": verdict_words.verdicts(concluded, labels, unit, resolution_ns),
        "knee_sentences": knee_words.knees([row for row in placed(found.knees) if row["beyond"]], labels),
        "verdict_correction": verdict_words.correction(concluded),
        "claims": _claims(found.claims, labels),
        "n_claims": len(found.claims),
        "effects": [_effect(row, latency, labels) for row in concluded],
        "effect_choices": list(_BESIDE.items()),
        "effect_loads": [("", "all"), *((rate_name(rate), rate_text(rate)) for rate in found.loads)],
        "verdict_margin": f"{concluded[0]['margin'] * 100:g} %" if concluded else "",
        "verdict_confidence": share(found.confidence),
        "equivalent_within": share(2 * found.confidence - 1),  # of the interval that two one-sided tests go by
        "baselines": list(dict.fromkeys(labels.get(row["baseline"], row["baseline"]) for row in concluded)),
        "layers": bool(layers_in_order(found, labels)),
        "layer_warnings": list(_layer_warnings(found, labels)),
        "squares": interaction_words.interactions(_carried(found, order), labels, unit, resolution_ns),
        "square_rows": [_square(row, latency, labels) for row in _squares(found, order)],
        "knees": [_knee(row, labels) for row in placed(found.knees)],
        "knee_shares": [_share(row, latency, labels) for row in _shares(found, order)],
    }


def choices(found: Conclusions) -> dict[str, Any]:
    """What a reader may choose of these charts, and what is chosen at first: for ``choices.js``; and the confidence."""
    loads = ["", *map(rate_name, found.loads)]
    choices = {"effect": list(_BESIDE), "at": loads}
    return {"choices": choices, "chosen": {"effect": "ratio", "at": ""}, "confidence": share(found.confidence)}


def layers_in_order(found: Conclusions, labels: Mapping[str, str]) -> list[Row]:
    """Layers in the order of the lattice at each load; a variant is below those that are built upon it."""
    rows = [row for row in found.layers if row["variant"] in labels]
    depth = _depths(rows)
    order = list(labels)
    return sorted(rows, key=lambda row: (row["rate"], depth[row["variant"]], order.index(row["variant"]), row["below"]))


def _depths(rows: Sequence[Row]) -> dict[str, int]:
    """How many layers each variant is from the ground."""
    below: dict[str, set[str]] = {}
    for row in rows:
        below.setdefault(row["variant"], set()).add(row["below"])

    def depth(name: str) -> int:
        return 1 + max(map(depth, below[name])) if name in below else 0

    return {name: depth(name) for name in below}


# --- what weakens it -------------------------------------------------------------------------------------------------


def _claims(rows: Sequence[Row], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """By weight and kind, heaviest first: what it is called, what it says of which cells, and what cures it."""
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for weight, what in WEIGHTS.items():
        own = [row for row in rows[:SHOWN] if row["weight"] == weight]
        kinds = [
            {
                "heading": CAVEATS[claim].heading,
                "anchor": None if claim in seen else f"claim-{claim}",
                "texts": [_relabelled(row["text"], labels) for row in own if row["claim"] == claim],
                "remedies": list(dict.fromkeys(row["remedy"] for row in own if row["claim"] == claim)),
            }
            for claim in dict.fromkeys(row["claim"] for row in own)
        ]
        seen |= {row["claim"] for row in own}
        if kinds:
            found.append({"weight": weight, "what": what, "kinds": kinds})
    return found


# --- words and tables ------------------------------------------------------------------------------------------------


def _effect(row: Row, latency: Callable[[float | None], str], labels: Mapping[str, str]) -> Row:
    """A row of the table of all verdicts, as text."""
    errors = row["statistic"] == ERRORS
    value = share if errors else latency
    return row | {
        "figure": _STATISTICS.get(row["statistic"], row["statistic"]),
        "before_text": value(row["baseline_value"]),
        "value_text": value(row["value"]),
        "shift_text": _points(row["shift"]) if errors else latency(row["shift"]),
        "shift_interval": _range(row, "shift", _points if errors else latency),
        "ratio_text": "–" if row["ratio"] is None else significant(row["ratio"]),
        "ratio_interval": _range(row, "ratio", significant),
        "said": _SAID.get(row["verdict"], row["verdict"]),
        "p_text": _p_text(row["p_adjusted"]),
        "why": _relabelled(row["why"], labels),
    }


def _relabelled(text: str | None, labels: Mapping[str, str]) -> str | None:
    return text and verdict_words.relabelled(text, labels)


def _points(value: float | None) -> str:
    return "–" if value is None else f"{significant(100 * value)} points"


def _range(row: Row, name: str, text: Callable[[float | None], str]) -> str:
    if row[f"{name}_low"] is None or row[f"{name}_high"] is None:
        return ""
    return f"{text(row[f'{name}_low'])} to {text(row[f'{name}_high'])}"


def _p_text(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _latency_in(unit: Unit, step: Sequence[float] | None) -> Callable[[float | None], str]:
    def text(latency_ns: float | None) -> str:
        value = unit.of(latency_ns)
        if step is None or value is None:
            return significant(value)
        return f"{round(value / step[0]) * step[0]:,.{int(step[1])}f}"

    return text


def _layer_warnings(found: Conclusions, labels: Mapping[str, str]) -> list[Row]:
    """What to beware of, each kind once, with the steps, loads and statistics where it holds.

    What does not add up is told by `interaction_words.interactions`.
    """
    alike: dict[str, list[tuple[str, Row]]] = {}
    for row in layers_in_order(found, labels):
        for warning in filter(None, (row["warning"] or "").split("; ")):
            if not warning.startswith("does not add up"):
                alike.setdefault(verdict_words.pattern(warning), []).append((warning, row))
    merged = []
    for group in alike.values():
        texts = dict.fromkeys(verdict_words.relabelled(warning, labels) for warning, _ in group)
        rows = [row for _, row in group]
        steps = dict.fromkeys(f"{labels[row['variant']]} over {labels.get(row['below'], row['below'])}" for row in rows)
        names = [text for name, text in _STATISTICS.items() if any(row["statistic"] == name for row in rows)]
        merged.append(
            {
                "step": counted(len(steps), "step") if len(steps) > _NAMED else ", ".join(steps),
                "warning": next(iter(texts)) if len(texts) == 1 else f"for example {next(iter(texts))}",
                "loads": sorted({row["rate"] for row in rows}),
                "statistics": ", ".join(names),
            }
        )
    return merged


_NAMED = 2  # steps one by one


def _squares(found: Conclusions, order: Mapping[str, int]) -> list[Row]:
    statistics = list(_STATISTICS)
    rows = [row for row in found.interactions if row["top"] in order and row["bottom"] in order]
    return sorted(rows, key=lambda row: (row["rate"], order[row["top"]], statistics.index(row["statistic"])))


def _carried(found: Conclusions, order: Mapping[str, int]) -> list[Row]:
    """Those of `_squares` at loads that all four carry: beyond a knee, latency grows as long as the attack lasts."""
    beyond = {(row["variant"], rate) for row in found.knees for rate in row["beyond"] or ()}
    return [
        row
        for row in _squares(found, order)
        if not any((row[name], row["rate"]) in beyond for name in ("bottom", "left", "right", "top"))
    ]


def _square(row: Row, latency: Callable[[float | None], str], labels: Mapping[str, str]) -> Row:
    """A row of the table of interactions, as text."""
    low, high = row["interaction_low_ns"], row["interaction_high_ns"]
    return row | {
        "figure": _STATISTICS.get(row["statistic"], row["statistic"]),
        "square": f"{labels.get(row['left'], row['left'])} and {labels.get(row['right'], row['right'])}",
        "value_text": latency(row["interaction_ns"]),
        "interval": "" if low is None else f"{latency(low)} to {latency(high)}",
        "p_text": _p_text(row["p_adjusted"]),
        "remark": _relabelled(row["warning"], labels) or ("–" if low is None else "may add up"),
    }


def _knee(row: Row, labels: Mapping[str, str]) -> Row:
    """A row of the table of knees, as text; an end of the interval that no measured load reaches is left open."""
    low, high = row["low"], row["high"]
    if low is None or high is None:
        interval = f"above {rate_text(low)}" if low is not None else "–" if high is None else f"below {rate_text(high)}"
    else:
        interval = f"{rate_text(low)} to {rate_text(high)}"
    return row | {
        "interval": interval,
        "knee_text": "–" if row["knee_rate"] is None else significant(row["knee_rate"]),
        "near_text": ", ".join(map(rate_text, row["near"] or ())) or "–",
        "beyond_text": ", ".join(map(rate_text, row["beyond"] or ())) or "–",
        "is_found": low is not None or high is not None,
        "problem": _relabelled(row["problem"], labels),
    }


def _shares(found: Conclusions, order: Mapping[str, int]) -> list[Row]:
    rows = [row for row in found.shares if row["variant"] in order]
    return sorted(
        rows, key=lambda row: (row["share"], list(_STATISTICS).index(row["statistic"]), order[row["variant"]])
    )


def _share(row: Row, latency: Callable[[float | None], str], labels: Mapping[str, str]) -> Row:
    return row | {
        "figure": _STATISTICS.get(row["statistic"], row["statistic"]),
        "load_text": significant(row["load"]),
        "value_text": latency(row["value_ns"]),
        "value_interval": f"{latency(row['low_ns'])} to {latency(row['high_ns'])}" if row["low_ns"] is not None else "",
        "ratio_text": "–" if row["ratio"] is None else significant(row["ratio"]),
        "ratio_interval": _range(row, "ratio", significant),
        "problem": _relabelled(row["problem"], labels),
    }
