"""Operators on numbers one by one and on rows of them, each as a program (programs/program.py)."""

from __future__ import annotations

import math
from collections.abc import Callable

from run_model_tools.kernels.programs import rows
from run_model_tools.kernels.programs.operators import (
    SAME_NAME,
    layer_norm,
    one_by_one,
    softmax,
)
from run_model_tools.kernels.programs.program import Program
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.arithmetic import FAST, is_exact
from run_model_tools.kernels.relay.graph import is_read_once, operator, shape_of
from run_model_tools.kernels.relay.readers.moves import cast, view_of
from run_model_tools.kernels.relay.readers.network import Network, Value, integers
from run_model_tools.kernels.tensors import Blocked
from run_model_tools.kernels.views import ConstantTensor, View, whole


def add_program(net: Network, program: Program) -> View | None:
    """The result of a step that runs the program, None where there is no kernel for it."""
    if not rows.can_run(program):
        return None
    return whole(net.run(program))


def _add_with_columns(net: Network, program: Program) -> View | None:
    """add_program() with a number for every place, also where all of a row are alike or it has one.
    """
    made = add_program(net, program)
    if made is None or not program.gives_rows:
        return made
    column = made.reshape((*program.shape[:-1], 1))
    return None if column is None else column.broadcast(program.shape)


def _views(net: Network, expr: relay.Call, of_blocks: bool = False) -> list[View] | None:
    """Of a float32 operator's arguments; None where it is not one for views.  `of_blocks`: values
    in blocks too."""
    shape = shape_of(expr)
    if not shape or min(shape) < 1 or str(expr.checked_type.dtype) != "float32":
        return None
    values = [net.values[a] for a in expr.args]
    if any(isinstance(v, list) or isinstance(v, Blocked) and not of_blocks for v in values):
        return None
    views = [view_of(net, v) for v in values]
    if any(v is None for v in views) or all(isinstance(v.tensor, ConstantTensor)
                                            for v in views if v is not None):
        return None
    return [v for v in views if v is not None]


def _number(view: View) -> float | None:
    """A constant of one number."""
    if isinstance(view.tensor, ConstantTensor) and view.tensor.data.size == 1:
        return float(view.tensor.data.reshape(())) * view.scale
    return None


def _add_operand(program: Program, view: View) -> int:
    """The node of what is broadcast to the program's shape, or of a constant of one number."""
    number = _number(view)
    return (program.add_input(view.broadcast(program.shape)) if number is None
            else program.add("constant", value=number))


def _one_by_one(net: Network, expr: relay.Call) -> Value:
    views, name, shape = _views(net, expr), operator(expr), shape_of(expr)
    if views is None:
        return None
    name = FAST.get(name, name)
    # Read twice it is made once: two readers would round it differently, and x * c - min(x * c)
    # would not be 0 where all x are alike.
    is_scaled = is_read_once(expr, net.users) and not (
        name == "divide" and is_exact(expr.args[1]))
    scaled = _scaled(name, views, shape) if is_scaled else None
    if scaled is not None:
        return scaled
    program = Program(shape, [])
    nodes = [_add_operand(program, view) for view in views]
    if not one_by_one(program, name, nodes, expr.attrs):
        return None
    return add_program(net, program)


def _where(net: Network, expr: relay.Call) -> Value:
    return _choice(net, expr, *expr.args)


def _cast(net: Network, expr: relay.Call) -> Value:
    """A condition as 1 or 0, or whole numbers that stay what they are."""
    if str(expr.args[0].checked_type.dtype) != "bool":
        return cast(net, expr)
    return _choice(net, expr, expr.args[0], 1.0, 0.0)


def _choice(net: Network, expr: relay.Call, condition: relay.Expr,
            *values: relay.Expr | float) -> Value:
    """One number where a condition on float32 numbers holds, the other elsewhere."""
    shape = shape_of(expr)
    if not shape or min(shape) < 1 or str(expr.checked_type.dtype) != "float32":
        return None
    program = Program(shape, [])

    def node_of(value: relay.Expr | float) -> int | None:
        if isinstance(value, float):
            return program.add("constant", value=value)
        view = view_of(net, net.values[value])
        return None if view is None else _add_operand(program, view)

    yes, no = (node_of(value) for value in values)
    if yes is None or no is None or _add_choice(program, node_of, condition, yes, no) is None:
        return None
    return add_program(net, program) if program.inputs else None


_COMPARISONS = {"less": ("if_less", False, False), "greater": ("if_less", True, False),
                "less_equal": ("if_less_equal", False, False),
                "greater_equal": ("if_less_equal", True, False),
                "equal": ("if_equal", False, False), "not_equal": ("if_equal", False, True)}
"""(a node's operator, whether its first two arguments are the others', whether its last two are).
"""


def _add_choice(program: Program, node_of: Callable[[relay.Expr], int | None],
                condition: relay.Expr, yes: int, no: int) -> int | None:
    """The node that is `yes` where a condition holds and else `no`; None where it compares no
    float32 numbers."""
    name = operator(condition)
    if name == "logical_not":
        return _add_choice(program, node_of, condition.args[0], no, yes)
    if name in ("logical_and", "logical_or"):
        inner = _add_choice(program, node_of, condition.args[1], yes, no)
        if inner is None:
            return None
        return _add_choice(program, node_of, condition.args[0],
                           *((inner, no) if name == "logical_and" else (yes, inner)))
    if name not in _COMPARISONS:
        return None
    op, swaps_sides, swaps_results = _COMPARISONS[name]
    left, right = (node_of(side) for side in condition.args)
    if left is None or right is None:
        return None
    return program.add(op, *((right, left) if swaps_sides else (left, right)),
                       *((no, yes) if swaps_results else (yes, no)))


