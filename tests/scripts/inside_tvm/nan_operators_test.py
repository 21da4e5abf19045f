"""A NaN goes through what chooses between numbers, in TVM's schedules and in our kernels."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tvm_outputs import compiled_outputs

from small_networks import network, run_onnxruntime


def pooled(a: np.ndarray, pads: int) -> np.ndarray:
    """Windows of 3 by 3, two apart: as PyTorch has it; ONNX Runtime keeps some NaNs only."""
    wide = np.pad(a, [(0, 0), (0, 0), (pads, pads), (pads, pads)], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    return windows[:, :, ::2, ::2].max((4, 5))


OF_ONE = {
    "relu = Relu(a)": lambda a: np.maximum(a, 0),
    "clip = Clip(a, low, high)": lambda a: np.clip(a, -1, 2),
    "above = Max(a, low)": lambda a: np.maximum(a, -1),
    "below = Min(high, a)": lambda a: np.minimum(2, a),
    "most = ReduceMax<keepdims=0>(a, axes)": lambda a: a.max((1, 3)),
    "least = ReduceMin<keepdims=1>(a, axes)": lambda a: a.min((1, 3), keepdims=True),
    "pooled = MaxPool<kernel_shape=[3,3],strides=[2,2]>(a)": lambda a: pooled(a, 0),
    "padded = MaxPool<kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1]>(a)":
        lambda a: pooled(a, 1),
    "signs = Sign(a)": np.sign,
    "leaky = LeakyRelu<alpha=0.5>(a)": lambda a: np.where(a < 0, a / 2, a),
}
OF_TWO = {
    "larger = Max(a, y)": np.maximum,
    "larger_too = Max(y, a)": np.maximum,
    "smaller = Min(a, y)": np.minimum,
    "of_all = GlobalMaxPool(y)": lambda a, y: y.max((2, 3), keepdims=True),
    "broadcast = Max(a, row)": lambda a, y: np.maximum(a, ROW),
}
NODES = (*OF_ONE, *OF_TWO)
ROW = np.array([[1], [np.nan], [0], [-1], [0], [2]], np.float32)


def model() -> onnx.ModelProto:
    """After a convolution whose kernel is one, so that our kernels have a layer."""
    constants = {"w": np.eye(16, dtype=np.float32).reshape(16, 16, 1, 1), "low": np.float32(-1),
                 "high": np.float32(2), "axes": np.array([1, 3]), "row": ROW}
    outputs = ", ".join(f"float[] {node.split()[0]}" for node in NODES)
    nodes = "\n".join(("a = Conv(x, w)", *NODES))
    return network(f"(float[1,16,6,6] x, float[1,16,6,6] y) => ({outputs}) {{ {nodes} }}",
                   constants, 18)


KERNELS = ("stock", "ours")


@pytest.fixture(scope="module", params=["relay", pytest.param("relax", marks=pytest.mark.full)])
def outputs(tmp_path_factory: pytest.TempPathFactory,
            request: pytest.FixtureRequest) -> dict[str, list[np.ndarray]]:
    """By KERNELS, as one of TVM's two compilers makes them."""
    inputs = dict(zip("xy", given()))
    made = compiled_outputs(tmp_path_factory.mktemp("nan"),
                            {kernels: (model(), [inputs]) for kernels in KERNELS},
                            {kernels: kernels for kernels in KERNELS}, request.param)
    return {kernels: outputs for kernels, [outputs] in made.items()}


def given() -> tuple[np.ndarray, np.ndarray]:
    """With NaNs in the last channel only of x, which the convolution carries to that row and column
    of every channel."""
    random = np.random.default_rng(4)
    x, y = (3 * random.standard_normal((1, 16, 6, 6)).astype(np.float32) for _ in range(2))
    x[0, 15, 2, 3] = x[0, 15, 5, 0] = np.nan
    y[0, 3, 2, 3] = y[0, 4, 1, 1] = y[0, 15, 0, 5] = np.nan
    return x, y


@pytest.mark.parametrize("kernels", KERNELS)
def test_a_nan_goes_through(outputs, kernels):
    x, y = given()
    # 0 * NaN is NaN in the sum of every channel.
    x = np.where(np.isnan(x).any(1, keepdims=True), np.float32(np.nan), x)
    wanted = [function(x) for function in OF_ONE.values()]
    wanted += [function(x, y) for function in OF_TWO.values()]
    for node, want, have in zip(NODES, wanted, outputs[kernels], strict=True):
        assert np.isnan(want).any() and not np.isnan(want).all()
        np.testing.assert_allclose(have, want, rtol=1e-6, err_msg=node)


def test_indices_comparisons_signs_and_rounding_beside_a_nan(tmp_path):
    nodes = """e = Equal(x, x) y = Cast<to=1>(e) b = Add(x, x) c = Equal(b, b) z = Cast<to=1>(c)
               i = ArgMax<axis=1,keepdims=0>(x) j = ArgMin<axis=0,keepdims=1>(x)
               s = Sign(x) r = Round(x)
               d = Equal(x, one) n = Not(d) l = Less(x, row) o = Not(l) flag = Cast<to=9>(x)
               g = GreaterOrEqual(row, x) h = Not(g) chosen = Where(h, x, one)
               none = Sub(x, x) times = Mul(x, zero)
               below = Where(e, lowest, zero) most = ReduceMax<keepdims=0>(below, axes)
               picture = Unsqueeze(below, first) pool = MaxPool<kernel_shape=[2]>(picture)"""
    constants = {"one": np.float32(1), "zero": np.float32(0), "lowest": np.float32(-np.inf),
                 "axes": np.array([1]), "first": np.array([0]),
                 "row": np.arange(9, dtype=np.float32)}
    made = network("(float[5,9] x) => (float[] y, float[] z, int64[] i, int64[] j, float[] s, "
                   "float[] r, bool[] n, bool[] o, bool[] flag, float[] chosen, float[] none, "
                   f"float[] times, float[] most, float[] pool) {{ {nodes} }}", constants, 18)
    x = np.random.default_rng(3).standard_normal((5, 9)).astype(np.float32)
    x[0, 3] = x[1, 0] = x[3] = np.nan
    x[2] = -np.inf
    x[4, :5] = np.inf, 2 ** 23 + 1, 1 - 2 ** 23, -1e30, 0.49999997
    [found] = compiled_outputs(tmp_path, {"net": (made, [{"x": x}])})["net"]
    expected = run_onnxruntime(made, {"x": x})
    # ONNX Runtime's poolings along one axis make the lowest finite number of infinite ones.
    below = np.where(np.isnan(x), np.float32(0), np.float32(-np.inf))
    expected[-1] = np.maximum(below[:, 1:], below[:, :-1])[None]
    assert not expected[0].all()
    for have, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(have, want)
