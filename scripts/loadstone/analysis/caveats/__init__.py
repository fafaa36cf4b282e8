"""Table `claims`: what weakens the conclusions from a scope, heaviest first. Reads no request."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from loadstone.analysis.caveats import conditions, disagreement, figures, runs
from loadstone.analysis.caveats.definitions import CLAIMS, WEIGHTS, Weakness
from loadstone.analysis.caveats.evidence import Evidence
from loadstone.analysis.scope import Scope

_Row = dict[str, Any]

# Each finds one kind of weakness, or none.
_LINTS: Sequence[Callable[[Evidence], Iterable[Weakness]]] = (
    runs.one_run,
    runs.few_runs,
    runs.unbalanced,
    runs.unfinished,
    runs.excluded,
    runs.fixed_order,
    runs.warmup_inside,
    runs.unsettled,
    runs.generator_limited,
    runs.lag_unknown,
    figures.coarse_clock,
    figures.zeros,
    figures.below_a_step,
    figures.unsupported,
    figures.timeouts,
    figures.failures,
    figures.beyond_knee,
    figures.reports_only,
    conditions.hosts,
    conditions.replicas,
    conditions.sent_by,
    conditions.tool_versions,
    conditions.ways,
    conditions.far_apart,
    disagreement.other_campaigns,
    disagreement.campaigns_disagree,
    disagreement.outlying,
)


def claims(scope: Scope) -> Iterator[_Row]:
    """A row per weakness; none where nothing counts."""
    if not scope.series:
        return
    evidence, key, weights, kinds = Evidence(scope), scope.key, list(WEIGHTS), list(CLAIMS)
    found = [weakness for lint in _LINTS for weakness in lint(evidence)]
    for each in sorted(found, key=lambda each: (weights.index(each.weight), kinds.index(each.claim))):
        cells = evidence.cells(evidence.series) if each.cells is None else each.cells
        yield key | vars(each) | {"remedy": each.remedy or CLAIMS[each.claim].remedy, "cells": cells}
