"""The part of JSON Schema (draft 2020-12) that artifacts/zoo.schema.json uses, for its test."""

from __future__ import annotations

import re
from typing import Any

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
_KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "required", "properties",
          "additionalProperties", "items", "minItems", "maxItems", "const", "enum", "pattern",
          "minimum", "maximum", "oneOf"}


def errors(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> list[str]:
    """What in `value` is not as the schema says; an unknown keyword is an error of the test."""
    assert set(schema) <= _KNOWN, set(schema) - _KNOWN
    if "$ref" in schema:
        return errors(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, at)
    if "oneOf" in schema:
        fits = [not errors(value, option, root, at) for option in schema["oneOf"]]
        return [] if sum(fits) == 1 else [f"{at}: fits {sum(fits)} of {len(fits)} choices"]
    if "type" in schema and not _is(value, schema["type"]):
        return [f"{at}: is no {schema['type']}"]
    found = []
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: is none of {schema['enum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{at}: does not match {schema['pattern']}")
    if value is not None and ("minimum" in schema or "maximum" in schema) and not (
            schema.get("minimum", value) <= value <= schema.get("maximum", value)):
        found.append(f"{at}: is out of range")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{at}: lacks {key}" for key in schema.get("required", ()) if key not in value]
        for key, item in value.items():
            if key in known:
                found += errors(item, known[key], root, f"{at}.{key}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{at}: has the unknown {key}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{at}: has {len(value)} items")
        for i, item in enumerate(value):
            found += errors(item, schema.get("items", {}), root, f"{at}[{i}]")
    return found


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        number = (int,) if kind == "integer" else (int, float)
        return isinstance(value, number) and not isinstance(value, bool)
    return isinstance(value, _TYPES[kind])
