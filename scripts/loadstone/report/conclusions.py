"""Sections on conclusions of campaigns and comparisons: verdicts, overhead per layer, saturation points, caveats.

In: rows of tables `effects`, `layers`, `knees`, `knee_shares` and `claims` of one scope, the page's campaign or
comparison. Out: the variables of their templates, and what the page's script draws.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from string import ascii_lowercase
from typing import Any

from loadstone.analysis import reasons
from loadstone.analysis.caveats import ACCOUNTED_FOR, CAVEATS, CONFOUNDING, SERIOUS, WEIGHTS
from loadstone.analysis.caveats.base import ITEMS, LIMITS
from loadstone.config.variants import Style
from loadstone.percentiles import ERRORS, STATISTICS, label
from loadstone.readers import load_generators
from loadstone.report import findings, verdicts
from loadstone.report.numbers import SHOWN, Unit, interval, latency_text, rate_name, share, significant
from loadstone.report.queries import Queries, Row
from loadstone.text import at, counted, load_unit, rate_text

_EFFECTS = {"ratio": "Ratio", "shift": "Shift"}


@dataclass(frozen=True)
class Conclusions:
    """Rows of the tables of conclusions about the page's scope, with variants named as the page names its series."""

    effects: list[Row]
    layers: list[Row]
    interactions: list[Row]
    knees: list[Row]
    knee_shares: list[Row]
    claims: list[Row]
    confidence: float = 0.95  # of all their intervals, and of those of `cells`
    labels: Mapping[str, str] | None = None  # by the canonical names of variants, where series have names of their own

    def is_beyond_knee(self, variant: str, rate: float) -> bool:
        """Whether latency grows there for as long as the attack lasts."""
        return any(row["variant"] == variant and rate in (row["beyond"] or ()) for row in self.knees)

    @property
    def loads(self) -> list[float]:
        """Loads with an effect or an overhead of a layer."""
        return sorted({row["rate"] for row in (*self.effects, *self.layers)})


# Tables of conclusions, with their columns of variants.
_TABLES = {
    "effects": ("variant", "baseline"),
    "layers": ("variant", "below"),
    "interactions": verdicts.DIAMOND,
    "knees": ("variant",),
    "knee_shares": ("variant", "baseline"),
    "claims": (),
}


@dataclass(frozen=True)
class Notice:
    """A remark on a page that is not a caveat of table `claims`: in one line, and in full."""

    brief: str
    text: str


def gather(
    queries: Queries,
    confidence: float,
    comparison: str | None = None,
    name: Callable[[Row], str] = lambda row: row["variant"],
    labels: Mapping[str, str] | None = None,
) -> Conclusions:
    """Query the conclusions about a comparison or, without one, about the campaign of `queries`.

    `name` gives the page's name of the series of a row's variant. Where that is not the variant's own, `labels` are
    what texts call variants, by their canonical names.
    """
    found = {table: queries.of_scope(table, comparison) for table in _TABLES}
    found["effects"] = with_caveats(found["effects"], found["claims"])
    found["layers"] = with_caveats(found["layers"], found["claims"], "below")
    rows = {table: [_named(row, columns, name) for row in found[table]] for table, columns in _TABLES.items()}
    return Conclusions(**rows, confidence=confidence, labels=labels)


def reason_text(found: Conclusions, row: Row, styles: Sequence[Style]) -> str | None:
    """Why there is no verdict, or a remark on a layer, with labels of variants."""
    return reasons.text(reasons.of_row(row), _naming(found, styles))


def _naming(found: Conclusions, styles: Sequence[Style]) -> reasons.Naming:
    """What texts call a variant of a canonical name."""
    labels = found.labels or {style.name: style.label for style in styles}
    return lambda variant: labels.get(variant, variant)


def _named(row: Row, columns: Sequence[str], name: Callable[[Row], str]) -> Row:
    return row | {column: name(row | {"variant": row[column]}) for column in columns if row[column] is not None}


