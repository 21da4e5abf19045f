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
import pytest

from run_model_tools import cuda_compiler, tvm_process
from run_model_tools.onnx_model import read_model
from run_model_tools.targets import find_target
from run_model_tools.verifying.device_execution import run_on_device
from small_networks import network, run_onnxruntime, weights

TARGETS = ("opencl", "vulkan", "cuda-sm_80")
DEVICES = ("opencl", "vulkan", "cuda")
LONGEST_THREAD = 8000
"""Numbers that a thread writes; TVM's untuned transposed convolutions have 50,000."""


Given = dict[str, "tuple[int, ...] | np.ndarray"]


def save(path: Path, nodes: str, shape: tuple[int, ...], given: Given) -> Path:
    """A network of one input x of a shape and one output y; given: constants, or their shapes."""
    shapes = {name: size for name, size in given.items() if isinstance(size, tuple)}
    drawn = {name: array / 3 for name, array in weights(4, **shapes).items()}
    model = network(f"(float{list(shape)} x) => (float[] y) {{ {nodes} }}", {**given, **drawn})
    onnx.save(onnx.shape_inference.infer_shapes(model), str(path))
    return path


NETWORKS: dict[str, tuple[str, tuple[int, ...], Given]] = {
    "conv3x3": ("y = Conv<pads=[1,1,1,1]>(x, w)", (1, 5, 13, 19), {"w": (10, 5, 3, 3)}),
    "strided": ("y = Conv<strides=[2,2],pads=[0,1,2,1]>(x, w)", (1, 3, 21, 22),
                {"w": (8, 3, 5, 5)}),
    "dilated": ("y = Conv<dilations=[2,3]>(x, w)", (2, 4, 17, 17), {"w": (7, 4, 3, 3)}),
    # Which multiply patches, or parts of windows (devices/patches.py), with strides and groups.
    "far_apart": ("a = Conv<dilations=[9,9],pads=[9,9,9,9]>(x, w, b) y = Relu(a)", (1, 12, 11, 12),
                  {"w": (9, 12, 3, 3), "b": (9,)}),
    "stem": ("""a = Conv<strides=[16,16]>(x, w, b) r = Reshape(a, s)
                y = Transpose<perm=[0,2,1]>(r)""", (2, 3, 64, 80),
             {"w": (24, 3, 16, 16), "b": (24,), "s": np.array([2, 24, 20])}),
    "far_apart_in_groups": ("""a = Conv<dilations=[12,10],pads=[12,8,12,12],group=3>(x, w)
                               y = Relu(a)""", (2, 15, 19, 17), {"w": (21, 5, 3, 3)}),
    "far_apart_in_rows": ("y = Conv<dilations=[90],pads=[180,0]>(x, w, b)", (2, 10, 200),
                          {"w": (14, 10, 3), "b": (14,)}),
    "steps_and_gaps": ("y = Conv<strides=[2,5],dilations=[3,1],pads=[1,0,2,5]>(x, w, b)",
                       (2, 5, 29, 31), {"w": (10, 5, 3, 2), "b": (10,)}),
    "pointwise": ("y = Conv(x, w)", (1, 40, 7, 7), {"w": (96, 40, 1, 1)}),
    # Of one pixel, as what weighs channels has: threads of channels only.
    "many_channels": ("y = Conv(x, w)", (1, 6, 1, 1), {"w": (144, 6, 1, 1)}),
    # Of so many numbers for each of so few results that several groups make parts of a sum.
    "deep": ("a = Conv<pads=[1,1,1,1]>(x, w, b) y = Relu(a)", (1, 96, 7, 7),
             {"w": (20, 96, 3, 3), "b": (20,)}),
    "deep_alone": ("y = Conv(x, w)", (2, 510, 5, 5), {"w": (24, 510, 1, 1)}),
    "deep_product": ("a = MatMul(x, w) y = Relu(a)", (20, 700), {"w": (700, 30)}),
    "one_place": ("a = Conv(x, w, b) y = Sigmoid(a)", (1, 200, 1, 1),
                  {"w": (30, 200, 1, 1), "b": (30,)}),
    "large_kernel": ("y = Conv<pads=[5,5,5,5]>(x, w)", (1, 2, 16, 16), {"w": (3, 2, 11, 11)}),
    "depthwise": ("y = Conv<group=12,pads=[1,1,1,1],strides=[2,2]>(x, w)", (1, 12, 15, 15),
                  {"w": (12, 1, 3, 3)}),
    "grouped": ("y = Conv<group=3>(x, w)", (1, 12, 9, 9), {"w": (6, 4, 3, 3)}),
    "rows": ("y = Conv<pads=[3,3]>(x, w)", (1, 6, 50), {"w": (9, 6, 7)}),
    "transposed": ("y = ConvTranspose<strides=[2,2]>(x, w)", (1, 6, 7, 7), {"w": (6, 4, 3, 3)}),
    "product": ("y = MatMul(x, w)", (37, 50), {"w": (50, 33)}),
    "max_pool": ("y = MaxPool<kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1]>(x)",
                 (1, 5, 17, 17), {}),
    "mean": ("y = GlobalAveragePool(x)", (1, 70, 9, 9), {}),
    "global_poolings": ("""a = Relu(x) b = GlobalAveragePool(a) v = Reshape(a, s)
                           c = GlobalMaxPool(v) e = GlobalAveragePool(v) f = Reshape(a, t)
                           g = GlobalAveragePool(f) d = Add(c, e) h = Reshape(d, u)
                           j = Reshape(g, u) i = Add(j, b) y = Mul(h, i)""", (1, 3, 30, 40),
                        {"s": np.array([1, 3, 10, 10, 12]), "t": np.array([1, 3, 1200]),
                         "u": np.array([1, 3, 1, 1])}),
    # The first of many that are the largest.
    "few_long_rows": ("""a = GlobalAveragePool(x) b = ReduceMax<keepdims=0>(x) c = Add(a, b)
                         d = Floor(x) e = ArgMax<axis=3>(d) f = Cast<to=1>(e) y = Add(c, f)""",
                      (1, 3, 40, 1050), {}),
    "softmax": ("y = Softmax<axis=-1>(x)", (3, 1000), {}),
    "softmax_of_channels": ("y = Softmax<axis=1>(x)", (1, 5, 8, 8), {}),
    "sum": ("y = ReduceSum<keepdims=0>(x)", (4, 300), {}),
    "largest": ("y = ReduceMax<axes=[1],keepdims=0>(x)", (5, 129, 3), {}),
    "index": ("i = ArgMax<axis=1>(x) y = Cast<to=1>(i)", (2, 21, 6, 6), {}),
    "places": ("a, i = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x) y = Cast<to=1>(i)",
               (1, 2, 8, 8), {}),
    "functions": ("""a = Tanh(x) b = Erf(x) c = Sigmoid(x)
                     d = Add(a, b) e = Exp(c) y = Mul(d, e)""", (3, 41), {}),
    "inverse_functions": ("""a = Sigmoid(x) b = Asin(a) c = Acos(a) d = Atanh(a) e = Tan(a)
                             f = Atan(x) g = Asinh(x) h = Sum(b, c, d, e, f, g)
                             i = Less(x, a) y = Where(i, h, x)""", (3, 41), {}),
    # Angles of many turns, as positions in a text have.
    "angles": ("m = Mul(x, w) s = Sin(m) c = Cos(m) y = Sub(s, c)", (3, 341),
               {"w": np.array(300, np.float32)}),
    "enlarged": ("""y = Resize<mode="linear">(x, , s)""", (1, 3, 8, 9),
                 {"s": np.array([1, 1, 2, 2], np.float32)}),
    "not_a_number": ("a = Relu(x) b = Max(a, w) c = Min(w, b) d = IsNaN(c) y = Cast<to=1>(d)",
                     (6, 100), {"w": (6, 100)}),
    "not_a_number_indices": ("""e = Equal(x, x) f = Cast<to=1>(e) i = ArgMax<axis=1>(x)
                                j = ArgMin<axis=1>(x) k = Add(i, j) l = Cast<to=1>(k)
                                y = Add(f, l)""", (6, 100), {}),
    "infinite": ("""d = Cast<to=11>(x) b = Mul(d, z) e = Mul(b, z) f = Equal(e, w) g = Cast<to=1>(f)
                    h = Log(x) i = IsInf(h) j = Cast<to=1>(i) y = Add(g, j)""", (6, 50),
                 {"z": np.array(1e300), "w": np.array(np.inf)}),
    # The smallest whole number is what the largest begins with.
    "whole_numbers": ("""a = Mul(x, c) b = Cast<to=7>(a) d = ReduceMax<axes=[1],keepdims=1>(b)
                         e = ReduceMin<axes=[1],keepdims=1>(b) f = Sub(d, e) y = Cast<to=1>(f)""",
                      (5, 40), {"c": np.array(1000, np.float32)}),
    "remainders": ("a = Mul(x, c) m = Mod<fmod=1>(a, w) r = Round(a) y = Add(m, r)", (7, 50),
                   {"c": np.array(40, np.float32), "w": np.array(0.7, np.float32)}),
    # Steps that take a part of one tensor each.
    "parts": (" ".join(["s = Tanh(x)", ", ".join(f"p{i}" for i in range(12)) +
                        " = Split<axis=1>(s, sizes)", "h0 = MatMul(p0, w)",
                        *(f"q{i} = Add(p{i}, h{i - 1}) h{i} = MatMul(q{i}, w)"
                          for i in range(1, 12)), "y = Relu(h11)"]), (5, 108),
              {"w": (9, 9), "sizes": np.full(12, 9)}),
    # More tensors than a kernel may take buffers, each of them of an operator of its own.
    "joined": (" ".join([", ".join(f"p{i}" for i in range(40)) + " = Split<axis=1>(x, sizes)",
                         *(f"q{i} = Add(p{i}, c{i % 3})" for i in range(40)),
                         f"y = Concat<axis=0>({', '.join(f'q{39 - i}' for i in range(40))})"]),
               (5, 120),
               {"c0": (1, 3), "c1": (5, 1), "c2": (5, 3), "sizes": np.full(40, 3)}),
    "best_of_some": ("a = Gather<axis=1>(x, i) y, j = TopK<axis=1>(a, k)", (5, 30),
                     {"i": np.array([7, -1, 0, 3]), "k": np.array([2])}),
    # Rows that are one piece, and such that are several, the last of them shorter.
    "running_sums": ("""a = CumSum<exclusive=1>(x, k) b = CumSum<reverse=1>(x, l) y = Sub(a, b)""",
                     (2, 40, 130), {"k": np.array(1), "l": np.array(2)}),
    # Our generators know no functions of float64, which are left to the CPU.
    "two_devices": ("""a = Conv<pads=[1,1,1,1]>(x, w) b = Reshape(a, s) c = Cast<to=11>(b)
                       [sines] d = Sin(c) e = Cast<to=1>(d) f = Add(e, b) y = MatMul(f, v)""",
                    (1, 3, 6, 6), {"w": (4, 3, 3, 3), "v": (36, 10), "s": np.array([4, 36])}),
    # What the CPU gives, it goes on with itself, and so does the GPU.
    "both_devices": ("""a = Relu(x) b = Cast<to=11>(a) c = Sin(b) d = Sin(c) e = Add(d, c)
                        f = Cast<to=1>(e) y = MatMul(f, v)""", (4, 36), {"v": (36, 10)}),
    # Tiles that do not divide the result, and operators that are fused with it.
    "batch_matmul": ("a = MatMul(x, w) y = Relu(a)", (3, 37, 50), {"w": (3, 50, 33)}),
    "grouped_tiles": ("""a = Conv<group=3,pads=[1,1,1,1],strides=[2,2]>(x, w, b) r = Relu(a)
                         y = Add(r, c)""", (2, 15, 19, 17),
                      {"w": (21, 5, 3, 3), "b": (21,), "c": (1, 21, 1, 1)}),
    "transposed_tiles": ("""a = ConvTranspose<strides=[2,2],pads=[1,1,1,1],output_padding=[1,1]>(
                            x, w, b) y = Relu(a)""", (1, 10, 9, 7),
                         {"w": (10, 6, 3, 3), "b": (6,)}),
    "layer_norm": ("""m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) q = Mul(d, d)
                      v = ReduceMean<axes=[-1]>(q) e = Add(v, eps) s = Sqrt(e) n = Div(d, s)
                      t = Mul(n, w) y = Add(t, b)""", (2, 19, 96),
                   {"eps": np.array(1e-5, np.float32), "w": (96,), "b": (96,)}),
    # A layer of ViT or BERT.
    "attention": ("""q0 = MatMul(x, wq) k0 = MatMul(x, wk) v0 = MatMul(x, wv)
        q1 = Reshape(q0, heads) k1 = Reshape(k0, heads) v1 = Reshape(v0, heads)
        q = Transpose<perm=[0,2,1,3]>(q1) k = Transpose<perm=[0,2,3,1]>(k1)
        v = Transpose<perm=[0,2,1,3]>(v1) s = MatMul(q, k) t = Mul(s, scale)
        p = Softmax<axis=-1>(t) o = MatMul(p, v) o1 = Transpose<perm=[0,2,1,3]>(o)
        o2 = Reshape(o1, rows) o3 = MatMul(o2, wo) r = Add(o3, x)
        m = ReduceMean<axes=[-1]>(r) d = Sub(r, m) z = Mul(d, d) u = ReduceMean<axes=[-1]>(z)
        e = Add(u, eps) g = Sqrt(e) n = Div(d, g) f = MatMul(n, w1) h0 = Mul(f, root) h1 = Erf(h0)
        h2 = Add(h1, one) h3 = Mul(f, h2) h4 = MatMul(h3, w2) y = Add(h4, r)""", (1, 67, 48),
                  {"wq": (48, 48), "wk": (48, 48), "wv": (48, 48), "wo": (48, 48), "w1": (48, 96),
                   "w2": (96, 48), "heads": np.array([1, 67, 3, 16]), "rows": np.array([1, 67, 48]),
                   "scale": np.array(0.02, np.float32), "eps": np.array(1e-5, np.float32),
                   "root": np.array(0.5 ** 0.5, np.float32), "one": np.array(1, np.float32)}),
    # ResNeXt's, then ShuffleNet's, with channels that change places.
    "groups": ("""a = Conv(x, w1) b = Relu(a) c = Conv<group=8,pads=[1,1,1,1]>(b, w2) d = Relu(c)
        e = Conv(d, w3) f = Add(e, x) g = Relu(f) h = Conv<group=4>(g, w4) i = Reshape(h, apart)
        j = Transpose<perm=[0,2,1,3,4]>(i) k = Reshape(j, back)
        l = Conv<group=24,pads=[1,1,1,1]>(k, w5) m = Conv<group=4>(l, w6) y = Add(m, g)""",
               (1, 32, 11, 11),
               {"w1": (32, 32, 1, 1), "w2": (32, 4, 3, 3), "w3": (32, 32, 1, 1),
                "w4": (24, 8, 1, 1), "w5": (24, 1, 3, 3), "w6": (32, 6, 1, 1),
                "apart": np.array([1, 4, 6, 11, 11]), "back": np.array([1, 24, 11, 11])}),
    "quantized": ("""q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
        wd = DequantizeLinear(wq, ws, wz) c = Conv<pads=[1,1,1,1]>(d, wd) r = Relu(c)
        q2 = QuantizeLinear(r, s2, z) y = DequantizeLinear(q2, s2, z)""", (1, 8, 9, 9),
                  {"s": np.array(0.03, np.float32), "z": np.array(120, np.uint8),
                   "wq": np.arange(576).reshape(8, 8, 3, 3).astype(np.int8),
                   "ws": np.array(0.01, np.float32), "wz": np.array(0, np.int8),
                   "s2": np.array(0.1, np.float32)}),
    # Rounds by sums with numbers that have no room for fractions.
    "quantized_at_run_time": ("q,s,z = DynamicQuantizeLinear(x) y = Cast<to=1>(q)", (9, 70), {}),
    "moved": ("t = Transpose<perm=[0,2,3,1]>(x) y = Relu(t)", (1, 6, 7, 5), {}),
}


