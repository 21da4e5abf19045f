"""A program (program.py) as macros of C: its operands' places, and its steps on vectors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.programs.expressions import FUNCTIONS, c_number
from run_model_tools.kernels.programs.program import COSTS, REDUCTIONS, Node, Program
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.views import ConstantTensor, View


def place(index: str, factors: Sequence[tuple[int, int]]) -> str:
    """C for the offset of number `index` of an axis: `factors` are (extent, stride)."""
    terms, inner = [], math.prod(count for count, _ in factors)
    for position, (count, stride) in enumerate(factors):
        inner //= count
        if stride == 0 or count == 1:
            continue
        term = index if inner == 1 else f"({index}) / {inner}"
        if position:
            term = f"({term}) % {count}"
        terms.append(f"(long)({term}) * {stride}")
    return f"({' + '.join(terms)})" if terms else "0L"


@dataclass(frozen=True)
class Sources:
    """Where a layer finds the tensors that a program reads."""

    inputs: list[Tensor]
    constants: list[np.ndarray]

    @staticmethod
    def of(views: Sequence[View], first_inputs: Sequence[Tensor] = (),
           first_constants: Sequence[np.ndarray] = ()) -> Sources:
        """All tensors that the views are of, behind those that are there already."""
        inputs, constants = list(first_inputs), list(first_constants)
        seen = {id(c) for c in constants}
        for view in views:
            if isinstance(view.tensor, ConstantTensor):
                if id(view.tensor.data) not in seen:
                    seen.add(id(view.tensor.data))
                    constants.append(view.tensor.data)
            elif not any(view.tensor is t for t in inputs):
                inputs.append(view.tensor)
        return Sources(inputs, constants)

    def index(self, tensor: Tensor) -> int:
        """Of a tensor among all, constants after the inputs."""
        if isinstance(tensor, ConstantTensor):
            return len(self.inputs) + next(
                i for i, c in enumerate(self.constants) if c is tensor.data)
        return next(i for i, t in enumerate(self.inputs) if t is tensor)

    def pointer(self, tensor: Tensor) -> str:
        """C for the tensor's first number, in a function of a layer."""
        index = self.index(tensor)
        if index < len(self.inputs):
            return f"((const float *)inputs[{index}])"
        return f"((const float *)constants[{index - len(self.inputs)}])"


@dataclass(frozen=True)
class Operand:
    """An input of a program: from `row` and `column` to a vector."""

    base: str
    row: str
    """Offset of a row's first number."""
    columns: tuple[tuple[int, int], ...]
    """(extent, stride) along a row."""

    @property
    def kind(self) -> str:
        """"row": one number a row; "vectors": in a row, LANES at a time; else "numbers"."""
        if all(stride == 0 for _, stride in self.columns):
            return "row"
        return "vectors" if self.columns[-1][1] == 1 else "numbers"


def operand(view: View, rows: Sequence[tuple[int, int]], columns: Sequence[tuple[int, int]],
            sources: Sources, lanes: int, index: str = "row") -> Operand:
    """Of a view whose places are `rows` x `columns`."""
    columns_ = tuple(columns)
    if len(columns_) > 1 and columns_[-1][1] == 1 and columns_[-1][0] % lanes:
        # A vector would go over the end of what lies in a row.
        columns_ = (*columns_, (1, 0))
    base = sources.pointer(view.tensor)
    return Operand(f"{base} + {view.offset}" if view.offset else base, place(index, rows), columns_)


def load(one: Operand, pointer: str, column: str, count: str) -> str:
    """C for a vector of a row's numbers from `column` on, `count` of them."""
    columns = [c for c in one.columns if c != (1, 0)]
    at = place(column, columns)
    if one.kind == "vectors":
        return f"load_some({pointer} + {at}, {count})"
    where = place("(at + lane)", columns)
    return (f"({{ vec v_ = {{0}}; const int at = {column}; "
            f"UNROLL for (int lane = 0; lane < {count}; lane++) v_[lane] = ({pointer})[{where}]; "
            f"v_; }})")


def subtracted_products(nodes: Sequence[Node]) -> set[int]:
    """The products of numbers that are taken from others: E[x^2] - E[x]^2 and a * d - b * c are 0
    where both sides are equal, and a fused multiply-add would leave what one of them rounds."""
    def varies(index: int) -> bool:
        return nodes[index].op not in ("constant", "columns")

    return {node.args[1] for node in nodes if node.op == "subtract" and varies(node.args[0])
            and nodes[node.args[1]].op == "multiply" and all(map(varies, nodes[node.args[1]].args))}


def expression(node: Node, name: Callable[[int], str], apart: bool = False) -> str:
    """C for what a node makes of others, which `name` names.  `apart`: a product is rounded, as
    others need it that are computed elsewhere or are to be equal to it."""
    args = [name(a) for a in node.args]
    if node.op == "constant":
        return f"splat({c_number(node.value)})"
    if node.op == "columns":
        return "splat((float)COLUMNS)"
    if node.op == "table":
        return f"looked_up({args[0]}, TABLE_{int(node.value)})"
    made = FUNCTIONS[node.op][0].format(*args)
    return f"rounded({made})" if apart and node.op == "multiply" else made


