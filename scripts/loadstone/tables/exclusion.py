"""Decides which runs are excluded from statistics, and why. Nothing else decides it: all use `runs.excluded`.

A reason is an `Exclusion`: a code with values. Table `runs` has them as structs in `exclusions`, and as one text in
`exclusion_reason`. Also which incidents make a run doubtful: they do not exclude it, but a tag is suggested.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from loadstone.archive import LEADS_OUT
from loadstone.archive.run_records import Incident

# A run may differ by this share from rate x duration; at high rates a tool sends a few requests more or fewer.
TOLERANCE = 0.01

# --- why runs are excluded --------------------------------------------------------------------------------------------

# What conversion finds wrong with a file or folder, `file`.
UNREADABLE = "unreadable"  # detail: what is wrong with its content
OUTSIDE_ARCHIVE = "outside_archive"
NOT_CONVERTED = "not_converted"  # detail: the error
METADATA_UNREADABLE = "metadata_unreadable"  # detail: why
METADATA_DIFFER = "metadata_differ"  # detail: rate, users, hostname or timestamp; found, expected: by the folder
CHANGED = "changed"  # expected: the file of checksums
NOT_PLANNED = "not_planned"  # detail: what is wrong with the campaign's extensions
NO_SUCH_PHASE = "no_such_phase"  # expected: the measured phase
FIGURE_TOO_LARGE = "figure_too_large"
REPORT_UNSOUND = "report_unsound"  # detail: what contradicts the only report
LOAD_DIFFERS = "load_differs"  # detail: how the reported load differs from the declared one
NO_RESULTS = "no_results"
OTHER_GENERATOR = "other_generator"  # found: by the file, expected: the run's
OTHER_LOAD_MODEL = "other_load_model"  # found: by the file, expected: by the metadata
# What is wrong with the run.
REQUEST_COUNT = "request_count"  # value: number of requests, expected_value: the number expected
REPEATED_REQUESTS = "repeated_requests"  # value: number of requests
SAME_NUMBER = "same_number"
LINKED = "linked"  # found: the other run's file
SEVERAL_LOADS = "several_loads"  # ways: load model and generator of each
SEVERAL_PROTOCOLS = "several_protocols"  # ways: protocol of each
# What the catalogue says.
TAGGED = "tagged"  # found: the tag, detail: the catalogue's reason


@dataclass(frozen=True)
class Way:
    """One of several ways in which runs of a rate and variant were measured; None where unknown or of no concern."""

    load_model: str | None = None
    generator: str | None = None
    protocol: str | None = None


@dataclass(frozen=True)
class Exclusion:
    """A code and its values, as described above; `file` is a file of the cell by its name, or the cell's folder."""

    code: str
    file: str | None = None
    found: str | None = None
    expected: str | None = None
    detail: str | None = None
    value: int | None = None
    expected_value: int | None = None
    ways: tuple[Way, ...] = ()

    @property
    def problem(self) -> str:
        """What is wrong, without the file."""
        return _TEXTS[self.code](self)

    @property
    def text(self) -> str:
        """A clause: ``1.results.json.zst has changed since ...``."""
        return f"{self.file or ''} {self.problem}".strip()


def text(exclusions: Iterable[Exclusion]) -> str | None:
    """All reasons in one line; None without any."""
    return "; ".join(each.text for each in exclusions) or None


def of_row(row: Mapping[str, Any], column: str = "exclusions") -> list[Exclusion]:
    """The reasons in a row of a table."""
    return [_of(each) for each in row[column] or ()]


def _of(struct: Mapping[str, Any]) -> Exclusion:
    return Exclusion(**{**struct, "ways": tuple(Way(**way) for way in struct["ways"] or ())})


_METADATA_KEYS = {"users": "number of users"}
_NUMBERS = ("users", "rate")


def _metadata_differ(of: Exclusion) -> str:
    key = of.detail or ""
    given = of.found if key in _NUMBERS else repr(of.found)
    return f"gives the {_METADATA_KEYS.get(key, key)} as {given}, but the folder name says {of.expected!r}"


def _load(way: Way) -> str:
    return f"{way.load_model or 'unknown'} load by {way.generator or 'an unknown generator'}"


