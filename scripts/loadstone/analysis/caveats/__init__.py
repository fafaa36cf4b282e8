"""Table `claims`: caveats on the conclusions from a scope, most serious first. Reads no request.

A caveat is defined in one place: its code, threshold, reason, remedy, check and text. `CAVEATS` lists them all.
"""

from collections.abc import Iterator
from typing import Any

from loadstone.analysis.caveats import comparability, figures, runs
from loadstone.analysis.caveats.base import SERIOUS, WEIGHTS, Evidence
from loadstone.analysis.scope import Scope

__all__ = ["ACCOUNTED_FOR", "CAVEATS", "CONFOUNDING", "SERIOUS", "WEIGHTS", "claims"]

CAVEATS = {
    each.id: each
    for each in (
        runs.one_run,
        runs.few_runs,
        runs.unbalanced,
        runs.unfinished,
        runs.excluded,
        runs.fixed_order,
        runs.grouped_order,
        runs.warmup_inside,
        runs.unsettled,
        figures.coarse_clock,
        figures.zeros,
        figures.below_a_step,
        comparability.hosts,
        comparability.replicas,
        comparability.sent_by,
        comparability.numbers_of_generators,
        comparability.tool_versions,
        comparability.ways,
        runs.generator_limited,
        runs.lag_unknown,
        figures.beyond_knee,
        figures.unsupported,
        figures.timeouts,
        figures.failures,
        comparability.different_parts,
        comparability.far_apart,
        comparability.other_campaigns,
        comparability.campaigns_disagree,
        comparability.outlying_runs,
        figures.reports_only,
    )
}

# A verdict is marked with the serious caveats of its two cells and, whatever their weight, with those by which
# something else than the variant may make the difference; but not with those that the verdict accounts for.
CONFOUNDING = ("fixed_order", "different_parts", "far_apart", "other_campaigns")
ACCOUNTED_FOR = ("one_run", "below_a_step")


def claims(scope: Scope) -> Iterator[dict[str, Any]]:
    """A row per caveat that applies; none without a valid run."""
    if not scope.series:
        return
    evidence, key, weights = Evidence(scope), scope.key, list(WEIGHTS)
    found = [(each, occurrence) for each in CAVEATS.values() for occurrence in each.check(evidence)]
    for caveat, occurrence in sorted(found, key=lambda pair: weights.index(pair[1].weight)):
        row = key | {"claim": caveat.id} | vars(occurrence) | {"remedy": occurrence.remedy or caveat.remedy}
        yield row if occurrence.cells is not None else row | {"cells": evidence.cells(evidence.series)}
