"""ShuffleNet v1 with 3 groups (arxiv.org/abs/1707.01083), as its authors' PyTorch code has it
(github.com/megvii-model/ShuffleNet-Series)."""

from __future__ import annotations

import onnx

from run_model_tools.zoo.networks.graph import Graph, Tensor, symmetric_pads
from run_model_tools.zoo.networks.weights import Kind, Weights

GROUPS = 3
_BLOCKS = (4, 8, 4)
# width: (channels of the first convolution, of each stage)
_CHANNELS = {"0.5x": (12, (120, 240, 480)), "1.0x": (24, (240, 480, 960))}


def build(weights: Weights, name: str = "shufflenet_v1", width: str = "1.0x") -> onnx.ModelProto:
    """`input` float32 1x3x224x224 BGR -> `logits` float32 1x1000; width 0.5x or 1.0x."""
    first, stages = _CHANNELS[width]
    graph = Graph(name, weights, "input")
    x = graph.conv("first_conv.0", graph.input, first, kernel=3, stride=2, pads=symmetric_pads(3))
    x = graph.relu(graph.batch_norm("first_conv.1", x))
    x = graph.max_pool("maxpool", x, pads=(1, 1, 1, 1))
    index = 0
    for blocks, channels in zip(_BLOCKS, stages):
        for block in range(blocks):
            # The very first block has too few channels to be split into groups.
            x = _block(graph, f"features.{index}", x, channels, 2 if block == 0 else 1,
                       1 if index == 0 else GROUPS)
            index += 1
    return graph.model(graph.linear("classifier.0", graph.global_average(x), bias=False))


def _block(graph: Graph, name: str, x: Tensor, channels: int, stride: int, groups: int) -> Tensor:
    middle = channels // 4
    main1, main2 = f"{name}.branch_main_1", f"{name}.branch_main_2"
    y = graph.conv(f"{main1}.0", x, middle, groups=groups)
    y = graph.relu(graph.batch_norm(f"{main1}.1", y))
    y = graph.conv(f"{main1}.3", y, middle, kernel=3, stride=stride, pads=symmetric_pads(3),
                   groups=middle)
    y = graph.batch_norm(f"{main1}.4", y)
    # The authors' code reads the channels as middle / groups rows of `groups`.
    y = graph.shuffle(y, middle // GROUPS, f"{name}.shuffle")
    y = graph.conv(f"{main2}.0", y, channels - x.channels if stride == 2 else channels,
                   groups=GROUPS)
    y = graph.batch_norm(f"{main2}.1", y,
                         scale=Kind.RESIDUAL_SCALE if stride == 1 else Kind.SCALE)
    if stride == 1:
        return graph.relu(graph.sum(y, x, f"{name}.sum"), name)
    return graph.concat([graph.average_pool(f"{name}.branch_proj", x), graph.relu(y)], name)
