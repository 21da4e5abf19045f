"""A .tflite file as plain values: tensors with their constants, and operators.

The flatbuffers package for Python follows offsets without looking where they lead, so all that the
tools use is read here, once, and what is off is said by Malformed.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from run_model_tools.tflite.sparsity import dense_values


class Malformed(Exception):
    """What is wrong with the file."""


COMPLEX = "complex64"
# TensorType of the schema -> how its numbers are stored.
DTYPES = {0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16",
          8: COMPLEX, 9: "int8", 10: "float64"}
_FEW_BITS = {17: 4, 19: 2}
"""Of TensorType, whole numbers of so many bits; constants of them are int8 here."""
_IN_BLOCKS = 2
"""Of QuantizationDetails."""
# What operators are called that people write themselves.
CUSTOM = "CUSTOM"


@dataclass(frozen=True)
class Quantized:
    """value = scales * (number - zero_points), along `axis` if there are several of them."""

    scales: np.ndarray
    zero_points: np.ndarray
    axis: int

    def to_numbers(self, data: np.ndarray) -> np.ndarray:
        """What whole numbers stand for, float32."""
        shape = [1] * data.ndim
        if len(self.scales) > 1:
            shape[self.axis] = len(self.scales)
        steps = data.astype(np.float64) - self.zero_points.reshape(shape)
        return (steps * self.scales.astype(np.float64).reshape(shape)).astype(np.float32)


@dataclass(frozen=True)
class TfliteTensor:
    """One tensor; `constant` is its value where the file holds it, in floats where that has whole
    numbers `in_blocks`, with a scale each."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    quantized: Quantized | None
    constant: np.ndarray | None
    in_blocks: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it holds whole numbers that stand for others."""
        return self.quantized is not None and self.dtype in ("int8", "uint8", "int16")


@dataclass(frozen=True)
class TfliteOperator:
    """One operator: its name in the schema, or that of a custom one."""

    name: str
    custom: bool
    inputs: tuple[int, ...]
    """Indices of tensors; -1 for an optional input that is left out."""
    outputs: tuple[int, ...]
    graphs: tuple[int, ...] = ()
    """Numbers of the graphs that it calls: of WHILE the condition's and the body's, of IF those of
    both branches, of what combines numbers the one that says how."""


@dataclass(frozen=True)
class TfliteGraph:
    """Operators in the order in which they are computed; tensors go by their indices."""

    number: int
    tensors: list[TfliteTensor]
    operators: list[TfliteOperator]
    inputs: list[int]
    outputs: list[int]


@dataclass(frozen=True)
class TfliteFile(TfliteGraph):
    """The main graph, which has the number 0, and all that the file has."""

    model: Any
    """tflite.Model, for TVM."""
    version: int
    graphs: list[TfliteGraph]
    """By their numbers."""
    data: bytes
    notes: tuple[str, ...] = ()
    """What it has otherwise than the file on disk (states.py)."""


def parse(data: bytes) -> TfliteFile:
    """What a file holds; raises Malformed."""
    if data[4:8] != b"TFL3":
        raise Malformed("it does not have the mark TFL3 of such files")
    try:
        return _parse(data)
    except Malformed:
        raise
    # Offsets that lead out of the file, or to something else than is looked for there.
    except (struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError,
            KeyError, MemoryError, AssertionError) as error:
        raise Malformed(f"it is damaged or cut short ({type(error).__name__})") from None


def _parse(data: bytes) -> TfliteFile:
    import tflite

    model = tflite.Model.GetRootAs(data, 0)
    if model.SubgraphsLength() < 1:
        raise Malformed("it has no graph")
    graphs = [_graph(model, number, data)
              for number in range(_count(model.SubgraphsLength(), data))]
    main = graphs[0]
    if not main.inputs or not main.outputs or not main.operators:
        raise Malformed("its graph has no inputs, no outputs or no operators")
    if any(main.tensors[i].dtype in ("", COMPLEX) for i in (*main.inputs, *main.outputs)):
        raise Malformed("an input or output of it has a type that no target here has")
    _check_calls(graphs)
    return TfliteFile(0, main.tensors, main.operators, main.inputs, main.outputs, model,
                      model.Version(), graphs, data)


def _graph(model: Any, number: int, data: bytes) -> TfliteGraph:
    graph = model.Subgraphs(number)
    tensors = [_tensor(model, graph.Tensors(i), i, data)
               for i in range(_count(graph.TensorsLength(), data))]
    operators = [_operator(model, graph.Operators(i), len(tensors))
                 for i in range(_count(graph.OperatorsLength(), data))]
    inputs, outputs = indices(graph.InputsAsNumpy()), indices(graph.OutputsAsNumpy())
    if not all(0 <= i < len(tensors) for i in (*inputs, *outputs)):
        raise Malformed("an input or output of its graph is not among its tensors")
    tensors = _with_blocks(graph, _with_empty(tensors, operators, inputs))
    tensors = _with_folded(tensors, operators)
    return TfliteGraph(number, tensors, operators, inputs, outputs)


def _with_empty(tensors: list[TfliteTensor], operators: list[TfliteOperator],
                inputs: list[int]) -> list[TfliteTensor]:
    """What has no elements needs no data to be a constant, as a scalar's shape does."""
    made = {*inputs, *(i for operator in operators for i in operator.outputs)}
    return [replace(tensor, constant=np.zeros([d or 0 for d in tensor.shape], tensor.dtype))
            if 0 in tensor.shape and tensor.constant is None and tensor.dtype and i not in made
            else tensor for i, tensor in enumerate(tensors)]


