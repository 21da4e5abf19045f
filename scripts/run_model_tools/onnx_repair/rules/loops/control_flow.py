"""If, Loop and Scan: decided, or unrolled, where what decides is known beforehand."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import RUN_TIME, NodeRefused, Refused, not_constant
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.chosen.counts import emptiness
from run_model_tools.onnx_repair.rules.chosen.filled_lists import filled_list
from run_model_tools.onnx_repair.rules.chosen.masks import is_same
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.loops.independent_iterations import at_once
from run_model_tools.onnx_repair.rules.loops.iterations_of_rows import iterations_of_rows
from run_model_tools.onnx_repair.rules.loops.rerolled import rerolled
from run_model_tools.onnx_repair.rules.shapes import concatenated, transposed
from run_model_tools.onnx_repair.values import Chosen, Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk

MOST_ITERATIONS = 10_000
_MOST_GUARDED_ITERATIONS = 100
"""Of a loop that may end before: each of them is computed."""


@rule("If")
def if_rule(walk: Walk, node: Node) -> list[Thing | None]:
    condition = node.tensor(0)
    if condition.array is not None:
        taken = "then_branch" if condition.array.item() else "else_branch"
        return walk.subgraph(node.attrs[taken], node, [])
    start = len(walk.graph.nodes)
    nothing = emptiness(walk, condition)
    if nothing is not None and (made := _unless_empty(walk, node, nothing)) is not None:
        _check_computed_anyhow(walk, start, "whether there are rows is known at run time only; it")
        return made
    try:
        ways = [walk.subgraph(node.attrs[branch], node, [])
                for branch in ("then_branch", "else_branch")]
    except NodeRefused as error:
        deciding = walk.graph.inputs_behind(condition)
        raise error.in_branch(deciding) if deciding else error from None
    _check_computed_anyhow(walk, start, "its condition is known at run time only, and a branch")
    return [_either(walk, condition, a, b) for a, b in zip(*ways)]


def _unless_empty(walk: Walk, node: Node, nothing: Chosen) -> list[Thing | None] | None:
    """The else_branch, where it makes places of chosen rows, which there are none of where these
    are none, as in the then_branch; None of any other."""
    empty = walk.subgraph(node.attrs["then_branch"], node, [])
    if not all(isinstance(thing, Value) and not thing.size for thing in empty):
        return None
    made = walk.subgraph(node.attrs["else_branch"], node, [])
    if all(isinstance(thing, Chosen) and thing.of is not None and is_same(walk, thing.of, nothing)
           for thing in made):
        return made
    return None


def _check_computed_anyhow(walk: Walk, start: int, where: str) -> None:
    """What is computed and then left out must not end the program, as whole numbers by 0 do."""
    for proto in walk.graph.nodes[start:]:
        if proto.op_type in ("Div", "Mod"):
            divisor = walk.graph.values[proto.input[1]]
            if not divisor.is_float and (divisor.array is None or not divisor.array.all()):
                raise Refused(f"{where} divides whole numbers, which might be by 0 where the "
                              "result is not to be used",
                              "choose between results with Where (torch.where).",
                              RUN_TIME)


def _either(walk: Walk, condition: Value, a: Thing | None, b: Thing | None) -> Value:
    for thing in (a, b):
        if isinstance(thing, Chosen):
            raise thing.why
    if not isinstance(a, Value) or not isinstance(b, Value) or a.shape != b.shape \
            or a.elem_type != b.elem_type:
        raise Refused("which of two results it has is known at run time only, and they have "
                      "different shapes or types", "make the condition a constant" + "".join(
                          f", as --freeze {name}=NUMBER does of an input"
                          for name in walk.graph.inputs_behind(condition)[:1]) + ".",
                      RUN_TIME)
    return walk.graph.op("Where", reshaped(walk, condition, ()), a, b)


@rule("Loop")
def loop(walk: Walk, node: Node) -> list[Thing | None]:
    body = node.attrs["body"]
    listed = filled_list(walk, node, body)
    if listed is not None:
        return listed
    of_rows = iterations_of_rows(walk, node, body)
    if of_rows is not None:
        return of_rows
    limit = node.ints(0, "the number of iterations")
    iterations = limit[0] if limit else MOST_ITERATIONS + 1
    condition = node.get(1)
    state = list(node.inputs[2:])
    columns: list[list[Value]] = []
    iteration = 0
    while iteration < iterations:
        if condition is not None:
            if condition.array is None:
                if limit and iterations <= _MOST_GUARDED_ITERATIONS and len(
                        body.output) == 1 + len(state):
                    return _guarded(walk, node, condition, state, range(iteration, iterations))
                raise not_constant("whether the loop goes on", condition.name)
            if not condition.array.item():
                break
        if iteration == MOST_ITERATIONS:
            raise Refused(f"it has more than {MOST_ITERATIONS} iterations", "give it fewer.")
        made = walk.subgraph(body, node, [walk.graph.constant(iteration, np.int64),
                                          condition or walk.graph.constant(True), *state])
        condition = made[0]  # type: ignore[assignment]
        state = made[1:1 + len(state)]
        columns.append(_tensors(made[1 + len(state):]))
        iteration += 1
    count = len(body.output) - 1 - len(state)
    stacked = [_stacked(walk, [column[i] for column in columns], body.output[1 + len(state) + i])
               for i in range(count)]
    return [*state, *stacked]


def _guarded(walk: Walk, node: Node, condition: Value, state: list[Thing | None],
             iterations: range) -> list[Thing | None]:
    """All iterations that there may be; once the condition fails, the state stays what it was."""
    start = len(walk.graph.nodes)
    goes_on = condition
    for iteration in iterations:
        made = walk.subgraph(node.attrs["body"], node,
                             [walk.graph.constant(iteration, np.int64), condition, *state])
        state = [_either(walk, goes_on, new, old) for new, old in zip(made[1:], state)]
        condition = made[0]  # type: ignore[assignment]
        goes_on = walk.graph.op("And", reshaped(walk, goes_on, ()), reshaped(walk, condition, ()))
    _check_computed_anyhow(walk, start,
                           "how many iterations it has is known at run time only; its body")
    return state


def _tensors(things: list[Thing | None]) -> list[Value]:
    for thing in things:
        if isinstance(thing, Chosen):
            raise thing.why
        if not isinstance(thing, Value):
            raise Refused("it collects sequences from its iterations", None, "sequences")
    return things  # type: ignore[return-value]


def stacked(walk: Walk, values: list[Value], axis: int) -> Value:
    """The values along a new axis."""
    axis %= values[0].rank + 1
    if walk.has_parts and not axis and (made := rerolled(walk, values)) is not None:
        return made
    wide = [walk.graph.op("Unsqueeze", v, np.array([axis])) for v in values]
    return concatenated(walk, wide, axis)


def _stacked(walk: Walk, values: list[Value], described: onnx.ValueInfoProto,
             axis: int = 0) -> Value:
    if not values:
        tensor = described.type.tensor_type
        return walk.graph.constant(np.zeros(
            (0, *(d.dim_value for d in tensor.shape.dim)),
            onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type or TensorProto.FLOAT)))
    return stacked(walk, values, axis)


@rule("Scan")
def scan(walk: Walk, node: Node) -> list[Thing | None]:
    body = node.attrs["body"]
    count = node.attrs["num_scan_inputs"]
    if node.opset < 9:
        return _batched_scan(walk, node, body, count)
    states = len(node.inputs) - count
    axes = node.attrs.get("scan_input_axes") or [0] * count
    backwards = node.attrs.get("scan_input_directions") or [0] * count
    results = len(body.output) - states
    out_axes = node.attrs.get("scan_output_axes") or [0] * results
    out_backwards = node.attrs.get("scan_output_directions") or [0] * results
    values = [node.tensor(states + i) for i in range(count)]
    if not any(backwards) and not any(out_backwards):
        parts = [transposed(walk, v, _with_first(a % v.rank, v.rank))
                 for v, a in zip(values, axes)]
        together = at_once(walk, node, body, list(node.inputs[:states]), parts)
        if together is not None:
            return [*node.inputs[:states],
                    *(transposed(walk, v, list(np.argsort(_with_first(a % v.rank, v.rank))))
                      for v, a in zip(together, out_axes))]
    made, columns = _scanned(walk, node, list(node.inputs[:states]), values, axes, backwards)
    stacked = [_stacked(walk, column[::-1] if back else column, body.output[states + i], axis)
               for i, (column, axis, back) in enumerate(zip(columns, out_axes, out_backwards))]
    return [*made, *stacked]


def _with_first(axis: int, rank: int) -> list[int]:
    """The order of axes in which `axis` is the first."""
    return [axis, *(i for i in range(rank) if i != axis)]


def _scanned(walk: Walk, node: Node, state: list[Thing | None], values: list[Value],
             axes: list[int], backwards: list[int]) -> tuple[list[Thing | None], list[list[Value]]]:
    body = node.attrs["body"]
    length = values[0].shape[axes[0] % values[0].rank]
    if length > MOST_ITERATIONS:
        raise Refused(f"it has {length} iterations, and {MOST_ITERATIONS} are the most",
                      "give it fewer.")
    columns: list[list[Value]] = [[] for _ in range(len(body.output) - len(state))]
    for iteration in range(length):
        items = [_item(walk, v, a % v.rank, length - 1 - iteration if back else iteration)
                 for v, a, back in zip(values, axes, backwards)]
        made = walk.subgraph(body, node, [*state, *items])
        state = made[:len(state)]
        for column, value in zip(columns, _tensors(made[len(state):])):
            column.append(value)
    return state, columns


def _item(walk: Walk, value: Value, axis: int, index: int) -> Value:
    part = sliced(walk, value, {axis: range(index, index + 1)})
    return walk.graph.op("Squeeze", part, np.array([axis]))


def _batched_scan(walk: Walk, node: Node, body: onnx.GraphProto,
                  count: int) -> list[Thing | None]:
    """Of opset 8: over the second axis, for each element of the first."""
    if node.get(0) is not None:
        raise Refused("its sequences have lengths of their own")
    things = [node.tensor(i) for i in range(1, len(node.inputs))]
    states = len(things) - count
    backwards = node.attrs.get("directions") or [0] * count
    rows = []
    for index in range(things[0].shape[0]):
        items = [_item(walk, t, 0, index) for t in things]
        made, columns = _scanned(walk, node, list(items[:states]), items[states:], [0] * count,
                                 backwards)
        rows.append([*_tensors(made), *(_stacked(walk, column, body.output[states + i])
                                        for i, column in enumerate(columns))])
    return [_stacked(walk, [row[i] for row in rows], body.output[i])
            for i in range(len(body.output))]


