"""Section on how a campaign was measured: load generator, machine, target, and how punctually requests were sent.

From the cells' metadata and the runs' records. Archives of older versions have less; the page lists what is missing.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import yaml

from loadstone.archive import Campaign, CellListing, run_records, scan_campaign
from loadstone.archive.metadata import Metadata, parse_duration, read_cell
from loadstone.archive.run_records import RunRecord
from loadstone.config import redact
from loadstone.config.variants import Variants
from loadstone.report.conclusions import Notice
from loadstone.report.numbers import duration, joined, minute, span
from loadstone.report.queries import Queries, Row
from loadstone.tables.layout import text
from loadstone.text import at, counted, load_unit

_VERSION = re.compile(r"\bv?\d+(\.\d+)+[\w.+-]*")
_LONGEST = 4000  # characters shown of what was declared of a cluster
_LONGEST_NAME = 60
_NAMED = 5  # cells whose answers differed; beyond that their number is given


_PROTOCOLS = {"http1": "HTTP/1.1", "http2": "HTTP/2", "h2c": "HTTP/2 without TLS"}


@dataclass(frozen=True)
class Described:
    """One cell of the archive: canonical variant and folder, its metadata and what its runs recorded, by run."""

    variant: str
    folder: str
    rate: float
    metadata: Metadata
    records: Mapping[int, RunRecord]


def describe(campaign: Campaign, variants: Variants) -> list[Described]:
    """Every cell of a campaign, with its metadata and its runs' records."""
    return [
        Described(
            variant=text(variants.canonical(campaign.app, listing.cell.variant_dir)),
            folder=listing.cell.variant_dir,
            rate=float(listing.cell.rate),
            metadata=read_cell(listing.cell),
            records=_records(listing),
        )
        for listing in scan_campaign(campaign).cells
    ]


def _records(listing: CellListing) -> dict[int, RunRecord]:
    return {
        file.run: run_records.read_run_record(listing.cell.path / file.name)
        for file in listing.files
        if file.kind == "run" and not (listing.cell.path / file.name).is_fifo()
    }


def context(
    queries: Queries, cells: Sequence[Described], labels: Mapping[str, str], *, open_load: bool
) -> dict[str, Any]:
    """The variables of ``measured.html``; `open_load` is False if there are runs and none has open load."""
    fidelity = queries.rows("page_fidelity")
    recorded = [record for cell in cells for record in cell.records.values()]
    facts = [*_generator(cells, recorded), *_machine(recorded), *_sequence(cells, recorded)]
    variants = list(_requests(cells, labels))
    absent = _absent(cells, recorded, variants)
    warnings = [
        *_busy(recorded),
        *_changed_bodies(cells, labels),
        *_changed_images(cells, labels),
    ]
    return {
        "measured_facts": facts,
        "warnings": warnings,
        "open_load": open_load,
        "worst_lag_ns": max((lag for row in fidelity if (lag := row["worst_lag_p99_ns"]) is not None), default=None),
        "fidelity": _with_loads(fidelity, cells, list(labels))
        if open_load and any(row["n_measured"] for row in fidelity)
        else [],
        "requests": variants,
        "not_recorded": absent,
        "n_unreported": sum(row["n_unreported"] for row in fidelity),
    }


# --- facts -----------------------------------------------------------------------------------------------------------


def _generator(cells: Sequence[Described], recorded: Sequence[RunRecord]) -> Iterator[tuple[str, str]]:
    generators = dict.fromkeys(
        " ".join(filter(None, (cell.metadata.generator, cell.metadata.generator_version))) for cell in cells
    )
    yield "Load generator", joined(generators)
    sent_by = dict.fromkeys(cell.metadata.sent_by for cell in cells)
    yield "Sent by", joined(sent_by) if sent_by.keys() != {cell.metadata.generator for cell in cells} else ""
    named = {cell.metadata.generator for cell in cells}
    tools = dict.fromkeys(
        f"{name} {_short(version)}".strip()
        for cell in cells
        for name, version in cell.metadata.tools.items()
        if name not in named | {"loadstone"}
    )
    ours = dict.fromkeys(record.loadstone for record in recorded)
    did = "Imported" if any(cell.metadata.imported for cell in cells) else "Collected"
    yield f"{did} by", joined(f"Loadstone {version}" for version in ours if version)
    yield "Programs", joined(tools)
    yield "Kubernetes", joined(record.server_version for record in recorded)
    yield "Protocol", joined(_PROTOCOLS.get(str(name), name) for record in recorded if (name := record.protocol))
    yield "Redacted", joined(_redacted(cells, recorded))
    yield "TLS", joined(record.cipher_suite for record in recorded)