@dataclass(frozen=True)
class Passes:
    """A program over rows as macros for f32-rows.c.in."""

    defines: dict[str, str]
    count: int
    kept: int
    """How many numbers of each place are kept from one pass to the next."""


def passes(program: Program, operands: list[Operand]) -> Passes:
    """Each pass goes along a row: it ends in sums, and the last one in the result.

    What is dear or not in a row in memory is computed once and kept; the rest again, where a
    product must not become one with a sum: x * c - min(x * c) is 0 where all x are alike.
    """
    nodes = program.nodes
    is_row = program.is_row([o.kind == "row" for o in operands])
    stage = program.stages()
    last = max(stage)
    result = len(nodes) - 1
    rows_result = program.reduces and is_row[-1]
    ends = [program.ends(s) for s in range(last + 1)]
    # Kept: by the first pass that computes it.
    kept: dict[int, int] = {}

    def needed_by_pass() -> list[set[int]]:
        found = []
        for s in range(last + 1):
            roots = {nodes[i].args[0] for i in ends[s]}
            if s == last and not rows_result:
                roots.add(result)
            found.append(needed(nodes, roots, is_row,
                                 {i for i, first in kept.items() if first < s}))
        return found

    wanted = needed_by_pass()
    for index, node in enumerate(nodes):
        users = [s for s in range(last + 1) if index in wanted[s]]
        dear = COSTS.get(node.op, 1) > 4 or (
            node.op == "input" and operands[int(node.value)].kind == "numbers")
        if dear and not is_row[index] and len(users) > 1:
            kept[index] = users[0]
    slots = {index: i for i, index in enumerate(kept)}
    wanted = needed_by_pass()
    passes_of = Counter(index for found in wanted for index in found)
    subtracted = subtracted_products(nodes)
    defines: dict[str, str] = {}

    def name(index: int) -> str:
        return f"{'r' if is_row[index] else 'n'}{index}"

    begin = [f"const float *p{i} = {o.base} + {o.row}; (void)p{i};" for i, o in enumerate(operands)]
    row_nodes = [[i for i, n in enumerate(nodes) if is_row[i] and stage[i] == s
                  and n.op not in REDUCTIONS] for s in range(last + 1)]
    for s in range(last + 1):
        text = begin if s == 0 else []
        text = text + [
            f"const vec r{i} = " + (f"splat(*p{int(nodes[i].value)})" if nodes[i].op == "input"
                                    else expression(nodes[i], name, i in subtracted)) + ";"
            for i in row_nodes[s]]
        text += [f"vec a{i}[CHAINS]; UNROLL for (int j = 0; j < CHAINS; j++) "
                 f"a{i}[j] = splat({_NEUTRAL[nodes[i].op]});" for i in ends[s]]
        defines[f"BEGIN_{s}"] = " ".join(text)
        body = []
        for index in sorted(wanted[s]):
            node = nodes[index]
            if index in kept and kept[index] < s:
                value = f"load(keep + {slots[index]} * KEPT_STRIDE + column)"
            elif node.op == "input":
                which = int(node.value)
                value = load(operands[which], f"p{which}", "column", "count")
            else:
                value = expression(node, name, passes_of[index] > 1 or index in subtracted)
            body.append(f"const vec n{index} = {value};")
            if kept.get(index) == s:
                body.append(f"store(keep + {slots[index]} * KEPT_STRIDE + column, n{index});")
        for i in ends[s]:
            value = name(nodes[i].args[0])
            value = f"first_lanes({value}, count, {_NEUTRAL[nodes[i].op]})"
            body.append(f"a{i}[chain] = " + (
                f"a{i}[chain] + {value};" if nodes[i].op == "sum"
                else f"{_JOINS[nodes[i].op]}(a{i}[chain], {value});"))
        if s == last and not rows_result:
            body.append(f"store_some(to + column, {name(result)}, count);")
        defines[f"STEP_{s}"] = " ".join(body)
        defines[f"END_{s}"] = " ".join(
            f"const vec r{i} = splat(lanes_{nodes[i].op}(chains_{nodes[i].op}(a{i})));"
            for i in ends[s])
    if rows_result:
        defines["STORE_ROW"] = f"*to = r{result}[0];"
    return Passes(defines, last + 1, len(kept))


_NEUTRAL = {"sum": "0.0f", "max": "-__builtin_inff()", "min": "__builtin_inff()"}
_JOINS = {"max": "maximum", "min": "minimum"}


def needed(nodes: list[Node], roots: set[int], is_row: list[bool],
           known: Collection[int] = ()) -> set[int]:
    """All full nodes that must be computed in a pass; those in `known` are only loaded."""
    found: set[int] = set()
    stack = [r for r in roots if not is_row[r]]
    while stack:
        index = stack.pop()
        if index in found:
            continue
        found.add(index)
        if index not in known:
            stack += [a for a in nodes[index].args if not is_row[a]]
    return found
