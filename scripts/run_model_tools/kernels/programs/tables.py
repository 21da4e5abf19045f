"""What programs make of a byte, as tables: between two roundings a quantized network computes,
number by number, a function of 256 values, be it a GELU of five operators that each round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.programs.expressions import FUNCTIONS
from run_model_tools.kernels.programs.program import COSTS, Node, Program

_COST = 30
"""In additions: what a table has to save."""

_NO_FRACTIONS = 2.0 ** 23
"""From here on float32 numbers are whole: adding one and taking it off again rounds."""


@dataclass(frozen=True)
class Table:
    """numbers[x - low] for whole numbers x of `low` ... low + 255."""

    low: float
    numbers: np.ndarray
    """float32 (256,)"""


def tabulated(program: Program) -> tuple[Program, list[Table]]:
    """The program with its nodes "table", of which `value` is the number of the table, in the place
    of what depends on a rounded and bounded number alone, where that saves enough."""
    nodes, found = list(program.nodes), list[Table]()
    for end, byte, table in _tables_of(nodes):
        nodes[end] = Node("table", (byte,), len(found))
        found.append(table)
    if not found:
        return program, []
    return Program(program.shape, program.inputs, nodes).ending_in(len(nodes) - 1), found


def defines(tables: list[Table], first: int) -> dict[str, object]:
    """What looked_up() of c/vector_math.h gets for each, constants from number `first` on."""
    return {f"TABLE_{i}": f"{float(table.low).hex()}f, ((const float *)constants[{first + i}])"
            for i, table in enumerate(tables)}


def _tables_of(nodes: list[Node]) -> list[tuple[int, int, Table]]:
    """(node, the byte that it depends on, its table); none depends on another's byte."""
    found = []
    done: set[int] = set()
    for byte in range(len(nodes)):
        bounds = _byte(nodes, byte)
        if bounds is None or byte in done:
            continue
        only = _depending_on(nodes, byte)
        read_elsewhere = {a for i, n in enumerate(nodes) if i not in only for a in n.args}
        for end in sorted(only):
            if end not in read_elsewhere and end != len(nodes) - 1:
                continue
            needed = _needed(nodes, end, only)
            if sum(COSTS.get(nodes[i].op, 1) for i in needed) >= _COST:
                found.append((end, byte, _table(nodes, byte, sorted(needed), *bounds)))
                done |= needed
    return found


def _split(nodes: list[Node], index: int, op: str) -> tuple[int, float] | None:
    """(what, the constant) of an operation on both."""
    node = nodes[index]
    if node.op != op:
        return None
    for a, b in (node.args, node.args[::-1]):
        if nodes[b].op == "constant":
            return a, nodes[b].value
    return None


def _byte(nodes: list[Node], index: int) -> tuple[int, int] | None:
    """The bounds of a node that is a whole number between two, 255 apart at most."""
    outer, inner = ("minimum", "maximum") if nodes[index].op == "minimum" else (
        "maximum", "minimum")
    first = _split(nodes, index, outer)
    second = first and _split(nodes, first[0], inner)
    plus = second and _split(nodes, second[0], "add")
    minus = plus and _split(nodes, plus[0], "add")
    if not (first and second and plus and minus):
        return None
    low, high = sorted((first[1], second[1]))
    rounds = plus[1] == -minus[1] and abs(plus[1]) >= _NO_FRACTIONS
    if not (rounds and float(low).is_integer() and float(high).is_integer() and high - low <= 255):
        return None
    return int(low), int(high)


def _depending_on(nodes: list[Node], byte: int) -> set[int]:
    """The nodes that depend on that one and constants, and on it for certain."""
    found: set[int] = set()
    for index in range(byte + 1, len(nodes)):
        args = nodes[index].args
        if nodes[index].op in FUNCTIONS and any(a == byte or a in found for a in args) and all(
                a == byte or a in found or nodes[a].op == "constant" for a in args):
            found.add(index)
    return found


def _needed(nodes: list[Node], end: int, only: set[int]) -> set[int]:
    found, stack = set(), [end]
    while stack:
        index = stack.pop()
        if index in only and index not in found:
            found.add(index)
            stack += nodes[index].args
    return found


def _table(nodes: list[Node], byte: int, needed: list[int], low: int, high: int) -> Table:
    """Each node's function in float32, as the network says it."""
    values = {byte: np.minimum(np.arange(low, low + 256), high).astype(np.float32)}
    with np.errstate(all="ignore"):
        for index in needed:
            args = [values[a] if a in values else np.float32(nodes[a].value)
                    for a in nodes[index].args]
            made = FUNCTIONS[nodes[index].op][1](*args)
            values[index] = np.broadcast_to(made, (256,)).astype(np.float32)
    return Table(low, values[needed[-1]])