def context(
    found: Conclusions, styles: Sequence[Style], unit: Unit, step: Sequence[float] | None, cells: Sequence[Row] = ()
) -> dict[str, Any]:
    """The variables of ``verdict.html``, ``effects.html``, ``layers.html``, ``knees.html`` and ``claims.html``.

    `step` is that of `numbers.coarse_step`: latencies have no digits below it. `cells` are the page's figures by load
    and variant, with their intervals.
    """
    labels = {style.name: style.label for style in styles}
    name = _naming(found, styles)
    resolution_ns = _resolution_ns(unit, step)
    latency = partial(latency_text, unit=unit, resolution_ns=resolution_ns)
    effects = _in_order(found.effects, labels, "rate", "variant", "statistic")
    knees = _in_order(found.knees, labels, "variant")
    # Beyond saturation, latency grows for as long as the attack lasts, whatever the layers.
    diamonds = _in_order(found.interactions, labels, "rate", "top", "statistic")
    below_knees = [
        row for row in diamonds if not any(found.is_beyond_knee(row[each], row["rate"]) for each in verdicts.DIAMOND)
    ]
    shares = [row for row in found.knee_shares if row["value_ns"] is not None]
    at_one_load = findings.at_one_load(effects, found.knees, labels, resolution_ns)
    headline = findings.headline(at_one_load)
    of_claims = letters(found.claims)
    claims = claims_by_weight(found.claims, name)
    return {
        "matrix": findings.matrix(effects, styles, unit, resolution_ns, cells=cells, letters=of_claims),
        "headline": headline,
        "headline_mark": findings.letters_of_caveats(headline, of_claims),
        "plots": findings.plots(at_one_load, styles),
        "dumbbells": findings.dumbbells(effects, found.knees, labels),
        "symbols": findings.SYMBOLS,
        "statistic_label": label,
        "p_text": _p_text,
        "verdicts": verdicts.verdicts(effects, labels),
        "knee_sentences": verdicts.knees([row for row in knees if row["beyond"]], labels),
        "verdict_correction": verdicts.correction(effects),
        "n_tested": verdicts.n_tested(effects),
        "claims": claims,
        "n_claims": len(found.claims),
        "effects": [_effect(row, latency, name) for row in effects],
        "effect_choices": list(_EFFECTS.items()),
        "effect_loads": [("", "all"), *((rate_name(rate), rate_text(rate)) for rate in found.loads)],
        "verdict_margin": f"{effects[0]['margin'] * 100:g} %" if effects else "",
        "verdict_confidence": share(found.confidence),
        "equivalent_within": share(2 * found.confidence - 1),  # of the interval that two one-sided tests go by
        "baselines": list(dict.fromkeys(labels.get(row["baseline"], row["baseline"]) for row in effects)),
        "layers": bool(layers_in_order(found, labels)),
        "layer_warnings": _layer_warnings(found, labels, name),
        "interactions": verdicts.interactions(below_knees, labels, unit, resolution_ns),
        "interaction_rows": [_interaction(row, latency, labels, name) for row in diamonds],
        "knees": list(map(_knee, knees)),
        "knee_shares": [
            _share(row, latency, labels) for row in _in_order(shares, labels, "share", "statistic", "variant")
        ],
    }


def _in_order(rows: Iterable[Row], labels: Mapping[str, str], *by: str) -> list[Row]:
    """Rows of the page's variants in the order of the columns `by`; variants and statistics in that of the page."""
    ranks = {"variant": list(labels), "top": list(labels), "statistic": list(STATISTICS)}
    known = [row for row in rows if all(row[name] in labels for name in ("variant", "top", "bottom") if name in row)]
    return sorted(known, key=lambda row: [ranks[name].index(row[name]) if name in ranks else row[name] for name in by])


