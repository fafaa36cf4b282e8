"""The interface of targets, which is all that `loadstone.collect.run` uses.

`local` starts processes, `kubernetes` scales deployments. Before each run the variant must answer with its expected
response, so that no other server is measured (`identity`).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from loadstone.archive import Cell
from loadstone.archive.metadata import Metadata, parse_duration
from loadstone.config.connection import Connection
from loadstone.errors import LoadstoneError
from loadstone.process import Supervisor

Log = Callable[[str], None]

# Called with each phase of a run as it begins, a name of `loadstone.archive.run_records.PHASES`.
OnPhase = Callable[[str], None]


def ignore(_: str) -> None:
    """The default `OnPhase`."""


class RunFailedError(LoadstoneError):
    """A run failed for a reason that may not apply to the next one, and may be retried.

    `evidence` are texts that explain it, such as a cluster's warnings.
    """

    def __init__(self, text: str, evidence: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.evidence = evidence


@dataclass(frozen=True)
class Job:
    """Everything needed to collect one run; `logs` is the folder for the programs' output.

    `draws` are headers with values of which each request takes one; `script` is the user's own for k6, as declared.
    """

    cell: Cell
    run: int
    planned: Metadata
    target: Mapping[str, Any]
    supervisor: Supervisor
    logs: Path
    log: Log
    on_phase: OnPhase = ignore
    connection: Connection = field(default_factory=Connection)
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
    """CPU and memory in use at one moment. `scope` is ``namespace``, ``pod``, ``node`` or ``process``."""

    sampled_at: datetime
    scope: str
    name: str
    cpu_millicores: float | None
    memory_mib: float | None


class UnsampledError(LoadstoneError):
    """Some parts of a target could not be sampled; `samples` are those of the others."""

    def __init__(self, text: str, samples: Sequence[ResourceSample] = ()) -> None:
        super().__init__(text)
        self.samples = samples


class Target(Protocol):
    """One variant that is up and whose identity was checked."""

    @property
    def seen(self) -> dict[str, Any]:
        """For the run's record, from before the first request: its response, images, pods."""

    def check_alive(self) -> None:
        """Raise RunFailedError when it can no longer respond. Called often during the attack: it must be cheap."""

    def watch(self) -> None:
        """The attack begins: events from now on are `incidents`."""

    def incidents(self) -> list[dict[str, Any]]:
        """Events since `watch`: ``kind`` (``restart``, ``oom``, ...), ``object``, ``text`` and more."""

    def sample(self) -> list[ResourceSample]:
        """CPU and memory of its parts; called from a separate thread, the first time when the attack begins.

        What is measured between two calls is missing in the first result. Raises UnsampledError, always with the same
        text for the same reason, when something can't be sampled; that fails no run.
        """


# Brings the variant of a job up, and takes it down at the end.
Up = Callable[[Job], AbstractContextManager[Target]]