def compile_all(folder: Path, wanted: Iterable[tuple[str, str]], **options: Any) -> None:
    """Makes NAME.onnx, and TARGET/NAME, of each (NAME, TARGET); options are more of a request."""
    requests = []
    for name, target_name in wanted:
        nodes, shape, given = NETWORKS[name]
        path = save(folder / f"{name}.onnx", nodes, shape, given)
        target = find_target(target_name)
        directory = folder / target_name / name
        directory.mkdir(parents=True)
        requests.append({
            **read_model(path).request(), "shapes": {"x": shape}, "calibration": None,
            "target": target.tvm, "host": target.host, "kernels": "auto", "opt_level": 3,
            "cc": target.compiler() or "g++", "directory": str(directory), **options, **(
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
    assert made["device"]["longest_thread"]["steps"] < LONGEST_THREAD, made["device"]


def check_numbers(folder: Path, name: str, device: str) -> None:
    """Runs it on this machine's driver, or CUDA emulated, and compares with ONNX Runtime."""
    given = np.random.default_rng(7).standard_normal(NETWORKS[name][1]).astype(np.float32)
    if name.startswith("not_a_number"):
        given.flat[[30, 199, 200]] = np.nan
    expected = run_onnxruntime(folder / f"{name}.onnx", {"x": given})
    if device == "cuda":
        results = cuda_emulation.run(folder / "cuda-sm_80" / name, {"x": given})
    else:
        results = [run_on_device(folder / device / name, device, [{"x": given}], None)[0][0]]
    for result in results:
        np.testing.assert_allclose(result[0], expected[0], rtol=1e-4, atol=1e-5)


def limits_test(names: Iterable[str]) -> Any:
    """A test of a module with compiled_fixture(): check_limits() of these for all targets."""
    @pytest.mark.parametrize("target", TARGETS)
    @pytest.mark.parametrize("name", names)
    def test(compiled: Path, name: str, target: str) -> None:
        check_limits(compiled, name, target)
    return test


def numbers_test(names: Iterable[str], on_opencl: Iterable[str]) -> Any:
    """The same of check_numbers() on all kinds of device, quickly on_opencl of a few only: that
    driver takes seconds to compile, and its code is written as CUDA's is."""
    @pytest.mark.parametrize("name, device", [
        pytest.param(name, device, marks=pytest.mark.slow) if device == "opencl"
        and name not in on_opencl else (name, device) for name, device in product(names, DEVICES)])
    def test(compiled: Path, name: str, device: str) -> None:
        check_numbers(compiled, name, device)
    return test
