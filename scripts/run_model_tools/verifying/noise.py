"""The reference's outputs with weights and inputs changed a little, as rounding may do.

In a network that rounds between its layers (QuantizeLinear, the operators on bytes of ONNX and of
ONNX Runtime, Round), what decides are values that lie between two whole numbers: each runtime adds
in its own order and puts some of them to the other side, and layers carry that on.  There the
scales are changed too, by so much that one rounding in a hundred goes the other way, and the
reference is asked once more without its own optimisations, which round in other places.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.onnx_model import OnnxModel
from run_model_tools.onnx_repair import onnxruntime_process
from run_model_tools.onnx_repair.reference import REPAIRED, repaired_form
from run_model_tools.onnx_repair.values import array_of
from run_model_tools.source_model import SourceModel
from run_model_tools.tflite.model import TfliteModel
from run_model_tools.verifying.comparison import JITTER

SAMPLES = 6
ROUNDED_JITTER = 2.0 ** -12
"""Relative, of scales and inputs of networks that round: most values are some ten steps from zero,
so about one in a hundred goes to the other side of a half."""

SIGMOID_GRAIN = 2.0 ** -24
"""How far from right ONNX Runtime's Sigmoid is, which makes 0.5 of what lies next to it: most of
the value, of a detector's scores where nothing is."""

SOFTMAX_GRAIN = 2.0 ** -22
"""The same, relative, of two roundings and sums in another order."""

SQRT_GRAIN = 2.0 ** -22
"""How far from right the Sqrt of ONNX Runtime 1.20 is, relative: a bound that it is
compared with may be the root of what it was bounded by before."""

_GRAINS = {"Sigmoid": ("Add", 0.0, SIGMOID_GRAIN), "Softmax": ("Mul", 1.0, SOFTMAX_GRAIN),
           "Sqrt": ("Mul", 1.0, SQRT_GRAIN)}

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
_MOST_BYTES = 1 << 30
"""Of a model in one file; Protocol Buffers end at twice that."""

_ROUNDING = {"QuantizeLinear", "DynamicQuantizeLinear", "Round", "QGemm", "QAttention",
             "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "MatMulIntegerToFloat"}
_BYTE_PRODUCTS = {"ConvInteger", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulInteger",
                  "MatMulIntegerToFloat", "QAttention", "QGemm", "QLinearConv", "QLinearMatMul"}
_MOVES = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split",
          "MaxPool", "Relu", "Dropout"}
"""Operators that give numbers that they were given, or zero."""

Reference = Callable[[Path, dict[str, np.ndarray]], list[np.ndarray]]


def rounds(nodes: Iterable[onnx.NodeProto]) -> bool:
    """Whether values are rounded between a model's layers."""
    return any(node.op_type in _ROUNDING or node.op_type.startswith("QLinear") for node in nodes)


def output_steps(model: SourceModel) -> list[float | None] | None:
    """Of a network that rounds, for each output how far its numbers are apart, where they were
    rounded last; None for one that does not round."""
    if isinstance(model, TfliteModel):
        return model.steps if model.rounds else None
    assert isinstance(model, OnnxModel)
    graph = model.outline
    if not rounds(_nodes(graph)):
        return None
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants |= {node.output[0]: a.t for node in graph.node if node.op_type == "Constant"
                  for a in node.attribute if a.name == "value"}

    types = {value.name: value.type.tensor_type.elem_type
             for value in (*graph.value_info, *graph.output)}

    def step(output: str) -> float | None:
        maker = maker_behind(graph.node, output, _MOVES)
        if types.get(output) in (TensorProto.INT8, TensorProto.UINT8) or (
                maker is not None and maker.op_type == "QuantizeLinear"):
            return 1.0
        if maker is None or maker.op_type != "DequantizeLinear":
            return None
        scale = constants.get(maker.input[1])
        inside = scale is not None and scale.data_location != TensorProto.EXTERNAL
        numbers = array_of(scale) if scale is not None and inside else np.zeros(0)
        return float(numbers.reshape(-1)[0]) if numbers.size == 1 else None

    # Those of --outputs may be others than the file's, and more.
    return [step(output) for output in model.outputs]