def titles(found: Conclusions, styles: Sequence[Style], unit: Unit, step: Sequence[float] | None) -> dict[str, Any]:
    """Titles of charts that state what was found, by chart and statistic, as far as anything is certain."""
    labels = {style.name: style.label for style in styles}
    resolution_ns, of_layers = _resolution_ns(unit, step), {}
    certain = [
        row
        for row in layers_in_order(found, labels)
        if row["added_low_ns"] is not None
        and row["added_low_ns"] > 0
        and not (row["reasons"] or row["caveats"])
        and not any(found.is_beyond_knee(row[name], row["rate"]) for name in ("variant", "below"))
    ]
    for statistic in dict.fromkeys(row["statistic"] for row in certain):
        largest = max(
            (row for row in certain if row["statistic"] == statistic), key=lambda row: (row["rate"], row["added_ns"])
        )
        layer = f"{labels[largest['variant']]} over {labels.get(largest['below'], largest['below'])}"
        size = f"{latency_text(largest['added_ns'], unit, resolution_ns)} {unit.symbol}"
        where = at([largest["rate"]], [largest["rate"]], load_unit([largest["load_model"]]))
        of_layers[statistic] = f"{layer} adds {size} to the {label(statistic).lower()} {where}"
    return findings.titles(found.effects, found.knees, labels, resolution_ns) | {"layers": of_layers}


def _resolution_ns(unit: Unit, step: Sequence[float] | None) -> float | None:
    """Of the page's latencies, if all are coarse."""
    return step[0] * unit.length_ns if step else None


def choices(found: Conclusions) -> dict[str, Any]:
    """What a reader may choose of these charts, and what is chosen at first: for ``choices.js``; and the confidence."""
    loads = ["", *map(rate_name, found.loads)]
    choices = {"effect": list(_EFFECTS), "at": loads}
    return {"choices": choices, "chosen": {"effect": "ratio", "at": ""}, "confidence": share(found.confidence)}


def layers_in_order(found: Conclusions, labels: Mapping[str, str]) -> list[Row]:
    """Layers by load, a variant before those that are built upon it."""
    rows = [row for row in found.layers if row["variant"] in labels]
    below: dict[str, set[str]] = {}
    for row in rows:
        below.setdefault(row["variant"], set()).add(row["below"])

    def depth(variant: str) -> int:
        return 1 + max(map(depth, below[variant])) if variant in below else 0

    order = list(labels)
    return sorted(rows, key=lambda row: (row["rate"], depth(row["variant"]), order.index(row["variant"]), row["below"]))


# --- caveats -------------------------------------------------------------------------------------------------

# Caveats of latencies, not of how many requests failed.
_OF_LATENCIES = ("warmup_inside", "unsettled", "failures")


def with_caveats(effects: Iterable[Row], claims: Iterable[Row], other: str = "baseline") -> list[Row]:
    """The same rows of `effects`, each with the kinds of claims that concern one of its two cells (`caveats`).

    `other` is the column of the variant that a row's variant is compared with.
    """
    relevant = [row for row in claims if _weakens_verdicts(row)]
    cells = [{_cell(cell, "variant") for cell in row["cells"]} for row in relevant]
    found = []
    for effect in effects:
        own = {_cell(effect, side) for side in ("variant", other)}
        concerning = (row for row, concerned in zip(relevant, cells, strict=True) if own & concerned)
        found.append(effect | {"caveats": _caveats(effect, concerning)})
    return found


def letters(claims: Iterable[Row]) -> dict[str, str]:
    """The letter of each kind of claim that marks verdicts, most serious first: the same wherever a scope is shown."""
    weights = list(WEIGHTS)
    own = sorted(filter(_weakens_verdicts, claims), key=lambda row: weights.index(row["weight"]))
    return dict(zip(dict.fromkeys(row["claim"] for row in own), ascii_lowercase, strict=False))


def caveats_of_cell(cell: Row, claims: Iterable[Row], statistic: str) -> list[str]:
    """The headings of caveats that weaken verdicts about a figure of a cell.

    `cell` has ``rate``, ``variant``, ``load_model`` and ``generator``.
    """
    own = _cell(cell, "variant")
    concerning = (
        row for row in claims if _weakens_verdicts(row) and own in {_cell(each, "variant") for each in row["cells"]}
    )
    return [CAVEATS[claim].heading for claim in _caveats({"statistic": statistic}, concerning)]


def _weakens_verdicts(claim: Row) -> bool:
    return (claim["weight"] == SERIOUS or claim["claim"] in CONFOUNDING) and claim["claim"] not in ACCOUNTED_FOR


