"""What a whole model computes, to compare with: in ONNX Runtime, or where it cannot, in ONNX's
reference.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from run_model_tools import few_bits
from run_model_tools.onnx_repair import onnxruntime_process
from run_model_tools.onnx_repair.bfloat16 import as_float32
from run_model_tools.onnx_repair.evaluation import (
    MOST_IN_ONE_FILE,
    is_function,
    run_reference_within,
)
from run_model_tools.onnx_repair.half_precision import in_float32
from run_model_tools.onnx_repair.node_order import in_order
from run_model_tools.onnx_repair.outputs import reads, with_outputs
from run_model_tools.onnx_repair.plugins import with_functions
from run_model_tools.onnx_repair.repair import load, repair
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.stored_tensors import stored_bytes, tensors_of
from run_model_tools.onnx_repair.values import FLOAT4, LATER, array_of

# The newest that ONNX Runtime 1.20 and onnx 1.16 know.  Opsets after it gave the operators that
# exist here more types, and another sense only to forms that both refuse before: Mod of floats with
# the divisor's sign, attributes that are new.
_NEWEST_OPSET = 21
_NEWEST_IR = 10
_OF_TEXT = (".json", ".onnxjson", ".onnxtext", ".onnxtxt", ".pbtxt", ".prototxt", ".textproto")
"""Ends of the names of files that onnx.load() reads as text."""

_ZERO_POINTS = {"MatMulInteger": (1, 3), "MatMulIntegerToFloat": (1, 5),
                "DynamicQuantizeMatMul": (1, 3), "QAttention": (1, 7)}
"""Operators whose zero points may be left out: which input is the weights, and which is theirs."""

_WEIGHTS = {"ConvInteger": (1, 3), "QGemm": (3, 5), "QLinearConv": (3, 5), "QLinearMatMul": (3, 5)}
"""Of operators that may take weights of either sign: which input they are, and which their zero
points."""
_QLINEAR = ("QGemm", "QLinearConv", "QLinearMatMul")

_AS_FLOAT8 = np.array([0, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c], np.uint8)
"""FLOAT4E2M1 without its sign as FLOAT8E4M3FN, which has twice as many bits of exponent and three
of fraction."""

_SECONDS = 60
"""That ONNX's evaluator gets for one run of a model."""
_TOO_SLOW: dict[Path, str] = {}
"""Models that it did not end with, and what was said."""

REPAIRED = "onnxruntime, of the repaired model"
"""What repaired_outputs() is called in reports."""


class NoReference(Exception):
    """Nobody here can run the model; the text says why."""


def reference_outputs(path: Path, inputs: dict[str, np.ndarray],
                      cut: Sequence[str] = ()) -> tuple[list[Any], str]:
    """(the model's outputs, "onnxruntime" or "onnx.reference"); raises NoReference.

    inputs: of all inputs, frozen ones too.  cut: tensors of the model to give instead of its
    outputs.
    """
    if cut:
        with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
            ended = with_outputs(onnx.load(str(path)), cut)
            large = stored_bytes(ended) > MOST_IN_ONE_FILE
            onnx.save(ended, str(Path(folder, "cut.onnx")), save_as_external_data=large)
            return reference_outputs(Path(folder, "cut.onnx"), inputs)
    stored = onnx.load(str(path), load_external_data=False)
    mistake = _mistake_of_onnxruntime(stored)
    if mistake:
        raise NoReference(mistake)
    try:
        return _run(_made_exact(path, stored) or str(path), inputs), "onnxruntime"
    except Exception as error:
        reason = _first_line(error)
    try:
        model = onnx.load(str(path))
        # What is written as text it reads as bytes.
        if _made_plainer(model) or path.suffix in _OF_TEXT:
            try:
                return _run(model.SerializeToString(), inputs), "onnxruntime"
            except Exception as error:
                reason = _first_line(error)
        if _with_constants_computed(model, inputs):
            while _with_constants_computed(model, inputs):
                pass  # Shapes that are known now make others known.
            with suppress(onnxruntime_process.OnnxRuntimeFailed):
                return _run(model.SerializeToString(), inputs), "onnxruntime"
        if path in _TOO_SLOW:
            raise TimeoutError(_TOO_SLOW[path])
        return run_reference_within(_SECONDS, model, inputs), "onnx.reference"
    except Exception as error:
        if isinstance(error, TimeoutError):
            _TOO_SLOW[path] = str(error)
        raise NoReference(f"ONNX Runtime does not run it ({reason}), nor does ONNX's reference "
                          f"evaluator ({_first_line(error)})") from None


