"""A .tflite file with other tensors, operators, inputs and outputs, and all else as it is.

Offsets in a flatbuffer lead forwards only, so the tables that change go in front of the file, and
refer to what they keep of it behind them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import flatbuffers
import numpy as np

from run_model_tools.tflite.file import TfliteTensor, indices, offset_of

if TYPE_CHECKING:
    # Of each element: its place in the file, or (the builder's offset,) where it is new.
    Places = list["int | tuple[int]"]

_ALIGNMENT = 64
_ALIGNMENT_OF_DATA = 16


class Graph:
    """What a graph of the file consists of."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.tensors: Places = [table.Tensors(i)._tab.Pos for i in range(table.TensorsLength())]
        self.operators: Places = [
            table.Operators(i)._tab.Pos for i in range(table.OperatorsLength())]
        self.inputs, self.outputs = (indices(of()) for of in (
            table.InputsAsNumpy, table.OutputsAsNumpy))


class Front:
    """The tables before the file: what is kept has its place in the file, what is new in here."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.builder = flatbuffers.Builder(1 << 16)
        self._codes: Places = [
            model.OperatorCodes(i)._tab.Pos for i in range(model.OperatorCodesLength())]
        self._buffers: Places = [model.Buffers(i)._tab.Pos for i in range(model.BuffersLength())]
        self.graphs = [Graph(model.Subgraphs(i)) for i in range(model.SubgraphsLength())]

    def add_code(self, number: int, version: int) -> int:
        """The place among the file's kinds of operators of one of the schema's."""
        import tflite

        b = self.builder
        tflite.OperatorCodeStart(b)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(b, number)
        tflite.OperatorCodeAddBuiltinCode(b, number)
        tflite.OperatorCodeAddVersion(b, version)
        self._codes.append((tflite.OperatorCodeEnd(b),))
        return len(self._codes) - 1

    def constant(self, graph: Graph, values: np.ndarray) -> int:
        """The number of a new tensor."""
        graph.tensors.append(self._stored(values, b""))
        return len(graph.tensors) - 1

    def variable(self, graph: Graph, index: int, tensor: TfliteTensor, name: str) -> None:
        """Puts a tensor without numbers, of the same form, in the place of the graph's one."""
        import tflite

        b, old = self.builder, graph.table.Tensors(index)
        named, shape = b.CreateString(name), b.CreateNumpyVector(
            np.array([1 if d is None else d for d in tensor.shape], np.int32))
        signature = b.CreateNumpyVector(
            np.array([-1 if d is None else d for d in tensor.shape], np.int32))
        scales, quantized = tensor.quantized, None
        if scales is not None:
            numbers, zeros = (b.CreateNumpyVector(v) for v in (scales.scales, scales.zero_points))
            tflite.QuantizationParametersStart(b)
            tflite.QuantizationParametersAddScale(b, numbers)
            tflite.QuantizationParametersAddZeroPoint(b, zeros)
            tflite.QuantizationParametersAddQuantizedDimension(b, scales.axis)
            quantized = tflite.QuantizationParametersEnd(b)
        tflite.TensorStart(b)
        tflite.TensorAddShape(b, shape)
        tflite.TensorAddShapeSignature(b, signature)
        tflite.TensorAddType(b, old.Type())
        tflite.TensorAddName(b, named)
        if quantized is not None:
            tflite.TensorAddQuantization(b, quantized)
        graph.tensors[index] = (tflite.TensorEnd(b),)

    def replace_tensor(self, graph: Graph, index: int, values: np.ndarray) -> None:
        """Puts constants in the place of the graph's tensor of this number."""
        graph.tensors[index] = self._stored(values, graph.table.Tensors(index).Name() or b"")

    def _stored(self, values: np.ndarray, name: bytes) -> tuple[int]:
        import tflite

        b, content = self.builder, values.tobytes()
        b.StartVector(1, len(content), _ALIGNMENT_OF_DATA)
        b.head -= len(content)
        b.Bytes[b.Head():b.Head() + len(content)] = content
        stored = b.EndVector()
        tflite.BufferStart(b)
        tflite.BufferAddData(b, stored)
        self._buffers.append((tflite.BufferEnd(b),))
        shape, named = b.CreateNumpyVector(np.array(values.shape, np.int32)), b.CreateString(name)
        tflite.TensorStart(b)
        tflite.TensorAddShape(b, shape)
        tflite.TensorAddType(b, tflite.TensorType.FLOAT32 if values.dtype == np.float32
                             else tflite.TensorType.INT32)
        tflite.TensorAddBuffer(b, len(self._buffers) - 1)
        tflite.TensorAddName(b, named)
        return (tflite.TensorEnd(b),)

    def finish(self, data: bytes) -> bytes:
        """The tables, and the file behind them."""
        import tflite

        b = self.builder
        lists = [(elements, self._reserve(elements)) for elements in (self._codes, self._buffers)]
        (_, codes), (_, buffers) = lists
        places: Places = []
        for graph in self.graphs:
            kept = [(elements, self._reserve(elements))
                    for elements in (graph.tensors, graph.operators)]
            lists += kept
            ends = [b.CreateNumpyVector(np.asarray(numbers, np.int32))
                    for numbers in (graph.inputs, graph.outputs)]
            tflite.SubGraphStart(b)
            tflite.SubGraphAddTensors(b, kept[0][1])
            tflite.SubGraphAddInputs(b, ends[0])
            tflite.SubGraphAddOutputs(b, ends[1])
            tflite.SubGraphAddOperators(b, kept[1][1])
            places.append((tflite.SubGraphEnd(b),))
        graphs = self._reserve(places)
        lists.append((places, graphs))
        tflite.ModelStart(b)
        tflite.ModelAddVersion(b, self._model.Version())
        tflite.ModelAddOperatorCodes(b, codes)
        tflite.ModelAddSubgraphs(b, graphs)
        tflite.ModelAddBuffers(b, buffers)
        b.Finish(tflite.ModelEnd(b), b"TFL3")
        front = bytearray(b.Output())
        length = len(front)
        front += bytes(-length % _ALIGNMENT)
        for elements, vector in lists:
            # The builder counts from the end; a vector's length comes before its elements.
            start = length - vector + 4
            for i, element in enumerate(elements):
                place = start + 4 * i
                target = (length - element[0] if isinstance(element, tuple)
                          else len(front) + element)
                front[place:place + 4] = (target - place).to_bytes(4, "little")
        return bytes(front) + self._moved(data, len(front))

    def _moved(self, data: bytes, by: int) -> bytes:
        """The file, where what its buffers say of places in it holds so many bytes further on."""
        places = [place for place in map(offset_of, (
            self._model.Buffers(i) for i in range(self._model.BuffersLength()))) if place]
        moved = bytearray(data) if places else data
        for place in places:
            struct.pack_into("<Q", moved, place, struct.unpack_from("<Q", data, place)[0] + by)
        return bytes(moved)

    def _reserve(self, elements: Places) -> int:
        """A vector of as many offsets, which finish() writes when all places are known."""
        return self.builder.CreateNumpyVector(np.zeros(len(elements), np.uint32))
