"""SqueezeNet 1.1 (github.com/forresti/SqueezeNet), with the layer names of its Caffe original."""

from __future__ import annotations

from typing import Any

import onnx

from run_model_tools.zoo.networks.graph import CLASSES, Graph, Tensor, symmetric_pads
from run_model_tools.zoo.networks.weights import Kind, Weights

# fire module: (squeeze 1x1, expand 1x1, expand 3x3) channels.  A pool comes before 2, 4 and 6.
_FIRES = {
    "fire2": (16, 64, 64), "fire3": (16, 64, 64),
    "fire4": (32, 128, 128), "fire5": (32, 128, 128),
    "fire6": (48, 192, 192), "fire7": (48, 192, 192),
    "fire8": (64, 256, 256), "fire9": (64, 256, 256),
}
_POOL_BEFORE = {"fire2": "pool1", "fire4": "pool3", "fire6": "pool5"}

# torchvision's name of a layer -> Caffe's.
_TORCHVISION = {"features.0": "conv1", "classifier.1": "conv10", **{
    f"features.{index}.{branch}": f"{fire}/{branch}{'1x1' if branch == 'squeeze' else ''}"
    for index, fire in zip((3, 4, 6, 7, 9, 10, 11, 12), _FIRES)
    for branch in ("squeeze", "expand1x1", "expand3x3")}}


def caffe_name(torchvision_name: str) -> str:
    """"features.3.squeeze.weight" -> "fire2/squeeze1x1.weight"; other names are given back."""
    layer, _, tensor = torchvision_name.rpartition(".")
    return f"{_TORCHVISION[layer]}.{tensor}" if layer in _TORCHVISION else torchvision_name


def expected_kernels() -> dict[str, tuple[int, int, int, int]]:
    """The HWIO shape of each convolution's kernel, in the order of the network."""
    shapes = {"conv1": (3, 3, 3, 64)}
    channels = 64
    for fire, (squeeze, expand1, expand3) in _FIRES.items():
        shapes[f"{fire}/squeeze1x1"] = (1, 1, channels, squeeze)
        shapes[f"{fire}/expand1x1"] = (1, 1, squeeze, expand1)
        shapes[f"{fire}/expand3x3"] = (3, 3, squeeze, expand3)
        channels = expand1 + expand3
    shapes["conv10"] = (1, 1, channels, CLASSES)
    return shapes


def build(weights: Weights, name: str = "squeezenet1_1", softmax: bool = True) -> onnx.ModelProto:
    """`data` float32 1x3x224x224 -> `prob` (with `softmax`) or `logits`, float32 1x1000.

    As in Caffe's own description of it, pools round up (ceil mode) and it ends in Softmax;
    torchvision leaves that out.
    """
    graph = Graph(name, weights, "data")
    x = _conv(graph, "conv1", graph.input, 64, kernel=3, stride=2)
    for fire, channels in _FIRES.items():
        if fire in _POOL_BEFORE:
            x = graph.max_pool(_POOL_BEFORE[fire], x)
        x = _fire(graph, fire, x, *channels)
    x = _conv(graph, "conv10", x, CLASSES, kind=Kind.CLASSIFIER)
    x = graph.global_average(x, "pool10", "logits")
    return graph.model(graph.softmax(x, "prob") if softmax else x)


def _fire(graph: Graph, name: str, x: Tensor, squeeze: int, expand1: int, expand3: int) -> Tensor:
    x = _conv(graph, f"{name}/squeeze1x1", x, squeeze)
    return graph.concat([_conv(graph, f"{name}/expand1x1", x, expand1),
                         _conv(graph, f"{name}/expand3x3", x, expand3, kernel=3,
                               pads=symmetric_pads(3))], f"{name}/concat")


def _conv(graph: Graph, layer: str, x: Tensor, channels: int, **options: Any) -> Tensor:
    y = graph.conv(layer, x, channels, bias=True, output=f"{layer}.conv", **options)
    return graph.relu(y, layer)
