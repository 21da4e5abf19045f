"""Products of bytes in networks, as the repair writes them: exact, with weights of int16."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from networks_test import BEST_FIRST, TARGETS, compile_networks
from run_model_tools import tvm_process
from run_model_tools.onnx_repair.repair import repair
from small_networks import network

BYTES = {"uint8": 2, "int8": 3}
"""ONNX's numbers of the types."""


def extremes(dtype: str, rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Any bytes, but of the first and the last row all are the largest or all the smallest."""
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max + 1, shape)
    x.reshape(-1, shape[-1])[0] = limits.max
    x.reshape(-1, shape[-1])[-1] = limits.min
    return x


def product(rows: tuple[int, ...], depth: int, columns: int, left: str, right: str, seed: int,
            zero: int | None = None, of_columns: bool = False, at_run_time: bool = False,
            ) -> tuple[onnx.ModelProto, np.ndarray, np.ndarray]:
    """(network, its input, its output) of a MatMulInteger of `left` with weights of `right`.

    zero: the zero point of the left one, at_run_time: which is what the first number is, with
    of_columns one of each column of the weights.
    """
    rng = np.random.default_rng(seed)
    a = extremes(left, rng, *rows, depth)
    w = extremes(right, rng, columns, depth).T.copy()
    taken = int(a.reshape(-1)[0]) if at_run_time else zero or 0
    constants: dict[str, np.ndarray] = {"w": w.astype(right), "one": np.zeros(1, np.int64),
                                        "shape": np.array([-1], np.int64)}
    operands, of_weights = ["u", "w"], np.zeros(columns, np.int64)
    if zero is not None or at_run_time:
        operands.append("za")
        if not at_run_time:
            constants["za"] = np.array(zero, left)
    if of_columns:
        of_weights = extremes(right, rng, columns)
        constants["zw"] = of_weights.astype(right)
        operands.append("zw")
    picked = """flat = Reshape(u, shape)
        some = Gather(flat, one)
        za = Squeeze(some)""" if at_run_time else ""
    extents = ",".join(map(str, a.shape))
    model = network(f"""(float[{extents}] x) => (int32[] y) {{
        u = Cast<to={BYTES[left]}>(x)
        {picked}
        y = MatMulInteger({", ".join(operands)}) }}""", constants)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.shape.dim.extend(
        onnx.TensorShapeProto.Dimension(dim_value=d) for d in (*rows, columns))
    want = (a.astype(np.int64) - taken) @ (w.astype(np.int64) - of_weights)
    return model, a.astype(np.float32), want


CASES = {
    "many_rows": product((13,), 511, 32, "uint8", "int8", 1),
    "one_row": product((1,), 64, 40, "uint8", "int8", 2, zero=255),
    "odd_depth_in_batches": product((2, 3), 77, 33, "int8", "uint8", 3, zero=-128),
    "zeros_of_columns": product((9,), 128, 24, "uint8", "uint8", 4, zero=128, of_columns=True),
    "zero_at_run_time": product((4, 5), 33, 17, "int8", "int8", 5, at_run_time=True),
    "in_two_parts": product((7,), 2001, 16, "uint8", "int8", 6, zero=3),
    "all_at_run_time": product((2, 6), 255, 19, "uint8", "uint8", 7, of_columns=True,
                               at_run_time=True)}


def run(arrays: dict[str, np.ndarray], folder: Path) -> dict[str, list[np.ndarray]]:
    """The outputs of compiled networks, by their names, of an input each."""
    requests = []
    for name, x in arrays.items():
        np.savez(folder / name / "in.npz", x=x)
        requests.append({"directory": str(folder / name), "inputs": str(folder / name / "in.npz"),
                         "outputs": str(folder / name / "0.npz")})
    tvm_process.call("run_many", None, requests=requests)
    found = {}
    for name in arrays:
        with np.load(folder / name / "0.npz") as outputs:
            found[name] = [outputs[k] for k in outputs.files]
    return found


@pytest.mark.parametrize("target", BEST_FIRST)
def test_integers_are_multiplied_exactly(tmp_path, target):
    models = {name: repair(model, {}) for name, (model, _, _) in CASES.items()}
    answers = compile_networks(models, tmp_path, f"llvm -mcpu={target}")
    assert not {name: answer["error"] for name, answer in answers.items() if "error" in answer}
    found = run({name: x for name, (_, x, _) in CASES.items()}, tmp_path)
    for name, (_, _, want) in CASES.items():
        np.testing.assert_array_equal(found[name][0], want, err_msg=name)
    # Two bytes a weight, where float32 has four.
    (depth, columns) = models["many_rows"].graph.initializer[0].dims
    assert (tmp_path / "many_rows" / "model.params").stat().st_size < 3 * depth * columns


def test_casts_that_lose_something_are_kept(tmp_path):
    """To bytes, of sums that go far beyond them."""
    model, x, want = product((3,), 40, 16, "uint8", "int8", 8)
    model.graph.node[-1].output[0] = "sums"
    model.graph.node.extend([onnx.helper.make_node("Cast", ["sums"], ["bytes"], to=BYTES["int8"]),
                             onnx.helper.make_node("Cast", ["bytes"], ["y"], to=1)])
    model.graph.output[0].type.tensor_type.elem_type = 1
    compile_networks({"wrapped": repair(model, {})}, tmp_path, f"llvm -mcpu={TARGETS[-1]}")
    assert abs(want).max() > 1000
    np.testing.assert_array_equal(run({"wrapped": x}, tmp_path)["wrapped"][0],
                                  want.astype(np.int8))


@pytest.mark.parametrize("target", BEST_FIRST)
def test_what_is_quantised_at_run_time(tmp_path, target):
    """With what follows it one layer, after one that quantises."""
    rng = np.random.default_rng(1)
    w = extremes("int8", rng, 30, 65).T.astype(np.int8)
    scales = rng.uniform(0.001, 0.01, 30).astype(np.float32)
    bias = rng.standard_normal(30).astype(np.float32)
    model = network("""(float[2,7,65] x) => (float[2,7,30] y) {
        u, s, z = DynamicQuantizeLinear(x)
        p = MatMulInteger(u, w, z)
        f = Cast<to=1>(p)
        b = Mul(s, scales)
        m = Mul(f, b)
        a = Add(m, bias)
        y = Relu(a) }""", {"w": w, "scales": scales, "bias": bias})
    answer = compile_networks({"dynamic": repair(model, {})}, tmp_path,
                              f"llvm -mcpu={target}")["dynamic"]
    assert not answer["kernels"]["left_to_tvm"].keys() & {"cast", "round", "mod"}
    cases = {"plain": rng.standard_normal((2, 7, 65)), "positive": rng.uniform(1, 9, (2, 7, 65)),
             "negative": rng.uniform(-9e20, -1, (2, 7, 65)), "nothing": np.zeros((2, 7, 65)),
             "halves": rng.integers(-127, 129, (2, 7, 65)) + 0.5}
    cases["halves"].reshape(-1)[:2] = -127, 128
    for name, x in cases.items():
        x = x.astype(np.float32)
        high, low = max(x.max(), np.float32(0)), min(x.min(), np.float32(0))
        scale = np.float32((high - low) / np.float32(255)) or np.float32(1)
        zero = np.clip(np.rint(-low / scale), 0, 255)
        u = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.int64)
        total = (u - int(zero)) @ w.astype(np.int64)
        want = np.maximum(total * (scale * scales).astype(np.float64) + bias, 0)
        (have,) = run({"dynamic": x}, tmp_path)["dynamic"]
        np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6 * max(1.0, abs(want).max()),
                                   err_msg=name)
