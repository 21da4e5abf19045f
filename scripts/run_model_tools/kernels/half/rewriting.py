"""A network for TVM -> the same network with layers in half precision on our kernels."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import tvm

from run_model_tools.inside_tvm.cpu import llvm_features
from run_model_tools.kernels import layers_of_plan, registry
from run_model_tools.kernels.isa import NEON64, NEON64_HALF, NEON64_PAIRS, Isa, cpu_of
from run_model_tools.kernels.layer import Layer, batched
from run_model_tools.kernels.pictures import elementwise
from run_model_tools.kernels.plan import (
    OF_ANY_SHAPE,
    ConvolutionStep,
    DenseStep,
    ElementwiseStep,
    GatherStep,
    LayerStep,
    Plan,
    PoolingStep,
    RelayStep,
    ResamplingStep,
    Step,
)
from run_model_tools.kernels.relay.emission import write_module
from run_model_tools.kernels.relay.reading import (
    NotForUs,
    expect_floats,
    expect_own_layer,
    read_plan_for,
)
from run_model_tools.kernels.relay.rewriting import Rewritten
from run_model_tools.kernels.tensors import Tensor


def has_half(target: tvm.target.Target) -> bool:
    """Whether the target's CPU computes on twice as many numbers of float16 as of float32.

    AVX512-FP16 does too, but no emulator has it to check the kernels with."""
    return (target.kind.name == "llvm"
            and str(target.attrs.get("mtriple", "")).startswith("aarch64")
            and "fullfp16" in llvm_features(tvm, target))


def rewrite(mod: tvm.IRModule, target: tvm.target.Target, elsewhere: bool) -> Rewritten:
    """Like relay.rewriting.rewrite.  Raises NotForUs too where the target has no such arithmetic.

    `elsewhere`: the plan is to run on another machine than the one that it is for, however slowly.
    """
    if not elsewhere and not has_half(target):
        raise NotForUs(
            f"the target's CPU ({cpu_of(target)}) has no fast arithmetic on float16 that we have "
            "kernels for: 64-bit Arm with fullfp16 has it, as Cortex-A76 (--target raspi5_aarch64)")
    plan = read_plan_for(mod, NEON64_PAIRS)
    expect_own_layer(plan)
    expect_floats(plan)
    plan, counts = in_half(plan)
    if not counts["float16_layers"]:
        raise NotForUs("no layer of the network has a kernel of half precision")
    module, layers = write_module(plan, NEON64_HALF)
    return Rewritten(module, layers, {**layers_of_plan.report(plan, NEON64_HALF), **counts})


def in_half(plan: Plan) -> tuple[Plan, dict[str, object]]:
    """The plan, of blocks of eight lanes, with what has a kernel in half precision in float16, and
    a report of its layers."""
    return _Halver(plan).run()


class _Halver:
    def __init__(self, plan: Plan):
        self.plan = plan
        self.result = Plan(plan.parameters, plan.parameter_tensors, [], [], plan.output_is_tuple)
        self.floats: dict[Tensor, Tensor] = {t: t for t in plan.parameter_tensors}
        self.halves: dict[Tensor, Tensor] = {}
        self.made: dict[Tensor, Tensor] = {}
        """What layers in half precision make in the place of the plan's tensors."""
        self.counts: Counter[str] = Counter()

    def run(self) -> tuple[Plan, dict[str, object]]:
        for step in self.plan.steps:
            layer = _half_layer(step)
            if layer is not None:
                self.counts["float16"] += 1
                self._add(step, replace(layer, kind=f"{layer.kind}_f16"))
            elif isinstance(step, RelayStep):
                self.result.steps.append(
                    replace(step, inputs=[self._float(t) for t in step.inputs]))
                self.floats[step.output] = step.output
            else:
                self.counts["float32"] += 1
                self._add(step, _float_layer(step))
        self.result.outputs = [self._float(tensor) for tensor in self.plan.outputs]
        self.result.sources = self.plan.sources.renamed(self.made)
        return self.result, {
            "precision": "float16", "float16_layers": self.counts["float16"],
            "float32_layers": self.counts["float32"], "casts": self.counts["cast"]}

    def _add(self, step: Step, layer: Layer) -> None:
        if not isinstance(step, OF_ANY_SHAPE):
            layer = batched(layer, step.output.shape[0])
        inputs = [self._half(tensor) if dtype == "float16" else self._float(tensor)
                  for tensor, (_, dtype) in zip(step.inputs, layer.inputs, strict=True)]
        if layer.output_dtype == "float16":
            output = self.halves[step.output] = self.made[step.output] = Tensor(
                step.output.shape, "float16")
        else:
            output = self.floats[step.output] = step.output
        self.result.steps.append(LayerStep(inputs, output, layer))

    def _half(self, tensor: Tensor) -> Tensor:
        if tensor not in self.halves:
            self.halves[tensor] = self._cast(self.floats[tensor], "float16")
        return self.halves[tensor]

    def _float(self, tensor: Tensor) -> Tensor:
        if tensor not in self.floats:
            self.floats[tensor] = self._cast(self.halves[tensor], "float32")
        return self.floats[tensor]

    def _cast(self, source: Tensor, to: str) -> Tensor:
        layer = elementwise.make_cast(source.shape, to, NEON64_HALF)
        output = Tensor(source.shape, to)
        self.counts["cast"] += 1
        self.result.steps.append(LayerStep([source], output, layer))
        return output


def _half_layer(step: Step) -> Layer | None:
    """The layer of a step in half precision, if there is a kernel for it."""
    isa = NEON64_HALF
    if isinstance(step, ConvolutionStep):
        possible = registry.can_convolve(step.convolution, isa)
    elif isinstance(step, PoolingStep):
        possible = registry.can_pool(step.pooling, isa)
    elif isinstance(step, DenseStep):
        possible = registry.can_multiply(step.dense, isa)
    elif isinstance(step, ElementwiseStep):
        possible = elementwise.can_be_half(step.elementwise)
    else:
        possible = isinstance(step, (GatherStep, ResamplingStep)) and all(
            len(tensor.shape) == 5 for tensor in step.inputs)
    return layers_of_plan.of_one(step, isa) if possible else None


def _float_layer(step: Step) -> Layer:
    """The layer of a step that stays float32; what is in no blocks needs no eight lanes."""
    isa: Isa = NEON64 if isinstance(step, OF_ANY_SHAPE) else NEON64_PAIRS
    return layers_of_plan.of_one(step, isa)
