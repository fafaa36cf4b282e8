"""Opening the configured sweep: its requirements are checked, and its plan is written into the archive.

Requirements are programs, whose versions are recorded, files, and the declared state of the cluster. The plan is a
folder with a ``metadata.json`` for each cell.
"""

import json
import os
import platform
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from loadstone import __version__, archive
from loadstone.archive import LEADS_OUT, Campaign, CampaignListing, Cell, extension, leads_out, metadata
from loadstone.archive.durable import new_folder, write_new
from loadstone.archive.plan import missing, order
from loadstone.archive.progress import duration_text
from loadstone.archive.stages import number_text
from loadstone.collect.generators import k6
from loadstone.collect.targets.base import Log
from loadstone.config import load_shapes, redact
from loadstone.config.connection import Connection
from loadstone.config.load_shapes import loads, warmup_rate
from loadstone.config.target import (
    changes,
    digest,
    identity,
    identity_digest,
    plan_changes,
    recordable,
    recorded_script,
    removed,
    replicas_for,
    variant_identity,
)
from loadstone.errors import LoadstoneError
from loadstone.process import find, output_of
from loadstone.text import counted, load_unit

RUN_S = 1.0  # a run's time besides its attacks
# Keys of the configured sweep that are not part of its plan: they say how runs are collected, not which.
_NOT_PLANNED = ("retries", "give_up_after", "extend")
# Arguments by which programs print their version. Others are not asked: an unknown program might start serving.
_VERSION_ARGUMENTS = {
    "vegeta": "-version",
    "k6": "version",
    "artillery": "--version",
    "envoy": "--version",
    "nginx": "-v",
    "haproxy": "-v",
    "traefik": "version",
}


# Arguments with these endings are files that a program reads, and hardly ever paths of addresses (/api.json).
_SCRIPTS = frozenset((".sh", ".py"))
_READ = frozenset((".yaml", ".yml", ".toml", ".conf", ".cfg", ".ini", ".lua", ".py", ".wasm", ".pem", ".crt", ".key"))


def open_checked(config: Mapping[str, Any], log: Log) -> Campaign:
    """Check the requirements, then `open_sweep`. Raises LoadstoneError, with nothing written, for what is wrong."""
    tools = versions(config)
    resumable(config)
    check_target(config, log)
    return open_sweep(config, tools, log, k6.script_files(config))


def check_target(config: Mapping[str, Any], log: Log) -> None:
    """Check what the target needs: files of its connections, and the state of a cluster. Raises LoadstoneError."""
    variants = config["sweep"]["variants"]
    for name in variants:
        Connection.of(config["target"]["variants"][name], f"target.variants.{name}")
    if prometheus := config["target"].get("resources", {}).get("prometheus"):
        Connection.of(prometheus, "target.resources.prometheus")
    if config.get("target", {}).get("kind") == "kubernetes":  # its client library takes a second to load
        from loadstone.collect.targets.kubernetes.survey import check  # noqa: PLC0415

        check(config, set(variants), log)


def open_sweep(
    config: Mapping[str, Any], tools: Mapping[str, str], log: Log, script_files: Sequence[str] = ()
) -> Campaign:
    """Open the configured sweep: write a campaign's folders with one version 5 ``metadata.json`` per cell.

    `tools` are the programs' versions, `script_files` the files that the sweep's script reads. When a campaign of the
    same app and host is still open, nothing is written: it is returned if it was opened from the same declaration;
    otherwise this raises LoadstoneError.
    """
    if (still_open := resumable(config)) is not None:
        log(_still_open_text(still_open))
        return still_open
    campaign = _new(config)
    cells = planned(config, tools, campaign, script_files)
    _write_plan(campaign, cells)
    log(f"opened {campaign}: {_plan_text(config['sweep'], cells)}")
    return campaign


def preview(config: Mapping[str, Any]) -> list[str]:
    """What `open_checked` would open now; changes nothing. Raises LoadstoneError."""
    lines: list[str] = []
    tools = versions(config)
    if (still_open := resumable(config)) is not None:
        return [_still_open_text(still_open)]
    check_target(config, lines.append)
    campaign, sweep = _new(config), config["sweep"]
    text = _plan_text(sweep, planned(config, tools, campaign, k6.script_files(config)))
    unit = load_unit(["closed" if "users" in sweep else "open"])
    return [
        *lines,
        f"{sweep['app']} on {config['host']}: {text}",
        f"  variants: {', '.join(sweep['variants'])}",
        f"  {', '.join(map(number_text, loads(sweep)))} {unit}, {counted(sweep['runs'], 'run')} each",
    ]