def _run(model: str | bytes, inputs: dict[str, np.ndarray]) -> list[Any]:
    """ONNX Runtime's outputs, also where its own changes to the graph make one that it refuses."""
    try:
        return onnxruntime_process.run(model, inputs)
    except onnxruntime_process.OnnxRuntimeFailed as failed:
        try:
            return onnxruntime_process.run(model, inputs, optimized=False)
        except onnxruntime_process.OnnxRuntimeFailed:
            raise failed from None


def repaired_outputs(path: Path, inputs: dict[str, np.ndarray], frozen: dict[str, np.ndarray],
                     cut: Sequence[str] = ()) -> tuple[list[Any], str]:
    """What ONNX Runtime makes of the model's repaired form, which shows all mistakes but those of
    the repair; raises NoReference."""
    model = repaired_form(path, inputs, frozen, cut)
    if stored_bytes(model) > MOST_IN_ONE_FILE:
        raise NoReference("its repaired form is too large")
    try:
        return onnxruntime_process.run(model.SerializeToString(), inputs), REPAIRED
    except onnxruntime_process.OnnxRuntimeFailed as error:
        raise NoReference(_first_line(error)) from None


def repaired_form(path: Path, inputs: dict[str, np.ndarray], frozen: dict[str, np.ndarray],
                  cut: Sequence[str] = ()) -> onnx.ModelProto:
    """What repaired_outputs() runs, without the frozen inputs."""
    shapes = {name: array.shape for name, array in inputs.items()}
    return in_float32(repair(load(path, cut), shapes, frozen, str(path)))


def _mistake_of_onnxruntime(model: onnx.ModelProto) -> str | None:
    """What ONNX Runtime 1.20 computes otherwise than the model says, without a word."""
    if any(function.overload for function in model.functions):
        return "ONNX Runtime 1.20 takes one for the other of functions that overload a name"
    for node in model.graph.node:
        if node.op_type == "MultiHeadAttention" and len(node.input) > 4 and node.input[4]:
            return "ONNX Runtime 1.20 leaves out the mask of MultiHeadAttention"
        if _may_share_a_bias(model, node):
            return "ONNX Runtime 1.20 reads others for a bias of each sample that all heads share"
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "GroupQueryAttention" and attrs.get("local_window_size") == 1:
            return "ONNX Runtime 1.20 looks at two keys where local_window_size is 1"
        if node.op_type == "DFT" and attrs.get("inverse") and attrs.get("onesided"):
            return "ONNX Runtime 1.20 leaves out half of what a one-sided inverse DFT gives"
        if node.op_type in ("AveragePool", "LpPool", "MaxPool") and _may_begin_behind(attrs):
            return "ONNX Runtime 1.20 counts windows that begin behind the picture (ceil_mode)"
        if node.op_type == "AveragePool" and _may_count_too_much(attrs):
            return "ONNX Runtime 1.20 counts what ceil_mode adds as pads (count_include_pad)"
    return None