def maker_behind(nodes: Iterable[onnx.NodeProto], tensor: str,
                 moves: set[str]) -> onnx.NodeProto | None:
    """The node that computed a tensor, before nodes of the operators `moves` passed it on."""
    makers = {name: node for node in nodes for name in node.output}
    maker = makers.get(tensor)
    while maker is not None and maker.op_type in moves and maker.input:
        maker = makers.get(maker.input[0])
    return maker


def noisy_runs(model: SourceModel, inputs: dict[str, np.ndarray]) -> Iterator[list[np.ndarray]]:
    """SAMPLES times the reference's outputs: of ONNX with other weights too, of TensorFlow Lite,
    whose files are not rewritten, with other inputs."""
    if isinstance(model, OnnxModel):
        with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
            repaired = _repaired(model, inputs, Path(folder))
            yield from noisy_outputs((repaired or model).path, inputs, lambda path, values: (
                onnxruntime_process.run(str(path), values) if repaired
                else replace(model, path=path).run(values)))
            if output_steps(model) is not None:
                yield from _unoptimized(repaired or model, inputs)
        return
    random = np.random.default_rng(22)
    most = JITTER if output_steps(model) is None else ROUNDED_JITTER
    quantities = {item.name for item in model.inputs if item.scale is not None}
    for _ in range(SAMPLES):
        yield model.run({name: _jittered(value, random, most) if value.dtype.kind == "f"
                         else _stepped(value, random) if name in quantities else value
                         for name, value in inputs.items()})


def _repaired(model: OnnxModel, inputs: dict[str, np.ndarray], folder: Path) -> OnnxModel | None:
    """The repaired form, where the reference's outputs are of that: the repair would refuse random
    numbers, which changed models have."""
    if model.run_by(inputs)[1] != REPAIRED:
        return None
    path = folder / "repaired.onnx"
    onnx.save(repaired_form(model.path, inputs, model.frozen, model.cut), str(path))
    return replace(model, path=path, frozen={}, cut=())


def noisy_outputs(path: Path, inputs: dict[str, np.ndarray],
                  reference: Reference) -> Iterator[list[np.ndarray]]:
    """SAMPLES times the reference's outputs, with other changes each time.

    Weights are tensors of two axes or more: shorter ones may be scales of a resize or bounds, which
    decide about shapes.
    """
    model = onnx.load(str(path))
    weights = [tensor for tensor in _tensors(model.graph)
               if tensor.data_type in _FLOATS and len(tensor.dims) > 1]
    originals = [numpy_helper.to_array(tensor) for tensor in weights]
    scales = _scales(model.graph)
    sizes = [numpy_helper.to_array(tensor) for tensor in scales]
    most = ROUNDED_JITTER if rounds(_nodes(model.graph)) else JITTER
    grains = _with_grains(model.graph)
    large = sum(array.nbytes for array in originals) > _MOST_BYTES
    random = np.random.default_rng(22)
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        for sample in range(SAMPLES):
            # Names of their own, by which the reference tells files apart.
            changed = Path(folder, f"changed_{sample}.onnx")
            for tensor, array in zip(weights, originals):
                tensor.CopyFrom(numpy_helper.from_array(_jittered(array, random), tensor.name))
            # Equal scales stay equal, or what moves numbers only would not be taken for that.
            factors: dict[float, float] = {}
            for tensor, array in zip(scales, sizes):
                made = [x * factors.setdefault(x, 1 + random.uniform(-most, most))
                        for x in map(float, array.reshape(-1))]
                tensor.CopyFrom(numpy_helper.from_array(
                    np.array(made, array.dtype).reshape(array.shape), tensor.name))
            for number, grain in enumerate(grains):
                grain.f = float(sample * len(grains) + number)
            onnx.save(model, str(changed), save_as_external_data=large)
            yield reference(changed, {
                name: _jittered(value, random, most) if value.dtype.kind == "f" else value
                for name, value in inputs.items()})
            for file in Path(folder).iterdir():
                file.unlink()


