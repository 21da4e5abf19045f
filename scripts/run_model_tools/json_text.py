"""JSON as the tools write it into files: indented, with short lists and objects on one line."""

from __future__ import annotations

import json
from typing import Any

_WIDTH = 100


def to_text(value: Any) -> str:
    """The text of a file holding `value`, with a newline at its end."""
    return _format(value, 0) + "\n"


def _format(value: Any, depth: int) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    inner, outer = "  " * (depth + 1), "  " * depth
    nested = isinstance(value, (dict, list)) and bool(value)
    # The outermost object is always spread; an inner one only where a line cannot hold it, or
    # where it has members of its own to show.
    if not nested or (depth > 0 and len(flat) + len(inner) + 16 <= _WIDTH and not _has_objects(value)):
        return flat
    if isinstance(value, dict):
        items = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {_format(item, depth + 1)}"
                 for key, item in value.items()]
        return "{\n" + ",\n".join(items) + "\n" + outer + "}"
    items = [inner + _format(item, depth + 1) for item in value]
    return "[\n" + ",\n".join(items) + "\n" + outer + "]"


def _has_objects(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value
    return any(isinstance(item, dict) for item in items)
