"""Whole networks in 8 bits: as near the float32 network as was asked for, or refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from network_builder import Network
from run_model_tools import tvm_process

pytestmark = pytest.mark.full  # int8_convolution_test.py has the layers

CLASSES = 10


def classifier() -> onnx.ModelProto:
    n = Network(51, size=(24, 24))
    x = n.relu(n.conv("x", 3, 16, 3))
    x = n.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    y = n.relu(n.conv(n.relu(n.conv(x, 16, 32)), 32, 32, 3, groups=32))
    x = n.add("Add", [x, n.conv(y, 32, 16)])
    x = n.relu(n.conv(x, 16, 48, 3, strides=[2, 2]))
    x = n.add("GlobalAveragePool", [x])
    return n.model(n.add("Gemm", [n.add("Flatten", [x]), n.numbers(48, CLASSES)]))


def segmentation() -> onnx.ModelProto:
    """Scores of five classes in each place, and the best one's number."""
    n = Network(52, size=(24, 24))
    x = n.relu(n.conv(n.relu(n.conv("x", 3, 16, 3)), 16, 32, 3))
    maps = n.conv(n.relu(n.conv(x, 32, 32, 3)), 32, 5)
    model = n.model(maps, n.add("ArgMax", [maps], axis=1))
    model.graph.output[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    return model


def mixer() -> onnx.ModelProto:
    """Nearly all of its work is in products of several rows."""
    n = Network(53, size=(24, 24))
    x = n.conv("x", 3, 64, 4, strides=[4, 4], pads=[0] * 4)
    x = n.add("Transpose", [n.add("Reshape", [x, n.weight(np.array([1, 64, 36]))])], perm=[0, 2, 1])
    for _ in range(3):
        x = n.add("MatMul", [n.relu(n.add("MatMul", [x, n.numbers(64, 512)])), n.numbers(512, 64)])
    return n.model(n.add("ReduceMean", [x], axes=[1], keepdims=0))


def one_convolution() -> onnx.ModelProto:
    n = Network(52, size=(24, 24))
    x = n.add("GlobalAveragePool", [n.relu(n.conv("x", 3, 16, 3))])
    return n.model(n.add("Gemm", [n.add("Flatten", [x]), n.numbers(16, CLASSES)]))


def views(seed: int, count: int) -> np.ndarray:
    """Pictures whose pixels are alike where they are near each other."""
    rough = np.random.default_rng(seed).standard_normal((count, 1, 3, 6, 6))
    return np.kron(rough, np.ones((4, 4))).astype(np.float32)


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, dict]:
    """What the worker says of networks by what is asked of them: (network, agreement, error)."""
    folder = tmp_path_factory.mktemp("int8")
    paths = {}
    for part, arrays in (("views", {"x": views(1, 40)}),
                         ("pictures", {"pictures": np.arange(40) // 2})):
        paths[part] = str(folder / f"{part}.npz")
        np.savez(paths[part], **arrays)
    demands = {"little": (classifier, 0.9, 0.3), "near": (classifier, 0.9, 0.006),
               "impossible": (one_convolution, 1.0, 1e-6), "maps": (segmentation, 0.9, 0.1),
               "mixer": (mixer, 0.9, 0.1)}
    requests = []
    for name, (network, agreement, error) in demands.items():
        (folder / name).mkdir()
        model = folder / name / "model.onnx"
        onnx.save(network(), str(model))
        requests.append({
            "onnx": str(model), "target": "native", "shapes": {"x": (1, 3, 24, 24)},
            "opt_level": 3, "directory": str(folder / name), "kernels": "ours",
            "precision": "int8",
            "calibration": {**paths, "agreement": agreement, "least": agreement, "error": error,
                            "stated": ["NCHW", None] if network is segmentation else [None]}})
    results = tvm_process.call("compile_many", None, requests=requests)["results"]
    return dict(zip(demands, results))


def test_all_layers_are_bytes_where_that_will_do(answers):
    kernels = answers["little"]["kernels"]
    assert kernels["kept_float32"] == [] and kernels["float32_layers"] == 0
    found = kernels["agreement"]
    assert 0 < found["relative_error"] <= 0.1
    assert (found["views"], found["folds"]) == (40, 3)
    assert found["expected_agreement"] >= found["asked"]
    assert found["top1_agreement"] == 1 - found["other_class"] / 40


def test_layers_stay_float32_until_the_network_is_as_near_as_asked(answers):
    kernels = answers["near"]["kernels"]
    assert kernels["agreement"]["relative_error"] <= 0.006
    assert answers["little"]["kernels"]["agreement"]["relative_error"] > 0.006
    assert kernels["int8_layers"] >= 2
    kept = kernels["kept_float32"]
    assert kept and all(0 < one["alone_changes_outputs_by"] < 0.1 for one in kept)
    assert 0 < sum(one["share_of_work"] for one in kept) < 0.9


def test_a_network_that_loses_too_much_is_refused(answers):
    assert "--agreement" in answers["impossible"]["error"]
    assert "--tolerance" in answers["impossible"]["error"]


def test_of_maps_each_place_is_judged(answers):
    kernels = answers["maps"]["kernels"]
    assert kernels["int8_layers"] >= 3
    found = kernels["agreement"]
    assert found["places"] == 40 * 24 * 24
    assert 0.9 <= found["expected_agreement"] < 1 and 0 < found["other_class"] < 0.1 * 40 * 24 * 24
    assert 0 < found["relative_error"] <= 0.1


def test_a_network_with_hardly_any_layer_for_bytes_is_refused(answers):
    assert "% is in layers that can be bytes" in answers["mixer"]["error"]