def _new(config: Mapping[str, Any]) -> Campaign:
    timestamp = datetime.now().astimezone().isoformat(timespec="seconds")
    return Campaign(Path(config["archive"]), config["sweep"]["app"], config["host"], timestamp)


def _still_open_text(campaign: Campaign) -> str:
    n_missing = len(missing(archive.scan_campaign(campaign)))
    return f"{campaign} is still open with {n_missing} runs missing; `snakemake --cores all` continues it"


def _plan_text(sweep: Mapping[str, Any], cells: Mapping[tuple[float, str], dict[str, Any]]) -> str:
    """``48 runs of 4 variants at 3 rates, about 2 min``."""
    runs = {cell: len(content["order"]["positions"]) for cell, content in cells.items()}
    seconds = sum(runs[cell] * (metadata.parse(content).load_s + RUN_S) for cell, content in cells.items())
    at = counted(len(loads(sweep)), *(("number of users", "numbers of users") if "users" in sweep else ("rate",)))
    variants = counted(len(sweep["variants"]), "variant")
    return f"{counted(sum(runs.values()), 'run')} of {variants} at {at}, about {duration_text(seconds)}"


def planned(
    config: Mapping[str, Any], tools: Mapping[str, str], campaign: Campaign, script_files: Sequence[str] = ()
) -> dict[tuple[float, str], dict[str, Any]]:
    """The metadata of every cell of the configured sweep."""
    sweep = config["sweep"]
    seed = sweep.get("seed")
    seed = secrets.randbits(32) if seed is None else seed
    common = {
        "seed": seed,
        "tools": {"loadstone": __version__, **tools},
        "target": {"declaration": declarations(config)[0]},
        "script": recorded_script(sweep["script"], script_files) if "script" in sweep else None,
    }
    plan = order(sweep["variants"], loads(sweep), sweep["runs"], sweep.get("order", "blocks"), seed)
    cells = {(rate, variant): _metadata(config, common, campaign, rate, variant) for rate, variant in plan}
    for cell, positions in plan.items():
        cells[cell]["order"]["positions"] = positions
    return cells


def declarations(config: Mapping[str, Any]) -> tuple[str, str]:
    """``target.declaration`` of the configured sweep: with marks for credentials, and as earlier versions wrote it."""
    identities = identity(config["target"], config["sweep"]["variants"])
    marked = {name: recordable(each) for name, each in identities.items()}
    planned = {key: value for key, value in config["sweep"].items() if key not in _NOT_PLANNED}
    return digest({"sweep": planned, "target": marked}), digest({"sweep": planned, "target": identities})


def _still_open(root: Path, app: str, host: str) -> Campaign | None:
    """The newest open campaign of this app and host with missing runs."""
    if not (root / app / host).is_dir():
        return None
    mine = [each for each in archive.campaigns(root) if (each.app, each.host) == (app, host) and each.is_open]
    return next((each for each in reversed(mine) if missing(archive.scan_campaign(each))), None)


def resumable(config: Mapping[str, Any]) -> Campaign | None:
    """The open campaign of the configured sweep, if any.

    Raises LoadstoneError when no sweep is declared, or the open campaign was opened from another declaration.
    """
    if "sweep" not in config:
        raise LoadstoneError("the configuration declares no sweep (see docs/load.md)")
    campaign = _still_open(Path(config["archive"]), config["sweep"]["app"], config["host"])
    if campaign is None:
        return None
    listing = archive.scan_campaign(campaign)
    n_missing = len(missing(listing))
    extensions = extension.read(campaign)
    recorded = {metadata.read_cell(cell.cell).target.get("declaration") for cell in listing.cells}
    named = next((metadata.read_cell(cell.cell).target.get("redact") for cell in listing.cells), None)
    if extensions:
        recorded, named = {extensions[-1].declaration}, extensions[-1].redact
    with redact.using(named):
        declared = declarations(config)
    if len(recorded) != 1 or not recorded <= set(declared):
        phrases = _declaration_changes(listing, config) or ["something that its metadata does not record"]
        raise LoadstoneError(
            f"the campaign {campaign} is still open ({n_missing} runs missing) and was opened from another "
            "declaration:\n"
            + "".join(f"  {phrase}\n" for phrase in phrases)
            + f"Finish it with the previous configuration, or give it up: {campaign.give_up_command}"
        )
    return campaign


