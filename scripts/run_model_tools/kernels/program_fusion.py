"""Which programs run together, and which are done to the result of a product on its way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from run_model_tools.kernels import matmul, rows
from run_model_tools.kernels.matmul import Product
from run_model_tools.kernels.plan import Plan, ProductStep, ProgramStep, Step
from run_model_tools.kernels.programs import Program
from run_model_tools.kernels.tensors import Tensor

_MOST_NODES = 60


def fuse_programs(plan: Plan) -> None:
    """Changes the plan: a program takes in the programs that only it reads, and becomes part of
    the product that it follows."""
    # Backwards: when a step's turn comes, all that reads it has taken in what it can.
    for step in reversed(list(plan.steps)):
        if isinstance(step, ProgramStep) and step in plan.steps:
            while _takes_in_a_program(plan, step):
                pass
    for step in list(plan.steps):
        if isinstance(step, ProgramStep):
            _become_epilogue(plan, step)


def _readers(plan: Plan) -> dict[Tensor, set[Step]]:
    found: dict[Tensor, set[Step]] = defaultdict(set)
    for step in plan.steps:
        for tensor in step.inputs:
            found[tensor].add(step)
    return found


def _takes_in_a_program(plan: Plan, step: ProgramStep) -> bool:
    readers = _readers(plan)
    makers = {s.output: s for s in plan.steps}
    for tensor in reversed(step.inputs):
        maker = makers.get(tensor)
        if (not isinstance(maker, ProgramStep) or readers[tensor] != {step}
                or tensor in plan.outputs):
            continue
        merged = step.program.taking_in(maker.program, tensor)
        if (merged is None or len(merged.nodes) > _MOST_NODES or not merged.has_few_passes
                or not rows.can_run(merged)):
            continue
        step.program = merged
        step.inputs = rows.inputs_of(merged)
        plan.steps.remove(maker)
        return True
    return False


def _become_epilogue(plan: Plan, step: ProgramStep) -> None:
    readers = _readers(plan)
    makers = {s.output: s for s in plan.steps}
    for tensor in sorted(step.inputs, key=_order(plan), reverse=True):
        maker = makers.get(tensor)
        if (not isinstance(maker, ProductStep) or readers[tensor] != {step}
                or tensor in plan.outputs or maker.product.epilogue is not None):
            continue
        product = _with_epilogue(maker.product, step.program, tensor)
        if product is None:
            continue
        index = plan.steps.index(step)
        plan.steps[index] = ProductStep(matmul.inputs_of(product), step.output, product)
        plan.steps.remove(maker)
        return


def _order(plan: Plan) -> Callable[[Tensor], int]:
    places = {step.output: index for index, step in enumerate(plan.steps)}
    return lambda tensor: places.get(tensor, -1)


def _with_epilogue(product: Product, program: Program, tensor: Tensor) -> Product | None:
    batch, height, width = product.shape
    readings = [view for view in program.inputs if view.tensor is tensor]
    moved = program.reshaped((batch * height, width)) if not program.reduces else None
    if moved is None or not all(view.is_whole for view in readings):
        return None
    replaced = Program(moved.shape, [])
    names: dict[int, int] = {}
    for index, node in enumerate(moved.nodes):
        if node.op != "input":
            names[index] = replaced.add(node.op, *(names[a] for a in node.args), value=node.value)
        elif moved.inputs[int(node.value)].tensor is tensor:
            names[index] = replaced.add("product")
        else:
            names[index] = replaced.add_input(moved.inputs[int(node.value)])
    replaced = replaced.ending_in(names[len(moved.nodes) - 1])
    if not matmul.can_take_in(product, replaced):
        return None
    return Product(product.left, product.right, product.scale, replaced)
