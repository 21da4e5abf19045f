"""Activation functions, in forms that neither overflow nor lose their parameters."""

from __future__ import annotations

import math

from onnx import TensorProto

from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("Elu", "HardSigmoid", "LeakyRelu", "Selu", "Celu")
def parametric(walk: Walk, node: Node) -> Value:
    defaults = {
        "Elu": {"alpha": 1.0}, "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
        "LeakyRelu": {"alpha": 0.01}, "Celu": {"alpha": 1.0},
        # Until opset 6 they had four digits.
        "Selu": {"alpha": 1.67326319217681884765625 if node.opset >= 6 else 1.6732,
                 "gamma": 1.05070102214813232421875 if node.opset >= 6 else 1.0507}}[node.op]
    given = {key: float(node.attrs.get(key, value)) for key, value in defaults.items()}
    if node.op == "Celu" and not (walk.knows("Celu")
                                  and node.tensor(0).elem_type == TensorProto.FLOAT):
        graph, alpha = walk.graph, given["alpha"]
        elu = graph.op("Elu", graph.op("Div", node.tensor(0), alpha), alpha=1.0)
        return graph.op("Mul", elu, alpha)
    return walk.graph.op(node.op, node.tensor(0), **given)


@rule("HardSwish")
def hard_swish(walk: Walk, node: Node) -> Value:
    """As ONNX has it: x * (x + 3) / 6, as the importer does, overflows before the result does."""
    x = node.tensor(0)
    return walk.graph.op("Mul", x, walk.graph.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))


@rule("Swish", "SwiGLU")
def swish(walk: Walk, node: Node) -> Value:
    """The second one is a gate for another input."""
    x = node.tensor(0)
    alpha = float(node.attrs.get("alpha", 1.0))
    scaled = x if alpha == 1 else walk.graph.op("Mul", x, alpha)
    y = walk.graph.op("Mul", x, walk.graph.op("Sigmoid", scaled))
    return y if node.op == "Swish" else walk.graph.op("Mul", y, node.tensor(1))


@rule("PRelu")
def prelu(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x, slope = node.tensor(0), node.tensor(1)
    if node.opset < 7 and x.rank > 1 and slope.size == x.shape[1]:
        slope = reshaped(walk, slope, (slope.size, *[1] * (x.rank - 2)))
    negative = graph.op("Mul", graph.op("Min", x, 0), slope)
    return graph.op("Add", graph.op("Relu" if x.is_float else "Max", *(
        (x,) if x.is_float else (x, 0))), negative)


@rule("Softplus")
def softplus(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x = node.tensor(0)
    small = graph.op("Exp", graph.op("Neg", graph.op("Abs", x)))
    return graph.op("Add", graph.op("Relu", x), graph.op("Log", graph.op("Add", small, 1)))


@rule("Mish")
def mish(walk: Walk, node: Node) -> Value:
    """x·tanh(softplus(x)) = x·w/(w+2) with w = e^x·(e^x+2), which is 1 in floats from x = 20 on."""
    graph = walk.graph
    x = node.tensor(0)
    e = graph.op("Exp", graph.op("Min", x, 20 if x.type_name != "float16" else 5))
    w = graph.op("Mul", e, graph.op("Add", e, 2))
    return graph.op("Mul", x, graph.op("Div", w, graph.op("Add", w, 2)))


def gelu(walk: Walk, x: Value, tanh: bool = False) -> Value:
    """As PyTorch's exporters spell it out, so that there is one form of it."""
    graph = walk.graph
    if tanh:
        cube = graph.op("Mul", graph.op("Mul", x, x), x)
        inner = graph.op("Mul", graph.op("Add", x, graph.op("Mul", cube, 0.044715)),
                         math.sqrt(2 / math.pi))
        return graph.op("Mul", graph.op("Mul", x, 0.5),
                        graph.op("Add", graph.op("Tanh", inner), 1))
    erf = graph.op("Erf", graph.op("Div", x, math.sqrt(2)))
    return graph.op("Mul", graph.op("Mul", x, graph.op("Add", erf, 1)), 0.5)


@rule("Gelu")
def gelu_rule(walk: Walk, node: Node) -> Value:
    return gelu(walk, node.tensor(0), node.attrs.get("approximate") == "tanh")


@rule("ThresholdedRelu")
def thresholded_relu(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    above = walk.graph.op("Greater", x, float(node.attrs.get("alpha", 1.0)))
    return walk.graph.op("Where", above, x, walk.graph.like(0, x))


@rule("Shrink")
def shrink(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x = node.tensor(0)
    bias, lambd = node.attrs.get("bias", 0.0), node.attrs.get("lambd", 0.5)
    below = graph.op("Where", graph.op("Less", x, -lambd), graph.op("Add", x, bias),
                     graph.like(0, x))
    return graph.op("Where", graph.op("Greater", x, lambd), graph.op("Sub", x, bias), below)


@rule("Softsign")
def softsign(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    return walk.graph.op("Div", x, walk.graph.op("Add", walk.graph.op("Abs", x), 1))
