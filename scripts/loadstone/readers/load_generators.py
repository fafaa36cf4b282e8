"""Load generators: what the latency of each means, by which clock, how finely. Table `generators`.

Figures of two of them may be compared only with these differences stated: vegeta, hey and k6 include the time to
receive the response, Artillery does not; vegeta and hey include connection setup, k6 and Artillery do not. The module
that reads a tool's files says it, in its ``GENERATORS``.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from loadstone.readers import MODULES
from loadstone.readers.base import Generator

GENERATORS: dict[str, Generator] = {
    each.generator: each for module in MODULES for each in getattr(module, "GENERATORS", ())
}


def _generator(name: str | None) -> Generator:
    return GENERATORS.get(name or "") or Generator(
        generator=name or "",
        load_models=(),
        starts_at="",
        ends_at="",
        connecting="",
        stamp="",
        resolution_ns=None,
        source="",
    )


def load_models(generator: str | None) -> tuple[str, ...]:
    """Those that a tool supports; empty for an unknown tool."""
    return _generator(generator).load_models


def only_load_model(generator: str | None) -> str | None:
    """The load model of a tool that supports only one; else None."""
    known = load_models(generator)
    return known[0] if len(known) == 1 else None


def meaning(generator: str | None) -> tuple[Any, ...]:
    """What a tool's latency means; equal only for tools that measure alike."""
    if generator not in GENERATORS:
        return (generator,)
    found = GENERATORS[generator]
    return found.starts_at, found.ends_at, found.connecting, found.resolution_ns


def resolution_ns(generator: str | None) -> float | None:
    """The resolution of a tool's latencies; None where it is not known."""
    return _generator(generator).resolution_ns


def home(generator: str) -> str | None:
    """The website of a tool; None where it is not known."""
    return _generator(generator).home


def is_timed(generator: str | None) -> bool:
    """Whether requests may have a time of sending: those of an unknown tool may."""
    return _generator(generator).stamp != "none"


def is_paced(generator: str | None) -> bool:
    """Whether request number n of an open load is due at n / rate, so that the lag of its sending is known."""
    return generator == "vegeta"


def rows() -> Iterator[dict[str, Any]]:
    """Rows of table `generators`."""
    for each in GENERATORS.values():
        row = asdict(each) | {"load_models": list(each.load_models)}
        del row["home"]
        yield row