def _declaration_changes(listing: CampaignListing, config: Mapping[str, Any]) -> list[str]:
    """How the declaration differs from the plan of an open campaign."""
    cells = {(cell.cell.rate, cell.cell.variant_dir): cell.cell for cell in listing.cells}
    was = {key: content_of(cell) for key, cell in cells.items()}
    now_planned = planned(config, {}, listing.campaign)
    now = {(number_text(rate), variant): content for (rate, variant), content in now_planned.items()}
    phrases = plan_changes(was, now)
    for variant, cell in {key[1]: cell for key, cell in cells.items() if key in now}.items():
        described = metadata.read_cell(cell)
        phrases += [f"target variant {variant}: {phrase}" for phrase in changes(described, config["target"], variant)]
    return phrases


def content_of(cell: Cell) -> Any:
    """The decoded metadata of a cell as written when it was opened; empty where it can't be read."""
    try:
        return metadata.load(cell.path / archive.METADATA)
    except (OSError, ValueError):
        return {}


def _write_plan(campaign: Campaign, cells: Mapping[tuple[float, str], dict[str, Any]]) -> None:
    """Write all folders and files in one step, by renaming a temporary folder: an incomplete plan is never seen."""
    if leads_out(campaign.path, campaign.root):
        raise LoadstoneError(f"{campaign.path.parent} or a folder above it {LEADS_OUT}; no sweep was opened")
    try:
        with new_folder(campaign.path) as staged:
            for (rate, variant), content in cells.items():
                folder = staged / number_text(rate) / variant
                folder.mkdir(parents=True)
                write_new(folder / archive.METADATA, (json.dumps(content, indent=2) + "\n").encode())
    except OSError as error:
        raise LoadstoneError(f"{campaign.path} cannot be created: {error.strerror}; try again") from None


def _metadata(
    config: Mapping[str, Any], common: Mapping[str, Any], campaign: Campaign, rate: float, variant: str
) -> dict[str, Any]:
    """One cell's version 5 metadata: the keys of version 4 in their order, then the others; positions still empty."""
    sweep, declared = config["sweep"], config["target"]["variants"][variant]
    warmup = sweep.get("warmup", {"max_rate": 0})
    declared_identity = variant_identity(config["target"], variant)
    identified = recordable(declared_identity)
    hidden = {"redact": redact.names().fields(), "redacted": removed(declared_identity)}
    return {
        "version": metadata.VERSION,
        "testMode": sweep.get("generator", "vegeta"),
        "timestamp": campaign.timestamp,
        "min_warmup_rate": str(warmup.get("min_rate", 0)),
        "max_warmup_rate": str(warmup.get("max_rate", 100)),
        "warmupsFileSuffix": ".warmups.json.zst",
        "resultsFileSuffix": ".results.json.zst",
        "summaryFileSuffix": ".summary.json",
        "req": identified.pop("request"),
        **_load(sweep, rate),
        "workloadInfo": {
            "variant": variant,
            "namespace": declared.get("namespace", variant),
            "hostname": campaign.host,
            "test_replicas": replicas_for(declared.get("replicas", config["target"].get("replicas", 1)), campaign.host),
        },
        "resourcesFileSuffix": ".resources.csv.zst",
        "recordFileSuffix": ".run.json",
        "checksums": {"algorithm": "sha256", "fileSuffix": ".sha256"},
        "runs": sweep["runs"],
        "seed": common["seed"],
        "order": {"kind": sweep.get("order", "blocks"), "positions": []},
        "generator": _generator(config, common["tools"]),
        "loadModel": load_shapes.load_model(sweep),
        **_stages(sweep, rate),
        **({"script": common["script"]} if common["script"] else {}),
        "labels": redact.texts(dict(sweep.get("labels", {})), redact.marked_text),
        "tools": common["tools"],
        "target": {**common["target"], "identity": identity_digest(config["target"], variant), **identified, **hidden},
    }


def _generator(config: Mapping[str, Any], tools: Mapping[str, str]) -> dict[str, Any]:
    """The load generator; its number, place and connections only if the sweep declares them."""
    sweep = config["sweep"]
    name = sweep.get("generator", "vegeta")
    found: dict[str, Any] = {"name": name, "version": tools.get(name, "")}
    if name == "vegeta":
        found["program"] = "paced"
    if "connections" in sweep:
        found["connections"] = sweep["connections"]
    if "generators" in sweep:
        found["count"] = sweep["generators"]
        found |= {"in": "cluster"} if "generators" in config["target"] else {}
    return found


