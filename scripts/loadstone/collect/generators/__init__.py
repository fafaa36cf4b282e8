"""The load generators, one module each, by the names that ``sweep.generator`` gives them."""

from collections.abc import Callable
from pathlib import Path

from loadstone.collect.generators.artillery import Artillery
from loadstone.collect.generators.base import LoadGenerator
from loadstone.collect.generators.k6 import K6
from loadstone.collect.generators.vegeta import Serial, Vegeta
from loadstone.collect.targets.base import Job

GENERATORS: dict[str, Callable[[Job, Path], LoadGenerator]] = {
    "vegeta": Vegeta,
    "serial": Serial,
    "k6": K6,
    "artillery": Artillery,
}

__all__ = ["GENERATORS", "LoadGenerator"]
