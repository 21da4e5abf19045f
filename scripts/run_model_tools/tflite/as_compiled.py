"""A .tflite file for LiteRT to run that is what the compiler makes of it.

MediaPipe's Convolution2DTransposeBias is given as the schema's own transposed convolution with a
bias, which is the same but for where the size of its output is said: there by the output itself,
here by a constant.  Weights of bytes beside floats are given as what they stand for.

Offsets in a flatbuffer lead forwards only, so the tables that change go in front of the file, and
refer to what they keep of it behind them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import flatbuffers
import numpy as np

from run_model_tools.tflite.file import offset_of

TRANSPOSED = "Convolution2DTransposeBias"
_ALIGNMENT = 64
_ALIGNMENT_OF_DATA = 16
_SAME = 1
"""Of TfLitePadding, as MediaPipe's operator has it."""


def transposed_options(options: bytes) -> tuple[bool, int, int]:
    """(whether the padding is "same", stride along x, along y) of MediaPipe's operator."""
    if len(options) < 12:
        raise ValueError(f"an operator {TRANSPOSED} has no options")
    padding, stride_x, stride_y = np.frombuffer(options[:12], np.int32)
    return bool(padding == _SAME), int(stride_x), int(stride_y)


def as_compiled(data: bytes, float_weights: Mapping[tuple[int, int], np.ndarray]) -> bytes:
    """The same network with operators that LiteRT has, and with tensors, by the numbers of their
    graphs and their own, as these float32 constants; other operators and tensors stay.

    `data` is a file that file.read_file takes.
    """
    import tflite

    model = tflite.Model.GetRootAs(data, 0)
    codes = [(model.OperatorCodes(i).CustomCode() or b"").decode("utf-8", "replace")
             for i in range(model.OperatorCodesLength())]
    front = _Front(model)
    if TRANSPOSED in codes:
        front.code = front.add_code()
        for graph in front.graphs:
            for index in range(graph.table.OperatorsLength()):
                operator = graph.table.Operators(index)
                if codes[operator.OpcodeIndex()] == TRANSPOSED:
                    front.replace(graph, index, operator)
    for (number, index), values in float_weights.items():
        front.replace_tensor(front.graphs[number], index, values)
    return front.finish(data)


# Of each element: its place in the file, or (the builder's offset,) where it is new.
_Places = list["int | tuple[int]"]


class _Graph:
    """What a graph of the file consists of."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.tensors: _Places = [table.Tensors(i)._tab.Pos for i in range(table.TensorsLength())]
        self.operators: _Places = [
            table.Operators(i)._tab.Pos for i in range(table.OperatorsLength())]


class _Front:
    """The tables before the file: what is kept has its place in the file, what is new in here."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._builder = flatbuffers.Builder(1 << 16)
        self.code = -1
        self._codes: _Places = [
            model.OperatorCodes(i)._tab.Pos for i in range(model.OperatorCodesLength())]
        self._buffers: _Places = [model.Buffers(i)._tab.Pos for i in range(model.BuffersLength())]
        self.graphs = [_Graph(model.Subgraphs(i)) for i in range(model.SubgraphsLength())]

    def add_code(self) -> int:
        import tflite

        b, number = self._builder, tflite.BuiltinOperator.TRANSPOSE_CONV
        tflite.OperatorCodeStart(b)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(b, number)
        tflite.OperatorCodeAddBuiltinCode(b, number)
        tflite.OperatorCodeAddVersion(b, 3)  # the first one with a bias
        self._codes.append((tflite.OperatorCodeEnd(b),))
        return len(self._codes) - 1

    def replace(self, graph: _Graph, index: int, operator: Any) -> None:
        """Puts the standard operator in the place of the graph's one of this number."""
        import tflite

        b = self._builder
        same, stride_x, stride_y = transposed_options(
            np.asarray(operator.CustomOptionsAsNumpy(), np.uint8).tobytes())
        tflite.TransposeConvOptionsStart(b)
        tflite.TransposeConvOptionsAddPadding(
            b, tflite.Padding.SAME if same else tflite.Padding.VALID)
        tflite.TransposeConvOptionsAddStrideW(b, stride_x)
        tflite.TransposeConvOptionsAddStrideH(b, stride_y)
        options = tflite.TransposeConvOptionsEnd(b)
        data, weights, bias = (operator.Inputs(i) for i in range(3))
        shape = graph.table.Tensors(operator.Outputs(0)).ShapeAsNumpy()
        inputs = b.CreateNumpyVector(
            np.array([self._constant(graph, np.asarray(shape, np.int32)), weights, data, bias],
                     np.int32))
        outputs = b.CreateNumpyVector(np.array([operator.Outputs(0)], np.int32))
        tflite.OperatorStart(b)
        tflite.OperatorAddOpcodeIndex(b, self.code)
        tflite.OperatorAddInputs(b, inputs)
        tflite.OperatorAddOutputs(b, outputs)
        tflite.OperatorAddBuiltinOptionsType(b, tflite.BuiltinOptions.TransposeConvOptions)
        tflite.OperatorAddBuiltinOptions(b, options)
        graph.operators[index] = (tflite.OperatorEnd(b),)

    def replace_tensor(self, graph: _Graph, index: int, values: np.ndarray) -> None:
        """Puts constants in the place of the graph's tensor of this number."""
        graph.tensors[index] = self._stored(values, graph.table.Tensors(index).Name() or b"")

    def _constant(self, graph: _Graph, values: np.ndarray) -> int:
        """The number of a new tensor."""
        graph.tensors.append(self._stored(values, b""))
        return len(graph.tensors) - 1

    def _stored(self, values: np.ndarray, name: bytes) -> tuple[int]:
        import tflite

        b, content = self._builder, values.tobytes()
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

        b = self._builder
        lists = [(elements, self._reserve(elements)) for elements in (self._codes, self._buffers)]
        (_, codes), (_, buffers) = lists
        places: _Places = []
        for graph in self.graphs:
            kept = [(elements, self._reserve(elements))
                    for elements in (graph.tensors, graph.operators)]
            lists += kept
            ends = [b.CreateNumpyVector(np.asarray(indices if length else [], np.int32))
                    for indices, length in (
                        (graph.table.InputsAsNumpy(), graph.table.InputsLength()),
                        (graph.table.OutputsAsNumpy(), graph.table.OutputsLength()))]
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

    def _reserve(self, elements: _Places) -> int:
        """A vector of as many offsets, which finish() writes when all places are known."""
        return self._builder.CreateNumpyVector(np.zeros(len(elements), np.uint32))
