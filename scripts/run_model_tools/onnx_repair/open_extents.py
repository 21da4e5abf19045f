"""Shapes that are one example of many: constants that say how large something is.

A network with open extents is repaired at several sizes, and what differs between the results are
numbers in shapes (inside_tvm/relax/generalising.py).  For that a tensor whose extents are open must
not become a constant: what is made of such numbers stays an operator, and its operands are hidden
from the importer behind inputs of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

HIDDEN = "run_model_hidden_"
"""How the inputs are called that stand for constants; the arrays have the same names and VALUE."""
VALUE = "_value"
COUNTING = "run_model_counting_"
"""How the inputs are called that stand for the numbers 0, 1, 2 ... of an open count."""

MOST_EXTENTS = 64
"""Numbers that say how large something is come in small tensors."""

EXTENTS = {"Range": (0, 1, 2), "ConstantOfShape": (0,), "Expand": (1,), "Tile": (1,),
            "Reshape": (1,), "Slice": (1, 2, 3, 4), "Pad": (1,), "Resize": (2, 3), "OneHot": (1,),
            "Split": (1,), "Trilu": (), "TopK": (1,)}
"""Operands that decide the extents of a result."""


def varies(things: Iterable[Any]) -> bool:
    """Whether one of them is a constant that depends on open extents."""
    return any(getattr(thing, "varies", False) for thing in things)


def decides_extents(op: str, inputs: list[Any]) -> bool:
    """Whether the result is as large as such a constant says."""
    places = EXTENTS.get(op, ())
    return varies(inputs[i] for i in places if i < len(inputs))
