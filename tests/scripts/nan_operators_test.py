"""A NaN goes through what chooses between numbers, in TVM's schedules and in our kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools import tvm_process

NODE = helper.make_node


def pooled(a: np.ndarray, pads: int) -> np.ndarray:
    """Windows of 3 by 3, two apart: as PyTorch has it; ONNX Runtime keeps some NaNs only."""
    wide = np.pad(a, [(0, 0), (0, 0), (pads, pads), (pads, pads)], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    return windows[:, :, ::2, ::2].max((4, 5))


OF_ONE = [
    (NODE("Relu", ["a"], ["relu"]), lambda a: np.maximum(a, 0)),
    (NODE("Clip", ["a", "low", "high"], ["clip"]), lambda a: np.clip(a, -1, 2)),
    (NODE("Max", ["a", "low"], ["above"]), lambda a: np.maximum(a, -1)),
    (NODE("Min", ["high", "a"], ["below"]), lambda a: np.minimum(2, a)),
    (NODE("ReduceMax", ["a", "axes"], ["most"], keepdims=0), lambda a: a.max((1, 3))),
    (NODE("ReduceMin", ["a", "axes"], ["least"], keepdims=1),
     lambda a: a.min((1, 3), keepdims=True)),
    (NODE("MaxPool", ["a"], ["pooled"], kernel_shape=[3, 3], strides=[2, 2]),
     lambda a: pooled(a, 0)),
    (NODE("MaxPool", ["a"], ["padded"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
     lambda a: pooled(a, 1)),
    (NODE("LeakyRelu", ["a"], ["leaky"], alpha=0.5), lambda a: np.where(a < 0, a / 2, a)),
]
OF_TWO = [
    (NODE("Max", ["a", "y"], ["larger"]), np.maximum),
    (NODE("Max", ["y", "a"], ["larger_too"]), np.maximum),
    (NODE("Min", ["a", "y"], ["smaller"]), np.minimum),
    (NODE("GlobalMaxPool", ["y"], ["of_all"]), lambda a, y: y.max((2, 3), keepdims=True)),
    (NODE("Max", ["a", "row"], ["broadcast"]), lambda a, y: np.maximum(a, ROW)),
]
ROW = np.array([[1], [np.nan], [0], [-1], [0], [2]], np.float32)


def model() -> onnx.ModelProto:
    """After a convolution whose kernel is one, so that our kernels have a layer."""
    kernel = np.eye(16, dtype=np.float32).reshape(16, 16, 1, 1)
    constants = {"w": kernel, "low": np.float32(-1), "high": np.float32(2),
                 "axes": np.array([1, 3]), "row": ROW}
    graph = helper.make_graph(
        [NODE("Conv", ["x", "w"], ["a"]), *(node for node, _ in (*OF_ONE, *OF_TWO))], "nan",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 16, 6, 6]) for n in "xy"],
        [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)
         for node, _ in (*OF_ONE, *OF_TWO)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])


KERNELS = ("stock", "ours")


@pytest.fixture(scope="module", params=["relay", pytest.param("relax", marks=pytest.mark.full)])
def outputs(tmp_path_factory: pytest.TempPathFactory,
            request: pytest.FixtureRequest) -> dict[str, list[np.ndarray]]:
    """By KERNELS, as one of TVM's two compilers makes them."""
    compiler = request.param
    folder = tmp_path_factory.mktemp("nan")
    onnx.save(model(), str(folder / "model.onnx"))
    np.savez(folder / "relay.npz", **dict(zip("xy", given())))
    np.savez(folder / "relax.npz", *given())
    requests, runs = [], []
    for kernels in KERNELS:
        directory = folder / kernels
        directory.mkdir(parents=True)
        requests.append({"onnx": str(folder / "model.onnx"), "target": "llvm -mcpu=x86-64-v3",
                         "shapes": dict.fromkeys("xy", (1, 16, 6, 6)), "opt_level": 3,
                         "kernels": kernels, "directory": str(directory)})
        runs.append({"directory": str(directory), "inputs": str(folder / "relay.npz"),
                     "outputs": str(directory / "0.npz")} if compiler == "relay" else
                    {"library": str(directory / "model.so"), "outputs": str(directory),
                     "inputs": [str(folder / "relax.npz")]})
    ending = "" if compiler == "relay" else "_relax"
    answers = tvm_process.call(f"compile_many{ending}", None, requests=requests)
    assert [one["kernels"]["method"] for one in answers["results"]] == list(KERNELS)
    tvm_process.call(f"run_many{ending}", None, requests=runs)
    return {kernels: _arrays(folder / kernels / "0.npz") for kernels in KERNELS}


def _arrays(path: Path) -> list[np.ndarray]:
    with np.load(path) as file:
        return [file[name] for name in file.files]


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
    wanted = [function(x) for _, function in OF_ONE] + [function(x, y) for _, function in OF_TWO]
    for (node, _), want, have in zip((*OF_ONE, *OF_TWO), wanted, outputs[kernels], strict=True):
        assert np.isnan(want).any() and not np.isnan(want).all()
        np.testing.assert_allclose(have, want, rtol=1e-6, err_msg=node.output[0])
