"""Declared comparisons (config/comparisons.yaml): their campaigns, and the runs to exclude."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from loadstone.archive import Campaign
from loadstone.config import share
from loadstone.config.yaml_files import read_yaml, validate
from loadstone.errors import LoadstoneError

# What a comparison may pool if it declares it by name -> the note on its page, of which the first part is the heading.
_SIDE_BY_SIDE = "no figure combines two of them"
ALLOWANCES = {
    "hosts": ("runs of several hosts are pooled",),
    "load_models": ("open, closed and serial load are shown side by side", _SIDE_BY_SIDE),
    "protocols": (
        "runs of several protocols (HTTP/1.1, HTTP/2) are compared, and pooled where they are of one variant",
    ),
    "generators": (
        "several load generators, whose latencies have different meanings, are shown side by side",
        _SIDE_BY_SIDE,
    ),
    "evidence": ("the mean of a run without a summary is that of its requests, pooled with the summaries' means",),
}


@dataclass(frozen=True)
class Fit:
    """A declared linear fit over `x`: ``rate``, or a label whose values are numbers.

    `of` is ``cpu`` or ``memory``, of the namespace or process `name`, or a latency as reported by the tool.
    """

    x: str
    of: str
    name: str | None = None

    @property
    def unit(self) -> str:
        """The unit of the fitted quantity."""
        return {"cpu": "millicores", "memory": "MiB"}.get(self.of, "ms")


@dataclass(frozen=True)
class Comparison:
    """One entry. Empty `variants` or `rates` (requests/s) stand for all; `exclude` holds fnmatch patterns.

    Without a `baseline` variant or a `margin` (a share), those of the configuration apply. `declared` is the entry
    itself.
    """

    id: str
    title: str
    app: str
    hosts: tuple[str, ...]
    timestamps: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    rates: tuple[float, ...] = ()
    allow: frozenset[str] = field(default_factory=frozenset)
    fits: tuple[Fit, ...] = ()
    baseline: str | None = None
    margin: float | None = None
    declared: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def campaigns(self, root: Path) -> list[Campaign]:
        """Every campaign that is declared, whether the archive holds it or not."""
        return [Campaign(root, self.app, host, timestamp) for host in self.hosts for timestamp in self.timestamps]

    def takes(self, variant: str, rate: float) -> bool:
        """Whether a cell is part of the comparison. `variant` is its canonical name."""
        return (not self.variants or variant in self.variants) and (not self.rates or rate in self.rates)

    def excluding(self, source: str) -> str | None:
        """The pattern that excludes a run, if one does. `source` is the run's file relative to the archive.

        A pattern is matched by fnmatch against ``<timestamp>/<rate>/<variant folder>/<file>``, where ``*`` also matches
        ``/``; one that matches the run's results or its summary excludes the run.
        """
        path = PurePosixPath(*PurePosixPath(source).parts[2:])
        run = path.name.partition(".")[0]
        names = {str(path), *(str(path.with_name(f"{run}.{end}")) for end in ("results.json.zst", "summary.json"))}
        return next((pattern for pattern in self.exclude if any(fnmatchcase(name, pattern) for name in names)), None)


def load(path: Path = Path("config/comparisons.yaml")) -> list[Comparison]:
    """All comparisons in their order; none when there is no such file. Raises LoadstoneError."""
    if not path.exists():
        return []
    content = read_yaml(path) or []
    validate(content, "comparisons.schema.json", str(path))
    found = [from_config(entry) for entry in content]
    _check_ids(found, path)
    return found


def from_config(entry: Mapping[str, Any]) -> Comparison:
    """One decoded entry that fits the schema."""
    hosts = [entry["host"]] if isinstance(entry["host"], str) else entry["host"]
    found = {**entry, "hosts": hosts, "fits": [_fit(fit) for fit in entry.get("fits", ())], "declared": entry}
    return msgspec.convert(found | ({"margin": share(entry["margin"])} if "margin" in entry else {}), Comparison)


def _fit(entry: Mapping[str, str]) -> Fit:
    """CPU and memory have a name, latencies do not."""
    has_name = entry["of"] in ("cpu", "memory")
    return Fit(entry["x"], entry["of"], entry.get("name", "TOTAL") if has_name else None)


def _check_ids(found: Collection[Comparison], path: Path) -> None:
    """Ids name files, also in file systems that ignore case."""
    taken: dict[str, str] = {}
    for comparison in found:
        other = taken.setdefault(comparison.id.casefold(), comparison.id)
        if other is not comparison.id:
            raise LoadstoneError(f"{path}: two comparisons have the id {other!r}; give each its own")
