"""What ``compare.html`` loads of one campaign or comparison: its series, their figures and their replicates.

``series.js`` describes every series (a variant at one load, measured in one way) and says why one has no figures.
``series-<statistic>.js`` has the replicates of one statistic, from which the page computes differences by itself
(``assets/contrast.js``). What rests on more than the two series is computed here alone: figures with their intervals,
and the pooled standard errors of the pairs that tables have (variants and the baseline, layers).
"""

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa

from loadstone import stats
from loadstone.analysis import reasons
from loadstone.analysis.reasons import Reason
from loadstone.analysis.scope import Scope, Series, Settings, contrasted, figure, protocols
from loadstone.config.variants import Variants
from loadstone.percentiles import ERRORS, MEAN, PERCENTILES, label
from loadstone.report import conclusions, numbers
from loadstone.report.numbers import Row, Unit, rate_name
from loadstone.report.output import as_json, write_text
from loadstone.tables import exclusion
from loadstone.tables.exclusion import Exclusion
from loadstone.text import load_unit, rate_text

STATISTICS = {name: label(name) for name in (MEAN, *PERCENTILES, ERRORS)}
PAGE = "compare.html"

# Reasons that depend on the pair; those of one series are in its data.
_OF_PAIRS = (
    reasons.EVIDENCE_DIFFERS,
    reasons.PROTOCOLS_DIFFER,
    reasons.ONE_RUN,
    reasons.NO_FAILURES,
    reasons.ONLY_FAILURES,
    reasons.ZERO_LATENCY,
)
_MEASURED_BY = ("load_model", "generator")
_ONLY_REPORTS = "reported figures have no replicates here; verdicts of their campaign have the interval if it is known"


def page_data(sources: Sequence[tuple[str, str]], first: str | None) -> dict[str, Any]:
    """What the script of the page reads; `sources` are folders of the site with such files, and their names.

    The page opens on the series of the folder `first`.
    """
    texts = {code: Reason(code).text() for code in _OF_PAIRS} | {"only_reports": _ONLY_REPORTS}
    return {"sources": sources, "first": first, "statistics": STATISTICS, "statistic": "p50", "reasons": texts}


def address(folder: str) -> str:
    """The address of the page with the series of one folder, from the page of a campaign or of a comparison."""
    return f"../{PAGE}#{urlencode({'a': folder})}"


def settings(variants: Variants, app: str, confidence: float) -> Settings:
    """The settings with which conclusions about an app were drawn, as far as intervals depend on them."""
    return Settings(confidence=confidence, order=tuple(variants.declared.get(app, ())), over=variants.over(app))


def write(
    reports: Path,
    folder: str,
    scope: Scope,
    variants: Variants,
    *,
    unit: Unit,
    step: Sequence[float] | None,
    claims: Sequence[Row],
    refusals: Sequence[str] = (),
) -> list[Path]:
    """Write the files of one scope into a `folder` of the site; `unit`, `step` and `claims` are those of its page.

    `refusals` say why it has no figures. A statistic that no series has gets no file.
    """
    series = [each for place in scope.places for each in place.series.values()]
    names = _names(series)
    labels = {style.name: style.label for style in variants.styles(scope.app, {each.variant for each in series})}
    about = {
        "app": numbers.joined([scope.app]),
        "unit": [unit.symbol, unit.length_ns],
        "step": step,
        "confidence": scope.confidence,
        "refusals": refusals,
        "series": [
            _described(each, *names[number], labels, scope.confidence) | _caveats(each, claims)
            for number, each in enumerate(series)
        ]
        + list(_without_runs(scope, labels)),
    }
    content = {"series": about} | {f"series-{name}": data for name, data in _replicates(scope, series)}
    about["statistics"] = [name for name in STATISTICS if f"series-{name}" in content]
    files = []
    for name, data in content.items():
        path = reports / folder / f"{name}.js"
        write_text(path, f"loadstone.receive({as_json(f'{folder}/{name}')},{as_json(data)});\n")
        files.append(path)
    return files


# --- series ----------------------------------------------------------------------------------------------------------


def _names(series: Sequence[Series]) -> list[tuple[str, str]]:
    """The name of each series' variant, and what its label ends with if one cell was measured in several ways."""
    ways = defaultdict(set)
    for each in series:
        ways[each.variant].add(each.way)
    found = []
    for each in series:
        way = ""
        if len(ways[each.variant]) > 1:
            tools = numbers.joined(run["generator"] for run in each.runs)
            way = f" ({tools}, {each.runs[0]['load_model']} load)"
        found.append((f"{each.variant}{way}", way))
    return found


