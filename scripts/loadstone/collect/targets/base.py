"""What a run is made against: a variant that is up, watched while it is attacked.

`local` starts processes, `kubernetes` scales deployments; the sequence of a run (`loadstone.collect.run`) knows only
this.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from loadstone.archive import Cell
from loadstone.archive.metadata import Metadata, parse_duration
from loadstone.errors import LoadstoneError
from loadstone.process import Minder

Log = Callable[[str], None]

# Told what a run does now, by a name of `loadstone.archive.run_records.PHASES`.
OnPhase = Callable[[str], None]


def ignore(_: str) -> None:
    """For those who need not know."""


class RunFailedError(LoadstoneError):
    """A run could not be made, for a reason that need not hold for the next one: it may be tried again later.

    `evidence` explains it: texts such as a cluster's warnings.
    """

    def __init__(self, text: str, evidence: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.evidence = evidence


@dataclass(frozen=True)
class Job:
    """What collecting one run needs to know; `logs` is the folder for what programs print.

    `draws` are headers of which each request takes one of the values; `script` is the user's own for k6, as declared.
    """

    cell: Cell
    run: int
    planned: Metadata
    target: Mapping[str, Any]
    minder: Minder
    logs: Path
    log: Log
    on_phase: OnPhase = ignore
    draws: Mapping[str, Sequence[str]] = field(default_factory=dict)
    script: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attack_log(self) -> Path:
        return self.logs / "attack.log"

    @property
    def timeout(self) -> str:
        return self.planned.timeout or "30s"

    @property
    def timeout_s(self) -> float:
        return parse_duration(self.timeout) or 30.0


@dataclass(frozen=True)
class ResourceSample:
    """What something used at one moment. `scope` is ``namespace``, ``pod``, ``node`` or ``process``."""

    sampled_at: datetime
    scope: str
    name: str
    cpu_millicores: float | None
    memory_mib: float | None


class UnsampledError(LoadstoneError):
    """What some parts of a target use can't be known now; `samples` is what could be."""

    def __init__(self, text: str, samples: Sequence[ResourceSample] = ()) -> None:
        super().__init__(text)
        self.samples = samples


class Target(Protocol):
    """One variant that is up and has answered as itself."""

    @property
    def seen(self) -> dict[str, Any]:
        """What was seen of it before the first request, for the run's record: its answer, images, pods."""

    def check_alive(self) -> None:
        """Raise RunFailedError when it can't answer any more. Called often, while the attack runs: it must be cheap."""

    def watch(self) -> None:
        """The attack begins: what happens from now on are `incidents`."""

    def incidents(self) -> list[dict[str, Any]]:
        """What happened to it since `watch`: ``kind`` (``restart``, ``oom``, ...), ``object``, ``text`` and more."""

    def sample(self) -> list[ResourceSample]:
        """What its parts use now; called from a thread of its own, the first time as the attack begins.

        What is measured between two moments is missing in the first answer. Raises UnsampledError, always with the same
        text for the same reason, when something can't be known; that fails no run.
        """


# Brings the variant of a job up, and takes it down at the end.
Up = Callable[[Job], AbstractContextManager[Target]]
