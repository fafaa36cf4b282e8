"""Every query, one file each; `load` gives its text."""

from functools import cache
from importlib.resources import files


@cache
def load(name: str) -> str:
    """The text of ``<name>.sql``; values are bound to its ``$parameters``."""
    return files(__name__).joinpath(f"{name}.sql").read_text("utf-8")
