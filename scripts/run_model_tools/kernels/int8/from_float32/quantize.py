"""Float32 plan -> the same plan with layers in 8 bits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from run_model_tools.kernels.int8 import pooling as int8_pooling
from run_model_tools.kernels.int8.layers import (
    can_convolve,
    make_cast,
    make_convolution,
    make_dense,
    of_one_pixel,
)
from run_model_tools.kernels.int8.pooling import QuantizedPooling
from run_model_tools.kernels.int8.quantized import Quantization, QuantizedConvolution, clamp_fits
from run_model_tools.kernels.int8.weight_rounding import Moments
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.pictures.elementwise import make_gather
from run_model_tools.kernels.plan import (
    ConvolutionStep,
    DenseStep,
    GatherStep,
    LayerStep,
    Plan,
    PoolingStep,
    RelayStep,
    Step,
    is_global_mean,
)
from run_model_tools.kernels.tensors import Tensor


@dataclass(frozen=True)
class Quantizations:
    """How bytes stand for each activation, and for each channel of pictures."""

    tensors: dict[Tensor, Quantization]
    pictures: dict[Tensor, tuple[Quantization, ...]]
    moments: dict[Tensor, Moments] = field(default_factory=dict)
    """Of the inputs of the convolutions, by what they make."""


def quantize(plan: Plan, isa: Isa, known: Quantizations,
             kept: Collection[Step] = ()) -> tuple[Plan, dict[str, object]]:
    """The plan in 8 bits wherever there is a kernel for it, and a report of its layers.

    Tensors between such layers hold bytes; others, and the network's outputs, stay float32.  Where
    the two meet, a layer of its own casts.  `kept`: layers and global means that stay float32, as
    what they read does.
    """
    return _Quantizer(plan, isa, known, kept).run()


def layers_alone(plan: Plan, isa: Isa, known: Quantizations) -> tuple[list[Step], Plan]:
    """The layers and global means of the plan that bytes can stand for, and each by itself: a plan
    of what it makes in 8 bits, as float32, of its inputs in float32, which are the plan's."""
    return _Quantizer(plan, isa, known, ()).alone()