def _cell(row: Row, side: str) -> tuple[Any, ...]:
    """A cell, and how it was measured: with several tools, each has its own cell."""
    tool = row["generator"].partition(", ")[0]  # of several that measure alike
    return row["rate"], row[side], row["load_model"], *load_generators.meaning(tool)


def _caveats(effect: Row, claims: Iterable[Row]) -> Sequence[str]:
    of_failures = effect["statistic"] == ERRORS
    return list(dict.fromkeys(row["claim"] for row in claims if not (of_failures and _is_of_latencies(row))))


def _is_of_latencies(claim: Row) -> bool:
    """Where campaigns disagree about failures, that concerns latencies too, but not the other way round."""
    return claim["claim"] in _OF_LATENCIES or (claim["claim"] == "campaigns_disagree" and claim["statistic"] != ERRORS)


def claims_by_weight(rows: Sequence[Row], name: reasons.Naming) -> list[dict[str, Any]]:
    """By weight and kind, heaviest first: heading, texts and remedies; `weakens`: verdicts are marked with it."""
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    n_cells = max((len(row["cells"]) for row in rows), default=0)
    for weight, what in WEIGHTS.items():
        own = [row for row in rows[:SHOWN] if row["weight"] == weight]
        kinds = [
            {
                "claim": claim,
                "heading": CAVEATS[claim].heading,
                "anchor": None if claim in seen else f"claim-{claim}",
                "weakens": any(_weakens_verdicts(row) for row in own if row["claim"] == claim),
                "extent": _extent([row for row in own if row["claim"] == claim], name, n_cells),
                "texts": [reasons.renamed(row["text"], name) for row in own if row["claim"] == claim],
                "remedies": list(dict.fromkeys(row["remedy"] for row in own if row["claim"] == claim)),
            }
            for claim in dict.fromkeys(row["claim"] for row in own)
        ]
        seen |= {row["claim"] for row in own}
        if kinds:
            found.append({"weight": weight, "what": what, "kinds": kinds})
    return found


def _extent(rows: Sequence[Row], name: reasons.Naming, n_cells: int) -> str:
    """How many runs or cells a caveat concerns, and which: ``2 of 47 runs, Envoy at 1,000 requests/s``.

    `n_cells` are the most cells that any caveat of the page concerns.
    """
    first, *others = rows
    n, n_of, cells = first["n"], first["n_of"], first["cells"]
    item = ITEMS[first["counted"]]
    text = f"{n:,} of {counted(n_of, item)}" if n < n_of else f"all {item}s"
    where = [name(first["variant"])] if first["variant"] is not None else []
    if first["rate"] is not None:
        unit = load_unit(cell["load_model"] for cell in cells)
        where.append(at([first["rate"]], [first["rate"]], unit))
    if not where and first["counted"] == "runs" and len(cells) < n_cells:
        where = [f"in {counted(len(cells), 'cell')}"]
    found = ", ".join(filter(None, (text, " ".join(where))))
    return f"{found}; {len(others):,} more" if others else found


def caveats_in_brief(
    claims: Sequence[Mapping[str, Any]],
    others: Iterable[tuple[str, str]],
    lettered: Mapping[str, Mapping[str, str]],
) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    """Caveats by weight, the heaviest first.

    Each is a text of one line, the anchor of its details, what it concerns, and its letter in the matrix, if any.
    `claims` are of `claims_by_weight`, `lettered` the caveats of its matrix. `others` are those in no table, with their
    anchors.
    """
    found: dict[str, list[tuple[str, str, str, str]]] = {weight: [] for weight in WEIGHTS}
    for group in claims:
        for kind in group["kinds"]:
            letter = letter_of(kind, lettered)
            found[group["weight"]].append((kind["heading"], f"claim-{kind['claim']}", kind["extent"], letter))
    found[LIMITS] += ((text, anchor, "", "") for text, anchor in others)
    return [(weight, own) for weight, own in found.items() if own]


