"""Plan -> Relax: a function that calls our layers and TVM's operators, and the objects of the
layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tvm
from tvm import relax

from run_model_tools.kernels.c_compiler import (
    c_to_object,
    layers_to_objects,
    target_flags,
)
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.layers_of_plan import make_layer
from run_model_tools.kernels.plan import Plan, RelayStep
from run_model_tools.kernels.relax.ffi_functions import c_source
from run_model_tools.kernels.relax.nodes import expression
from run_model_tools.kernels.tensors import Tensor


def write_module(plan: Plan, isa: Isa, module: tvm.IRModule,
                 layers: dict[str, Layer]) -> tuple[tvm.IRModule, list[str]]:
    """`module` with a main function that computes the plan, and the names of the layers that it
    calls.  New ones are added to `layers`, where equal code has one name."""
    names = {layer.symbol(0): name for name, layer in layers.items()}
    called: dict[str, None] = {}
    parameters = [relax.Var(node.name_hint, relax.TensorType(tensor.shape, tensor.dtype))
                  for node, tensor in zip(plan.parameters, plan.parameter_tensors)]
    known: dict[Tensor, Any] = dict(zip(plan.parameter_tensors, parameters))
    builder = relax.BlockBuilder()
    with builder.function("main", parameters):
        with builder.dataflow():
            for step in plan.steps:
                inputs = [known[tensor] for tensor in step.inputs]
                if isinstance(step, RelayStep):
                    known[step.output] = builder.emit(step.build(*inputs))
                    continue
                layer = make_layer(step, isa)
                name = names.setdefault(layer.symbol(0), f"run_model_{layer.kind}_{len(names)}")
                layers.setdefault(name, layer)
                called[name] = None
                value = builder.emit(relax.call_dps_packed(
                    name, relax.Tuple([*inputs, *map(expression, layer.constants)]),
                    relax.TensorType(layer.output_shape, layer.output_dtype)))
                if layer.output_shape != step.output.shape:
                    # What was fused goes over the same numbers in another shape.
                    value = builder.emit(relax.op.reshape(value, step.output.shape))
                known[step.output] = value
            found = [known[tensor] for tensor in plan.outputs]
            output = builder.emit_output(relax.Tuple(found) if plan.output_is_tuple else found[0])
        builder.emit_func_output(output)
    made = builder.get()
    # Functions of loops that operators left to TVM call stay.
    for variable, function in module.functions.items():
        if variable.name_hint != "main":
            made[variable] = function
    return made, list(called)


def objects_of(layers: Mapping[str, Layer], kernels: Iterable[Layer], target: tvm.target.Target,
               isa: Isa, folder: Path) -> list[str]:
    """Object files in `folder` with the layers' functions, and with the kernels alone of others."""
    flags = target_flags(dict(target.attrs))
    paths = layers_to_objects((*layers.values(), *kernels), flags, isa.flags, folder)
    if layers:
        paths.append(str(folder / "functions.o"))
        c_to_object(c_source(layers), flags, Path(paths[-1]))
    return paths