def _redacted(cells: Sequence[Described], recorded: Sequence[RunRecord]) -> Iterator[str]:
    """What was removed before anything was archived: names, and how many values."""
    found: Counter[str] = Counter()
    for removed in (run_records.removed(cell.metadata.target.get("redacted")) for cell in cells):
        found.update(dict(removed))
    for record in recorded:
        found.update(dict(record.redacted))
    for name, count in found.most_common(_NAMED):
        yield f"{name[:_LONGEST_NAME]} ({counted(count, 'value')})"
    if len(found) > _NAMED:
        yield f"{len(found) - _NAMED} more names"


def _short(version: str) -> str:
    """The number in a program's version (Envoy: ``<commit>/1.40.0/Clean/RELEASE/BoringSSL``)."""
    number = _VERSION.search(version)
    return number[0] if number else version


def machine_text(cells: Sequence[Described]) -> str:
    """``on Linux with 2 CPUs``; empty where it was not recorded, or differs between runs."""
    recorded = [record for cell in cells for record in cell.records.values()]
    systems = {(record.system or "").partition("-")[0] for record in recorded}
    cpus = {record.cpus for record in recorded}
    if len(systems) != 1 or len(cpus) != 1 or not (system := systems.pop()) or not (number := cpus.pop()):
        return ""
    return f"on {system} with {counted(int(number), 'CPU')}"


def _machine(recorded: Sequence[RunRecord]) -> Iterator[tuple[str, str]]:
    yield "Machine", joined(record.system for record in recorded)
    yield "CPUs", span(record.cpus for record in recorded)
    loads = [f"{load:.1f}" for load in sorted(record.load_1min for record in recorded if record.load_1min is not None)]
    yield "Load average (1 min) after a run", " to ".join(dict.fromkeys((*loads[:1], *loads[-1:])))


def _sequence(cells: Sequence[Described], recorded: Sequence[RunRecord]) -> Iterator[tuple[str, str]]:
    started = sorted(record.started for record in recorded if record.started)
    ended = sorted(record.ended for record in recorded if record.ended)
    parts = max((max(cell.metadata.parts, default=1) for cell in cells), default=1)
    in_parts = f", in {parts} parts" if parts > 1 else ""
    yield "Measured", f"{minute(started[0])} to {minute(ended[-1])}{in_parts}" if started and ended else ""
    kinds = {cell.metadata.order for cell in cells} - {None}
    seeds = {cell.metadata.seed for cell in cells} - {None}
    seed = f", shuffled with seed {seeds.pop()}" if len(seeds) == 1 and kinds != {"fixed"} else ""
    words = {
        "blocks": f"complete blocks{seed}",
        "grouped": f"complete blocks, in each of which the runs of a variant follow one another, every second block in "
        f"reverse{seed}",
        "fixed": "fixed: by run, then rate, then variant",
    }
    yield "Order", joined(words.get(str(kind), str(kind)) for kind in sorted(map(str, kinds)))
    timeouts = (cell.metadata.timeout for cell in cells)
    yield "Request timeout", joined(timeout and duration(parse_duration(timeout)) for timeout in timeouts)