def _with_grains(graph: onnx.GraphProto) -> list[onnx.AttributeProto]:
    """Has random numbers added behind the graph's sigmoids, and behind its softmaxes factors, whose
    seeds are returned: what rounding makes different of equal numbers decides which of them is
    taken.  Of a network of other floats than float32, nothing."""
    if any(tensor.data_type in _FLOATS[1:] for tensor in _tensors(graph)) or any(
            node.op_type == "Cast" and a.i in _FLOATS[1:]
            for node in graph.node for a in node.attribute):
        return []
    nodes, seeds = list(graph.node), []
    del graph.node[:]
    for node in nodes:
        graph.node.append(node)
        if node.domain or node.op_type not in _GRAINS:
            continue
        operator, middle, grain = _GRAINS[node.op_type]
        result = node.output[0]
        graph.node[-1].output[0] = f"{result}:exact"
        graph.node.append(helper.make_node(
            "RandomUniformLike", [f"{result}:exact"], [f"{result}:grain"], low=middle - grain,
            high=middle + grain, seed=0.0))
        seeds.append(next(a for a in graph.node[-1].attribute if a.name == "seed"))
        graph.node.append(helper.make_node(operator, [f"{result}:exact", f"{result}:grain"],
                                           [result]))
    return seeds


def _unoptimized(model: OnnxModel,
                 inputs: dict[str, np.ndarray]) -> Iterator[list[np.ndarray]]:
    """What the graph says operator by operator, where ONNX Runtime has each of them and adds up
    their products."""
    if any(node.op_type in _BYTE_PRODUCTS for node in _nodes(model.outline)) and _sums_end_early():
        return
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        whole = model.spelled_out(Path(folder))
        try:
            yield onnxruntime_process.run(str(whole.path), inputs, optimized=False)
        except onnxruntime_process.OnnxRuntimeFailed:
            return


@functools.cache
def _sums_end_early() -> bool:
    """Whether ONNX Runtime, without its optimiser, adds up products of uint8 with int8 to no more
    than 32767 on this CPU."""
    a, b = np.full((1, 2), 255, np.uint8), np.full((2, 1), 127, np.int8)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "sum",
        [helper.make_tensor_value_info("a", TensorProto.UINT8, a.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])],
        [numpy_helper.from_array(b, "b")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    (have,) = onnxruntime_process.run(model.SerializeToString(), {"a": a}, optimized=False)
    return int(have.item()) != 2 * 255 * 127


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Of branches and bodies too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        if node.op_type == "Constant":
            yield from (a.t for a in node.attribute if a.HasField("t"))


def _scales(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    """Constants of one axis at most that operators on whole numbers take: their scales."""
    taken = {name for node in graph.node for name in node.input
             if node.op_type in _ROUNDING or node.op_type.startswith(("QLinear", "Dequantize"))}
    named = {tensor.name: tensor for tensor in graph.initializer}
    named |= {node.output[0]: a.t for node in graph.node if node.op_type == "Constant"
              for a in node.attribute if a.name == "value"}
    return [tensor for name, tensor in named.items()
            if name in taken and tensor.data_type in _FLOATS and len(tensor.dims) <= 1]


def _jittered(array: np.ndarray, random: np.random.Generator,
              most: float = JITTER) -> np.ndarray:
    size = max(most, float(np.finfo(array.dtype).eps))
    return (array * (1 + random.uniform(-size, size, array.shape))).astype(array.dtype)


def _stepped(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Whole numbers of which one in a hundred went to the next one, as numbers near a half do."""
    every = np.iinfo(array.dtype)
    moves = random.choice([-1, 0, 1], array.shape, p=[0.005, 0.99, 0.005])
    return np.clip(array.astype(np.int64) + moves, every.min, every.max).astype(array.dtype)
