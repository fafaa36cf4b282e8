"""The configuration: config/*.yaml, checked against their schemas, with errors that name file, key and remedy.

In: YAML files and ``--config``. Out: checked mappings, `Variants`, `Catalogue`, comparisons, load shapes, targets.
"""

from loadstone.config.settings import (
    CONFIG,
    EXCLUDING,
    SETTINGS,
    check,
    lag_limit,
    limits,
    load_variants,
    share,
)
from loadstone.config.yaml_files import SCHEMAS, read_yaml, readable, validate

__all__ = [
    "CONFIG",
    "EXCLUDING",
    "SCHEMAS",
    "SETTINGS",
    "check",
    "lag_limit",
    "limits",
    "load_variants",
    "read_yaml",
    "readable",
    "share",
    "validate",
]
