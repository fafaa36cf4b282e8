"""What is found out about single runs: their shape, and how punctually they were sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.analysis import run_shapes, send_lag, senders
from loadstone.analysis.run_requests import Source
from loadstone.analysis.send_lag import LagLimit

_Row = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """A run's rows of `run_shapes`, where it has single requests, of `sending`, and of `senders`, if it had several.

    `apart` says in words that these did not keep time with each other.
    """

    shape: _Row | None
    sending: _Row
    senders: list[_Row]
    apart: str | None

    @property
    def profile(self) -> _Row:
        """Fields of `suggest.Profile`."""
        shape = self.shape or {}
        return {
            "noise": shape.get("noise"),
            "unsettled": run_shapes.told(self.shape) if self.shape else None,
            "late": send_lag.told(self.sending),
            "apart": self.apart,
        }


def of_runs(source: Source, facts: Sequence[_Row], lag_limit: Mapping[str, float]) -> list[Finding]:
    """What is found out about each of `facts`; `lag_limit` holds fields of `LagLimit`."""
    shapes = run_shapes.shapes(source, facts)
    counts = [shape["requests"] if shape else None for shape in shapes]
    limit = LagLimit(**lag_limit)
    sent = send_lag.sending(source, facts, counts, limit)
    shared = senders.senders(source, facts)
    shared = [[] if fact["clock_set_back_s"] else rows for fact, rows in zip(facts, shared, strict=True)]
    told = [senders.told(rows, limit.apart_ns) for rows in shared]
    return [Finding(*each) for each in zip(shapes, sent, shared, told, strict=True)]
