"""EfficientNet-Lite0 (github.com/tensorflow/tpu, models/official/efficientnet/lite).

The names of the weights are those of the package efficientnet-lite-pytorch, which converted them.
"""

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

# (blocks, kernel, stride of the first, expansion, channels)
_STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80),
           (3, 5, 1, 6, 112), (4, 5, 2, 6, 192), (1, 3, 1, 6, 320))


def build(weights: Weights, name: str = "efficientnet_lite0") -> onnx.ModelProto:
    """`input` float32 1x3x224x224 RGB -> `logits` float32 1x1000."""
    graph = Graph(name, weights, "input")
    style = Style(same_padding=True, epsilon=1e-3)
    x = conv_relu6(graph, ("_conv_stem", "_bn0"), graph.input, 32, style, 3, 2)
    index = 0
    for blocks, kernel, stride, ratio, channels in _STAGES:
        for block in range(blocks):
            x = inverted_residual(graph, _names(index, ratio), x, channels, ratio, kernel,
                                  stride if block == 0 else 1, style)
            index += 1
    x = conv_relu6(graph, ("_conv_head", "_bn1"), x, 1280, style)
    return graph.model(graph.linear("_fc", graph.global_average(x)))


def _names(index: int, ratio: int) -> Names:
    block = f"_blocks.{index}"
    expand = (f"{block}._expand_conv", f"{block}._bn0") if ratio != 1 else None
    return Names(block, expand, (f"{block}._depthwise_conv", f"{block}._bn1"),
                 (f"{block}._project_conv", f"{block}._bn2"))
