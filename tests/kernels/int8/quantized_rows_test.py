"""Quantized networks of matrices: what is rounded, what is multiplied in whole numbers, and that
ONNX Runtime's bytes come out."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from whole_products_test import run

from networks_test import BEST_FIRST, TARGETS, compile_networks
from run_model_tools.onnx_repair.repair import repair
from small_networks import network

_DEPTH, _COLUMNS = 96, 40


def rounded(x: np.ndarray, scale: float, zero: int, dtype: str) -> np.ndarray:
    """QuantizeLinear, as int64 without the zero point."""
    limits = np.iinfo(dtype)
    with np.errstate(over="ignore"):
        steps = np.rint(x.astype(np.float32) / np.float32(scale)).astype(np.float64) + zero
    return steps.clip(limits.min, limits.max).astype(np.int64) - zero


def rows_to_multiply(dtype: str, of_columns: bool) -> tuple[onnx.ModelProto, dict]:
    """x -> quantized -> times quantized weights, plus bias -> ReLU -> quantized; what it holds."""
    rng = np.random.default_rng(5)
    zeros = {"uint8": (100, 3), "int8": (-28, -128)}[dtype]
    scales = rng.uniform(0.001, 0.01, _COLUMNS if of_columns else 1).astype(np.float32)
    held = {"w": rng.integers(-128, 128, (_DEPTH, _COLUMNS)).astype(np.int8),
            "sw": scales if of_columns else scales.reshape(()),
            "zw": np.zeros(_COLUMNS if of_columns else (), np.int8),
            "sx": np.float32(0.03125), "zx": np.array(zeros[0], dtype),
            "sy": np.float32(0.0517), "zy": np.array(zeros[1], dtype),
            "bias": rng.standard_normal(_COLUMNS).astype(np.float32)}
    return network(f"""(float[2,9,{_DEPTH}] x) => (float[2,9,{_COLUMNS}] y) {{
        qx = QuantizeLinear(x, sx, zx)
        dx = DequantizeLinear(qx, sx, zx)
        dw = DequantizeLinear<axis=1>(w, sw, zw)
        p = MatMul(dx, dw)
        a = Add(p, bias)
        r = Relu(a)
        qy = QuantizeLinear(r, sy, zy)
        y = DequantizeLinear(qy, sy, zy) }}""", held), held


def expected(x: np.ndarray, held: dict) -> np.ndarray:
    dtype = str(held["zx"].dtype)
    whole = rounded(x, held["sx"], int(held["zx"]), dtype) @ held["w"].astype(np.int64)
    product = whole.astype(np.float32) * (held["sx"] * held["sw"]) + held["bias"]
    steps = rounded(np.maximum(product, 0), held["sy"], int(held["zy"]), dtype)
    return steps.astype(np.float32) * held["sy"]


@pytest.mark.parametrize("target", BEST_FIRST)
def test_products_are_of_whole_numbers(tmp_path, target):
    """Halves round to even, and what is infinite or far beyond the range to its ends."""
    rng = np.random.default_rng(6)
    made = {f"{dtype}_{kind}": rows_to_multiply(dtype, kind == "columns")
            for dtype in ("uint8", "int8") for kind in ("one", "columns")}
    answers = compile_networks({name: repair(model, {}) for name, (model, _) in made.items()},
                               tmp_path, f"llvm -mcpu={target}")
    assert not {name: a["error"] for name, a in answers.items() if "error" in a}
    x = rng.uniform(-4, 6, (2, 9, _DEPTH)).astype(np.float32)
    x[0, 0] = (np.arange(_DEPTH) - 50.5) * np.float32(0.03125)
    x[0, 1, :8] = np.inf, -np.inf, 3e38, -3e38, 1e9, -1e9, 1e-40, -0.0
    outputs = run(dict.fromkeys(made, x), tmp_path)
    for name, (_, held) in made.items():
        assert not answers[name]["kernels"]["left_to_tvm"], name
        want = expected(x, held)
        assert len(np.unique(want)) > 30, name
        # A sum that lies between two bytes to the last bit may go to either.
        steps = np.abs(outputs[name][0] - want) / held["sy"]
        assert (steps > 0.01).sum() <= 2 and steps.max() < 1.01, name
        # Two bytes a weight or one, where float32 has four.
        parameters = (tmp_path / name / "model.params").stat().st_size
        assert parameters < 2.6 * _DEPTH * _COLUMNS, name


def test_operators_of_bytes_are_the_same(tmp_path):
    """QLinearMatMul, one on the other."""
    rng = np.random.default_rng(7)
    held = {"w": rng.integers(-60, 60, (_DEPTH, _DEPTH)).astype(np.int8),
            "zero": np.int8(0), "sx": np.float32(0.02), "zx": np.uint8(120),
            "sw": np.float32(0.004), "sy": np.float32(0.11), "zy": np.uint8(131)}
    model = network(f"""(float[7,{_DEPTH}] x) => (float[7,{_DEPTH}] y) {{
        q = QuantizeLinear(x, sx, zx)
        r = QLinearMatMul(q, sx, zx, w, sw, zero, sy, zy)
        t = QLinearMatMul(r, sy, zy, w, sw, zero, sy, zy)
        y = DequantizeLinear(t, sy, zy) }}""", held)
    answer = compile_networks({"bytes": repair(model, {})}, tmp_path,
                              f"llvm -mcpu={TARGETS[0]}")["bytes"]
    assert not answer["kernels"]["left_to_tvm"]
    x = rng.standard_normal((7, _DEPTH)).astype(np.float32)
    first = rounded(x, held["sx"], 120, "uint8") @ held["w"].astype(np.int64)
    factors = [np.float32(held["sx"] * held["sw"]) / held["sy"], held["sw"]]
    second = rounded(first.astype(np.float32) * factors[0], 1, 131, "uint8") @ (
        held["w"].astype(np.int64))
    want = rounded(second.astype(np.float32) * factors[1], 1, 131, "uint8") * held["sy"]
    assert len(np.unique(want)) > 30
    np.testing.assert_allclose(run({"bytes": x}, tmp_path)["bytes"][0], want, rtol=1e-6)


def test_a_picture_of_quantized_rows_is_bytes(tmp_path):
    """Rows that are normalised and quantized become a picture, which a convolution reads, and
    between its roundings a function of one number is one table."""
    rng = np.random.default_rng(8)
    held = {"w": rng.integers(-128, 128, (32, 32, 1, 1)).astype(np.int8), "zw": np.int8(0),
            "sw": np.float32(0.003), "sx": np.float32(0.03), "zx": np.uint8(128),
            "sy": np.float32(0.05), "zy": np.uint8(120), "st": np.float32(0.01),
            "zt": np.uint8(127), "gamma": np.ones(32, np.float32)}
    model = network("""(float[1,6,6,32] x) => (float[1,32,6,6] y) {
        n = LayerNormalization<axis=-1>(x, gamma)
        qx = QuantizeLinear(n, sx, zx)
        dx = DequantizeLinear(qx, sx, zx)
        picture = Transpose<perm=[0,3,1,2]>(dx)
        dw = DequantizeLinear(w, sw, zw)
        c = Conv(picture, dw)
        qc = QuantizeLinear(c, sy, zy)
        dc = DequantizeLinear(qc, sy, zy)
        t = Tanh(dc)
        qt = QuantizeLinear(t, st, zt)
        dt = DequantizeLinear(qt, st, zt)
        m = Mul(dc, dt)
        qm = QuantizeLinear(m, sy, zy)
        dm = DequantizeLinear(qm, sy, zy)
        d = Conv(dm, dw)
        qd = QuantizeLinear(d, sy, zy)
        y = DequantizeLinear(qd, sy, zy) }""", held)
    answer = compile_networks({"picture": repair(model, {})}, tmp_path,
                              f"llvm -mcpu={TARGETS[0]}")["picture"]
    assert answer["kernels"]["int8_layers"] == 3
    graph = json.loads((tmp_path / "picture" / "model.json").read_text())
    assert sum("map_int8" in node["name"] for node in graph["nodes"]) == 1
    x = rng.standard_normal((1, 6, 6, 32)).astype(np.float32)
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    weights = held["w"][:, :, 0, 0].astype(np.int64)

    def convolved(numbers: np.ndarray, scale: np.float32) -> np.ndarray:
        sums = np.einsum("bhwc,oc->bhwo", numbers, weights).astype(np.float32)
        return rounded(sums * (scale * held["sw"]), 0.05, 120, "uint8")
    first = convolved(rounded(normal, 0.03, 128, "uint8"), held["sx"])
    number = first.astype(np.float32) * held["sy"]
    bent = rounded(np.tanh(number), 0.01, 127, "uint8").astype(np.float32) * held["st"]
    want = convolved(rounded(number * bent, 0.05, 120, "uint8"), held["sy"])
    have = run({"picture": x}, tmp_path)["picture"][0].transpose(0, 2, 3, 1) / held["sy"]
    # What is normalised may round to either side of a half.
    assert (np.abs(have - want) > 0.01).mean() < 0.03 and np.abs(have - want).max() < 5
    assert len(np.unique(want)) > 30