def _requests(cells: Sequence[Described], labels: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Per variant the request, the expected answer and the commands; several entries if its cells differ in them."""
    order = list(labels)
    known = sorted(
        (cell for cell in cells if cell.variant in labels), key=lambda cell: (order.index(cell.variant), cell.rate)
    )
    for variant, group in groupby(known, key=lambda cell: cell.variant):
        shown: list[dict[str, Any]] = []
        for cell in group:
            described = {
                "request": _request(cell.metadata.request),
                "expect": _expected(cell.metadata.target.get("expect")),
                "commands": _commands(cell.metadata.target),
                "steps": _steps(cell.metadata.target),
                "cluster": _cluster(cell),
            }
            if described["request"] and described not in shown:
                shown.append(described)
        yield from ({"variant": variant, "label": labels[variant]} | described for described in shown)


def _request(request: Mapping[str, Any]) -> str:
    if not isinstance(request.get("url"), str):
        return ""
    headers = request.get("header")
    lines = [f"{request.get('method', 'GET')} {redact.text(request['url'])}"]
    for name, value in redact.hidden(headers if isinstance(headers, dict) else {}).items():
        lines.append(f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    if isinstance(request.get("body"), str):
        lines.append(f"with a body of {counted(len(request['body'].encode('utf-8', 'replace')), 'byte')}")
    return "\n".join(lines)


def _expected(expect: object) -> str:
    if not isinstance(expect, dict):
        return ""
    parts = [f"status {expect['status']}"] if "status" in expect else []
    headers = expect.get("headers")
    shown = redact.hidden(headers) if isinstance(headers, dict) else {}
    parts += [f"{name}: {value}" for name, value in shown.items()]
    parts += [f"a body that contains “{expect['body_contains']}”"] if "body_contains" in expect else []
    parts += [f"a body with SHA-256 {expect['body_sha256']}"] if "body_sha256" in expect else []
    return ", ".join(map(str, parts))


def _commands(target: Mapping[str, Any]) -> list[tuple[str, str]]:
    commands = target.get("commands")
    return [
        (name, shlex.join(redact.texts(list(map(str, command)))))
        for name, command in (commands.items() if isinstance(commands, dict) else ())
        if isinstance(command, list)
    ]


def _steps(target: Mapping[str, Any]) -> list[str]:
    """The commands that prepare a variant of an external target and clean up after it."""
    return [
        f"{step}: {shlex.join(redact.texts(list(map(str, command))))}"
        for step in ("prepare", "cleanup")
        for command in (target[step] if isinstance(target.get(step), list) else ())
        if isinstance(command, list)
    ]


def _cluster(cell: Described) -> str:
    """What was declared of the variant's deployments and recorded of its pods; empty for another kind of target."""
    shown = cluster_declared(cell.metadata)
    if not shown:
        return ""
    shown |= pods_recorded(list(cell.records.values()))
    shown = _hidden(redact.inside(shown, redact.hidden))
    return redact.text(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True))[:_LONGEST].rstrip()


def _hidden(value: Any) -> Any:
    """The value without credentials in environments."""
    if isinstance(value, list):
        return [_hidden(each) for each in value]
    if isinstance(value, dict):
        return {key: _hidden(each) for key, each in redact.hidden(value).items()}
    return value


def _absent(cells: Sequence[Described], recorded: Sequence[RunRecord], requests: Sequence[Any]) -> str:
    """What was not recorded, as a list in one line."""
    recorded_facts = {
        "the load generator's version": any(cell.metadata.generator_version for cell in cells),
        "other programs' versions": any(cell.metadata.tools for cell in cells),
        "the machine and its load": any(record.cpus is not None for record in recorded),
        "the order of runs": any(cell.metadata.order for cell in cells),
        "requests": bool(requests),
        "the target": any(row["commands"] or row["cluster"] or row["steps"] for row in requests),
    }
    return joined(what for what, is_there in recorded_facts.items() if not is_there)


# --- how requests were sent ------------------------------------------------------------------------------------------


def _busy(recorded: Sequence[RunRecord]) -> Iterator[Notice]:
    known = [record for record in recorded if record.cpus and record.load_1min is not None]
    busy = [record for record in known if (record.load_1min or 0) > (record.cpus or 0)]
    if busy:
        highest = max(busy, key=lambda record: record.load_1min or 0)
        runs = f"{len(busy):,} of {counted(len(known), 'run')}"
        yield Notice(
            f"The machine was busy after {runs}",
            f"After {runs} the machine's load average was above its number of CPUs (up to {highest.load_1min:.1f} "
            f"with {counted(int(highest.cpus or 0), 'CPU')}): generator, target and other processes shared them, and "
            "latencies include that.",
        )


def _changed_bodies(cells: Sequence[Described], labels: Mapping[str, str]) -> Iterator[Notice]:
    places = []
    for cell in cells:
        bodies = {record.body_sha256 for record in cell.records.values() if record.body_sha256}
        sizes = sorted({record.body_bytes for record in cell.records.values() if record.body_bytes is not None})
        if len(bodies) > 1:
            size = f", of {sizes[0]:,.0f} to {sizes[-1]:,.0f} bytes" if len(sizes) > 1 else ", of the same size"
            places.append(f"{_place(cell, labels)} ({len(bodies)} different bodies{size})")
    if places:
        yield Notice(
            f"The response body changed between runs in {counted(len(places), 'cell')}",
            "The response body changed between runs of a cell, so they may not have measured the same work: "
            f"{_listed(places)}.",
        )


