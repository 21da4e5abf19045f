"""What each operator is rewritten to: one module for each family.

A rule takes the walk and a node whose inputs are resolved, emits operators of opset 18 through
`walk.graph`, and returns what the node's outputs are.  It answers for every opset and type that it
lets through: what it cannot express in forms that the importer reads correctly, it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from run_model_tools.onnx_repair.values import Node, Thing

if TYPE_CHECKING:
    from run_model_tools.onnx_repair.walk import Walk

Rule = Callable[["Walk", Node], Sequence[Thing | None] | Thing]

RULES: dict[tuple[str, str], Rule] = {}
IGNORED: dict[tuple[str, str], set[str]] = {}
"""Attributes that say how something is computed and not what."""


def rule(*operators: str, domain: str = "",
         ignored: Sequence[str] = ()) -> Callable[[Rule], Rule]:
    """Registers a rule for these operators; ignored: attributes that change nothing here."""
    def register(function: Rule) -> Rule:
        for operator in operators:
            RULES[domain, operator] = function
            IGNORED[domain, operator] = set(ignored)
        return function

    return register


def load() -> dict[tuple[str, str], Rule]:
    """All rules."""
    from importlib import import_module
    from pkgutil import walk_packages

    for module in walk_packages(__path__, f"{__name__}."):
        import_module(module.name)
    return RULES
