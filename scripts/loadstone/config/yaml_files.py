"""YAML files of the configuration: read within limits, and checked against their JSON Schemas.

In: a path, or decoded content and the name of a schema. Out: decoded values, or LoadstoneError that lists every fault
with key, line, given and expected value.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from loadstone.config import redact
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

SCHEMAS = Path(__file__).with_name("schemas")  # links to config/schemas; a wheel has the files


def validate(content: object, schema: str, name: str, file: Path | None = None) -> None:
    """Check decoded YAML against a schema of ``config/schemas``; raises LoadstoneError that lists every fault.

    `file` is the file of the content, by default `name`, for the line numbers of faults. Values that the file does not
    have, because the command line gave them, have no line number.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - jobs validate nothing, and start faster without it

    faults = Draft202012Validator(_read_schema(schema)).iter_errors(content)
    if found := sorted(faults, key=lambda fault: [*map(str, fault.absolute_path)]):
        written = _composed(file or Path(name))
        lines = [f"  {_place(path, content, written)}: {text}" for fault in found for path, text in _fault_texts(fault)]
        raise LoadstoneError("\n".join([f"{name} is not valid:", *lines]))


def fill_defaults(content: dict[str, Any], schema: str) -> None:
    """Add the keys that decoded YAML leaves out and for which its schema has a default."""
    _fill(content, _read_schema(schema))


def _fill(content: dict[str, Any], schema: Mapping[str, Any]) -> None:
    for key, about in schema.get("properties", {}).items():
        if "default" in about:
            content.setdefault(key, about["default"])
        if isinstance(content.get(key), dict):
            _fill(content[key], about)


def _read_schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / name).read_text())
    return schema


class _StrictLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML in which each key appears once, and times stay texts (as they are in names of folders)."""

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
        _refuse_huge(written)
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
    """Check that a file, if it exists, is YAML, and return its path: Snakemake's own error names neither file nor line.

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
    "minLength": "a non-empty text",
    "maxLength": "at most {} characters",
    "minProperties": "at least {} keys",
    "uniqueItems": "each only once",
    "const": "{!r}",
}
_LONGEST = 80
_WITH_SECRETS = ("headers", "environment")


def _fault_texts(fault: "ValidationError") -> Iterator[tuple[Sequence[Any], str]]:
    path: list[Any] = list(fault.absolute_path)
    schema: Any = fault.schema
    value: Any = fault.validator_value
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
    elif _may_be_secret(path):
        expected = _expected(fault).partition(" (in quotes")[0]
        yield path, f"{expected} is expected (the value is not shown: it may be a credential)"
    else:
        yield path, f"{_shown(fault.instance)} is given, but {_expected(fault)} is expected"


def _may_be_secret(path: Sequence[Any]) -> bool:
    return any(str(key) in _WITH_SECRETS or redact.is_secret(str(key)) for key in path)


def _expected(fault: "ValidationError") -> str:
    schema: Any = fault.schema
    value: Any = fault.validator_value
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
    """A value as in YAML, on one line, without the users of addresses."""
    if isinstance(value, dict):  # values may be credentials
        return f"a mapping of {', '.join(map(str, value)) or 'nothing'}"
    text = redact.text(json.dumps(value, ensure_ascii=False, default=str))
    kind = {bool: "", type(None): "", int: "the number ", float: "the number "}.get(type(value), "")
    return kind + (text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}...")


def _composed(file: Path) -> yaml.Node | None:
    """The YAML nodes of a file, which have line numbers."""
    try:
        written = file.read_text(encoding="utf-8")
        _refuse_huge(written)
        return yaml.compose(written, _StrictLoader)
    except (OSError, yaml.YAMLError, ValueError):
        return None


def _place(path: Sequence[Any], content: Any, node: Any) -> str:
    """A key, and the line of its value if `node` has the same value."""
    for step in path:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == str(step)), None)
        else:
            node = dict(enumerate(node.value)).get(step) if isinstance(node, yaml.SequenceNode) else None
        content = content[step]
    name = ".".join(map(str, path)) or "top level"
    return f"{name} (line {node.start_mark.line + 1})" if _is_written(node, content) else name


def _is_written(node: yaml.Node | None, content: object) -> bool:
    """Whether a node has this value, or a mapping its keys."""
    if isinstance(node, yaml.MappingNode):
        return isinstance(content, dict) and [key.value for key, _ in node.value] == [*map(str, content)]
    if isinstance(node, yaml.ScalarNode):
        return bool(node.value == (content if isinstance(content, str) else json.dumps(content, default=str)))
    return isinstance(node, yaml.SequenceNode) and isinstance(content, list)


_MOST_REPEATED = 100_000  # values that aliases expand to; others are limited by the file's size
_DEEPEST = 100
_LONG = 100  # characters of a text that count as one more value


def _refuse_huge(written: str) -> None:
    """Raise ValueError for YAML whose aliases expand too much, or that is nested too deeply, without building it."""
    values = repeated = 0  # so far, including what aliases expand to
    sizes: dict[str | None, int] = {}  # number of values below an anchor
    unended: list[tuple[str | None, int]] = []  # open collections: the anchor, and the number of values before
    for event in yaml.parse(written, _StrictLoader):
        if isinstance(event, yaml.AliasEvent):
            if any(event.anchor == anchor for anchor, _ in unended):
                raise ValueError(f"{event.anchor} is part of itself")
            size = sizes.get(event.anchor, 1)
            values, repeated = values + size, repeated + size
            if repeated > _MOST_REPEATED:
                raise ValueError(f"aliases such as {event.anchor} repeat more than {_MOST_REPEATED:,} values")
        elif isinstance(event, yaml.ScalarEvent):
            sizes[event.anchor] = 1 + len(event.value) // _LONG
            values += sizes[event.anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            unended.append((event.anchor, values))
            values += 1
            if len(unended) > _DEEPEST:
                raise ValueError(f"it is nested more than {_DEEPEST} times")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = unended.pop()
            sizes[anchor] = values - before