def _check_calls(graphs: list[TfliteGraph]) -> None:
    """That operators call graphs that are there, with as many tensors as those have, and none that
    leads back to the graph of the operator."""
    called: dict[int, set[int]] = {g.number: set() for g in graphs}
    for graph in graphs:
        for operator in graph.operators:
            called[graph.number] |= set(operator.graphs)
            for position, number in enumerate(operator.graphs):
                if not 0 < number < len(graphs):
                    raise Malformed(f"an operator {operator.name} calls a graph that is not there")
                given, gives = _taken_and_given(operator, position)
                if (len(graphs[number].inputs), len(graphs[number].outputs)) != (given, gives):
                    raise Malformed(f"an operator {operator.name} calls a graph that has another "
                                    "number of inputs or outputs")
    done: set[int] = set()
    while len(done) < len(graphs):
        ready = {n for n, others in called.items() if n not in done and others <= done}
        if not ready:
            raise Malformed("graphs of it call each other in a circle")
        done |= ready


def _taken_and_given(operator: TfliteOperator, position: int) -> tuple[int, int]:
    """How many tensors a graph that it calls takes and gives."""
    count = len(operator.inputs)
    if operator.name in ("STABLEHLO_SCATTER", "STABLEHLO_REDUCE_WINDOW"):
        return 2, 1  # The graph says what becomes of two numbers.
    if operator.name == "STABLEHLO_SORT":
        return 2 * count, 1  # And here, which of them comes first.
    if operator.name == "WHILE" and not position:
        return count, 1
    return count - (operator.name == "IF"), len(operator.outputs)


def _count(length: int, data: bytes) -> int:
    """A vector's length, which cannot be larger than the file."""
    if not 0 <= length <= len(data):
        raise Malformed("it is damaged: a list in it is longer than the file")
    return length


def indices(values: Any) -> list[int]:
    """A list of whole numbers of the file."""
    # flatbuffers gives 0 for a vector that is not there.
    return [int(v) for v in values] if isinstance(values, np.ndarray) else []


def _tensor(model: Any, tensor: Any, index: int, file: bytes) -> TfliteTensor:
    shape = indices(tensor.ShapeAsNumpy())
    signature = indices(tensor.ShapeSignatureAsNumpy()) or shape
    if any(d < 0 for d in shape) or len(signature) != len(shape):
        raise Malformed(f"tensor {index} has the shape {shape}")
    dtype = DTYPES.get(tensor.Type(), "")
    name = (tensor.Name() or b"").decode("utf-8", "replace")
    buffer = model.Buffers(tensor.Buffer()) if tensor.Buffer() < model.BuffersLength() else None
    if buffer is None:
        raise Malformed(f"tensor {index} has its data in a buffer that is not there")
    data, constant = _stored(buffer, file), None
    quantized = _quantized(tensor, shape)
    bits = _FEW_BITS.get(tensor.Type())
    if bits and data is not None and (quantized is not None or _blocks_of(tensor)):
        dtype, constant = "int8", _of_few_bits(data, bits, shape, index)
    elif data is not None and data.size and dtype:
        constant = _constant(tensor, data, tuple(shape), np.dtype(dtype), index)
    extents = tuple(None if s < 0 else d for d, s in zip(shape, signature))
    return TfliteTensor(name, extents, dtype, quantized, constant)