def _among(texts: Iterable[str]) -> str:
    return " and ".join(sorted(texts))


_TEXTS: Mapping[str, Callable[[Exclusion], str]] = {
    UNREADABLE: lambda of: of.detail or "",
    OUTSIDE_ARCHIVE: lambda _: LEADS_OUT,
    NOT_CONVERTED: lambda of: f"could not be converted: {of.detail}",
    METADATA_UNREADABLE: lambda of: of.detail or "",
    METADATA_DIFFER: _metadata_differ,
    CHANGED: lambda of: f"has changed since it was collected (its checksum differs from {of.expected})",
    NOT_PLANNED: lambda of: f"does not plan this run, and {of.detail}",
    NO_SUCH_PHASE: lambda of: f"holds no request of the phase {of.expected!r}",
    FIGURE_TOO_LARGE: lambda _: "holds a figure that is too large for its column",
    REPORT_UNSOUND: lambda of: of.detail or "",
    LOAD_DIFFERS: lambda of: of.detail or "",
    NO_RESULTS: lambda _: "has no results",
    OTHER_GENERATOR: lambda of: f"is a file of {of.found}, but the run is of {of.expected}",
    OTHER_LOAD_MODEL: lambda of: f"says that the load is {of.found}; by the metadata, it is {of.expected}",
    REQUEST_COUNT: lambda of: f"{of.value:,} requests instead of {of.expected_value:,}",
    REPEATED_REQUESTS: lambda of: f"{of.value:,} requests appear more than once",
    SAME_NUMBER: lambda _: "another folder of the same rate and variant holds a run of this number",
    LINKED: lambda of: f"is a link to {of.found}, which is another run",
    SEVERAL_LOADS: lambda of: (
        f"there are runs of {_among(map(_load, of.ways))} under this rate and variant, which are never pooled"
    ),
    SEVERAL_PROTOCOLS: lambda of: (
        f"runs of this rate and variant were sent over {_among(str(way.protocol) for way in of.ways)}, which are "
        "never pooled"
    ),
    TAGGED: lambda of: ": ".join(part for part in (f"tagged {of.found}", of.detail) if part),
}
CODES = tuple(_TEXTS)


# --- the judgement ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """The judgement of one run. `complete` is None when it is not known how many requests it should have."""

    complete: bool | None
    tags: list[str]
    exclusions: list[Exclusion]

    @property
    def excluded(self) -> bool:
        """Whether statistics exclude the run."""
        return bool(self.exclusions)

    @property
    def unfit(self) -> bool:
        """Whether they do because of its data, not only because of tags."""
        return any(each.code != TAGGED for each in self.exclusions)

    def columns(self) -> dict[str, Any]:
        """The columns of table `runs` that say it."""
        return {
            "complete": self.complete,
            "tags": self.tags,
            "excluded": self.excluded,
            "exclusion_reason": text(self.exclusions),
            "exclusions": [asdict(each) for each in self.exclusions],
        }


def judge(
    fact: Mapping[str, Any],
    requests: int | None,
    repeated: int,
    tags: Sequence[Mapping[str, Any]],
    excluding: Collection[str],
    *,
    ambiguous: bool = False,
    linked_to: str | None = None,
    loads: Collection[Way] = (),
    protocols: Collection[Way] = (),
) -> Verdict:
    """Judge one run by a row of `facts` and by its requests.

    `tags` are rows that `matches` understands, with ``tag`` and ``reason``; tags named in `excluding` exclude.
    `repeated` counts requests whose number another has too; `ambiguous`: another folder holds the same run; `linked_to`
    names the other run whose file this one only links to. `loads` are the load models and generators of the runs of its
    rate and variant, and `protocols` those by which they are known to be sent.
    """
    expected = fact["expected_requests"]
    complete = _is_complete(requests, expected)
    found = of_row(fact, "faults")
    if requests is not None and complete is False:
        found.append(Exclusion(REQUEST_COUNT, value=requests, expected_value=expected))
    if repeated:
        found.append(Exclusion(REPEATED_REQUESTS, value=repeated))
    if ambiguous:
        found.append(Exclusion(SAME_NUMBER))
    if linked_to is not None:
        found.append(Exclusion(LINKED, found=linked_to))
    if len(loads) > 1:
        found.append(Exclusion(SEVERAL_LOADS, ways=_sorted(loads)))
    if len(protocols) > 1:
        found.append(Exclusion(SEVERAL_PROTOCOLS, ways=_sorted(protocols)))
    matching = [tag for tag in tags if matches(tag, fact)]
    found += [
        Exclusion(TAGGED, found=tag["tag"], detail=tag.get("reason")) for tag in matching if tag["tag"] in excluding
    ]
    return Verdict(complete, sorted({tag["tag"] for tag in matching}), found)