def _made_exact(path: Path, stored: onnx.ModelProto) -> bytes | None:
    """The model as ONNX Runtime computes it exactly; None where that is how it is written.

    Weights of int8 without a zero point get one of 0, without which ONNX Runtime 1.20 crashes where
    its sums are to be exact (serve_onnxruntime.py).  Products with weights of few bits lose the
    level that lets it round their other operand to bytes, which is up to 1 % off: the level is the
    least that the model asks for, and float32 is above all of them.  Windows of keys lose one, as
    ONNX Runtime 1.20 has one more of them than other releases, and than the network was made with.
    QuantizeLinear of float16 reads float32, as in later releases: this one cuts fractions off.
    Weights of int8 beside uint8 become uint8 where it does not make them so by itself, as it has to
    for exact sums: of some of its releases' and domains' operators, and of weights or zero points
    that several products share, which become each product's own.
    stored: what the file `path` holds.
    """
    halves, shared = _constants_of_float16(stored), _shared_bytes(stored)
    if not shared and all(
            node.op_type not in (*_ZERO_POINTS, *_QLINEAR) and not _accuracy_levels(node)
            and not _windows(node) and not _rounds_float16(node, halves)
            for node in stored.graph.node):
        return None
    model = onnx.load(str(path))
    signed = {tensor.name: tensor for tensor in model.graph.initializer
              if tensor.data_type == onnx.TensorProto.INT8}
    zero, lacking = "run_model:zero", False
    changed = _with_unsigned_weights(model, _QLINEAR) or bool(shared)
    for place, node in enumerate(model.graph.node):
        for index, name in enumerate(node.input):
            if name in shared and node.op_type in _ZERO_POINTS:
                own = model.graph.initializer.add()
                own.CopyFrom(signed[name])
                own.name = node.input[index] = f"run_model:{name}:{place}:{index}"
                signed[own.name] = own
    for place, node in reversed(list(enumerate(model.graph.node))):
        if not _rounds_float16(node, halves):
            continue
        wide = [f"run_model:{name}:{place}" for name in node.input[:2]]
        for name, given in zip(wide, node.input):
            model.graph.node.insert(
                place, helper.make_node("Cast", [given], [name], to=onnx.TensorProto.FLOAT))
        node.input[:2], changed = wide, True
    for node in model.graph.node:
        for level in _accuracy_levels(node):
            node.attribute.remove(level)
            changed = True
        for window in _windows(node):
            window.i -= 1
            changed = True
        weights, place = _ZERO_POINTS.get(node.op_type, (0, 0))
        if not place or node.input[weights] not in signed:
            continue
        if len(node.input) <= place or not node.input[place]:
            node.input.extend([""] * (place + 1 - len(node.input)))
            node.input[place], lacking = zero, True
    if not (lacking or changed) or stored_bytes(model) > MOST_IN_ONE_FILE:
        return None
    if lacking:
        model.graph.initializer.append(numpy_helper.from_array(np.zeros((), np.int8), zero))
    return model.SerializeToString()


def _shared_bytes(model: onnx.ModelProto) -> set[str]:
    """Constants of int8 that several products of bytes have."""
    read = Counter(name for node in model.graph.node if node.op_type in _ZERO_POINTS
                   for name in node.input)
    return {tensor.name for tensor in model.graph.initializer
            if tensor.data_type == onnx.TensorProto.INT8 and read[tensor.name] > 1}


def _accuracy_levels(node: onnx.NodeProto) -> list[onnx.AttributeProto]:
    return [a for a in node.attribute if node.op_type == "MatMulNBits"
            and a.name == "accuracy_level" and a.i]


def _windows(node: onnx.NodeProto) -> list[onnx.AttributeProto]:
    return [a for a in node.attribute if node.op_type == "GroupQueryAttention"
            and a.name == "local_window_size" and a.i > 1]


def _constants_of_float16(model: onnx.ModelProto) -> set[str]:
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            tensors[node.output[0]] = node.attribute[0].t
    return {name for name, tensor in tensors.items()
            if tensor.data_type == onnx.TensorProto.FLOAT16}


def _rounds_float16(node: onnx.NodeProto, halves: set[str]) -> bool:
    return node.op_type == "QuantizeLinear" and node.input[1] in halves


