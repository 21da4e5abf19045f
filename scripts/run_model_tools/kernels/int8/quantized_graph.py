"""A plan of a quantized graph -> the same with layers of bytes where the graph has bytes.

The graph's QuantizeLinear and DequantizeLinear are steps of the plan, and nothing else rounds: a
layer computes with bytes if all that it reads comes from such steps and its weights lie on a grid
too.  What has no kernel of bytes stays float32 between the very same steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from tvm import relay

from run_model_tools.kernels.int8 import pooling as int8_pooling
from run_model_tools.kernels.int8.exact import (
    ExactConvolution,
    byte_table,
    make_map,
    make_sum,
)
from run_model_tools.kernels.int8.grid import Grid, weight_steps
from run_model_tools.kernels.int8.layers import (
    make_cast,
    make_convolution,
    make_dense,
    of_one_pixel,
)
from run_model_tools.kernels.int8.pooling import QuantizedPooling
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, batched
from run_model_tools.kernels.plan import (
    ByteSumStep,
    ConvolutionStep,
    DenseStep,
    DequantizeStep,
    ElementwiseStep,
    LayerStep,
    Plan,
    PoolingStep,
    ProgramStep,
    QuantizeStep,
    RelayStep,
    Step,
)
from run_model_tools.kernels.programs import rows
from run_model_tools.kernels.programs.fusion import fuse_programs
from run_model_tools.kernels.programs.program import Program
from run_model_tools.kernels.relay.whole_numbers import MUCH
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.views import View, whole

# Steps of TVM's that give numbers that they were given.
_MOVES = ("reshape", "transpose", "layout_transform", "to_blocked", "to_planar", "squeeze",
          "expand_dims")

def use_bytes(plan: Plan, isa: Isa) -> tuple[Plan, dict[str, object]]:
    """The plan, and what is to be said of it; both as they were where nothing is quantized."""
    if not any(isinstance(step, (QuantizeStep, DequantizeStep)) for step in plan.steps):
        return plan, {}
    return _Converter(plan, isa).run()


class _Converter:
    def __init__(self, plan: Plan, isa: Isa):
        self.plan, self.isa = plan, isa
        self.steps: list[Step] = []
        self.makers = {step.output: step for step in plan.steps}
        self.readers: dict[Tensor, list[Step]] = defaultdict(list)
        for step in plan.steps:
            for tensor in step.inputs:
                self.readers[tensor].append(step)
        self.bytes: dict[Tensor, tuple[Tensor, Grid]] = {}
        """Where a tensor of the plan, of whole numbers or float32, lies as the kernels' bytes."""
        self.maps: dict[Tensor, tuple[Tensor, Grid, np.ndarray]] = {}
        """Of bytes that are a function of others: these, their grid, and the byte for each."""
        self.given: set[Tensor] = set(plan.parameter_tensors)
        """Those that lie as the plan says."""
        self.layers: set[LayerStep] = set()
        """Those of bytes, but for casts to bytes and back."""

    def run(self) -> tuple[Plan, dict[str, object]]:
        for step in self.plan.steps:
            self._convert(step)
        outputs = [self._as_it_was(tensor) for tensor in self.plan.outputs]
        self._round_in_float32()
        plan = replace(self.plan, steps=self._needed(outputs), outputs=outputs)
        fuse_programs(plan)
        return plan, {"int8_layers": sum(step in self.layers for step in plan.steps)}

    def _needed(self, outputs: list[Tensor]) -> list[Step]:
        """Without steps for float32 values that were only rounded."""
        needed, kept = set(outputs), []
        for step in reversed(self.steps):
            if step.output in needed:
                needed.update(step.inputs)
                kept.append(step)
        return kept[::-1]

    def _round_in_float32(self) -> None:
        """What is left of pairs of both operators, on what is no picture, as one step of ours."""
        kept = {step.output: step for step in self.steps}
        for index, step in enumerate(self.steps):
            if not isinstance(step, DequantizeStep):
                continue
            made_by = kept.get(step.inputs[0])
            if not isinstance(made_by, QuantizeStep) or made_by.grid != step.grid:
                continue
            program = rounding(whole(made_by.inputs[0]), made_by.grid)
            if program is not None and rows.can_run(program):
                self.steps[index] = ProgramStep(made_by.inputs, step.output, program)

    def _convert(self, step: Step) -> None:
        if isinstance(step, DequantizeStep) and step.inputs[0] in self.bytes:
            tensor, _ = self.bytes[step.inputs[0]]
            self.bytes[step.output] = (tensor, step.grid)
        elif isinstance(step, QuantizeStep):
            self._quantize(step)
        elif not self._in_bytes(step):
            self._keep(step)

    def _in_bytes(self, step: Step) -> bool:
        """Whether the step has become a layer of bytes."""
        if isinstance(step, ConvolutionStep):
            return self._convolution(step)
        if isinstance(step, PoolingStep):
            return self._pooling(step)
        if isinstance(step, DenseStep):
            return self._dense(step)
        return isinstance(step, ByteSumStep) and self._sum(step)

    def _keep(self, step: Step) -> None:
        inputs = [self._as_it_was(tensor) for tensor in step.inputs]
        self.steps.append(replace(step, inputs=inputs))
        self.given.add(step.output)

    def _quantize(self, step: QuantizeStep) -> None:
        if step.output in self.bytes:
            return  # by the layer that made what it reads
        source = step.inputs[0]
        if not self._in_blocks(source) or not step.grid.is_bytes:
            self._keep(step)
        elif self._map(step):
            pass
        elif source in self.bytes and self.bytes[source][1] == step.grid:
            self.bytes[step.output] = self.bytes[source]
        else:
            self.bytes[step.output] = (self._cast(self._as_it_was(source), step.grid), step.grid)

    # Layers of bytes; False where there is no kernel for one.

    def _convolution(self, step: ConvolutionStep) -> bool:
        conv = step.convolution
        if conv.expression is not None:
            return False
        count = len(conv.input_shapes)
        grids = [self._grid(tensor) for tensor in step.inputs]
        steps = weight_steps(conv.weight)
        if steps is None or not grids or any(g is None or not g.is_bytes for g in grids):
            return False
        stored = [g.stored for g in grids if g is not None]
        if len({(q.scale, q.zero_point) for q in stored[:count]}) != 1:
            return False
        writer = self._writer(step.output)
        output = writer.grid.stored if writer else None
        inputs = tuple(stored)
        if conv.planar:
            inputs = (stored[0],) * conv.input_channels + tuple(stored[count:])
        exact = ExactConvolution(conv, inputs, output, steps)
        try:
            layer = make_convolution(exact, self.isa)
        except ValueError:  # sums that are too large for 32 bits
            return False
        if layer is None:
            return False
        tensors = ([*map(self._as_it_was, step.inputs[:1]), *map(self._byte, step.inputs[1:])]
                   if conv.planar else [self._byte(t) for t in step.inputs])
        self._written(step, writer, self._layer(layer, tensors))
        return True

    def _pooling(self, step: PoolingStep) -> bool:
        grids = [self._grid(tensor) for tensor in step.inputs]
        if any(g is None or not g.is_bytes for g in grids) or len(set(grids)) != 1:
            return False
        grid = grids[0]
        assert grid is not None
        stored = (grid.stored,) * len(grids)
        writer = self._writer(step.output)
        if step.pooling.kind == "max":
            output = grid.stored
        elif step.pooling.planar or writer is None:
            output = None
        else:
            output = writer.grid.stored
        quantized = QuantizedPooling(step.pooling, stored, output)
        if not int8_pooling.options(quantized, self.isa):
            return False
        made = self._layer(int8_pooling.make(quantized, self.isa),
                           [self._byte(t) for t in step.inputs])
        if step.pooling.kind == "max":
            self.bytes[step.output] = (made, grid)
        else:
            self._written(step, None if output is None else writer, made)
        return True

    def _dense(self, step: DenseStep) -> bool:
        grid = self._grid(step.inputs[0])
        if (grid is None or not grid.is_bytes or step.dense.expression is not None
                or step.output.shape[0] > 1):  # rows are a product of matrices
            return False
        conv = of_one_pixel(step.dense)
        steps = weight_steps(conv.weight)
        if steps is None:
            return False
        exact = ExactConvolution(conv, (grid.stored,) * conv.input_channels, None, steps)
        try:
            layer = make_dense(exact, self.isa)
        except ValueError:  # as above
            return False
        self._written(step, None, self._layer(layer, [self._as_it_was(step.inputs[0])]))
        return True

    def _map(self, step: QuantizeStep) -> bool:
        """What is quantized depends on one tensor of bytes, number by number, of which there may be
        several values that other maps made."""
        source = step.inputs[0]
        maker = self.makers.get(source)
        inputs, expression = [source], None
        if isinstance(maker, ElementwiseStep):
            work = maker.elementwise
            whole = tuple(range(len(work.sources[0].blocks)))
            if (any(s.kind != "blocks" or s.blocks != whole or len(set(s.tensors)) > 1
                    for s in work.sources)
                    or work.expression.channels or maker.inputs[0].shape != source.shape):
                return False
            inputs = [maker.inputs[s.tensors[0]] for s in work.sources]
            expression = work.expression
        if any(x not in self.bytes for x in inputs) or inputs == [source] and (
                self.bytes[source][1] == step.grid):
            return False
        given = [self.bytes[x] for x in inputs]
        roots = [self.maps.get(tensor, (tensor, grid, np.arange(256, dtype=np.uint8)))
                 for tensor, grid in given]
        root, before, _ = roots[0]
        if any(tensor is not root for tensor, _, _ in roots):
            return False
        numbers = [grid.numbers[table] for (_, grid), (_, _, table) in zip(given, roots)]
        with np.errstate(all="ignore"):
            results = numbers[0] if expression is None else expression.evaluate(numbers)
        table = byte_table(step.grid, results)
        made = self._layer(make_map(root.shape_of_one, before, step.grid, table, self.isa), [root])
        self.maps[made] = (root, before, table)
        self.bytes[step.output] = (made, step.grid)
        return True

    def _sum(self, step: ByteSumStep) -> bool:
        if not self._in_blocks(step.output) or any(t not in self.bytes for t in step.inputs):
            return False
        layer = make_sum(step.output.shape_of_one, step.grids, step.grid, step.low, self.isa)
        made = self._layer(layer, [self.bytes[t][0] for t in step.inputs])
        self.bytes[step.output] = (made, step.grid)
        return True

    # Where things lie.

    def _in_blocks(self, tensor: Tensor) -> bool:
        """What has five axes of its own is not."""
        return len(tensor.shape) == 5 and tensor.shape[4] == self.isa.lanes

    def _writer(self, tensor: Tensor) -> QuantizeStep | None:
        """The step that makes bytes of a blocked tensor, if it is the only one that reads it."""
        readers = self.readers[tensor]
        if (len(readers) != 1 or not isinstance(readers[0], QuantizeStep)
                or not self._in_blocks(tensor) or tensor in self.plan.outputs
                or not readers[0].grid.is_bytes):
            return None
        return readers[0]

    def _written(self, step: Step, writer: QuantizeStep | None, made: Tensor) -> None:
        """Notes what a layer made for the output of a step."""
        if writer is not None:
            self.bytes[writer.output] = (made, writer.grid)
        else:
            # The layer's own tensor stands in the place of the step's.
            self.steps[-1].output = step.output
            self.given.add(step.output)

    def _layer(self, layer: Layer, inputs: list[Tensor]) -> Tensor:
        """Adds a layer of bytes."""
        step = self._added(layer, inputs)
        self.layers.add(step)
        return step.output

    def _cast(self, tensor: Tensor, grid: Grid) -> Tensor:
        """Adds what makes the kernels' bytes of a blocked float32 tensor."""
        return self._added(make_cast(tensor.shape_of_one, grid.stored, False, self.isa, True),
                           [tensor]).output

    def _added(self, layer: Layer, inputs: list[Tensor]) -> LayerStep:
        """The step of a layer of one picture, for as many as the inputs have."""
        layer = batched(layer, inputs[0].shape[0])
        step = LayerStep(inputs, Tensor(layer.output_shape, layer.output_dtype), layer)
        self.steps.append(step)
        return step

    def _grid(self, tensor: Tensor) -> Grid | None:
        """The grid that a float32 tensor's numbers lie on."""
        if tensor in self.bytes:
            return self.bytes[tensor][1]
        maker = self.makers.get(tensor)
        while isinstance(maker, RelayStep) and maker.what in _MOVES and len(maker.inputs) == 1:
            if maker.inputs[0] in self.bytes:
                return self.bytes[maker.inputs[0]][1]
            maker = self.makers.get(maker.inputs[0])
        return maker.grid if isinstance(maker, DequantizeStep) else None

    def _byte(self, tensor: Tensor) -> Tensor:
        """A blocked tensor as the kernels' bytes."""
        if tensor not in self.bytes:
            grid = self._grid(tensor)
            assert grid is not None
            self.bytes[tensor] = (self._cast(tensor, grid), grid)
        return self.bytes[tensor][0]

    def _as_it_was(self, tensor: Tensor) -> Tensor:
        """A tensor of the plan, made of the kernels' bytes where it is needed as it was."""
        if tensor in self.given:
            return tensor
        source, grid = self.bytes[tensor]
        if tensor.dtype == "float32":
            step: Step = LayerStep([source], tensor, batched(make_cast(
                tensor.shape_of_one, grid.stored, True, self.isa, True), tensor.shape[0]))
        else:
            step = RelayStep([source], tensor, _signed(grid), "bytes")
        self.steps.append(step)
        self.given.add(tensor)
        return tensor


def rounding(x: View, grid: Grid) -> Program | None:
    """To a grid's numbers and back; None where these are too large to be rounded so."""
    low, high = (limit - grid.zero_point for limit in grid.limits)
    if max(-low, high) > MUCH / 3:
        return None
    program = Program(x.shape, [])

    def number(value: float) -> int:
        return program.add("constant", value=float(np.float32(value)))

    last = program.add("divide", program.add_input(x), number(grid.scale))
    for much in (MUCH, -MUCH):
        last = program.add("add", last, number(much))
    last = program.add("maximum", last, number(low))
    last = program.add("minimum", last, number(high))
    program.add("multiply", last, number(grid.scale))
    return program


def _signed(grid: Grid) -> Callable[..., relay.Expr]:
    def build(x: relay.Expr) -> relay.Expr:
        if not grid.offset:
            return x
        wide = relay.subtract(relay.cast(x, "int32"), relay.const(np.int32(grid.offset)))
        return relay.cast(wide, grid.dtype)
    return build
