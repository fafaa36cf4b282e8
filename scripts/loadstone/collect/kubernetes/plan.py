"""What a sweep would do to a cluster, said before it does anything: changes, order, time, missing rights."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from loadstone import archive, metadata, sweep
from loadstone.archive import Cell
from loadstone.collect.kubernetes import rights
from loadstone.collect.kubernetes.changes import REPLICAS, STOPPED, value_text
from loadstone.collect.kubernetes.client import Cluster
from loadstone.collect.kubernetes.declared import Declared
from loadstone.collect.kubernetes.survey import Survey, difference_text, survey
from loadstone.collect.target import Log
from loadstone.errors import LoadstoneError
from loadstone.progress import duration_text

_SHOWN = 12


def explain(config: Mapping[str, Any], log: Log) -> None:
    """Say what the open campaigns of this host, else the configured sweep, would change. Touches nothing.

    Raises LoadstoneError that lists missing rights, or what is not as it is declared.
    """
    target = _target(config)
    declared = Declared.of(target, config["host"])
    cluster = Cluster(declared.context, patience_s=10, log=log)
    lacking = _lacking(Path(config["archive"]), config["host"])
    variants = (
        {cell.variant_dir for cell, _ in lacking} if lacking else set(config.get("sweep", {}).get("variants", []))
    )
    undeclared = variants - set(declared.variants)
    if undeclared:
        raise LoadstoneError(f"planned, but not declared under target.variants: {', '.join(sorted(undeclared))}")
    log(f"cluster {cluster.host}, {cluster.version()}; Lease and record in the namespace {declared.namespace}")
    rights.check(cluster, declared)
    for right in rights.lacking(cluster, rights.useful(declared)):
        log(f"not allowed, and done without: {right}")
    found = survey(cluster, declared, variants)
    for line in [*found.notes, *_changes(found, variants), *_order(config, lacking)]:
        log(line)


def print_rights(config: Mapping[str, Any]) -> None:
    """Write a ServiceAccount ``loadstone``, its namespace, Roles and RoleBindings to standard output, as YAML."""
    declared = Declared.of(_target(config), config["host"])
    subject = {"kind": "ServiceAccount", "name": "loadstone", "namespace": declared.namespace}
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": subject["name"], "namespace": declared.namespace},
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": declared.namespace}}
    yaml.safe_dump_all([namespace, account, *rights.roles(declared, subject)], sys.stdout, sort_keys=False)


def _target(config: Mapping[str, Any]) -> Mapping[str, Any]:
    target: Mapping[str, Any] = config.get("target", {})
    if target.get("kind") != "kubernetes":
        raise LoadstoneError("the configuration declares no Kubernetes target (see config/README.md)")
    return target


def _lacking(root: Path, host: str) -> list[tuple[Cell, sweep.PlannedRun]]:
    """The missing runs of this host's open campaigns, in the order in which they will be attacked."""
    if not root.is_dir():
        return []
    mine = [campaign for campaign in archive.campaigns(root) if campaign.host == host and campaign.is_open]
    listings = [archive.scan_campaign(campaign) for campaign in sorted(mine, key=lambda each: each.instant)]
    return [(run.cell, run) for listing in listings for run in sweep.missing(listing)]


def _changes(found: Survey, variants: Iterable[str]) -> list[str]:
    lines = ["for the whole sweep, until it is put back:"]
    for changed in reversed(found.objects):
        lines += [f"  {changed}: {what}" for what in difference_text(changed, None)]
    for variant in sorted(variants):
        lines.append(f"while {variant} is measured:")
        for changed in found.objects:
            for each in changed.fields:
                if variant in each.ours and STOPPED in each.ours:
                    lines.append(f"  {changed}: started afresh with {each.ours[variant]} pods")
                elif variant in each.ours and (each.path != REPLICAS or each.wanted(variant) != each.wanted(None)):
                    lines.append(
                        f"  {changed}: {each}: {value_text(each.wanted(None))} -> {value_text(each.wanted(variant))}"
                    )
    return lines


def _order(config: Mapping[str, Any], lacking: list[tuple[Cell, sweep.PlannedRun]]) -> list[str]:
    if lacking:
        first = [f"  {cell.variant_dir} at {cell.rate}/s, run {run.run}" for cell, run in lacking[:_SHOWN]]
        more = [f"  ... and {len(lacking) - _SHOWN} more"] if len(lacking) > _SHOWN else []
        left = duration_text(sum(_attacks_s(cell) + 1 for cell, _ in lacking))
        return [
            f"{len(lacking)} runs in this order:",
            *first,
            *more,
            f"warm-ups and attacks take about {left}, and every run the time until its pods are ready and gone again",
        ]
    planned = config.get("sweep")
    if planned is None:
        return ["no sweep is declared"]
    total = len(planned["variants"]) * len(planned["rates"]) * planned["runs"]
    each_s = (metadata.parse_duration(planned["duration"]) or 0) + (
        metadata.parse_duration(planned.get("warmup", {}).get("duration")) or 0
    )
    time = duration_text(total * (each_s + 1))
    return [
        f"no sweep is open; `snakemake --cores 1 open` would plan {total} runs",
        f"warm-ups and attacks take about {time}, and every run the time until its pods are ready and gone again",
    ]


def _attacks_s(cell: Cell) -> float:
    """Seconds of one run's warm-up and attack."""
    planned = metadata.read(cell.path / archive.METADATA)
    return (planned.duration_s or 0) + (planned.warmup_duration_s or 0)