def _changed_images(cells: Sequence[Described], labels: Mapping[str, str]) -> Iterator[Notice]:
    places = [
        _place(cell, labels)
        for cell in cells
        if len({record.images for record in cell.records.values() if record.images}) > 1
    ]
    if places:
        yield Notice(
            f"The images of the pods changed between runs in {counted(len(places), 'cell')}",
            f"The images of the pods changed between runs of a cell: {_listed(places)}.",
        )


def _place(cell: Described, labels: Mapping[str, str]) -> str:
    unit = load_unit([cell.metadata.load_model])
    return f"{labels.get(cell.variant, cell.variant)} {at([cell.rate], [cell.rate], unit)}"


def _listed(places: Sequence[str]) -> str:
    more = f", and {counted(len(places) - _NAMED, 'more cell')}" if len(places) > _NAMED else ""
    return f"{'; '.join(places[:_NAMED])}{more}"


def _with_loads(fidelity: Sequence[Row], cells: Iterable[Described], order: Sequence[str]) -> list[Row]:
    """The rows in the order of tables, with the machine's highest load average after a run of the cell, if recorded."""
    loads: dict[tuple[float, str], list[float]] = {}
    for cell in cells:
        found = [record.load_1min for record in cell.records.values() if record.load_1min is not None]
        loads.setdefault((cell.rate, cell.variant), []).extend(found)
    rows = [row | {"load": max(loads.get((row["rate"], row["variant"]), ()), default=None)} for row in fidelity]
    return sorted(rows, key=lambda row: (row["rate"], order.index(row["variant"])))


# --- Kubernetes -------------------------------------------------------------------------------------------------------


def cluster_declared(described: Metadata) -> dict[str, Any]:
    """The cell's declared cluster, with the numbers of pods on its host; empty without a cluster."""
    cluster = described.target.get("cluster")
    if not isinstance(cluster, dict):
        return {}
    shown = {**cluster, "replicas": described.replicas}
    if _are_all_fixed(cluster.get("deployments")):
        del shown["replicas"]
    if dependencies := _dependencies(cluster):
        shown["dependencies"] = {
            name: {**dependency, "replicas": _on_host(dependency, described)}
            for name, dependency in dependencies.items()
        }
    return shown


def pods_recorded(records: Sequence[RunRecord]) -> dict[str, Any]:
    """Number of pods by namespace and their images, as the cell's runs recorded them."""
    counts: dict[str, list[int]] = {}
    for record in records:
        for namespace, count in record.pods:
            counts.setdefault(namespace, []).append(count)
    images = sorted({image for record in records for image in record.images})
    pods = {namespace: span(found) if len(set(found)) > 1 else found[0] for namespace, found in counts.items()}
    return ({"pods": pods} if pods else {}) | ({"images": images} if images else {})


def replicas_text(cells: Iterable[Metadata]) -> str:
    """How many pods were declared: ``2 of each deployment, but redis 1, presidio 1``; empty without a cluster."""
    usual: list[str] = []
    others: list[str] = []
    for described in cells:
        cluster = described.target.get("cluster")
        if not isinstance(cluster, dict):
            continue
        deployments = cluster.get("deployments")
        fixed = deployments if isinstance(deployments, dict) else {}
        others += [f"{name} {count}" for name, count in fixed.items() if count is not None]
        others += [f"{name} {_on_host(each, described)}" for name, each in _dependencies(cluster).items()]
        if not _are_all_fixed(deployments) and described.replicas is not None:
            usual.append(str(described.replicas))
    of_each = f"{' or '.join(dict.fromkeys(usual))} of each deployment" if usual else ""
    return ", but ".join(filter(None, (of_each, joined(others))))


def _are_all_fixed(deployments: object) -> bool:
    return isinstance(deployments, dict) and None not in deployments.values()


def _dependencies(cluster: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = cluster.get("dependencies")
    return {name: each for name, each in (found if isinstance(found, dict) else {}).items() if isinstance(each, dict)}


def _on_host(dependency: Mapping[str, Any], described: Metadata) -> Any:
    """Pods of each deployment of a dependency: one number, or one by host."""
    count = dependency.get("replicas", 1)
    here = count.get(described.hostname, count.get("*")) if isinstance(count, dict) else count
    return "not declared" if here is None else here
