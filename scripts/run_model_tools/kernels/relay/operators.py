"""Our part of Relay: a Layer as an operator, and what changes between the layouts around it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tvm
from tvm import relay, te, tir
from tvm.contrib import cc

from run_model_tools.inside_tvm.operators import own_operators
from run_model_tools.kernels.c_compiler import compile_to_ir, layers_to_objects, target_flags
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.relay.nodes import PREFIX
from run_model_tools.kernels.tensors import Blocked

# Calls name their layer by its symbol here: attributes of Python's own cannot be nodes of TVM's.
# Layers that differ in nothing but their constants share one, and TVM compiles them once.
_layers: dict[str, Layer] = {}
_registered: dict[str, int] = {}
_ir: dict[tuple, str] = {}
_loaded: dict[str, ctypes.CDLL] = {}
_is_code_elsewhere = False


def operator_name(layer: Layer, name: str) -> str:
    """What the operator of a layer can be called: `name`, unless another network of this process
    has given that to an operator with another number of inputs."""
    arity = len(layer.inputs) + len(layer.constants)
    taken = _registered.get(PREFIX + name, arity)
    return name if taken == arity else f"{name}_of_{arity}"


def call(layer: Layer, inputs: list[relay.Expr], name: str) -> relay.Call:
    """A Relay expression that computes the layer's output from `inputs`.

    `name`, an operator_name, becomes the operator's and, with it, the graph's node's.  Constants
    are arguments of the call itself, not of a tuple, since only such are linked into a library.
    """
    operator = PREFIX + name
    if operator not in _registered:
        _register(operator, len(inputs) + len(layer.constants))
    _layers[layer.symbol(0)] = layer
    arguments = [*inputs, *(relay.const(tvm.nd.array(c)) for c in layer.constants)]
    return own_operators.called(tvm, operator, arguments, layer=layer.symbol(0))


def layer_of(expr: relay.Call) -> Layer:
    """The layer of such a call, with its own constants."""
    layer = _layers[str(expr.attrs["layer"])]
    return replace(layer, constants=tuple(
        argument.data.numpy() for argument in expr.args[len(layer.inputs):]))


def _register(name: str, inputs: int) -> None:
    _registered[name] = inputs
    own_operators.declare(name, "A layer of this project's kernels: activations, then constants.",
                          [f"input{index}" for index in range(inputs)], _type_of_output)
    strategy = relay.op.OpStrategy

    def choose(attrs: Any, inputs: Any, out_type: Any, target: tvm.target.Target) -> Any:
        chosen = strategy()
        layer = _layers[str(attrs["layer"])]
        made = getattr(layer, "implementation", None)
        if made is not None:
            chosen.add_implementation(made.compute, made.schedule, name=made.name)
            return chosen
        chosen.add_implementation(
            lambda attrs, inputs, out_type: [extern(layer, list(inputs), target)],
            lambda attrs, outs, target: te.create_schedule([out.op for out in outs]),
            name=layer.kind)
        return chosen

    own_operators.choose_by(tvm, name, choose)


def _type_of_output(arguments: Any, attributes: Any) -> relay.TensorType:
    layer = _layers[str(attributes["layer"])]
    return relay.TensorType(layer.output_shape, layer.output_dtype)


def extern(layer: Layer, inputs: list[te.Tensor], target: tvm.target.Target,
           runs: int = 1) -> te.Tensor:
    """The TE stage: parallel loops over calls of the layer's C functions, whose IR it carries
    (unless code_is_elsewhere).

    For measuring, it computes the same `runs` times, each with constants of its own: these are
    tensors (runs, numbers) then.
    """
    ir = None if _is_code_elsewhere else _compiled(layer, target)

    def body(ins: Any, outs: Any) -> Any:
        ib = tir.ir_builder.create()
        if ir is not None:
            ib.scope_attr(tvm.runtime.convert("run_model"), "pragma_import_llvm", ir)
        if runs == 1:
            _emit(ib, layer, [b.access_ptr("r") for b in ins], outs[0].access_ptr("w"))
        else:
            activations, constants = ins[:len(layer.inputs)], ins[len(layer.inputs):]
            with ib.for_range(0, runs, name="run") as run:
                _emit(ib, layer, [*(b.access_ptr("r") for b in activations),
                                  *(b.access_ptr("r", offset=run * b.shape[1]) for b in constants)],
                      outs[0].access_ptr("w"))
        return ib.get()

    return te.extern(layer.output_shape, inputs, body, dtype=layer.output_dtype, name=layer.kind,
                     tag="run_model_layer")


def _emit(ib: Any, layer: Layer, inputs: list[tir.PrimExpr], output: tir.PrimExpr) -> None:
    null = tir.call_intrin("handle", "tir.reinterpret", tir.const(0, "uint64"))
    shared = null
    if layer.shared_bytes:
        memory = ib.allocate("uint8", (layer.shared_bytes,), name="shared", scope="global")
        shared = memory.asobject().data
    for index, phase in enumerate(layer.phases):
        kind = "parallel" if phase.tasks > 1 else "serial"
        with ib.for_range(0, phase.tasks, name=f"task{index}", kind=kind) as task:
            scratch = null
            if layer.scratch_bytes:
                memory = ib.allocate("uint8", (layer.scratch_bytes,), name=f"scratch{index}",
                                     scope="global")
                scratch = memory.asobject().data
            ib.emit(tir.call_extern("int32", layer.symbol(index), task, *inputs, output, shared,
                                    scratch))


def objects_of(layers: Iterable[Layer], target: tvm.target.Target, folder: Path,
               hidden: bool = True) -> list[str]:
    """Object files in `folder` with the layers' functions (layers_to_objects)."""
    return layers_to_objects(layers, target_flags(dict(target.attrs)), _extra_flags(target), folder,
                             hidden)