def _described(each: Series, name: str, way: str, labels: Mapping[str, str], confidence: float) -> dict[str, Any]:
    """One series as the page needs it; the numbers of `figures` are value, low and high (ns or a share)."""
    found, run = each.replicates, each.runs[0]
    blocks = repr(each.blocks).encode("utf-8", "backslashreplace")
    return {
        "variant": name,
        "label": f"{labels.get(each.variant, each.variant)}{way}",
        **_load(each.rate, run["load_model"]),
        "load_model": str(run["load_model"]),
        "generator": numbers.joined(row["generator"] for row in each.runs),
        "measured": list(map(str, each.way[1:])),
        "hosts": sorted({row["host"] for row in each.runs}),
        "protocols": sorted(protocols([each])),
        "blocks": hashlib.sha256(blocks).hexdigest()[:16] if each.blocks else None,
        "resolution": each.resolution_ns,
        "runs": found.n_runs or len(each.runs),
        "requests": found.n_requests,
        "evidence": each.evidence,
        "figures": {statistic: _figure(each, statistic, confidence) for statistic in STATISTICS},
        "missing": {
            statistic: reason.text(lambda name: labels.get(name, name))
            for statistic in STATISTICS
            if (reason := figure(each, statistic)[1])
        },
        "why": None,
    }


def _caveats(each: Series, claims: Sequence[Row]) -> dict[str, list[str]]:
    """What weakens verdicts about its latencies, and about its failures."""
    cell = {"rate": each.rate, "variant": each.variant, **{name: each.runs[0][name] for name in _MEASURED_BY}}
    latencies, failures = (conclusions.caveats_of_cell(cell, claims, statistic) for statistic in (MEAN, ERRORS))
    return {"caveats": latencies, "caveats_of_failures": failures}


def _load(rate: float, load_model: str | None) -> dict[str, str]:
    return {"rate": rate_name(rate), "load": f"{rate_text(rate)} {load_unit([load_model])}"}


def _figure(each: Series, statistic: str, confidence: float) -> list[float | None] | None:
    """Value and interval, whose ends are whole steps where these are coarse, as on other pages."""
    value = figure(each, statistic)[0]
    if value is None:
        return None
    if each.evidence == "reports":
        return [value, None, None]
    low, high = stats.interval(each.replicates, statistic, confidence) or (None, None)
    if statistic in PERCENTILES:
        row: Row = {"resolution_ns": each.resolution_ns, f"{statistic}_ns": value}
        row |= {f"{statistic}_low_ns": low, f"{statistic}_high_ns": high}
        (row,) = numbers.rounded_to_steps([row])
        low, high = row[f"{statistic}_low_ns"], row[f"{statistic}_high_ns"]
    return [value, low, high]


def _without_runs(scope: Scope, labels: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Cells that have no valid run or no figure at all, with the reason."""
    for each in scope.series:
        if not each.runs:
            about = {"variant": each.variant, "label": labels.get(each.variant, each.variant)}
            yield about | _load(each.rate, each.way[0]) | {"why": "its runs have neither replicates nor a report"}
    known = {(each.rate, each.variant) for each in scope.series}
    reasons_of: dict[tuple[float, str, str], Counter[tuple[Exclusion, ...]]] = defaultdict(Counter)
    for run in scope.excluded:
        if (run["rate"], run["variant"]) not in known:
            key = run["rate"], run["variant"], run["load_model"]
            reasons_of[key][tuple(exclusion.of_row(run))] += 1
    for (rate, variant, load_model), found in reasons_of.items():
        why = "; ".join(sorted(exclusion.text(each) or "no reason recorded" for each in found))
        none = f"none of its {found.total():,} runs is" if found.total() > 1 else "its only run is not"
        yield {
            "variant": variant,
            "label": labels.get(variant, variant),
            **_load(rate, load_model),
            "why": f"{none} compared: {why}",
        }


# --- replicates ------------------------------------------------------------------------------------------------------


def packed(content: bytes) -> str:
    """Base64 of gzip, by the library that pyarrow comes with: the bytes of Python's differ between machines."""
    return base64.b64encode(pa.Codec("gzip", compression_level=6).compress(content, asbytes=True)).decode()


def _replicates(scope: Scope, series: Sequence[Series]) -> Iterator[tuple[str, dict[str, Any]]]:
    """By statistic: whose replicates, these as text, and the pooled errors of pairs.

    The text is base64 of compressed single-precision numbers, of each series first `draws`, then `within`. A pair is
    the positions of the baseline and of the other series, the pooled error with one run of each, and its degrees of
    freedom.
    """
    places = {(each.rate, each.way, each.variant): number for number, each in enumerate(series)}
    pooled: dict[str, list[list[float]]] = defaultdict(list)
    for (rate, way, below, variant, statistic), contrast in contrasted(scope, tuple(STATISTICS)).items():
        if contrast.pooled_freedom:
            pair = [places[rate, way, name] for name in (below, variant)]
            pooled[statistic].append([*pair, contrast.scaled.one_run, contrast.scaled.freedom])
    for statistic in STATISTICS:
        found = {number: each.replicates for number, each in enumerate(series) if statistic in each.replicates.draws}
        drawn = [part[statistic] for each in found.values() for part in (each.draws, each.within)]
        if drawn:
            text = packed(np.asarray(drawn, "<f4").tobytes())
            yield statistic, {"of": list(found), "drawn": text, "pooled": pooled[statistic]}
