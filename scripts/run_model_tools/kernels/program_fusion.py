"""Which programs run together, and which are done to the result of a product on its way."""

from __future__ import annotations

from collections import defaultdict

from run_model_tools.kernels import matmul, rows
from run_model_tools.kernels.matmul import Product
from run_model_tools.kernels.plan import Plan, ProductStep, ProgramStep, Step
from run_model_tools.kernels.programs import Program
from run_model_tools.kernels.tensors import Tensor

_MOST_NODES = 60


def fuse_programs(plan: Plan) -> None:
    """Changes the plan: a program takes in the programs that only it reads, and becomes part of
    the product that it follows."""
    steps = _Steps(plan)
    made = [step.output for step in plan.steps]
    # Backwards: when a step's turn comes, all that reads it has taken in what it can.
    for tensor in reversed(made):
        while _takes_in_a_program(steps, tensor):
            pass
    for tensor in made:
        _become_epilogue(steps, tensor)
    plan.steps = [steps.makers[tensor] for tensor in made if tensor in steps.makers]


class _Steps:
    """Who makes and who reads a plan's tensors, while steps take in others."""

    def __init__(self, plan: Plan):
        self.makers: dict[Tensor, Step] = {step.output: step for step in plan.steps}
        self.places = {step.output: index for index, step in enumerate(plan.steps)}
        self._readers: dict[Tensor, set[Tensor]] = defaultdict(set)
        """By what they make."""
        for step in plan.steps:
            self._add(step)
        self._kept = set(plan.outputs)

    def only_reads(self, reader: Step, tensor: Tensor) -> bool:
        """Whether nothing but the reader needs the tensor."""
        return self._readers[tensor] == {reader.output} and tensor not in self._kept

    def take_in(self, maker: Step, merged: Step) -> None:
        """`merged` computes what the maker and its only reader, of the same output, did."""
        reader = self.makers[merged.output]
        for tensor in (*maker.inputs, *reader.inputs):
            self._readers[tensor] -= {maker.output, reader.output}
        del self.makers[maker.output]
        self.makers[merged.output] = merged
        self._add(merged)

    def _add(self, step: Step) -> None:
        for tensor in step.inputs:
            self._readers[tensor].add(step.output)


def _takes_in_a_program(steps: _Steps, made: Tensor) -> bool:
    step = steps.makers.get(made)
    if not isinstance(step, ProgramStep):
        return False
    for tensor in reversed(step.inputs):
        maker = steps.makers.get(tensor)
        if not isinstance(maker, ProgramStep) or not steps.only_reads(step, tensor):
            continue
        merged = step.program.taking_in(maker.program, tensor)
        if (merged is None or len(merged.nodes) > _MOST_NODES or not merged.has_few_passes
                or not rows.can_run(merged)):
            continue
        steps.take_in(maker, ProgramStep(rows.inputs_of(merged), made, merged))
        return True
    return False


def _become_epilogue(steps: _Steps, made: Tensor) -> None:
    step = steps.makers.get(made)
    if not isinstance(step, ProgramStep):
        return
    for tensor in sorted(step.inputs, key=lambda one: steps.places.get(one, -1), reverse=True):
        maker = steps.makers.get(tensor)
        if (not isinstance(maker, ProductStep) or not steps.only_reads(step, tensor)
                or maker.product.epilogue is not None):
            continue
        product = _with_epilogue(maker.product, step.program, tensor)
        if product is not None:
            steps.take_in(maker, ProductStep(matmul.inputs_of(product), made, product))
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
    return Product(product.left, product.right, product.scale, replaced)
