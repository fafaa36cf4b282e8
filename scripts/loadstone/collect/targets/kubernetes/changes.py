"""Changes to an object, and how they are undone. Nothing here talks to a cluster.

A change is a set of fields, each with its value before the sweep and the values that the sweep sets. A field with one
of these values may be set again. A field with any other value was changed by somebody else, and is left unchanged.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from loadstone.collect.targets.kubernetes.objects import Object
from loadstone.config import redact

# Keys of mappings; a tuple ("name", x) stands for the element of a list whose ``name`` is x.
Path = tuple[Any, ...]

_SERVER_MANAGED = {"deployment.kubernetes.io/revision"}
_MAPPINGS = (("metadata", "labels"), ("metadata", "annotations"))  # absent means the same as empty


class _Absent(Enum):
    ABSENT = "absent"

    def __str__(self) -> str:
        return "absent"


ABSENT = _Absent.ABSENT
REPLICAS: Path = ("spec", "replicas")
SUSPEND: Path = ("spec", "suspend")
# Names that no variant can have.
IDLE, STOPPED = "/idle", "/stopped"
_SHOWN = 120
_REDACTED = "(redacted)"
_CONTAINERS = ("containers", "initContainers")
_ORDERED = (*_CONTAINERS, "env", "volumes")  # lists whose elements are merged by name


@dataclass(frozen=True)
class Field:
    """One changed field; values are decoded JSON, or `ABSENT` where there is no such field.

    `ours` are the values that the sweep sets, by the name of the variant that is measured then; `IDLE`: while no
    variant that names the field is measured; `STOPPED`: for a moment, to restart.
    """

    path: Path
    before: Any
    ours: Mapping[str, Any]

    def wanted(self, variant: str | None) -> Any:
        """Its value while a variant is measured (None: while none is)."""
        idle = self.ours.get(IDLE, self.before)
        return idle if variant is None else self.ours.get(variant, idle)

    def is_known(self, value: Any) -> bool:
        """Whether it had this value before the sweep, or the sweep sets it."""
        return value == self.before or value in self.ours.values()

    def texts(self, was: Any, now: Any, form: str = ": {was} -> {now}") -> list[str]:
        """A line for each innermost part in which two of its values differ: ``spec.x[app].image: old -> new``.

        `form` is what follows the path. Credentials are redacted.
        """
        return [
            path_text(path) + form.format(was=_shown(path, one), now=_shown(path, other))
            for path, one, other in _parts_that_differ(self.path, was, now)
        ]

    def revert_ours(self, value: Any) -> Any:
        """A value that others changed too, with the sweep's own changes undone; named elements one by one."""
        return _reverted(self.path[-1], value, [self.before, *self.ours.values()])

    def __str__(self) -> str:
        return path_text(self.path)

    def encoded(self) -> Object:
        """As JSON."""
        return {
            "path": [list(part) if isinstance(part, tuple) else part for part in self.path],
            "before": _wrapped(self.before),
            "ours": {name: _wrapped(value) for name, value in self.ours.items()},
        }

    @classmethod
    def decoded(cls, content: Mapping[str, Any]) -> "Field":
        """Inverse of `encoded`."""
        path = tuple(tuple(part) if isinstance(part, list) else part for part in content["path"])
        ours = {name: _unwrapped(value) for name, value in content["ours"].items()}
        return cls(path, _unwrapped(content["before"]), ours)


def path_text(path: Path) -> str:
    """``spec.template.spec.containers[app].image``."""
    return "".join(f"[{part[1]}]" if isinstance(part, tuple) else f".{part}" for part in path).removeprefix(".")


