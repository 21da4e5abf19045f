"""Checks a JSON value against a schema, with sentences that name the key, and explains the keys.

Of JSON Schema: type, properties, required, additionalProperties, items, minItems, enum, minimum and
description.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

_KINDS = {"object": "an object", "array": "a list", "string": "a text", "integer": "a whole number",
          "number": "a number", "boolean": "true or false"}


def wrong(value: Any, schema: dict[str, Any], where: str = "") -> str | None:
    """What is wrong, as a sentence without its end; None if nothing is."""
    name = f"'{where}'" if where else "the whole"
    kinds = schema.get("type", list(_KINDS))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(_is(value, kind) for kind in kinds):
        expected = " or ".join(_KINDS[kind] for kind in kinds)
        return f"{name} is {value!r}, and {expected} was expected"
    if value not in schema.get("enum", [value]):
        return f"{name} is {value!r}: choose of {', '.join(map(str, schema['enum']))}"
    if "minimum" in schema and _is(value, "number") and value < schema["minimum"]:
        return f"{name} is {value}, and {schema['minimum']} is the least"
    if isinstance(value, dict):
        return _wrong_members(value, schema, where)
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            return f"{name} is empty"
        for place, item in enumerate(value):
            found = wrong(item, schema.get("items", {}), f"{where}[{place}]")
            if found:
                return found
    return None


def _wrong_members(value: dict[str, Any], schema: dict[str, Any], where: str) -> str | None:
    known = schema.get("properties", {})
    for key, item in value.items():
        path = f"{where}.{key}" if where else key
        if key in known:
            found = wrong(item, known[key], path)
            if found:
                return found
        elif not schema.get("additionalProperties", True):
            near = get_close_matches(key, known, 1)
            return (f"the key '{path}' is not known: "
                    + (f"do you mean '{near[0]}'?" if near
                       else f"choose of {', '.join(known)}"))
    for key in schema.get("required", ()):
        if key not in value:
            return f"the key '{where}.{key}' is missing" if where else f"the key '{key}' is missing"
    return None


def explain(schema: dict[str, Any], indent: int = 2) -> Iterator[str]:
    """A line for each key, with what it is for."""
    for key, item in schema.get("properties", {}).items():
        yield f"{' ' * indent}{key}: {item.get('description', '')}"
        yield from explain(item, indent + 2)


def _is(value: Any, kind: str) -> bool:
    if kind in ("integer", "number"):
        return (isinstance(value, int if kind == "integer" else (int, float))
                and not isinstance(value, bool))
    return isinstance(value, {"object": dict, "array": list, "string": str, "boolean": bool}[kind])