def letter_of(kind: Mapping[str, Any], lettered: Mapping[str, Mapping[str, str]]) -> str:
    """The letter of one of the kinds of `context`'s claims in the matrix; empty if it marks no verdict."""
    return lettered.get(kind["claim"], {}).get("letter", "") if kind["weakens"] else ""


# --- tables ------------------------------------------------------------------------------------------------


def _effect(row: Row, latency: Callable[[float | None], str], name: reasons.Naming) -> Row:
    """A row of the table of all verdicts, as text."""
    errors = row["statistic"] == ERRORS
    value, shift = (share, _points) if errors else (latency, latency)
    return row | {
        "before_text": value(row["baseline_value"]),
        "value_text": value(row["value"]),
        "shift_text": shift(row["shift"]),
        "shift_interval": _range(row["shift_low"], row["shift_high"], shift),
        "ratio_interval": _range(row["ratio_low"], row["ratio_high"], significant),
        "why": reasons.text(reasons.of_row(row), name),
    }


def _points(value: float | None) -> str:
    return "–" if value is None else f"{significant(100 * value)} points"


def _range(low: float | None, high: float | None, text: Callable[[float | None], str]) -> str:
    return "" if low is None or high is None else interval(low, high, text)


def _p_text(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _layer_warnings(found: Conclusions, labels: Mapping[str, str], name: reasons.Naming) -> list[Row]:
    """Each kind of warning once, with the steps, loads and statistics that it is about.

    Overheads that are not additive are in `verdicts.interactions`.
    """
    alike: dict[str, list[tuple[str, Row]]] = {}
    for row in layers_in_order(found, labels):
        for reason in reasons.of_row(row):
            if reason.code != reasons.NOT_ADDITIVE:
                alike.setdefault(reason.code, []).append((reason.text(name), row))
    return [_layer_warning(group, labels) for group in alike.values()]


def _layer_warning(group: Sequence[tuple[str, Row]], labels: Mapping[str, str]) -> Row:
    texts, rows = list(dict.fromkeys(text for text, _ in group)), [row for _, row in group]
    steps = dict.fromkeys(f"{labels[row['variant']]} over {labels.get(row['below'], row['below'])}" for row in rows)
    names = [label(name) for name in STATISTICS if any(row["statistic"] == name for row in rows)]
    return {
        "step": counted(len(steps), "step") if len(steps) > _NAMED else ", ".join(steps),
        "warning": texts[0] if len(texts) == 1 else f"for example {texts[0]}",
        "loads": sorted({row["rate"] for row in rows}),
        "statistics": ", ".join(names),
    }


_NAMED = 2  # steps named one by one


def _interaction(
    row: Row, latency: Callable[[float | None], str], labels: Mapping[str, str], name: reasons.Naming
) -> Row:
    """A row of the table of interactions, as text."""
    between = _range(row["interaction_low_ns"], row["interaction_high_ns"], latency)
    return row | {
        "layers": f"{labels.get(row['left'], row['left'])} and {labels.get(row['right'], row['right'])}",
        "value_text": latency(row["interaction_ns"]),
        "interval": between,
        "remark": reasons.text(reasons.of_row(row), name) or ("may be additive" if between else "–"),
    }


def _knee(row: Row) -> Row:
    """A row of the table of saturation points, as text; an interval is open where no measured load bounds it."""
    low, high = row["low"], row["high"]
    if low is None or high is None:
        between = f"above {rate_text(low)}" if low is not None else "–" if high is None else f"below {rate_text(high)}"
    else:
        between = interval(low, high, rate_text)
    return row | {"interval": between, "is_found": low is not None or high is not None}


def _share(row: Row, latency: Callable[[float | None], str], labels: Mapping[str, str]) -> Row:
    problem = row["baseline_problem"]  # the row itself has a value
    return row | {
        "value_text": latency(row["value_ns"]),
        "value_interval": _range(row["low_ns"], row["high_ns"], latency),
        "ratio_interval": _range(row["ratio_low"], row["ratio_high"], significant),
        "problem": problem and f"{labels.get(row['baseline'], row['baseline'])}: {problem}",
    }
