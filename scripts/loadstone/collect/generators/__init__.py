"""The load generators, one module each, by the names that ``sweep.generator`` gives them."""

from loadstone.collect.generators.artillery import Artillery
from loadstone.collect.generators.base import LoadGenerator
from loadstone.collect.generators.k6 import K6
from loadstone.collect.generators.vegeta import Serial, Vegeta

GENERATORS: dict[str, type[LoadGenerator]] = {
    "vegeta": Vegeta,
    "serial": Serial,
    "k6": K6,
    "artillery": Artillery,
}

__all__ = ["GENERATORS", "LoadGenerator"]
