"""Collecting one run: target up, identity, warm-up, attack, archive. Never touches an existing run."""

from loadstone.collect.run import collect_run

__all__ = ["collect_run"]
