"""ResNet-18, as torchvision has it (arxiv.org/abs/1512.03385)."""

from __future__ import annotations

import onnx

from run_model_tools.zoo.networks.graph import Graph, Tensor, symmetric_pads
from run_model_tools.zoo.networks.weights import Kind, Weights

_STAGES = (64, 128, 256, 512)
_BLOCKS = 2


def build(weights: Weights, name: str = "resnet18") -> onnx.ModelProto:
    """`input` float32 1x3x224x224 RGB -> `logits` float32 1x1000, torchvision's names."""
    graph = Graph(name, weights, "input")
    x = graph.conv("conv1", graph.input, 64, kernel=7, stride=2, pads=symmetric_pads(7))
    x = graph.relu(graph.batch_norm("bn1", x))
    x = graph.max_pool("maxpool", x, pads=(1, 1, 1, 1))
    for stage, channels in enumerate(_STAGES, 1):
        for block in range(_BLOCKS):
            stride = 2 if stage > 1 and block == 0 else 1
            x = _basic_block(graph, f"layer{stage}.{block}", x, channels, stride)
    return graph.model(graph.linear("fc", graph.global_average(x)))


def _basic_block(graph: Graph, name: str, x: Tensor, channels: int, stride: int) -> Tensor:
    pads = symmetric_pads(3)
    y = graph.conv(f"{name}.conv1", x, channels, kernel=3, stride=stride, pads=pads)
    y = graph.relu(graph.batch_norm(f"{name}.bn1", y))
    y = graph.conv(f"{name}.conv2", y, channels, kernel=3, pads=pads)
    y = graph.batch_norm(f"{name}.bn2", y, scale=Kind.RESIDUAL_SCALE)
    if stride != 1 or x.channels != channels:
        x = graph.conv(f"{name}.downsample.0", x, channels, stride=stride)
        x = graph.batch_norm(f"{name}.downsample.1", x)
    return graph.relu(graph.sum(y, x, f"{name}.sum"), name)
