"""A program (program.py) as macros of C: its operands' places, and its steps on vectors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.programs.expressions import FUNCTIONS, c_number, subtracted_products
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
    """Each pass goes along a row: it ends in sums, and the last one in the result."""
    writer = _PassWriter(program, operands)
    defines: dict[str, str] = {}
    for number in range(writer.count):
        defines[f"BEGIN_{number}"] = writer.begin(number)
        defines[f"STEP_{number}"] = writer.step(number)
        defines[f"END_{number}"] = writer.end(number)
    if writer.is_row_result:
        defines["STORE_ROW"] = f"*to = r{len(program.nodes) - 1}[0];"
    return Passes(defines, writer.count, len(writer.kept))


class _PassWriter:
    """What is dear or not in a row in memory is computed once and kept; the rest again, where a
    product must not become one with a sum: x * c - min(x * c) is 0 where all x are alike."""

    def __init__(self, program: Program, operands: list[Operand]) -> None:
        self.nodes, self.operands = program.nodes, operands
        self.is_row = program.is_row([o.kind == "row" for o in operands])
        self.stage = program.stages()
        self.count = max(self.stage) + 1
        self.is_row_result = program.reduces and self.is_row[-1]
        self.ends = [program.ends(number) for number in range(self.count)]
        self.kept: dict[int, int] = {}
        """Of nodes, the first pass that computes them."""
        self.kept = self._worth_keeping()
        self.slots = {index: slot for slot, index in enumerate(self.kept)}
        self.wanted = self._needed_by_pass()
        passes_of = Counter(index for found in self.wanted for index in found)
        subtracted = subtracted_products(
            [(node.op, node.args) for node in self.nodes], lambda index: index,
            lambda index: self.nodes[index].op not in ("constant", "columns"))
        self.apart = subtracted | {index for index, count in passes_of.items() if count > 1}

    def _needed_by_pass(self) -> list[set[int]]:
        found = []
        for number in range(self.count):
            roots = {self.nodes[i].args[0] for i in self.ends[number]}
            if number == self.count - 1 and not self.is_row_result:
                roots.add(len(self.nodes) - 1)
            found.append(needed(self.nodes, roots, self.is_row, {
                i for i, first in self.kept.items() if first < number}))
        return found

    def _worth_keeping(self) -> dict[int, int]:
        found, wanted = {}, self._needed_by_pass()
        for index, node in enumerate(self.nodes):
            users = [number for number in range(self.count) if index in wanted[number]]
            dear = COSTS.get(node.op, 1) > 4 or (
                node.op == "input" and self.operands[int(node.value)].kind == "numbers")
            if dear and not self.is_row[index] and len(users) > 1:
                found[index] = users[0]
        return found

    def _name(self, index: int) -> str:
        return f"{'r' if self.is_row[index] else 'n'}{index}"

    def begin(self, number: int) -> str:
        """Pointers to what is read, numbers for each row, and the sums' neutral elements."""
        text = [f"const float *p{i} = {o.base} + {o.row}; (void)p{i};"
                for i, o in enumerate(self.operands)] if number == 0 else []
        for i, node in enumerate(self.nodes):
            if self.is_row[i] and self.stage[i] == number and node.op not in REDUCTIONS:
                value = (f"splat(*p{int(node.value)})" if node.op == "input"
                         else expression(node, self._name, i in self.apart))
                text.append(f"const vec r{i} = {value};")
        text += [f"vec a{i}[CHAINS]; UNROLL for (int j = 0; j < CHAINS; j++) "
                 f"a{i}[j] = splat({_NEUTRAL[self.nodes[i].op]});" for i in self.ends[number]]
        return " ".join(text)

    def step(self, number: int) -> str:
        """A vector of a row's numbers."""
        body = []
        for index in sorted(self.wanted[number]):
            node = self.nodes[index]
            keep = f"keep + {self.slots.get(index)} * KEPT_STRIDE + column"
            if self.kept.get(index, number) < number:
                value = f"load({keep})"
            elif node.op == "input":
                which = int(node.value)
                value = load(self.operands[which], f"p{which}", "column", "count")
            else:
                value = expression(node, self._name, index in self.apart)
            body.append(f"const vec n{index} = {value};")
            if self.kept.get(index) == number:
                body.append(f"store({keep}, n{index});")
        for i in self.ends[number]:
            op = self.nodes[i].op
            value = f"first_lanes({self._name(self.nodes[i].args[0])}, count, {_NEUTRAL[op]})"
            body.append(f"a{i}[chain] = " + (f"a{i}[chain] + {value};" if op == "sum"
                                             else f"{_JOINS[op]}(a{i}[chain], {value});"))
        if number == self.count - 1 and not self.is_row_result:
            result = self._name(len(self.nodes) - 1)
            body.append(f"store_some(to + column, {result}, count);")
        return " ".join(body)

    def end(self, number: int) -> str:
        return " ".join(f"const vec r{i} = splat(lanes_{self.nodes[i].op}(chains_"
                        f"{self.nodes[i].op}(a{i})));" for i in self.ends[number])


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
