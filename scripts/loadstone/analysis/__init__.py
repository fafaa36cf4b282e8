"""Tables of runs and requests -> statistics and conclusions.

In: Parquet tables of campaigns. Out: ``cells``, ``effects``, ``layers``, ``knees``, ``history``, ``claims``,
``comparisons`` and the gate's verdict. Reads no raw file.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_Item = TypeVar("_Item")
Row = dict[str, Any]  # of a table, by the names of its columns


def by_key(items: Iterable[_Item], key: Callable[[_Item], Any]) -> defaultdict[Any, list[_Item]]:
    """Items by their keys, both in the order in which they come."""
    found = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found
