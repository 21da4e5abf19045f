"""Networks of matrices for GPUs: which of their operators become layers of row_kernels.py, whose
plan is the CPU's kernels' own (kernels/relay): what only moves numbers is how others read them,
what follows a product is done to its result on the way, and a normalisation is one kernel.

Layers of pictures, and what follows them, stay as they are: TVM has arithmetic in their kernels.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from run_model_tools.inside_tvm.devices import row_kernels
from run_model_tools.inside_tvm.devices.along_rows import LONGEST_ROW
from run_model_tools.kernels.isa import PLAIN
from run_model_tools.kernels.plan import Links, ProductStep, ProgramStep, RelayStep
from run_model_tools.kernels.programs.code import Sources
from run_model_tools.kernels.programs.fusion import is_copy
from run_model_tools.kernels.programs.operators import ONE_BY_ONE
from run_model_tools.kernels.relay import reading
from run_model_tools.kernels.relay.arithmetic import FAST
from run_model_tools.kernels.relay.emission import write_module
from run_model_tools.kernels.relay.graph import (
    MOVES,
    arguments,
    operator,
    post_order,
    shape_of,
    users_of,
)
from run_model_tools.kernels.relay.nodes import TupleGetItem
from run_model_tools.kernels.relay.readers import matrices
from run_model_tools.kernels.relay.rewriting import Rewritten

_MANY_ROWS = 16
"""Of a product with weights: one of fewer is ours where it reads what is ours."""
_PRODUCTS = tuple(matrices.READERS)
_SOFTMAXES = ("nn.softmax", "nn.fast_softmax", "nn.log_softmax")
_ALONG_ROWS = ("mean", "variance")
"""What is ours wherever it is along rows, and below also where it reads what is ours."""
_REDUCTIONS = (*_ALONG_ROWS, "sum", "max", "min")
_MOVES = MOVES - {"copy"} | {"split", "take"}


def with_row_layers(tvm, module, with_products):
    """The rewriting.Rewritten of a module that is simplified and has its constants folded
    (faster_folding); None where nothing becomes such a layer.  with_products: whether products are
    among them, which records of tuning are of TVM's."""
    ours = _ours(post_order(module["main"].body), _PRODUCTS if with_products else ())
    if not ours:
        return None
    plan = reading.read_rows(module, ours)
    _store_in_order(plan)
    made, layers = write_module(plan, PLAIN, layer_of=lambda step, _: layer_of(tvm, step))
    count = sum(not isinstance(step, RelayStep) for step in plan.steps)
    return Rewritten(made, layers, {"row_layers": count})


@dataclass(eq=False)
class _OrderedStep(ProgramStep):
    """A program along rows whose result is stored in the order of a view of it."""

    order: object


def _store_in_order(plan):
    """Has programs along rows store their result as the only one who reads it wants it moved."""
    links = Links(plan)
    made = [step.output for step in plan.steps]
    for tensor in made:
        step = links.makers[tensor]
        if not is_copy(step):
            continue
        [view] = step.program.inputs
        maker = links.makers.get(view.tensor)
        if (isinstance(maker, ProgramStep) and maker.program.reduces
                and not maker.program.gives_rows and links.only_reader(view.tensor) is step
                and view.permutes):
            links.take_in(maker, _OrderedStep(maker.inputs, tensor, maker.program, view))
    plan.steps = [links.makers[tensor] for tensor in made if tensor in links.makers]


def _ours(order, products):
    """The expressions that are to become layers, or the way in which these read."""
    elementwise = {*ONE_BY_ONE, *FAST, "nn.bias_add"}
    ours = set()

    def moves(expr):
        return operator(expr) in _MOVES or isinstance(expr, TupleGetItem)

    for expr in order:
        name = operator(expr)
        reads_ours = any(argument in ours for argument in arguments(expr))
        if (_begins(expr, name, products) or reads_ours and (
                name in elementwise or name in products or moves(expr)
                or name in _REDUCTIONS and _row_of(expr) <= LONGEST_ROW)):
            ours.add(expr)
    users = users_of(order)
    for expr in reversed(order):
        # Arithmetic on a layer's result is in TVM's kernel of that.
        is_apart = operator(expr) in elementwise and not any(
            operator(argument).startswith("nn.") for argument in arguments(expr))
        if (moves(expr) or is_apart) and users[expr] and all(
                user in ours for user in users[expr]):
            ours.add(expr)
    return ours


def _begins(expr, name, products):
    """Whether an operator is ours whatever it reads."""
    shape = shape_of(expr) if name else ()
    if not shape or min(shape) < 1 or str(expr.checked_type.dtype) != "float32":
        return False
    if name in products:
        return name == "nn.batch_matmul" or math.prod(shape[:-1]) >= _MANY_ROWS
    if name in _SOFTMAXES:
        return shape[int(expr.attrs.axis)] <= LONGEST_ROW
    if name == "nn.layer_norm":
        return shape[-1] <= LONGEST_ROW
    if name in _ALONG_ROWS:
        axes, rank = expr.attrs.axis, len(shape_of(expr.args[0]))
        return (axes is not None and [int(a) % rank for a in axes] == [rank - 1]
                and _row_of(expr) <= LONGEST_ROW)
    return False


def _row_of(expr):
    """How many numbers become one."""
    made = math.prod(shape_of(expr))
    return math.prod(shape_of(expr.args[0])) // made if made > 0 else math.inf


@dataclass(frozen=True, eq=False)
class RowLayer:
    """A layer for GPUs, as kernels/relay/operators.py wants one."""

    kind: str
    text: str
    """All that its code depends on."""
    inputs: list
    constants: tuple
    output_shape: tuple
    implementation: object
    """TVM's."""
    note: dict
    output_dtype: str = "float32"

    def symbol(self, index):
        return "%s_%s" % (self.kind, hashlib.sha256(self.text.encode()).hexdigest()[:16])


def layer_of(tvm, step):
    """The layer of a plan's step."""
    if isinstance(step, ProductStep):
        product = step.product
        sources, has_weights = product.sources(), row_kernels.has_weights(product)
        if has_weights:
            weights = product.right.T if row_kernels.has_few_rows(product) else product.right
            sources = Sources(sources.inputs, [weights, *sources.constants])
        shape = row_kernels.shape_of_product(product, step.output.shape)
        text = [product.shape, shape, [tensor.shape for tensor in sources.inputs], product.scale,
                _text(product.left, sources),
                product.depth if has_weights else _text(product.right, sources),
                product.epilogue and _text_of_program(product.epilogue, sources)]
        return RowLayer("product", repr(text), sources.inputs, _flat(sources), shape,
                        row_kernels.of_product(tvm, product, sources, shape),
                        {"kernel": "product", "multiply_adds": product.multiply_adds})
    program, order = step.program, getattr(step, "order", None)
    sources = Sources.of(program.inputs)
    kind, shape = "rows" if program.reduces else "elementwise", step.output.shape
    text = [_text_of_program(program, sources), shape, [tensor.shape for tensor in sources.inputs],
            order and order.axes]
    return RowLayer(kind, repr(text), sources.inputs, _flat(sources), shape,
                    row_kernels.of_program(tvm, program, sources, shape, order), {"kernel": kind})


def _flat(sources):
    return tuple(constant.reshape(-1) for constant in sources.constants)


def _text(view, sources):
    return sources.index(view.tensor), view.axes, view.offset


def _text_of_program(program, sources):
    return program.shape, [_text(view, sources) for view in program.inputs], program.nodes
