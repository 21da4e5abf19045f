"""Networks of a layer or a few, each of another kind of kernel, compiled for GPUs and compared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import cuda_emulation
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools import cuda_compiler, tvm_process
from run_model_tools.onnx_model import read_model
from run_model_tools.targets import find_target
from run_model_tools.verifying.device_execution import run_on_device

FLOAT = TensorProto.FLOAT
TARGETS = ("opencl", "vulkan", "cuda-sm_80")
DEVICES = ("opencl", "vulkan", "cuda")


def save(path: Path, nodes: list, shape: tuple[int, ...],
         weights: dict[str, tuple[int, ...]] | None = None) -> Path:
    """A network of one input x of a shape and one output y."""
    random = np.random.default_rng(4)
    tensors = [numpy_helper.from_array(random.standard_normal(size).astype(np.float32) / 3, name)
               for name, size in (weights or {}).items()]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", FLOAT, shape)],
                              [helper.make_empty_tensor_value_info("y")], tensors)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    onnx.save(onnx.shape_inference.infer_shapes(model), str(path))
    return path


def convolution(**attributes):
    return [helper.make_node("Conv", ["x", "w"], ["y"], **attributes)]


def unary(name, **attributes):
    return [helper.make_node(name, ["x"], ["y"], **attributes)]


def constant(name, values):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(values))


NETWORKS = {
    "conv3x3": (convolution(pads=[1, 1, 1, 1]), (1, 5, 13, 19), {"w": (10, 5, 3, 3)}),
    "strided": (convolution(strides=[2, 2], pads=[0, 1, 2, 1]), (1, 3, 21, 22),
                {"w": (8, 3, 5, 5)}),
    "dilated": (convolution(dilations=[2, 3]), (2, 4, 17, 17), {"w": (7, 4, 3, 3)}),
    "pointwise": (convolution(), (1, 40, 7, 7), {"w": (64, 40, 1, 1)}),
    "large_kernel": (convolution(pads=[5, 5, 5, 5]), (1, 2, 16, 16), {"w": (3, 2, 11, 11)}),
    "depthwise": (convolution(group=12, pads=[1, 1, 1, 1], strides=[2, 2]), (1, 12, 15, 15),
                  {"w": (12, 1, 3, 3)}),
    "grouped": (convolution(group=3), (1, 12, 9, 9), {"w": (6, 4, 3, 3)}),
    "rows": (convolution(pads=[3, 3]), (1, 6, 50), {"w": (9, 6, 7)}),
    "transposed": ([helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])],
                   (1, 6, 7, 7), {"w": (6, 4, 3, 3)}),
    "product": ([helper.make_node("MatMul", ["x", "w"], ["y"])], (37, 50), {"w": (50, 33)}),
    "max_pool": (unary("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
                 (1, 5, 17, 17), {}),
    "mean": (unary("GlobalAveragePool"), (1, 70, 9, 9), {}),
    "softmax": (unary("Softmax", axis=-1), (3, 1000), {}),
    "softmax_of_channels": (unary("Softmax", axis=1), (1, 5, 8, 8), {}),
    "sum": (unary("ReduceSum", keepdims=0), (4, 300), {}),
    "largest": (unary("ReduceMax", axes=[1], keepdims=0), (5, 129, 3), {}),
    "index": ([helper.make_node("ArgMax", ["x"], ["i"], axis=1),
               helper.make_node("Cast", ["i"], ["y"], to=FLOAT)], (2, 21, 6, 6), {}),
    "functions": ([helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("Erf", ["x"], ["b"]),
                   helper.make_node("Sigmoid", ["x"], ["c"]),
                   helper.make_node("Add", ["a", "b"], ["d"]),
                   helper.make_node("Exp", ["c"], ["e"]),
                   helper.make_node("Mul", ["d", "e"], ["y"])], (3, 41), {}),
    "enlarged": ([constant("s", np.array([1, 1, 2, 2], np.float32)),
                  helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")],
                 (1, 3, 8, 9), {}),
    "not_a_number": ([helper.make_node("Relu", ["x"], ["a"]),
                      helper.make_node("Max", ["a", "w"], ["b"]),
                      helper.make_node("Min", ["w", "b"], ["c"]),
                      helper.make_node("IsNaN", ["c"], ["d"]),
                      helper.make_node("Cast", ["d"], ["y"], to=FLOAT)], (6, 100),
                     {"w": (6, 100)}),
    "best_of_some": ([constant("i", np.array([7, -1, 0, 3])), constant("k", np.array([2])),
                      helper.make_node("Gather", ["x", "i"], ["a"], axis=1),
                      helper.make_node("TopK", ["a", "k"], ["y", "j"], axis=1)], (5, 30), {}),
    # TVM sums up along an axis with a thread for each row, which is left to the CPU.
    "two_devices": ([constant("k", np.array(1)), constant("s", np.array([4, 36])),
                     helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
                     helper.make_node("Reshape", ["a", "s"], ["b"]),
                     helper.make_node("CumSum", ["b", "k"], ["c"], name="sums"),
                     helper.make_node("Add", ["c", "b"], ["d"]),
                     helper.make_node("MatMul", ["d", "v"], ["y"])], (1, 3, 6, 6),
                    {"w": (4, 3, 3, 3), "v": (36, 10)}),
    # Our generators know no functions of float64.
    "doubles": ([helper.make_node("Conv", ["x", "w"], ["a"]),
                 helper.make_node("Cast", ["a"], ["b"], to=TensorProto.DOUBLE),
                 helper.make_node("Sin", ["b"], ["c"]),
                 helper.make_node("Cast", ["c"], ["d"], to=FLOAT),
                 helper.make_node("Relu", ["d"], ["y"])], (1, 3, 9, 9), {"w": (4, 3, 3, 3)}),
    "moved": ([helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]),
               helper.make_node("Relu", ["t"], ["y"])], (1, 6, 7, 5), {}),
}


def compile_all(folder: Path, wanted: Iterable[tuple[str, str]]) -> None:
    """Makes NAME.onnx, and TARGET/NAME, of each (NAME, TARGET)."""
    requests = []
    for name, target_name in wanted:
        nodes, shape, weights = NETWORKS[name]
        path = save(folder / f"{name}.onnx", nodes, shape, weights)
        target = find_target(target_name)
        directory = folder / target_name / name
        directory.mkdir(parents=True)
        requests.append({
            **read_model(path).request(), "shapes": {"x": shape}, "calibration": None,
            "target": target.tvm, "host": target.host, "kernels": "stock", "opt_level": 3,
            "cc": target.compiler() or "g++", "directory": str(directory), **(
                {"libraries": cuda_compiler.libraries(), "keep_text": True}
                if target.device == "cuda" else {})})
    made = tvm_process.call("compile_many", None, requests=requests)["results"]
    for request, result in zip(requests, made):
        (Path(request["directory"]) / "made.json").write_text(json.dumps(result))


def compiled_fixture(names: Iterable[str], *more: tuple[str, str]) -> Any:
    """The fixture of the folder in which compile_all() made them for all targets, and some more."""
    @pytest.fixture(scope="module", name="compiled")
    def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("gpu")
        compile_all(folder, [*product(names, TARGETS), *more])
        return folder
    return compiled


def check_limits(folder: Path, name: str, target: str) -> None:
    """What was made uses a GPU, and no more of it than the target says there is."""
    made: dict[str, Any] = json.loads((folder / target / name / "made.json").read_text())
    assert "error" not in made, made["error"]
    threads, shared = (1024, 49152) if target.startswith("cuda") else (256, 16384)
    assert 1 < made["device"]["threads_per_group"] <= threads
    assert made["device"]["shared_memory_bytes"] <= shared


def check_numbers(folder: Path, name: str, device: str) -> None:
    """Runs it on this machine's driver, or CUDA emulated, and compares with ONNX Runtime."""
    given = np.random.default_rng(7).standard_normal(NETWORKS[name][1]).astype(np.float32)
    if name == "not_a_number":
        given.flat[[30, 199, 200]] = np.nan
    expected = onnxruntime.InferenceSession(
        str(folder / f"{name}.onnx"), providers=["CPUExecutionProvider"]).run(None, {"x": given})
    if device == "cuda":
        results = cuda_emulation.run(folder / "cuda-sm_80" / name, {"x": given})
    else:
        results = [run_on_device(folder / device / name, device, [{"x": given}], None)[0][0]]
    for result in results:
        np.testing.assert_allclose(result[0], expected[0], rtol=1e-4, atol=1e-5)
