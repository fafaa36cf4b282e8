"""Explains what a sweep would do in a cluster, before it does anything: changes, order, time, missing rights."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from loadstone import archive
from loadstone.archive import metadata, plan
from loadstone.archive.progress import duration_text
from loadstone.archive.stages import load_text
from loadstone.collect import sweep
from loadstone.collect.targets import session
from loadstone.collect.targets.base import Log
from loadstone.collect.targets.kubernetes import lease, rights
from loadstone.collect.targets.kubernetes.changes import STOPPED, get
from loadstone.collect.targets.kubernetes.client import Cluster
from loadstone.collect.targets.kubernetes.objects import LEASE
from loadstone.collect.targets.kubernetes.record import Record, Records
from loadstone.collect.targets.kubernetes.settings import Declared, declared_target
from loadstone.collect.targets.kubernetes.survey import Survey, check
from loadstone.config import load_shapes
from loadstone.config.target import check_declared
from loadstone.errors import LoadstoneError

_SHOWN = 12


def explain(config: Mapping[str, Any], log: Log) -> None:
    """Log what the open campaigns of this host, else the configured sweep, would change. Changes nothing.

    Raises LoadstoneError for what `check` finds, and when the declaration of a planned variant has changed.
    """
    target = declared_target(config)
    missing_runs = _missing_runs(Path(config["archive"]), config["host"])
    check_declared((run.cell for run in missing_runs), target)
    variants = {run.cell.variant_dir for run in missing_runs} or set(config.get("sweep", {}).get("variants", []))
    if missing_runs and "sweep" in config:
        try:
            sweep.resumable(config)
        except LoadstoneError as error:
            log(f"`snakemake --cores 1 open` would refuse the present configuration:\n{error}")
    cluster, declared, found = check(config, variants, log)
    record = Records(cluster, declared.namespace, session.record_path(cluster.host)).find()
    for line in session.other_records(cluster.host):
        log(line)
    for namespace in declared.scaled_namespaces:
        if line := lease.foreign_claim(cluster, namespace, declared.namespace):
            log(f"a sweep would be refused: {line}")
    changes = _changes(found, variants) if record is None else _not_put_back(cluster, declared, record)
    for line in [*found.notes, *changes]:
        log(line)
    if (generators := declared.generators) is not None:
        pods = f"a Job with pods of {generators.image} in the namespace {generators.namespace}"
        log(f"while several generators send the load: {pods}")
    for line in _order(config, missing_runs):
        log(line)


def print_rights(config: Mapping[str, Any]) -> None:
    """Write a ServiceAccount ``loadstone``, its namespace, Roles and RoleBindings to standard output, as YAML."""
    declared = Declared.of(declared_target(config), config["host"])
    identity = {"name": "loadstone", "namespace": declared.namespace}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": declared.namespace}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": identity}
    subject = {"kind": "ServiceAccount", **identity}
    yaml.safe_dump_all([namespace, account, *rights.roles(declared, subject)], sys.stdout, sort_keys=False)


def _missing_runs(root: Path, host: str) -> list[plan.MissingRun]:
    """The missing runs of this host's open campaigns, in the order in which they will be attacked."""
    if not root.is_dir():
        return []
    mine = [campaign for campaign in archive.campaigns(root) if campaign.host == host and campaign.is_open]
    listings = [archive.scan_campaign(campaign) for campaign in sorted(mine, key=lambda each: each.instant)]
    return [run for listing in listings for run in plan.missing(listing)]


def _not_put_back(cluster: Cluster, declared: Declared, record: Record) -> list[str]:
    """The sweep that has changed the cluster, and what will be restored; other changes can't be planned until then."""
    held = cluster.get(LEASE, declared.namespace, lease.NAME)
    holds = (held or {}).get("spec", {}).get("holderIdentity") == record.holder
    lines = [
        f"this cluster has been changed by the sweep of {record.holder} since {record.since}, "
        + ("which is running or was killed a moment ago" if holds else "which was killed"),
        "the changes of another sweep can only be listed once the cluster is restored: at the end of that sweep,",
        "before the next one, or by `snakemake --cores 1 restore`. To be restored:",
    ]
    for changed in record.objects:
        held = cluster.get(changed.kind, changed.namespace, changed.name)
        for each in changed.fields:
            lines += [f"  {changed}: {what}" for what in each.texts(get(held, each.path), each.before)]
    return lines


def _changes(found: Survey, variants: Iterable[str]) -> list[str]:
    lines = ["for the whole sweep, until the cluster is restored:"]
    for changed in reversed(found.objects):
        for each in changed.fields:
            lines += [f"  {changed}: {what}" for what in each.texts(each.before, each.wanted(None))]
    for variant in sorted(variants):
        lines.append(f"while {variant} is measured:")
        for changed in found.objects:
            for each in changed.fields:
                if variant in each.ours and STOPPED in each.ours:
                    lines.append(f"  {changed}: restarted with {each.ours[variant]} pods")
                elif variant in each.ours:
                    texts = each.texts(each.wanted(None), each.wanted(variant))
                    lines += [f"  {changed}: {what}" for what in texts]
    return lines


def _order(config: Mapping[str, Any], missing_runs: list[plan.MissingRun]) -> list[str]:
    if missing_runs:
        planned_runs = [(run, metadata.read_cell(run.cell)) for run in missing_runs]
        first = [
            f"  {run.cell.variant_dir} at {load_text(run.cell.rate, planned.load_model)}, run {run.run}"
            for run, planned in planned_runs[:_SHOWN]
        ]
        more = [f"  ... and {len(missing_runs) - _SHOWN} more"] if len(missing_runs) > _SHOWN else []
        seconds = sum(planned.load_s + 1 for _, planned in planned_runs)
        return [f"{len(missing_runs)} runs in this order:", *first, *more, _time_text(seconds)]
    planned = config.get("sweep")
    if planned is None:
        return ["no sweep is declared"]
    loads = load_shapes.loads(planned)
    total = len(planned["variants"]) * len(loads) * planned["runs"]
    lengths_s = [
        sum(stage.duration_s for stage in load_shapes.planned(planned, load) if not stage.iterations) for load in loads
    ]
    seconds = total * (sum(lengths_s) / len(loads) + 1)
    return [f"no sweep is open; `snakemake --cores 1 open` would plan {total} runs", _time_text(seconds)]


def _time_text(seconds: float) -> str:
    return (
        f"warm-ups and attacks take about {duration_text(seconds)}, and every run the time until its pods are ready "
        "and gone again"
    )
