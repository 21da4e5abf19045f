"""ShuffleNet v2 of width 1.0, as torchvision has it (arxiv.org/abs/1807.11164)."""

from __future__ import annotations

import onnx

from run_model_tools.zoo.networks.graph import Graph, Tensor, symmetric_pads
from run_model_tools.zoo.networks.weights import Weights

# (blocks, channels) of stages 2 to 4.
_STAGES = ((4, 116), (8, 232), (4, 464))


def build(weights: Weights, name: str = "shufflenet_v2_x1_0") -> onnx.ModelProto:
    """`input` float32 1x3x224x224 RGB -> `logits` float32 1x1000, torchvision's names."""
    graph = Graph(name, weights, "input")
    x = _conv_relu(graph, "conv1", 0, graph.input, 24, kernel=3, stride=2)
    x = graph.max_pool("maxpool", x, pads=(1, 1, 1, 1))
    for stage, (blocks, channels) in enumerate(_STAGES, 2):
        for block in range(blocks):
            x = _unit(graph, f"stage{stage}.{block}", x, channels, down=block == 0)
    x = _conv_relu(graph, "conv5", 0, x, 1024)
    return graph.model(graph.linear("fc", graph.global_average(x)))


def _unit(graph: Graph, name: str, x: Tensor, channels: int, down: bool) -> Tensor:
    half = channels // 2
    if down:
        one = _depthwise(graph, f"{name}.branch1", 0, x, stride=2)
        one = _conv_relu(graph, f"{name}.branch1", 2, one, half)
        two = x
    else:
        one, two = graph.halves(x, f"{name}.halves")
    two = _conv_relu(graph, f"{name}.branch2", 0, two, half)
    two = _depthwise(graph, f"{name}.branch2", 3, two, stride=2 if down else 1)
    two = _conv_relu(graph, f"{name}.branch2", 5, two, half)
    return graph.shuffle(graph.concat([one, two], f"{name}.concat"), 2, name)


def _conv_relu(graph: Graph, branch: str, index: int, x: Tensor, channels: int, kernel: int = 1,
               stride: int = 1) -> Tensor:
    x = graph.conv(f"{branch}.{index}", x, channels, kernel=kernel, stride=stride,
                   pads=symmetric_pads(kernel))
    return graph.relu(graph.batch_norm(f"{branch}.{index + 1}", x))


def _depthwise(graph: Graph, branch: str, index: int, x: Tensor, stride: int) -> Tensor:
    x = graph.conv(f"{branch}.{index}", x, x.channels, kernel=3, stride=stride,
                   pads=symmetric_pads(3), groups=x.channels)
    return graph.batch_norm(f"{branch}.{index + 1}", x)
