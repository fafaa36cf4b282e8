"""What a schema finds wrong in a configuration file, as people read it: key, line, what is given, what is expected."""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from loadstone.config import redact

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


def texts(content: object, schema: Mapping[str, Any], written: str | None = None) -> list[str]:
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
                yield [*path, key], f"this key is not known; {hint}"
    elif fault.validator == "required" and isinstance(fault.instance, dict):
        for key in value:
            if key not in fault.instance:
                yield path, f"the key {key!r} is missing"
    elif fault.validator in ("oneOf", "anyOf") and isinstance(fault.instance, dict):
        forms = [set(form.get("required", ())) for form in value]
        named = " or ".join(" and ".join(sorted(form - set.intersection(*forms))) for form in forms)
        yield path, f"{_shown(fault.instance)} fits none of its forms; expected are those with {named or 'other keys'}"
    else:
        yield path, f"{_shown(fault.instance)} is given, {_expected(fault)} is expected"


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
