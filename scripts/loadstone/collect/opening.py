"""Opening the configured sweep when all that it needs is there: programs, files, the cluster as it is declared."""

from collections.abc import Mapping
from typing import Any

from loadstone.archive import Campaign
from loadstone.collect import script_files, sweep
from loadstone.collect.targets.base import Log
from loadstone.collect.tools import versions


def open_checked(config: Mapping[str, Any], log: Log) -> Campaign:
    """Open it, or say which campaign is still open. Raises LoadstoneError, with nothing written, for what is wrong."""
    tools = versions(config)
    sweep.resumable(config)
    if config.get("target", {}).get("kind") == "kubernetes":  # its client library takes a second to load
        from loadstone.collect.targets.kubernetes.plan import check  # noqa: PLC0415

        check(config, set(config["sweep"]["variants"]), log)
    return sweep.open_sweep(config, tools, log, script_files.of_sweep(config))