def _scaled(name: str, views: list[View], shape: tuple[int, ...]) -> View | None:
    """A view times a number: what reads it multiplies."""
    if name not in ("multiply", "divide") or len(views) != 2:
        return None
    for view, factor in (views, views[::-1] if name == "multiply" else views):
        number = _number(factor)
        if number is None or view.shape != shape:
            continue
        if name == "divide":
            number = 1 / number if number else math.inf
        if math.isfinite(number) and 1e-30 < abs(number) < 1e30:
            return view.times(number)
    return None


def _bias_add(net: Network, expr: relay.Call) -> Value:
    views, shape = _views(net, expr), shape_of(expr)
    if views is None:
        return None
    after = len(shape) - 1 - int(expr.attrs.axis) % len(shape)
    bias = views[1].reshape((*views[1].shape, *(1,) * after))
    assert bias is not None
    program = Program(shape, [])
    program.add("add", program.add_input(views[0]), program.add_input(bias.broadcast(shape)))
    return add_program(net, program)


# Along rows.

def _reduction(build: Callable[[Program, list[int], int], None]
               ) -> Callable[[Network, relay.Call], Value]:
    """A reader of what makes one number of the last axes; `build` gets the nodes of the operands
    and how many numbers are in a row."""
    def read(net: Network, expr: relay.Call) -> Value:
        in_blocks = isinstance(net.values[expr.args[0]], Blocked)
        views = _views(net, expr, of_blocks=True) if shape_of(expr) else None
        if views is None:
            return None
        shape = shape_of(expr.args[0])
        if operator(expr) == "nn.global_avg_pool2d":
            # What a mean over a sequence's last axis may have become on its way here.
            axes = [2, 3] if str(expr.attrs.layout) == "NCHW" else []
        elif bool(expr.attrs.exclude):
            return None
        else:
            axes = sorted({a % len(shape) for a in integers(
                range(len(shape)) if expr.attrs.axis is None else expr.attrs.axis)})
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        if not axes:
            return None
        flat = (*(shape[axis] for axis in kept), math.prod(shape[axis] for axis in axes))
        seen = [view.broadcast(shape).transpose([*kept, *axes]).reshape(flat) for view in views]
        if any(view is None for view in seen):
            return None
        program = Program(flat, [])
        build(program, [program.add_input(view) for view in seen if view is not None], flat[-1])
        # Down the columns of what lies in rows TVM's schedules go on vectors, where numbers would
        # be taken one by one here, which what is in blocks costs elsewhere too.
        if (not in_blocks and any(shape[a] > 1 for a in kept if a > axes[0])
                and not rows.transposes(program, net.isa)):
            return None
        result = add_program(net, program)
        return None if result is None else result.reshape(shape_of(expr))
    return read


def _mean(program: Program, nodes: list[int], count: int) -> None:
    program.scaled(program.add("sum", nodes[0]), 1 / count)


def _variance(net: Network, expr: relay.Call) -> Value:
    if len(expr.args) != 2 or bool(getattr(expr.attrs, "unbiased", False)):
        return None

    def build(program: Program, nodes: list[int], count: int) -> None:
        from_mean = program.add("subtract", *nodes)
        _mean(program, [program.add("multiply", from_mean, from_mean)], count)
    return _reduction(build)(net, expr)


def _plainly(op: str) -> Callable[[Program, list[int], int], None]:
    def build(program: Program, nodes: list[int], count: int) -> None:
        program.add(op, nodes[0])
    return build


def _softmax(net: Network, expr: relay.Call) -> Value:
    shape = shape_of(expr)
    axis = int(expr.attrs.axis) % len(shape)
    # Of blocks with so few channels that no vector is full TVM's schedule is as fast.
    views = _views(net, expr, of_blocks=shape[axis] >= net.isa.lanes)
    if views is None:
        return None
    order = [*(i for i in range(len(shape)) if i != axis), axis]
    rows_last = views[0].transpose(order)
    program = Program(rows_last.shape, [])
    softmax(program, program.add_input(rows_last), operator(expr) == "nn.log_softmax")
    made = _add_with_columns(net, program)
    return None if made is None else made.transpose([order.index(i) for i in range(len(order))])


def _layer_norm(net: Network, expr: relay.Call) -> Value:
    views, shape, attrs = _views(net, expr), shape_of(expr), expr.attrs
    if views is None or int(attrs.axis) % len(shape) != len(shape) - 1:
        return None
    program = Program(shape, [])
    x, weight, bias = (program.add_input(view.broadcast(shape)) for view in views)
    result = layer_norm(program, x, float(attrs.epsilon), weight if bool(attrs.scale) else None,
                        bias if bool(attrs.center) else None,
                        lambda total: program.scaled(total, 1 / shape[-1]))
    return _add_with_columns(net, program.ending_in(result))


READERS: dict[str, Callable[[Network, relay.Call], Value]] = {
    **dict.fromkeys((*SAME_NAME, "nn.relu", "clip", "nn.leaky_relu", "power", "copy", *FAST),
                    _one_by_one),
    "where": _where, "cast": _cast, "nn.bias_add": _bias_add, "variance": _variance,
    **dict.fromkeys(("mean", "nn.global_avg_pool2d"), _reduction(_mean)),
    **{op: _reduction(_plainly(op)) for op in ("sum", "max", "min")},
    **dict.fromkeys(("nn.softmax", "nn.fast_softmax", "nn.log_softmax"), _softmax),
    "nn.layer_norm": _layer_norm}
