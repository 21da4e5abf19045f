"""The block that MobileNet v2 and EfficientNet-Lite are made of (arxiv.org/abs/1801.04381)."""

from __future__ import annotations

from dataclasses import dataclass

from run_model_tools.zoo.networks.graph import Graph, Tensor, same_pads, symmetric_pads
from run_model_tools.zoo.networks.weights import Kind


@dataclass(frozen=True)
class Style:
    """How two families differ: TensorFlow's padding or PyTorch's, and BatchNorm's epsilon."""

    same_padding: bool
    epsilon: float

    def pads(self, x: Tensor, kernel: int, stride: int) -> tuple[int, int, int, int]:
        return same_pads(x.size, kernel, stride) if self.same_padding else symmetric_pads(kernel)


@dataclass(frozen=True)
class Names:
    """(convolution, BatchNorm) of each step; no `expand` where the channels stay as they are."""

    block: str
    expand: tuple[str, str] | None
    depthwise: tuple[str, str]
    project: tuple[str, str]


def conv_relu6(graph: Graph, names: tuple[str, str], x: Tensor, channels: int, style: Style,
               kernel: int = 1, stride: int = 1, groups: int = 1) -> Tensor:
    """Convolution, BatchNorm, ReLU6."""
    x = graph.conv(names[0], x, channels, kernel=kernel, stride=stride, groups=groups,
                   pads=style.pads(x, kernel, stride))
    return graph.relu6(graph.batch_norm(names[1], x, style.epsilon, Kind.WIDE_SCALE))


def inverted_residual(graph: Graph, names: Names, x: Tensor, channels: int, ratio: int,
                      kernel: int, stride: int, style: Style) -> Tensor:
    """Expands the channels, filters each of them, and projects them linearly to `channels`."""
    hidden = x.channels * ratio
    y = conv_relu6(graph, names.expand, x, hidden, style) if names.expand else x
    y = conv_relu6(graph, names.depthwise, y, hidden, style, kernel, stride, groups=hidden)
    y = graph.conv(names.project[0], y, channels)
    shortcut = stride == 1 and x.channels == channels
    scale = Kind.RESIDUAL_SCALE if shortcut else Kind.SCALE
    y = graph.batch_norm(names.project[1], y, style.epsilon, scale)
    return graph.sum(x, y, f"{names.block}.sum") if shortcut else y