def _sorted(ways: Collection[Way]) -> tuple[Way, ...]:
    return tuple(sorted(ways, key=lambda way: [each or "" for each in vars(way).values()]))


def _is_complete(requests: int | None, expected: int | None) -> bool | None:
    if expected is None:
        return None
    return requests is not None and abs(requests - expected) <= max(TOLERANCE * expected, 1 if expected > 1 else 0)


def matches(tag: Mapping[str, Any], fact: Mapping[str, Any]) -> bool:
    """Whether a tag concerns a run.

    It does by ``variant`` (canonical or folder), ``rate`` and ``run``, or by a ``pattern`` for
    ``<timestamp>/<rate>/<variant folder>/<file>``, where ``*`` crosses ``/`` too. All but numbers are patterns of
    `fnmatch`. The files of a run are its results as they are named, or as the archive would name them.
    """
    if (pattern := tag.get("pattern")) is not None:
        return any(fnmatchcase(path, pattern) for path in _paths(fact))
    return (
        any(fnmatchcase(fact[name], str(tag.get("variant") or "*")) for name in ("variant", "variant_dir"))
        and _matches_number(tag.get("rate"), fact["rate"])
        and _matches_number(tag.get("run"), fact["run"])
    )


def _matches_number(declared: object, number: float) -> bool:
    """Whether a number equals the declared one (300, 300.0 and 3e2 do) or matches it as a pattern."""
    if declared is None or declared == "":
        return True
    with suppress(ValueError):
        return "_" not in str(declared) and float(str(declared)) in (number, float(f"{number:.15g}"))
    return fnmatchcase(f"{number:.15g}", str(declared))


def _paths(fact: Mapping[str, Any]) -> Iterator[str]:
    cell = f"{fact['timestamp']}/{fact['rate']:.15g}/{fact['variant_dir']}"
    yield f"{cell}/{fact['run']}.results.json.zst"
    yield f"{cell}/{fact['run']}.summary.json"
    if fact.get("source"):
        yield fact["source"].split("/", 2)[-1]


# --- incidents --------------------------------------------------------------------------------------------------------

# Kinds of incidents that make a run doubtful, the worst first; others (warnings, pods that were added) do not.
DOUBTFUL = {
    "oom": "containers killed for lack of memory",
    "restart": "containers restarted",
    "ended": "containers ended",
    "evicted": "pods evicted",
    "failed": "pods failed",
    "replaced": "pods replaced",
    "vanished": "pods lost",
}
_NAMED = 3


def target_problem(incidents: Sequence[Incident]) -> str | None:
    """``containers killed for lack of memory: 3 (shop/web-1, container app)``; None when nothing of that kind happened.

    `incidents` are those of one run.
    """
    found = []
    for kind, words in DOUBTFUL.items():
        if own := [incident for incident in incidents if incident.kind == kind]:
            found.append(f"{words}: {sum(incident.count for incident in own)} ({_named(own)})")
    return "; ".join(found) or None


def unknown(incidents: Sequence[Incident]) -> list[str]:
    """Texts about incidents that could not be determined."""
    texts = [incident.text for incident in incidents if incident.kind == "unknown"]
    return [text or "it is unknown what happened" for text in texts]


def _named(incidents: Sequence[Incident]) -> str:
    names = list(dict.fromkeys(map(_name, incidents)))
    more = f"; and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return "; ".join(names[:_NAMED]) + more


def _name(incident: Incident) -> str:
    return (incident.object or "unknown") + (f", container {incident.container}" if incident.container else "")
