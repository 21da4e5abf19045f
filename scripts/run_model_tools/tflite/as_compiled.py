"""A .tflite file for LiteRT to run that is what the compiler makes of it.

MediaPipe's Convolution2DTransposeBias is given as the schema's own transposed convolution with a
bias, which is the same but for where the size of its output is said: there by the output itself,
here by a constant.  Weights of bytes beside floats are given as what they stand for.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from run_model_tools.tflite.rewriting import Front, Graph

TRANSPOSED = "Convolution2DTransposeBias"
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

    `data` is a file that file.parse() takes.
    """
    import tflite

    model = tflite.Model.GetRootAs(data, 0)
    codes = [(model.OperatorCodes(i).CustomCode() or b"").decode("utf-8", "replace")
             for i in range(model.OperatorCodesLength())]
    front = Front(model)
    if TRANSPOSED in codes:
        # The first version with a bias.
        code = front.add_code(tflite.BuiltinOperator.TRANSPOSE_CONV, 3)
        for graph in front.graphs:
            for index in range(graph.table.OperatorsLength()):
                if codes[graph.table.Operators(index).OpcodeIndex()] == TRANSPOSED:
                    _replace(front, graph, index, code)
    for (number, index), values in float_weights.items():
        front.replace_tensor(front.graphs[number], index, values)
    return front.finish(data)


def _replace(front: Front, graph: Graph, index: int, code: int) -> None:
    """Puts the standard operator in the place of the graph's one of this number."""
    import tflite

    b, operator = front.builder, graph.table.Operators(index)
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
        np.array([front.constant(graph, np.asarray(shape, np.int32)), weights, data, bias],
                 np.int32))
    outputs = b.CreateNumpyVector(np.array([operator.Outputs(0)], np.int32))
    tflite.OperatorStart(b)
    tflite.OperatorAddOpcodeIndex(b, code)
    tflite.OperatorAddInputs(b, inputs)
    tflite.OperatorAddOutputs(b, outputs)
    tflite.OperatorAddBuiltinOptionsType(b, tflite.BuiltinOptions.TransposeConvOptions)
    tflite.OperatorAddBuiltinOptions(b, options)
    graph.operators[index] = (tflite.OperatorEnd(b),)
