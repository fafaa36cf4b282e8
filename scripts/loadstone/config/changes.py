"""What of a sweep's declaration is otherwise than when its campaign was opened, in words; and what is recorded of it.

The archive holds each cell's request, expected answer, commands, environments and the digests of files they name, so
that a change can be named. Credentials are recorded as marks (`redact.mark`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from loadstone.config import redact

_WORDS = {"request": "the request's", "expect": "the expected answer's", "cluster": "the cluster's"}
_ABSENT = object()

# What a cell's metadata holds of the declared sweep.
_PLAN = {
    "sweep.runs": ("runs",),
    "sweep.duration": ("testOptions", "duration"),
    "sweep.timeout": ("testOptions", "timeout"),
    "sweep.warmup.duration": ("warmupOptions", "duration"),
    "sweep.warmup.min_rate": ("min_warmup_rate",),
    "sweep.warmup.max_rate": ("max_warmup_rate",),
    "sweep.generator": ("generator", "name"),
    "sweep.generators": ("generator", "count"),
    "sweep.connections": ("generator", "connections"),
    "whether target.generators is declared": ("generator", "in"),
    "the load's stages": ("stages",),
    "the measured stage": ("measuredPhase",),
    "the content of sweep.script.file": ("script", "sha256"),
    "sweep.script.environment": ("script", "environment"),
    "sweep.order": ("order", "kind"),
    "sweep.labels": ("labels",),
}


def recordable(identity: Mapping[str, Any]) -> dict[str, Any]:
    """A variant's identity as it is written down: with marks in place of credentials in headers and environments."""
    request = identity["request"] | {"header": redact.marked(identity["request"]["header"])}
    found = {**identity, "request": request}
    if "environments" in identity:
        found["environments"] = {name: redact.marked(values) for name, values in identity["environments"].items()}
    if "changes" in identity.get("cluster", {}):
        found["cluster"] = {
            **identity["cluster"],
            "changes": list(map(_recordable_change, identity["cluster"]["changes"])),
        }
    return found


def _recordable_change(change: Mapping[str, Any]) -> dict[str, Any]:
    env = {container: redact.marked(values) for container, values in change.get("env", {}).items()}
    return {**redact.inside(change, redact.marked), **({"env": env} if env else {})}


def since(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between an identity as recorded (``request`` and the parts of ``target``) and one of now."""
    try:
        was = recordable(recorded)  # an older Loadstone recorded credentials as they were
    except (AttributeError, KeyError, TypeError):  # not as it was written
        was = dict(recorded)
    return [phrase for part, value in recordable(now).items() for phrase in _part(part, was.get(part), value)]


def _part(part: str, was: Any, now: Any) -> Iterator[str]:
    if was == now or was is None:  # a part that was not recorded can't be compared
        return
    if not isinstance(was, dict) or not isinstance(now, dict):
        yield f"the target's {part}: {_shown(was)} became {_shown(now)}"
        return
    for name in dict.fromkeys((*was, *now)):
        before, after = was.get(name, _ABSENT), now.get(name, _ABSENT)
        if before == after:
            continue
        if part == "files":
            yield f"the content of the file {name}" if _ABSENT not in (before, after) else f"the file {name}"
        elif part == "commands":
            yield f"the command of the process {name!r}: {_shown(before)} became {_shown(after)}"
        elif part == "environments":
            yield f"the environment of the process {name!r}"
        elif name == "header":
            yield from _headers(before, after)
        else:
            yield f"{_WORDS.get(part, part)} {name}: {_shown(before)} became {_shown(after)}"


def _headers(was: Any, now: Any) -> Iterator[str]:
    was, now = (value if isinstance(value, dict) else {} for value in (was, now))
    for name in dict.fromkeys((*was, *now)):
        if was.get(name) != now.get(name):
            shown = [_shown(redact.hidden({name: values}).get(name)) for values in (was.get(name), now.get(name))]
            yield f"the request's header {name}" + ("" if redact.is_secret(name) else f": {shown[0]} became {shown[1]}")


def in_plan(was: Mapping[tuple[str, str], Any], now: Mapping[tuple[str, str], Any]) -> list[str]:
    """What differs between two plans, cells of (rate, variant) with their metadata: of the sweep, not of the target."""
    phrases = []
    for kind, position in (("rates", 0), ("variants", 1)):
        before, after = ({key[position] for key in plan} for plan in (was, now))
        phrases += [f"sweep.{kind}: {name} was not there" for name in sorted(after - before)]
        phrases += [f"sweep.{kind}: {name} is gone" for name in sorted(before - after)]
    for key in sorted(was.keys() & now.keys())[:1]:
        for name, path in _PLAN.items():
            before, after = _at(was[key], path), _at(now[key], path)
            if before != after:
                phrases.append(f"{name}: {_shown(before)} became {_shown(after)}")
    return phrases


def _at(content: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _shown(value: Any) -> str:
    """A value on one line, without credentials of addresses."""
    if value is _ABSENT or value is None:
        return "nothing"
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = redact.text(text)
    return repr(text if len(text) <= 120 else f"{text[:117]}...")
