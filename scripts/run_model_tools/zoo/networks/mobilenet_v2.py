"""MobileNet v2 of width 1.0, as torchvision has it (arxiv.org/abs/1801.04381)."""

from __future__ import annotations

import onnx

from run_model_tools.zoo.networks.graph import Graph
from run_model_tools.zoo.networks.inverted_residual import (
    Names,
    Style,
    conv_relu6,
    inverted_residual,
)
from run_model_tools.zoo.networks.weights import Weights

# (expansion, channels, blocks, stride of the first) as in the paper's table 2.
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
           (6, 160, 3, 2), (6, 320, 1, 1))


def build(weights: Weights, name: str = "mobilenet_v2",
          same_padding: bool = False) -> onnx.ModelProto:
    """`input` float32 1x3x224x224 RGB -> `logits` float32 1x1000; weights by torchvision's names.

    same_padding: for weights that were trained with TensorFlow's padding.
    """
    graph = Graph(name, weights, "input")
    style = Style(same_padding, epsilon=1e-5)
    x = conv_relu6(graph, ("features.0.0", "features.0.1"), graph.input, 32, style, 3, 2)
    index = 1
    for ratio, channels, blocks, stride in _STAGES:
        for block in range(blocks):
            x = inverted_residual(graph, _names(index, ratio), x, channels, ratio, 3,
                                  stride if block == 0 else 1, style)
            index += 1
    x = conv_relu6(graph, (f"features.{index}.0", f"features.{index}.1"), x, 1280, style)
    return graph.model(graph.linear("classifier.1", graph.global_average(x)))


def _names(index: int, ratio: int) -> Names:
    block = f"features.{index}"
    conv = f"{block}.conv"
    if ratio == 1:
        return Names(block, None, (f"{conv}.0.0", f"{conv}.0.1"), (f"{conv}.1", f"{conv}.2"))
    return Names(block, (f"{conv}.0.0", f"{conv}.0.1"), (f"{conv}.1.0", f"{conv}.1.1"),
                 (f"{conv}.2", f"{conv}.3"))