@contextmanager
def code_is_elsewhere() -> Iterator[None]:
    """Within, networks that are built call the layers' functions and do not have their code."""
    global _is_code_elsewhere
    _is_code_elsewhere = True
    try:
        yield
    finally:
        _is_code_elsewhere = False


@contextmanager
def loaded(layers: Iterable[Layer], target: tvm.target.Target) -> Iterator[None]:
    """Within, networks that are built call the layers' functions in this process, which keeps them:
    LLVM compiles each once, whatever networks it is in."""
    layers = [layer for layer in layers if layer.symbol(0) not in _loaded]
    with TemporaryDirectory() as folder:
        objects = objects_of(layers, target, Path(folder), hidden=False)
        if objects:
            path = str(Path(folder) / "layers.so")
            cc.create_shared(path, objects)
            library = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
            _loaded.update((layer.symbol(0), library) for layer in layers)
    with code_is_elsewhere():
        yield


def _compiled(layer: Layer, target: tvm.target.Target) -> str:
    entries = [layer.symbol(i) for i in range(len(layer.phases))]
    flags = [*target_flags(dict(target.attrs)), *_extra_flags(target)]
    key = (layer.c_source(), *flags)
    if key not in _ir:
        _ir[key] = compile_to_ir(layer.c_source(), flags, entries)
    return _ir[key]


def _extra_flags(target: tvm.target.Target) -> tuple[str, ...]:
    from run_model_tools.kernels.isa import isa_of

    isa = isa_of(target)
    return isa.flags if isa else ()


def to_blocked(data: relay.Expr, shape: tuple[int, ...], lanes: int) -> relay.Expr:
    """(1, C, H, W) -> (1, blocks, H, W, lanes); lanes past the last channel are zero."""
    missing = -shape[1] % lanes
    if missing:
        data = relay.nn.pad(data, ((0, 0), (0, missing), (0, 0), (0, 0)))
    axes = _axes_of(data)
    return relay.layout_transform(data, axes, f"{axes}{lanes}{axes[1].lower()}")


def _axes_of(data: relay.Expr) -> str:
    """What to call the axes of a picture: of one whose axes were moved since it left blocks, what
    they were called there.  TVM makes one conversion of several that follow each other, and wants
    one name for each axis between them."""
    moves: list[list[int]] = []
    while isinstance(data, relay.Call) and str(getattr(data.op, "name", "")) in (
            "transpose", "layout_transform"):
        attrs = data.attrs
        if data.op.name == "transpose":
            moves.append([int(a) for a in attrs.axes or (3, 2, 1, 0)])
        elif len(attrs.src_layout) == len(attrs.dst_layout):
            moves.append([attrs.src_layout.index(letter) for letter in attrs.dst_layout])
        else:
            axes = str(attrs.dst_layout)
            for move in reversed(moves):
                axes = "".join(axes[a] for a in move)
            return axes
        data = data.args[0]
    return "NCHW"


def to_planar(value: Blocked, tensors: tuple[relay.Expr, ...]) -> relay.Expr:
    """The channels of `value`, whose tensors are `tensors`, as (1, C, H, W)."""
    parts = [relay.layout_transform(t, f"NCHW{value.lanes}c", "NCHW") for t in tensors]
    counts = [t.shape[1] * t.shape[4] for t in value.tensors]
    whole = parts[0] if len(parts) == 1 else relay.concatenate(parts, 1)
    order = np.concatenate([[0], np.cumsum(counts)])[value.places[:, 0]] + value.places[:, 1]
    if np.array_equal(order, np.arange(sum(counts))):
        return whole
    if np.array_equal(order, np.arange(len(order))):
        return relay.strided_slice(whole, [0], [len(order)], axes=[1])
    return relay.take(whole, relay.const(order.astype(np.int32)), axis=1)
