"""YAML files of the configuration: read within bounds, and checked against their JSON Schemas.

In: a path, or decoded content and the name of a schema. Out: decoded values, or LoadstoneError that lists every fault
with key, line, what is given and what is expected.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from loadstone.config import redact
from loadstone.errors import LoadstoneError

SCHEMAS = Path(__file__).resolve().parents[3] / "config" / "schemas"


def validate(content: object, schema: str, name: str, file: Path | None = None) -> None:
    """Check decoded YAML against a schema of ``config/schemas``; raises LoadstoneError that lists every fault.

    `file` is where it was written, for the lines of the faults; the one that `name` names unless given.
    """
    try:
        written = (file or Path(name)).read_text(encoding="utf-8")
    except (OSError, ValueError):
        written = None
    if found := schema_faults(content, json.loads((SCHEMAS / schema).read_text()), written):
        raise LoadstoneError(f"{name} is not valid:\n" + "\n".join(f"  {fault}" for fault in found))


class _StrictLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML in which a key appears once, and a time is a text as it was written (folders are named so)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        "reading a mapping", node.start_mark, f"the key {key.value!r} appears twice", key.start_mark
                    )
                seen.add(key.value)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


_StrictLoader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(path: Path) -> Any:
    """Decode a YAML file; a key given twice is an error. Raises LoadstoneError that names the file and line."""
    try:
        written = path.read_text(encoding="utf-8")
        refuse_huge(written, _StrictLoader)
        return yaml.load(written, _StrictLoader)  # noqa: S506 - derived from SafeLoader
    except FileNotFoundError:
        raise LoadstoneError(f"{path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LoadstoneError(f"{path} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        what = " ".join(filter(None, (getattr(error, "context", None), getattr(error, "problem", None)))) or error
        raise LoadstoneError(f"{path} is not valid YAML{where}: {what}") from None
    except (ValueError, IndexError, OverflowError, RecursionError) as error:  # PyYAML's, of numbers and depth
        raise LoadstoneError(f"{path} is not valid YAML: {error}") from None


def readable(path: str) -> str:
    """The same path; what is there is known to hold YAML. Snakemake says neither file nor line of what it can't read.

    Raises LoadstoneError.
    """
    if Path(path).exists():
        read_yaml(Path(path))
    return path


_KINDS = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
_EXPECTED = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "minItems": "at least {} of them",
    "minLength": "a text that is not empty",
    "maxLength": "at most {} characters",
    "minProperties": "at least {} keys",
    "uniqueItems": "each only once",
    "const": "{!r}",
}
_LONGEST = 80


def schema_faults(content: object, schema: Mapping[str, Any], written: str | None = None) -> list[str]:
    """Every fault of decoded YAML, one line each; none when it is valid.

    `written` is the file's text, for the line of each fault; where it has another value at that key (the command line
    gave it), there is none.
    """
    found = sorted(
        Draft202012Validator(schema).iter_errors(content), key=lambda fault: [*map(str, fault.absolute_path)]
    )
    parsed = _parsed(written) if found and written is not None else None
    return [f"{_place(path, content, parsed)}: {text}" for fault in found for path, text in _said(fault)]


def _said(fault: ValidationError) -> Iterator[tuple[Sequence[Any], str]]:
    path, schema, value = list(fault.absolute_path), _schema(fault), _value(fault)
    if fault.validator == "additionalProperties" and isinstance(fault.instance, dict):
        known = sorted(schema.get("properties", {}))
        for key in fault.instance:
            if key not in known:
                near = get_close_matches(str(key), known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
                yield [*path, key], f"unknown key; {hint}"
    elif fault.validator == "required" and isinstance(fault.instance, dict):
        for key in value:
            if key not in fault.instance:
                yield path, f"the key {key!r} is missing"
    elif fault.validator in ("oneOf", "anyOf") and isinstance(fault.instance, dict):
        forms = [set(form.get("required", ())) for form in value]
        named = " or ".join(" and ".join(sorted(form - set.intersection(*forms))) for form in forms)
        yield path, f"{_shown(fault.instance)} matches no allowed form; expected one with {named or 'other keys'}"
    else:
        yield path, f"{_shown(fault.instance)} is given, but {_expected(fault)} is expected"


def _schema(fault: ValidationError) -> dict[str, Any]:
    return fault.schema if isinstance(fault.schema, dict) else {}


def _value(fault: ValidationError) -> Any:
    return fault.validator_value


def _expected(fault: ValidationError) -> str:
    schema, value = _schema(fault), _value(fault)
    if "description" in schema:
        return str(schema["description"])
    if fault.validator == "enum":
        return "one of " + ", ".join(map(str, value))
    if fault.validator == "type":
        allowed = [value] if isinstance(value, str) else value
        kinds = " or ".join(_KINDS.get(kind, kind) for kind in allowed)
        unquoted = isinstance(fault.instance, int | float) and "string" in allowed
        return f'{kinds} (in quotes: "{json.dumps(fault.instance)}")' if unquoted else kinds
    if fault.validator == "pattern":
        return f"a text of the form {value}"
    expected = _EXPECTED.get(str(fault.validator))
    return str(fault.message) if expected is None else expected.format(value)


def _shown(value: object) -> str:
    """A value as YAML has it, on one line, without the users of addresses."""
    if isinstance(value, dict):  # its values may be credentials
        return f"a mapping of {', '.join(map(str, value)) or 'nothing'}"
    text = redact.text(json.dumps(value, ensure_ascii=False, default=str))
    kind = {bool: "", type(None): "", int: "the number ", float: "the number "}.get(type(value), "")
    return kind + (text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}...")


def _parsed(written: str) -> tuple[Any, Any] | None:
    """What is written, with its places and as values."""
    try:
        return yaml.compose(written), yaml.safe_load(written)
    except (yaml.YAMLError, ValueError, IndexError, OverflowError, RecursionError):
        return None


def _place(path: Sequence[Any], content: object, parsed: tuple[Any, Any] | None) -> str:
    name = ".".join(map(str, path)) or "top level"
    line = None if parsed is None else _line(*parsed, path, content)
    return name if line is None else f"{name} (line {line})"


def _line(node: Any, value: Any, path: Sequence[Any], content: object) -> int | None:
    """The line on which a value is written, if the file has the same value there."""
    for step in path:
        found = _step(node, step)
        if found is None:
            return None
        node, value, content = found, _into(value, step), _into(content, step)
    return node.start_mark.line + 1 if node is not None and str(value) == str(content) else None


def _step(node: Any, step: object) -> Any:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]
    return None


def _into(value: Any, step: Any) -> Any:
    return value[step] if isinstance(value, dict | list) and (isinstance(value, list) or step in value) else None


_MOST_REPEATED = 100_000  # values; those that are written out are bounded by the file
_DEEPEST = 100
_LONG = 100  # characters of a text that count as one more value


def refuse_huge(written: str, loader: Any) -> None:
    """Raises ValueError for YAML whose aliases stand for too much, or that is nested too deeply. Builds nothing."""
    count = _Count()
    for event in yaml.parse(written, loader):
        if isinstance(event, yaml.AliasEvent):
            count.repeat(str(event.anchor))
        elif isinstance(event, yaml.ScalarEvent):
            count.begin(event.anchor)
            count.values += len(event.value) // _LONG
            count.end()
        elif isinstance(event, yaml.CollectionStartEvent):
            count.begin(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            count.end()


class _Count:
    """How many values there are so far, those that aliases stand for included."""

    def __init__(self) -> None:
        self.values = 0
        self._repeated = 0
        self._sizes: dict[str, int] = {}  # values of what an anchor names
        self._open: list[tuple[str | None, int]] = []  # what has not ended: its anchor, and how many values came before

    def begin(self, anchor: str | None) -> None:
        self._open.append((anchor, self.values))
        self.values += 1
        if len(self._open) > _DEEPEST:
            raise ValueError(f"it is nested more than {_DEEPEST} times")

    def end(self) -> None:
        anchor, before = self._open.pop()
        if anchor is not None:
            self._sizes[anchor] = self.values - before

    def repeat(self, anchor: str) -> None:
        if any(anchor == each for each, _ in self._open):
            raise ValueError(f"{anchor} is part of itself")
        size = self._sizes.get(anchor, 1)
        self.values += size
        self._repeated += size
        if self._repeated > _MOST_REPEATED:
            raise ValueError(f"aliases such as {anchor} repeat more than {_MOST_REPEATED:,} values")