def _shown(path: Path, value: Any) -> str:
    """A value as one line of text, without credentials."""
    variable = path[-2][1] if len(path) > 1 and path[-1] == "value" and isinstance(path[-2], tuple) else ""
    if value is not ABSENT and redact.is_secret(str(variable)):
        return _REDACTED
    shown = redact.inside(value, redact.hidden)
    if isinstance(shown, dict) and _is_variable(shown) and isinstance(path[-1], tuple):
        shown = shown["value"]
    text = redact.text(str(shown))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _parts_that_differ(path: Path, was: Any, now: Any) -> Iterator[tuple[Path, Any, Any]]:
    """(path, one value, the other) of the innermost parts that differ."""
    if was == now:
        return
    parts = _parts([each for each in (was, now) if each is not ABSENT])
    if isinstance(path[-1], tuple):  # the name of an element is in its path
        parts = tuple(part for part in parts if part != "name")
    for part in parts:
        yield from _parts_that_differ((*path, part), get(was, (part,)), get(now, (part,)))
    if not parts:
        yield path, was, now
    elif _named(was) and _named(now) and set(_names(was)) == set(_names(now)) and _names(was) != _names(now):
        yield path, _names(was), _names(now)  # another order


def _parts(values: list[Any]) -> Path:
    """The parts of values, as in a path; empty for values that are shown as a whole."""
    if all(map(_named, values)):
        return tuple(dict.fromkeys(("name", name) for value in values for name in _names(value)))
    if all(isinstance(value, dict) and value and not _is_variable(value) for value in values):
        return tuple(dict.fromkeys(key for value in values for key in value))
    return ()


def _is_variable(value: Object) -> bool:
    return value.keys() == {"name", "value"}


def differences(before: Object, afters: Mapping[str, Object]) -> list[Field]:
    """The fields in which later states differ from the first, among those that people set (labels, spec, ...).

    `afters` are the states by variant. Fields don't overlap: when one state replaces a list and another only a value
    in it, the list is the field.
    """
    paths: set[Path] = set()
    for after in afters.values():
        _compare(("spec",), get(before, ("spec",)), get(after, ("spec",)), paths)
        for path in _MAPPINGS:
            was, now = (_mapping(each, path) for each in (before, after))
            paths |= {(*path, key) for key in was.keys() | now.keys() if was.get(key) != now.get(key)}
    outermost = [path for path in paths if not any(path[:length] in paths for length in range(1, len(path)))]
    found = []
    for path in sorted(outermost, key=str):
        former = get(before, path)
        ours = {name: get(after, path) for name, after in afters.items()}
        changed = {name: value for name, value in ours.items() if value != former}
        found.append(Field(path, copy.deepcopy(former), copy.deepcopy(changed)))
    return found


def in_order(patch: Any, before: Any) -> Any:
    """A strategic merge patch that keeps the order of named elements of lists, and appends new ones."""
    if not isinstance(patch, dict):
        return patch
    found = {}
    for key, value in patch.items():
        there = before.get(key) if isinstance(before, dict) else None
        if key not in _ORDERED or not isinstance(value, list):
            found[key] = in_order(value, there)
            continue
        known = {each["name"]: each for each in there or []}
        found[key] = [in_order(each, known.get(each.get("name"))) for each in value]
        gone = {each.get("name") for each in value if each.get("$patch") == "delete"}
        names = dict.fromkeys([*known, *(each["name"] for each in value if "name" in each)])
        found[f"$setElementOrder/{key}"] = [{"name": name} for name in names if name not in gone]
    return found


def get(content: Any, path: Path) -> Any:
    """The value of a field, or `ABSENT`."""
    found: Any = content
    for part in path:
        if isinstance(part, tuple):
            found = next((each for each in found if each.get("name") == part[1]), ABSENT) if _named(found) else ABSENT
        else:
            found = found.get(part, ABSENT) if isinstance(found, dict) else ABSENT
        if found is ABSENT:
            return ABSENT
    return found


