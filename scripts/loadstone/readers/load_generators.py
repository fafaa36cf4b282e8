"""Load generators: what the latency of each means, by which clock, how finely. Table `generators`.

Figures of two of them may be compared only with these differences stated: a response that takes long
to arrive costs vegeta, hey and k6 all of its time, Artillery none of it; a new connection costs vegeta and hey, but
neither k6 nor Artillery. The module that reads a tool's files says it, in its ``GENERATORS``.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from loadstone.readers import MODULES
from loadstone.readers.base import Generator

GENERATORS: dict[str, Generator] = {
    each.generator: each for module in MODULES for each in getattr(module, "GENERATORS", ())
}


def load_models(generator: str | None) -> tuple[str, ...]:
    """Those that a tool knows; empty for an unknown tool."""
    found = GENERATORS.get(generator or "")
    return found.load_models if found else ()


def only_load_model(generator: str | None) -> str | None:
    """The load model of a tool that knows but one; else None."""
    known = load_models(generator)
    return known[0] if len(known) == 1 else None


def meaning(generator: str | None) -> tuple[Any, ...]:
    """What a tool's latency means; equal for tools that measure alike, and for none other."""
    found = GENERATORS.get(generator or "")
    if found is None:
        return (generator,)
    return found.starts_at, found.ends_at, found.connecting, found.resolution_ns


def resolution_ns(generator: str | None) -> float | None:
    """The unit in whole multiples of which a tool's latencies come; None where that is not known."""
    found = GENERATORS.get(generator or "")
    return found.resolution_ns if found else None


def is_timed(generator: str | None) -> bool:
    """Whether it is known when a request was sent; of an unknown tool it may be."""
    found = GENERATORS.get(generator or "")
    return found is None or found.stamp != "none"


def is_paced(generator: str | None) -> bool:
    """Whether request number n of an open load is due at n / rate, so that the lag of its sending is known."""
    return generator == "vegeta"


def rows() -> Iterator[dict[str, Any]]:
    """Rows of table `generators`."""
    for each in GENERATORS.values():
        yield asdict(each) | {"load_models": list(each.load_models)}
