"""What is done to numbers one by one, and to rows of them: a program for a kernel to run.

A program has a shape, whose last axis is its rows' columns.  Its nodes are numbers for each place
("full"), or for each row ("row"): sums and largest numbers along a row, and what is made of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.views import View

REDUCTIONS = ("sum", "max", "min")
MOST_PASSES = 6
"""Along a row: as many as c/row_passes.h has."""

COSTS = {"exp": 12, "normal_exp": 10, "erf": 24, "tanh": 20, "sin": 20, "cos": 20, "tan": 46,
         "atan": 20, "sigmoid": 16, "log": 16, "divide": 6, "sqrt": 8, "rsqrt": 12, "table": 24}
"""Of an operator, in additions; what is not named costs one."""


@dataclass(frozen=True)
class Node:
    """`op` of the nodes with the numbers `args`; "input" number `value`, the number `value`
    ("constant"), how many columns rows have ("columns"), or what the table `value` has for the node
    ("table": tables.py)."""

    op: str
    args: tuple[int, ...] = ()
    value: float = 0.0


@dataclass(eq=False)
class Program:
    """The last node is the result."""

    shape: tuple[int, ...]
    inputs: list[View]
    """Each of this shape; what has one number a row or less is broadcast."""
    nodes: list[Node] = field(default_factory=list)

    def add(self, op: str, *args: int, value: float = 0.0) -> int:
        """The number of a node, new or equal."""
        node = Node(op, args, value)
        if node in self.nodes:
            return self.nodes.index(node)
        self.nodes.append(node)
        return len(self.nodes) - 1

    def add_input(self, view: View) -> int:
        """The node of an input, with what the view scales it by."""
        bare = replace(view, scale=1.0)
        same = [index for index, known in enumerate(self.inputs) if (
            known.tensor, known.axes, known.offset) == (bare.tensor, bare.axes, bare.offset)]
        index = same[0] if same else len(self.inputs)
        if not same:
            self.inputs.append(bare)
        node = self.add("input", value=index)
        return self.scaled(node, view.scale)

    def scaled(self, node: int, number: float) -> int:
        """The node times a number."""
        if number == 1:
            return node
        return self.add("multiply", node, self.add("constant", value=number))

    @property
    def is_copy(self) -> bool:
        """Whether it only moves the numbers of its input."""
        return [node.op for node in self.nodes] == ["input"]

    @property
    def reduces(self) -> bool:
        return any(node.op in REDUCTIONS for node in self.nodes)

    def stages(self) -> list[int]:
        """Of each node, how many passes along a row end before it is known: each ends in sums."""
        found: list[int] = []
        for node in self.nodes:
            before = max((found[a] for a in node.args), default=0)
            found.append(before + (node.op in REDUCTIONS))
        return found

    def ends(self, stage: int) -> list[int]:
        """The nodes that are sums, or the like, which a pass along a row ends in."""
        stages = self.stages()
        return [index for index, node in enumerate(self.nodes)
                if node.op in REDUCTIONS and stages[node.args[0]] == stage]

    @property
    def has_few_passes(self) -> bool:
        """Whether kernels for rows have as many as it takes."""
        return max(self.stages()) < MOST_PASSES

    def is_row(self, inputs: list[bool] | None = None) -> list[bool]:
        """Of each node, whether it is one number a row; `inputs`: the same of inputs, if known."""
        if inputs is None:
            inputs = [all(stride == 0 for _, stride in view.axes[-1]) for view in self.inputs]
        found: list[bool] = []
        for node in self.nodes:
            if node.op == "input":
                found.append(inputs[int(node.value)])
            else:
                found.append(node.op in REDUCTIONS or node.op != "product"
                             and all(found[a] for a in node.args))
        return found

    @property
    def gives_rows(self) -> bool:
        """Whether the result is one number a row, and its tensor has no columns.

        A program without a reduction gives every place a number, even if all of a row are alike.
        """
        return self.reduces and self.is_row()[-1]

    def tensors(self) -> list[Tensor]:
        """What it reads, each once."""
        return list(dict.fromkeys(view.tensor for view in self.inputs))

    def reshaped(self, shape: tuple[int, ...]) -> Program | None:
        """With another shape of as many places; None where strides do not say it, or rows differ.
        """
        if shape == self.shape:
            return self
        if self.reduces and shape[-1] != self.shape[-1]:
            return None
        inputs = [view.reshape(shape) for view in self.inputs]
        if any(view is None for view in inputs):
            return None
        return Program(shape, [view for view in inputs if view is not None], list(self.nodes))

    def taking_in(self, other: Program, tensor: Tensor) -> Program | None:
        """This program with the other, which computes `tensor`, in the place of what reads that.

        None where they do not go over the same rows.
        """
        readings = [view for view in self.inputs if view.tensor is tensor]
        rows = math.prod(self.shape[:-1])
        moved: Program | None
        if (not other.reduces and math.prod(other.shape) == rows and self.shape[-1] > 1
                and all(_one_a_row(view) for view in readings)):
            moved = other.reshaped((*self.shape[:-1], 1))
            if moved is None:
                return None
            moved = Program(self.shape, [view.broadcast(self.shape) for view in moved.inputs],
                            moved.nodes)
        elif not other.gives_rows:
            if not all(view.is_whole for view in readings):
                moved = other.read_by(readings)
                return None if moved is None else self._joined_with(moved, tensor)
            moved = other.reshaped(self.shape)
            if moved is None:
                mine = self.reshaped(other.shape)
                return None if mine is None else mine.taking_in(other, tensor)
        else:
            if any(not _one_a_row(view) for view in readings):
                return None
            if other.shape[-1] != self.shape[-1]:
                # Nothing here may depend on how long rows are.
                return None
            if math.prod(other.shape[:-1]) != rows:
                return None
            moved = other.reshaped(self.shape)
            if moved is None:
                return None
        joined = self._joined_with(moved, tensor)
        # A copy that gives every place the number of its row would give one number a row.
        return joined if joined.gives_rows == self.gives_rows else None

    def read_by(self, readings: list[View]) -> Program | None:
        """The program in the order in which all of these read its result; None where it is another
        one for each, where rows would not stay whole, or where more than one input would no longer
        be read in vectors."""
        first = readings[0]
        if self.reduces or any(view.axes != first.axes for view in readings):
            return None
        inputs = [view.seen_through(first) for view in self.inputs]
        if any(view is None for view in inputs):
            return None
        moved = Program(first.shape, [view for view in inputs if view is not None],
                        list(self.nodes))
        apart = [view for view in moved.inputs
                 if view.axes[-1] and view.axes[-1][-1][1] not in (0, 1)]
        return moved if len(apart) <= 1 else None

    def _joined_with(self, source: Program, tensor: Tensor) -> Program:
        """This program with another of its shape in the place of what reads `tensor`."""
        joined = Program(self.shape, [])
        of_other: list[int] = []

        def read(view: View) -> int:
            if view.tensor is not tensor:
                return joined.add_input(view)
            if not of_other:
                of_other.append(_copy(source, joined, range(len(source.nodes)), joined.add_input))
            return of_other[0]

        return joined.ending_in(_copy(self, joined, range(len(self.nodes)), read))

    def ending_in(self, node: int) -> Program:
        """This program with that node as its result, without what it does not need."""
        needed = {node}
        for index in range(node, -1, -1):
            if index in needed:
                needed.update(self.nodes[index].args)
        pruned = Program(self.shape, [])
        result = _copy(self, pruned, sorted(needed), pruned.add_input)
        if result != len(pruned.nodes) - 1:
            # Equal nodes became one before the end.
            pruned.nodes.append(Node("identity", (result,)))
        return pruned

    @property
    def cost(self) -> float:
        """Of a place, in additions."""
        return sum(COSTS.get(node.op, 1) for node in self.nodes if node.op != "constant")


def _copy(source: Program, target: Program, indices: Iterable[int],
          read: Callable[[View], int]) -> int:
    """Adds these nodes, in their order, to another program, where `read` gives the node of an
    input; the number of the last of them there."""
    names: dict[int, int] = {}
    for index in indices:
        node = source.nodes[index]
        if node.op == "input":
            names[index] = read(source.inputs[int(node.value)])
        else:
            names[index] = target.add(node.op, *(names[a] for a in node.args), value=node.value)
    return names[max(names)]


def _one_a_row(view: View) -> bool:
    """Whether every row has the next number of the tensor."""
    rows = replace(view, axes=(*view.axes[:-1], ()))
    return all(stride == 0 for _, stride in view.axes[-1]) and rows.is_whole


def copy_of(view: View) -> Program:
    """What makes a tensor of a view."""
    program = Program(view.shape, [])
    program.add_input(view)
    if program.nodes[-1].op == "constant":
        program.nodes.append(Node("identity", (len(program.nodes) - 1,)))
    return program
