"""Which runs are left out of statistics, and why. The one place that decides; everything obeys `runs.excluded`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

# A run may differ by this share from rate x duration; at high rates a tool sends a few requests more or fewer.
TOLERANCE = 0.01


@dataclass(frozen=True)
class Verdict:
    """What becomes of one run. `complete` is None when nobody knows how many requests it should hold."""

    complete: bool | None
    tags: list[str]
    reasons: list[str]

    @property
    def excluded(self) -> bool:
        """Whether statistics leave the run out."""
        return bool(self.reasons)


def judge(
    fact: Mapping[str, Any],
    requests: int | None,
    repeated: int,
    tags: Sequence[Mapping[str, Any]],
    excluding: Collection[str],
    *,
    ambiguous: bool = False,
) -> Verdict:
    """Judge one run by a row of `facts` and by what its requests say; reasons are texts for people.

    `tags` are rows with ``variant``, ``rate`` and ``run`` patterns, ``tag`` and ``reason``; tags named in `excluding`
    exclude. `repeated` counts requests whose number another has too; `ambiguous`: another folder holds the same run.
    """
    complete = _is_complete(requests, fact["expected_requests"])
    reasons = list(fact["faults"])
    if requests is not None and complete is False:
        reasons.append(f"{requests:,} requests instead of {fact['expected_requests']:,}")
    if repeated:
        reasons.append(f"{repeated:,} requests appear more than once")
    if ambiguous:
        reasons.append("another folder of the same rate and variant holds a run of this number")
    matching = [tag for tag in tags if _matches(tag, fact)]
    reasons += [
        ": ".join(part for part in (f"tagged {tag['tag']}", tag.get("reason")) if part)
        for tag in matching
        if tag["tag"] in excluding
    ]
    return Verdict(complete, sorted({tag["tag"] for tag in matching}), reasons)


def _is_complete(requests: int | None, expected: int | None) -> bool | None:
    if expected is None:
        return None
    return requests is not None and abs(requests - expected) <= TOLERANCE * expected


def _matches(tag: Mapping[str, Any], fact: Mapping[str, Any]) -> bool:
    return (
        any(fnmatchcase(fact[name], str(tag.get("variant") or "*")) for name in ("variant", "variant_dir"))
        and fnmatchcase(f"{fact['rate']:.15g}", str(tag.get("rate") or "*"))
        and fnmatchcase(str(fact["run"]), str(tag.get("run") or "*"))
    )
