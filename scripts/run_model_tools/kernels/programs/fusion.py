"""Which programs run together, and which are done to the result of a product on its way."""

from __future__ import annotations

from dataclasses import replace

from run_model_tools.kernels.plan import Links, Plan, ProductStep, ProgramStep, Step
from run_model_tools.kernels.products import matmul
from run_model_tools.kernels.products.matmul import Product
from run_model_tools.kernels.programs import rows
from run_model_tools.kernels.programs.program import Program
from run_model_tools.kernels.tensors import Tensor

_MOST_NODES = 60


def fuse_programs(plan: Plan, copies_last: bool = False) -> None:
    """Changes the plan: a program takes in the programs that only it reads, and becomes part of
    the product that it follows.  `copies_last`: what only moves numbers takes in what is left when
    all others have, so that rows stay whole."""
    links = Links(plan)
    made = [step.output for step in plan.steps]
    # Backwards: when a step's turn comes, all that reads it has taken in what it can.
    for copies in (False, True) if copies_last else (True,):
        for tensor in reversed(made):
            while (copies or not is_copy(links.makers.get(tensor))) and (
                    _takes_in_a_program(links, tensor)):
                pass
    places = {tensor: index for index, tensor in enumerate(made)}
    for tensor in made:
        _become_epilogue(links, tensor, places)
    plan.steps = [links.makers[tensor] for tensor in made if tensor in links.makers]


def is_copy(step: Step | None) -> bool:
    """Whether a step only moves numbers."""
    return isinstance(step, ProgramStep) and step.program.is_copy


def _takes_in_a_program(links: Links, made: Tensor) -> bool:
    step = links.makers.get(made)
    if not isinstance(step, ProgramStep):
        return False
    for tensor in reversed(step.inputs):
        maker = links.makers.get(tensor)
        if not isinstance(maker, ProgramStep) or links.only_reader(tensor) is not step:
            continue
        merged = step.program.taking_in(maker.program, tensor)
        if (merged is None or len(merged.nodes) > _MOST_NODES or not merged.has_few_passes
                or not rows.can_run(merged)):
            continue
        links.take_in(maker, ProgramStep(rows.inputs_of(merged), made, merged))
        return True
    return False


def _become_epilogue(links: Links, made: Tensor, places: dict[Tensor, int]) -> None:
    step = links.makers.get(made)
    if not isinstance(step, ProgramStep):
        return
    for tensor in sorted(step.inputs, key=lambda one: places.get(one, -1), reverse=True):
        maker = links.makers.get(tensor)
        if (not isinstance(maker, ProductStep) or links.only_reader(tensor) is not step
                or maker.product.epilogue is not None):
            continue
        product = _with_epilogue(maker.product, step.program, tensor)
        if product is not None:
            links.take_in(maker, ProductStep(matmul.inputs_of(product), made, product))
            return


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
    return replace(product, epilogue=replaced)