def _with_blocks(graph: Any, tensors: list[TfliteTensor]) -> list[TfliteTensor]:
    """With what lies in blocks along the last axis as the numbers that it stands for."""
    result = list(tensors)
    for index, tensor in enumerate(tensors):
        found = _blocks_of(graph.Tensors(index))
        if found is None or tensor.constant is None:
            continue
        whole, (of_scales, of_zeros, size) = tensor.constant.astype(np.float32), found
        scales, zeros = (
            np.float32(0) if number <= 0 and number == of_zeros else _for_each_number(
                tensors[number].constant if 0 <= number < len(tensors) else None, size, whole.shape)
            for number in (of_scales, of_zeros))
        if scales is None or zeros is None:
            raise Malformed(f"tensor {index} has blocks of {size} numbers, and no scales or zero "
                            "points that fit them")
        result[index] = replace(tensor, dtype="float32", quantized=None, in_blocks=True,
                                constant=(whole - zeros) * scales)
    return result


def _for_each_number(values: np.ndarray | None, size: int, shape: tuple[int, ...]
                     ) -> np.ndarray | None:
    """What blocks of so many numbers along the last axis have, if it fits them."""
    blocks = -(-shape[-1] // size) if shape and size > 0 else 0
    if values is None or not blocks or values.size != math.prod(shape[:-1]) * blocks:
        return None
    rows = values.astype(np.float32).reshape(*shape[:-1], blocks)
    return rows.repeat(size, -1)[..., :shape[-1]]


def _blocks_of(tensor: Any) -> tuple[int, int, int] | None:
    """Of a tensor quantised in blocks: the tensors of its scales and of its zero points, 0 or less
    of none, and how many numbers a block has."""
    import flatbuffers

    found = tensor.Quantization()
    if found is None or found.DetailsType() != _IN_BLOCKS or found.Details() is None:
        return None
    # The package is older than this table.
    table = found.Details()
    places = [table.Offset(field) for field in (4, 6, 8)]
    scales, zeros, size = (table.Get(flatbuffers.number_types.Int32Flags, table.Pos + place)
                           if place else 0 for place in places)
    return scales, zeros, size


def _of_few_bits(data: np.ndarray, bits: int, shape: list[int], index: int) -> np.ndarray:
    """Several in a byte, the first one in the lowest bits."""
    count = math.prod(shape)
    if data.size != -(-count * bits // 8):
        raise Malformed(f"tensor {index} has {data.size} bytes, and {count} numbers of {bits} bits "
                        f"need {-(-count * bits // 8)}")
    parts = [data >> low & (1 << bits) - 1 for low in range(0, 8, bits)]
    numbers = np.stack(parts, -1).reshape(-1)[:count].astype(np.int8)
    sign = 1 << (bits - 1)
    return ((numbers ^ sign) - sign).reshape(shape)


def _stored(buffer: Any, file: bytes) -> np.ndarray | None:
    """The bytes of a buffer, which may lie behind all tables of the file."""
    data = buffer.DataAsNumpy()
    if isinstance(data, np.ndarray):
        return data
    place = offset_of(buffer)
    if not place:
        return None
    offset, size = struct.unpack_from("<Q", file, place)[0], int(buffer.Size())
    if offset + size > len(file):
        raise Malformed("a buffer of it ends behind the file")
    return np.frombuffer(file, np.uint8, size, offset)


def offset_of(buffer: Any) -> int:
    """Where in the file it is said where a buffer's data lie, counted from the file's start; 0 of
    one that has them in itself."""
    table = buffer._tab
    place = table.Offset(6)
    found = struct.unpack_from("<Q", table.Bytes, table.Pos + place)[0] if place else 0
    return int(table.Pos + place) if found > 1 else 0  # 0 and 1 are none, as the schema says.


def _constant(tensor: Any, data: np.ndarray, shape: tuple[int, ...], dtype: np.dtype,
              index: int) -> np.ndarray:
    sparsity = tensor.Sparsity()
    if sparsity is not None:
        if data.size % dtype.itemsize:
            raise Malformed(f"tensor {index} has {data.size} bytes, which are no {dtype}s")
        return dense_values(sparsity, data.view(dtype), shape)
    if data.size != math.prod(shape) * dtype.itemsize:
        raise Malformed(f"tensor {index} has {data.size} bytes, and its shape "
                        f"{list(shape)} of {dtype} needs {math.prod(shape) * dtype.itemsize}")
    return np.frombuffer(data.tobytes(), dtype).reshape(shape)


def _quantized(tensor: Any, shape: list[int]) -> Quantized | None:
    found = tensor.Quantization()
    if found is None or not isinstance(found.ScaleAsNumpy(), np.ndarray):
        return None
    scales = found.ScaleAsNumpy().astype(np.float32)
    zeros = found.ZeroPointAsNumpy()
    zeros = (zeros.astype(np.int64) if isinstance(zeros, np.ndarray) and len(zeros)
             else np.zeros(1, np.int64))
    if not scales.size or not np.isfinite(scales).all() or (scales <= 0).any():
        return None
    if zeros.size != scales.size:
        zeros = np.broadcast_to(zeros[:1], scales.shape).copy()
    axis = int(found.QuantizedDimension())
    if scales.size > 1 and (axis >= len(shape) or shape[axis] != scales.size):
        raise Malformed(f"a tensor of the shape {shape} has {scales.size} scales for axis {axis}")
    return Quantized(scales, zeros, axis if scales.size > 1 else 0)


def _operator(model: Any, operator: Any, tensors: int) -> TfliteOperator:
    import tflite

    code = model.OperatorCodes(operator.OpcodeIndex())
    if operator.OpcodeIndex() >= model.OperatorCodesLength():
        raise Malformed("an operator of it is of a kind that it does not list")
    number = code_of(code)
    name = _NAMES.get(number) or _NAMES.setdefault(number, next(
        (n for n, v in vars(tflite.BuiltinOperator).items() if v == number), f"operator {number}"))
    if name == CUSTOM:
        name = (code.CustomCode() or b"?").decode("utf-8", "replace")
    inputs, outputs = indices(operator.InputsAsNumpy()), indices(operator.OutputsAsNumpy())
    if not all(-1 <= i < tensors for i in inputs) or not all(0 <= i < tensors for i in outputs):
        raise Malformed(f"the operator {name} reads or writes a tensor that is not there")
    return TfliteOperator(name, number == tflite.BuiltinOperator.CUSTOM, tuple(inputs),
                          tuple(outputs), _called(operator, name))


def code_of(code: Any) -> int:
    """Which operator an OperatorCode stands for: of its two fields the larger one, as LiteRT reads
    it.

    BuiltinCode() of the package leaves the later field out where the number has room in the earlier
    one, and AI Edge Quantizer writes the later one alone.
    """
    import flatbuffers

    table = code._tab
    place = table.Offset(10)
    later = table.Get(flatbuffers.number_types.Int32Flags, table.Pos + place) if place else 0
    return max(later, code.DeprecatedBuiltinCode())


def _called(operator: Any, name: str) -> tuple[int, ...]:
    import tflite

    if name not in _CALLS:
        return ()
    kind, fields = _CALLS[name]
    options = getattr(tflite, kind)()
    table = (operator.BuiltinOptions2() if hasattr(tflite.BuiltinOptions2, kind)
             else operator.BuiltinOptions())
    if table is None:
        raise Malformed(f"an operator {name} does not say which graphs it calls")
    options.Init(table.Bytes, table.Pos)
    return tuple(int(getattr(options, field)()) for field in fields)


_CALLS = {"WHILE": ("WhileOptions", ("CondSubgraphIndex", "BodySubgraphIndex")),
          "IF": ("IfOptions", ("ThenSubgraphIndex", "ElseSubgraphIndex")),
          "CALL_ONCE": ("CallOnceOptions", ("InitSubgraphIndex",)),
          "STABLEHLO_COMPOSITE": ("StableHLOCompositeOptions", ("DecompositionSubgraphIndex",)),
          "STABLEHLO_SCATTER": ("StablehloScatterOptions", ("UpdateComputationSubgraphIndex",)),
          "STABLEHLO_REDUCE_WINDOW": ("StablehloReduceWindowOptions", ("BodySubgraphIndex",)),
          "STABLEHLO_SORT": ("StablehloSortOptions", ("ComparatorSubgraphIndex",))}
"""The tables of options that say which graphs an operator calls, and where in them."""
_NAMES: dict[int, str] = {}


def _with_folded(tensors: list[TfliteTensor],
                 operators: list[TfliteOperator]) -> list[TfliteTensor]:
    """With the results of DENSIFY and DEQUANTIZE of constants as constants too.

    That is how weights are stored in half precision, sparse or in 8 bits.
    """
    result = list(tensors)
    for operator in operators:
        if operator.name not in ("DENSIFY", "DEQUANTIZE") or len(operator.inputs) != 1:
            continue
        source = result[operator.inputs[0]]
        if source.constant is None:
            continue
        value = source.constant
        if operator.name == "DEQUANTIZE":
            value = (source.quantized.to_numbers(value) if source.quantized is not None
                     and value.dtype.kind in "iu" else value.astype(np.float32))
        target = result[operator.outputs[0]]
        if value.shape != target.shape:
            raise Malformed(f"a constant has the shape {list(value.shape)}, and what is made of it "
                            f"{list(target.shape)}")
        result[operator.outputs[0]] = TfliteTensor(target.name, target.shape, str(value.dtype),
                                                   target.quantized, value)
    return result