def _may_share_a_bias(model: onnx.ModelProto, node: onnx.NodeProto) -> bool:
    """Whether attention may have a bias [samples, 1, ...] of several samples."""
    if node.op_type not in ("Attention", "MultiHeadAttention") or len(node.input) < 6 \
            or node.domain != DOMAIN or not node.input[5]:
        return False
    shapes = [tensor.dims for tensor in model.graph.initializer if tensor.name == node.input[5]]
    shapes += [[d.dim_value for d in value.type.tensor_type.shape.dim]
               for value in (*model.graph.input, *model.graph.value_info)
               if value.name == node.input[5]]
    return not any(len(shape) == 4 and (shape[0] == 1 or shape[1] > 1) for shape in shapes)


def _may_begin_behind(attrs: dict[str, Any]) -> bool:
    """Whether a pooling that rounds up may have a window with nothing of the picture or of the pads
    before it, which does not count: one that reaches less far than a step and the pads behind."""
    if not attrs.get("ceil_mode", 0):
        return False
    kernel = attrs["kernel_shape"]
    n = len(kernel)
    steps, spread = attrs.get("strides") or [1] * n, attrs.get("dilations") or [1] * n
    behind = list(attrs.get("pads") or [0] * 2 * n)[n:]
    return any(d * (k - 1) + 1 < s + b for k, s, d, b in zip(kernel, steps, spread, behind))


def _may_count_too_much(attrs: dict[str, Any]) -> bool:
    """Whether windows of means may reach behind the pads that count, by which nobody divides since
    ONNX Runtime 1.21: steps of 1 leave no room for that."""
    return bool(attrs.get("ceil_mode", 0) and attrs.get("count_include_pad", 0)
                and any(step > 1 for step in attrs.get("strides") or ()))


def _made_plainer(model: onnx.ModelProto) -> bool:
    """Writes the newest known versions over newer ones, and float32 over bfloat16, for which
    ONNX Runtime has few operators and NumPy has no type; uint8 over int8 of the weights of
    ConvInteger, which it has of the former; functions over operators of plugins; drops outputs
    without a name at the end, and names Split's others, on both of which ONNX Runtime crashes.
    Says whether there were any.
    """
    changed = _in_older_types(model) or model.ir_version > _NEWEST_IR
    changed = as_float32(model) or changed
    changed = with_functions(model) or changed
    changed = _with_unsigned_weights(model, ("ConvInteger",)) or changed
    model.ir_version = min(model.ir_version, _NEWEST_IR)
    for imported in model.opset_import:
        if imported.domain in ("", "ai.onnx") and imported.version > _NEWEST_OPSET:
            imported.version, changed = _NEWEST_OPSET, True
    for place, node in enumerate(model.graph.node):
        while not node.domain and node.output and not node.output[-1]:
            node.output.pop()
            changed = True
        if node.op_type == "Split" and "" in node.output:
            node.output[:] = [name or f"unnamed_{place}_{index}"
                              for index, name in enumerate(node.output)]
            changed = True
    return changed


def _with_constants_computed(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> bool:
    """Writes what ONNX's evaluator makes of constants and shapes alone over the nodes that compute
    it: positions in float64, as PyTorch exports them, are what ONNX Runtime has no operator for.
    Says whether it did."""
    graph = model.graph
    constant = {tensor.name for tensor in graph.initializer} - {item.name for item in graph.input}
    shapes = _shapes(model, inputs)
    nodes: list[onnx.NodeProto] = []
    others: list[onnx.NodeProto] = []
    for node in in_order(graph.node):
        if node.op_type == "Shape" and not node.attribute and node.input[0] in shapes:
            extents = numpy_helper.from_array(np.array(shapes[node.input[0]], np.int64))
            node = helper.make_node("Constant", [], node.output, value=extents)
        depends = not is_function(node) or not constant.issuperset(filter(None, node.input))
        (others if depends else nodes).append(node)
        constant.update(() if depends else node.output)
    read = {name for node in others for name in reads(node)} | {item.name for item in graph.output}
    ends = [name for node in nodes for name in node.output if name and name in read]
    needed = {name for node in nodes for name in node.input}
    if all(node.op_type == "Constant" for node in nodes):
        return False
    part = helper.make_model(
        helper.make_graph(nodes, "constants", [], list(map(helper.make_empty_tensor_value_info,
                                                           ends)),
                          [tensor for tensor in graph.initializer if tensor.name in needed]),
        opset_imports=model.opset_import, ir_version=model.ir_version, functions=model.functions)
    try:
        made = run_reference_within(_SECONDS, part, {})
    except Exception:  # It has its own kinds of what it cannot do.
        return False
    # Sequences, and types that NumPy lacks, are no such numbers.
    if any(not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind not in "biuf"
           for value in made):
        return False
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in zip(ends, made)]
    del graph.node[:]
    graph.node.extend(others)
    graph.initializer.extend(tensors)
    return True