class _Quantizer:
    def __init__(self, plan: Plan, isa: Isa, known: Quantizations, kept: Collection[Step]):
        self.plan, self.isa, self.kept = plan, isa, kept
        self.known = Quantizations(dict(known.tensors), known.pictures, known.moments)
        self.result = Plan(plan.parameters, plan.parameter_tensors, [], [], plan.output_is_tuple)
        self.floats: dict[Tensor, Tensor] = {t: t for t in plan.parameter_tensors}
        self.bytes: dict[Tensor, Tensor] = {}
        self.counts: Counter[str] = Counter()
        self.exact: set[Tensor] = set()
        """What layers that were chosen to stay float32 read, which is never bytes before."""
        self.kept_outputs = {step.output for step in kept}
        for step in reversed(plan.steps):
            if self._stays(step):
                self.exact.update(step.inputs)
        self.wants_bytes: dict[Tensor, bool] = defaultdict(bool)
        for step in plan.steps:
            if self._takes_bytes(step):
                for tensor in step.inputs:
                    self.wants_bytes[tensor] = True

    def run(self) -> tuple[Plan, dict[str, object]]:
        for step in self.plan.steps:
            self._convert(step)
        self.result.outputs = [self._float(tensor) for tensor in self.plan.outputs]
        return self.result, {"precision": "int8", "int8_layers": self.counts["int8"],
                             "float32_layers": self.counts["float32"], "casts": self.counts["cast"]}

    def alone(self) -> tuple[list[Step], Plan]:
        steps: list[Step] = []
        result = self.result = Plan([], [], [], [], True)
        self.floats = {}
        for step in self.plan.steps:
            layer = self._layer_alone(step)
            if layer is None:
                continue
            for tensor in step.inputs:
                if tensor not in self.floats:
                    result.parameter_tensors.append(tensor)
                    self.floats[tensor] = tensor
            inputs = [self._byte(tensor) if dtype == "uint8" else tensor
                      for tensor, (_, dtype) in zip(step.inputs, layer.inputs)]
            steps.append(step)
            result.outputs.append(Tensor(layer.output_shape, layer.output_dtype))
            result.steps.append(LayerStep(inputs, result.outputs[-1], layer))
        return steps, result

    def _layer_alone(self, step: Step) -> Layer | None:
        if isinstance(step, DenseStep):
            return self._dense(step)
        if is_global_mean(step):
            assert isinstance(step, PoolingStep)
            mean = self._pooling(step)
            return None if mean is None else int8_pooling.make(mean, self.isa)
        if not isinstance(step, ConvolutionStep):
            return None
        quantized = self._convolution(step, None)
        return None if quantized is None else make_convolution(quantized, self.isa)

    def _takes_bytes(self, step: Step) -> bool:
        """Whether the step becomes a layer whose inputs are all bytes."""
        if self._stays(step):
            return False
        if isinstance(step, ConvolutionStep):
            quantized = None if step.convolution.planar else self._convolution(step, None)
            return quantized is not None and can_convolve(quantized, self.isa)
        if isinstance(step, GatherStep):
            return self._gathered(step) is not None
        return isinstance(step, PoolingStep) and self._pooling(step) is not None

    def _stays(self, step: Step) -> bool:
        """Whether it was chosen to stay float32, or serves only what was."""
        if isinstance(step, GatherStep):
            return step.output in self.exact
        if not isinstance(step, PoolingStep):
            return step in self.kept
        return step in self.kept or step.output in self.exact or (
            step.pooling.planar and self.kept_outputs.issuperset(step.inputs))

    def _convert(self, step: Step) -> None:
        if self._stays(step):
            pass
        elif isinstance(step, ConvolutionStep):
            as_bytes = self.wants_bytes[step.output] and step.output not in self.exact
            output = self._output(step) if as_bytes else None
            quantized = self._convolution(step, output)
            made = None if quantized is None else make_convolution(quantized, self.isa)
            if made is not None:
                inputs = ([*map(self._float, step.inputs[:1]), *map(self._byte, step.inputs[1:])]
                          if step.convolution.planar else [self._byte(t) for t in step.inputs])
                self._add(made, inputs, step.output)
                return
        elif isinstance(step, PoolingStep):
            pooling = self._pooling(step)
            if pooling is not None:
                layer = int8_pooling.make(pooling, self.isa)
                self._add(layer, [self._byte(t) for t in step.inputs], step.output)
                return
        elif isinstance(step, GatherStep):
            if self._gathered(step) is not None:
                layer = make_gather(step.gather, self.isa, "uint8")
                self._add(layer, [self._byte(t) for t in step.inputs], step.output)
                return
        elif isinstance(step, DenseStep):
            dense = self._dense(step)
            if dense is not None:
                self._add(dense, [self._float(t) for t in step.inputs], step.output)
                return
        if not isinstance(step, RelayStep):
            self.counts["float32"] += 1
        step = replace(step, inputs=[self._float(t) for t in step.inputs])
        self.floats[step.output] = step.output
        self.result.steps.append(step)

    def _add(self, layer: Layer, inputs: list[Tensor], stands_for: Tensor) -> None:
        output = Tensor(layer.output_shape, layer.output_dtype)
        table = self.bytes if layer.output_dtype == "uint8" else self.floats
        table[stands_for] = output
        self.counts["int8"] += 1
        self.result.steps.append(LayerStep(inputs, output, layer))

    def _convolution(self, step: ConvolutionStep,
                     output: Quantization | None) -> QuantizedConvolution | None:
        """None where bytes cannot stand for it."""
        conv, tensors = step.convolution, self.known.tensors
        if conv.expression is not None:
            return None
        if conv.planar:
            inputs = self.known.pictures.get(step.inputs[0])
            if inputs is None:
                return None
            if conv.residual:
                inputs = (*inputs, tensors[step.inputs[-1]])
        elif all(t in tensors for t in step.inputs):
            inputs = tuple(tensors[t] for t in step.inputs)
        else:
            return None
        found = QuantizedConvolution(conv, inputs, output,
                                     moments=self.known.moments.get(step.output))
        return found if found.fits() else None

    def _output(self, step: ConvolutionStep) -> Quantization:
        """How bytes stand for a convolution's result; where its clamp would fall on differing
        bytes, channels have no scales of their own."""
        found = self.known.tensors[step.output]
        if not clamp_fits(step.convolution.low, step.convolution.high, found):
            found = self.known.tensors[step.output] = found.of_all_channels()
        return found

    def _pooling(self, step: PoolingStep) -> QuantizedPooling | None:
        if any(t not in self.known.tensors for t in step.inputs):
            return None
        inputs = tuple(self.known.tensors[t] for t in step.inputs)
        output = None
        if not step.pooling.planar:
            # Taking over the inputs' bytes as they are loses nothing.
            output = QuantizedPooling.kept(step.pooling, inputs) or self.known.tensors[step.output]
            self.known.tensors[step.output] = output
        quantized = QuantizedPooling(step.pooling, inputs, output)
        return quantized if int8_pooling.options(quantized, self.isa) else None

    def _gathered(self, step: GatherStep) -> Quantization | None:
        """That of the inputs' channels at their new places, whose bytes stay as they are; None
        where their zero points differ."""
        if any(t not in self.known.tensors for t in step.inputs):
            return None
        inputs = [self.known.tensors[t] for t in step.inputs]
        if len({q.zero_point for q in inputs}) != 1:
            return None
        scales = np.ones(step.gather.blocks * self.isa.lanes)
        for (tensor, channel), place in zip(step.gather.sources, step.gather.places):
            scales[place] = inputs[tensor].of_channel(int(channel)).scale
        found = Quantization(1.0, inputs[0].zero_point, tuple(float(x) for x in scales))
        self.known.tensors[step.output] = found
        return found

    def _dense(self, step: DenseStep) -> Layer | None:
        conv = of_one_pixel(step.dense)
        quantized = QuantizedConvolution(
            conv, (self.known.tensors[step.inputs[0]],) * conv.input_channels, None)
        if step.dense.expression or not quantized.fits():
            return None
        return make_dense(quantized, self.isa)

    def _byte(self, tensor: Tensor) -> Tensor:
        if tensor not in self.bytes:
            self.bytes[tensor] = self._cast(tensor, self.floats[tensor], False)
        return self.bytes[tensor]

    def _float(self, tensor: Tensor) -> Tensor:
        if tensor not in self.floats:
            self.floats[tensor] = self._cast(tensor, self.bytes[tensor], True)
        return self.floats[tensor]

    def _cast(self, tensor: Tensor, source: Tensor, to_float: bool) -> Tensor:
        layer = make_cast(source.shape, self.known.tensors[tensor], to_float, self.isa)
        output = Tensor(layer.output_shape, layer.output_dtype)
        self.counts["cast"] += 1
        self.result.steps.append(LayerStep([source], output, layer))
        return output
