"""Collecting one run: target up, identity, warm-up, attack, archive. Never touches an existing run."""