def _shapes(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, list[int]]:
    """Of tensors, where ONNX knows them by those of the inputs."""
    del model.graph.value_info[:]  # Which may have been true of other inputs.
    for item in model.graph.input:
        if item.name in inputs:
            item.type.tensor_type.ClearField("shape")
            for extent in inputs[item.name].shape:
                item.type.tensor_type.shape.dim.add().dim_value = extent
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:  # It has its own kinds of what it cannot do.
        return {}
    return {item.name: [d.dim_value for d in item.type.tensor_type.shape.dim]
            for item in (*inferred.input, *inferred.value_info)
            if item.type.tensor_type.HasField("shape")
            and all(d.HasField("dim_value") for d in item.type.tensor_type.shape.dim)}


def _in_older_types(model: onnx.ModelProto) -> bool:
    """Gives constants of types that came with opsets 23 to 25 the same numbers in types that ONNX
    Runtime 1.20 knows.  What the model says of tensors between nodes goes then."""
    newer = [tensor for tensor in tensors_of(model) if tensor.data_type in LATER]
    for tensor in newer:
        numbers = array_of(tensor)
        if tensor.data_type == FLOAT4:
            stored = _AS_FLOAT8[np.searchsorted(few_bits.FLOAT4[:8], np.abs(numbers))]
            stored |= np.where(np.signbit(numbers), 128, 0).astype(np.uint8)
            older = TensorProto(data_type=TensorProto.FLOAT8E4M3FN, dims=tensor.dims,
                                raw_data=stored.tobytes())
        else:
            older = numpy_helper.from_array(numbers)
        older.name = tensor.name
        tensor.CopyFrom(older)
    if newer:
        del model.graph.value_info[:]
    return bool(newer)


def _with_unsigned_weights(model: onnx.ModelProto, operators: Sequence[str]) -> bool:
    """Has operators take constant weights, and their zero points, 128 higher in uint8: of _QLINEAR
    those whose other operand is of uint8."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    made: set[str] = set()

    def higher(name: str, array: np.ndarray) -> str:
        name = f"{name}:uint8"
        if name not in made:
            made.add(name)
            model.graph.initializer.append(numpy_helper.from_array(
                (array.astype(np.int16) + 128).astype(np.uint8), name))
        return name

    for node in model.graph.node:
        if node.op_type not in operators:
            continue
        place, of_zero = _WEIGHTS[node.op_type]
        weights, zero = node.input[place], (*node.input, "", "", "")[of_zero]
        if any(name and (name not in tensors or tensors[name].data_type != onnx.TensorProto.INT8)
               for name in (weights, zero)):
            continue
        if node.op_type in _QLINEAR:
            other = tensors.get(node.input[2])
            if other is None or other.data_type != onnx.TensorProto.UINT8:
                continue
        node.input.extend([""] * (of_zero + 1 - len(node.input)))
        if not node.input[2]:
            # ConvInteger takes the second one only beside the first.
            node.input[2] = higher("run_model:none", np.full((), -128, np.int8))
        node.input[place] = higher(weights, numpy_helper.to_array(tensors[weights]))
        node.input[of_zero] = higher(zero or f"{weights}:zero", numpy_helper.to_array(
            tensors[zero]) if zero else np.zeros((), np.int8))
    return bool(made)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