def rewritten(
    current: Object, fields: Iterable[Field], wanted: Callable[[Field], Any]
) -> tuple[Object, list[Field], list[Field]]:
    """(the object with the wanted values, the fields that this changed, those left because others changed them).

    When values are restored, the sweep's own elements of a list that others changed are restored too: such a field
    appears in both of the returned lists.
    """
    found, written, left = copy.deepcopy(current), [], []
    for each in fields:
        value, want = get(found, each.path), wanted(each)
        if value == want:
            continue
        if not each.is_known(value):
            left.append(each)
            if want != each.before:
                continue
            want = each.revert_ours(value)
            if want == value:
                continue
        if put(found, each.path, want):
            written.append(each)
        elif each not in left:
            left.append(each)
    return found, written, left


def _reverted(key: Any, value: Any, states: list[Any]) -> Any:
    """A value with the sweep's changes undone. `states`: its value before the sweep, then those that the sweep sets."""
    if value in states:
        return states[0]
    lists = [[] if each is ABSENT else each for each in states]
    if not _named(value) or not all(each == [] or _named(each) for each in lists):
        return value
    found = {each["name"]: each for each in value}
    for name in dict.fromkeys(name for each in lists for name in _names(each)):
        part = (("name", name),)
        back = _reverted_element(key, get(value, part), [get(each, part) for each in lists])
        if back is ABSENT:
            found.pop(name, None)
        elif name in found:
            found[name] = back
        else:  # it was removed: insert it after the element that it followed
            former = _names(lists[0])
            behind = [each for each in former[: former.index(name)] if each in found]
            names = list(found)
            place = names.index(behind[-1]) + 1 if behind else 0
            found = {each: found.get(each, back) for each in (*names[:place], name, *names[place:])}
    return ABSENT if not found and states[0] is ABSENT else list(found.values())


def _reverted_element(key: Any, value: Any, states: list[Any]) -> Any:
    """An element with the sweep's changes undone: part by part in containers, else as a whole.

    Parts of other elements may be mutually exclusive.
    """
    if value in states or key not in _CONTAINERS or not all(isinstance(each, dict) for each in (value, *states)):
        return states[0] if value in states else value
    keys = dict.fromkeys(key for each in (value, *states) for key in each)
    back = {key: _reverted(key, value.get(key, ABSENT), [each.get(key, ABSENT) for each in states]) for key in keys}
    return {key: each for key, each in back.items() if each is not ABSENT}


def put(content: Object, path: Path, value: Any) -> bool:
    """Set (or with `ABSENT` remove) a field in place; False when the object has no place for it."""
    *parents, last = path
    holder: Any = content
    for part in parents:
        inner = get(holder, (part,))
        if inner is ABSENT:
            if value is ABSENT:
                return True
            if isinstance(part, tuple) or not isinstance(holder, dict):
                return False
            inner = holder[part] = {}
        holder = inner
    if isinstance(last, tuple) or not isinstance(holder, dict):
        return False
    if value is ABSENT:
        holder.pop(last, None)
    else:
        holder[last] = copy.deepcopy(value)
    return True


def _mapping(content: Object, path: Path) -> Object:
    found = get(content, path)
    return {key: found[key] for key in found if key not in _SERVER_MANAGED} if isinstance(found, dict) else {}


def _compare(path: Path, before: Any, after: Any, found: set[Path]) -> None:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            _compare((*path, key), before.get(key, ABSENT), after.get(key, ABSENT), found)
    elif _named(before) and _named(after) and _names(before) == _names(after):
        for one, other in zip(before, after, strict=True):
            _compare((*path, ("name", one["name"])), one, other, found)
    else:
        found.add(path)


def _named(value: Any) -> bool:
    """Whether a value is a list of elements with different names, such as containers."""
    if not isinstance(value, list) or not value:
        return False
    names = [each.get("name") if isinstance(each, dict) else None for each in value]
    return None not in names and len(set(map(str, names))) == len(names)


def _names(value: list[Object]) -> list[Any]:
    return [each["name"] for each in value]


def _wrapped(value: Any) -> Object:
    return {} if value is ABSENT else {"value": value}


def _unwrapped(content: Mapping[str, Any]) -> Any:
    return content.get("value", ABSENT)