def _load(sweep: Mapping[str, Any], load: float) -> dict[str, Any]:
    """The load in the keys of version 4: a warm-up and a test, each at one rate, or with users instead."""
    warmup = sweep.get("warmup", {"duration": "0s", "max_rate": 0})
    duration = load_shapes.measured_duration(sweep)
    test = {"duration": duration, "rate": number_text(load), "timeout": sweep.get("timeout", "30s")}
    if "users" in sweep:
        del test["rate"]
        return {"warmupOptions": {"duration": warmup["duration"]}, "testOptions": test, "users": int(load)}
    rate = "0" if "shape" in sweep else str(warmup_rate(load, warmup))
    return {"warmupOptions": {"duration": warmup["duration"], "rate": rate}, "testOptions": test}


def _stages(sweep: Mapping[str, Any], load: float) -> dict[str, Any]:
    """The stages of the load, where it is more than a warm-up and a test at one rate, or sent by another tool."""
    if "shape" not in sweep and sweep.get("generator", "vegeta") in ("vegeta", "serial"):
        return {}
    stages = load_shapes.planned(sweep, load)
    measured = next(stage.name for stage in stages if stage.measured)
    return {"stages": [stage.to_json() for stage in stages], "measuredPhase": measured}


# --- programs and files ----------------------------------------------------------------------------------------------


def versions(config: Mapping[str, Any]) -> dict[str, str]:
    """Program name -> its version: the generator and the target's processes; "" for a program that can't be asked.

    Raises LoadstoneError that names every missing program and every missing file of a command.
    """
    commands = _commands(config)
    programs = {name: name for name in _generator_programs(config)}
    programs |= {Path(command[0]).name: command[0] for command in commands.values()}
    _require(programs, commands | _scripts(config))
    paths = {name: find(program) for name, program in programs.items()}
    arguments = _VERSION_ARGUMENTS
    answers = {name: output_of([path, arguments[name]]) if name in arguments else "" for name, path in paths.items()}
    for name in {"serial", "paced"} & answers.keys():  # built from the same library as vegeta
        answers[name] = answers["vegeta"]
    return {"python": platform.python_version()} | {name: _version(text) for name, text in answers.items()}


def _generator_programs(config: Mapping[str, Any]) -> list[str]:
    """The programs that send the load: vegeta with one of its own programs, or another tool."""
    generator = config.get("sweep", {}).get("generator", "vegeta")
    if generator not in ("vegeta", "serial"):
        return [generator]
    return ["vegeta", "serial" if generator == "serial" else "paced"]


def _commands(config: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """The command of each local process that the sweep's variants need."""
    target = config.get("target", {})
    declared = [target.get("variants", {}).get(name, {}) for name in config.get("sweep", {}).get("variants", [])]
    needed = dict.fromkeys(process for variant in declared for process in variant.get("processes", []))
    return {f"the process {process!r}": target["processes"][process]["command"] for process in needed}


def _scripts(config: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """The scripts that commands of external variants name."""
    target, found = config.get("target", {}), dict[str, Sequence[str]]()
    for variant in config.get("sweep", {}).get("variants", []):
        declared = target.get("variants", {}).get(variant, {})
        for step in ("prepare", "cleanup"):
            named = [text for command in declared.get(step, []) for text in command if Path(text).suffix in _SCRIPTS]
            found[f"{step} of {variant!r}"] = ["", *named]
    return found


def _require(programs: Mapping[str, str], commands: Mapping[str, Sequence[str]]) -> None:
    faults = []
    for program in programs.values():
        try:
            find(program)
        except LoadstoneError as error:
            faults.append(f"{error}{_relative(program) if os.sep in program else ''}")
    for process, command in commands.items():
        for argument in command[1:]:
            text = argument.partition("=")[2] if argument.startswith("-") else argument
            if Path(text).suffix in _READ | _SCRIPTS and not re.search(r"\s|://", text) and not _exists(Path(text)):
                faults.append(f"{process} names the file {text}, which does not exist{_relative(text)}")
    if faults:
        raise LoadstoneError("the sweep cannot be opened:\n" + "\n".join(f"  {text}" for text in faults))


def _relative(path: str) -> str:
    return "" if Path(path).is_absolute() else f" (relative paths count from {Path.cwd()})"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long for a name, or in a folder that we may not read
        return True


def _version(text: str) -> str:
    if found := re.search(r"^Artillery: +(\S+)$", text, re.MULTILINE):  # after an ASCII picture
        return found[1]
    first = next((line for line in text.splitlines() if line.strip()), "")
    return first.partition("ersion:")[2].strip()[:200] or first.strip()[:200]
