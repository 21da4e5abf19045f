"""Simplifying changes no result: what TVM's own pass gets wrong is right here."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tvm_outputs import compiled_outputs

from small_networks import network, run_onnxruntime, weights

FLOAT, UINT8, INT32, INT64, UINT32 = 1, 2, 6, 7, 12
# By what becomes of it: the nodes before the last, and the last one.
NODES = {
    # Fractions are cut off, and negative and large numbers become others.
    "clipped": (f"a = Clip(f, zero, high) a8 = Cast<to={UINT8}>(a)", f"Cast<to={FLOAT}>(a8)"),
    "bounded": (f"b = Clip(f, low, high) b32 = Cast<to={INT32}>(b)", f"Cast<to={FLOAT}>(b32)"),
    "unsigned": (f"c8 = Cast<to={UINT8}>(byte)", f"Cast<to={FLOAT}>(c8)"),
    "wide": (f"d32 = Cast<to={UINT32}>(i)", f"Cast<to={INT64}>(d32)"),
    "large": (f"e = Mul(i, odd) ef = Cast<to={FLOAT}>(e)", f"Cast<to={INT32}>(ef)"),
    # Programs round so.
    "added": ("g = Add(f, magic)", "Sub(g, magic)"),
    "taken": ("h = Sub(f, magic)", "Add(h, magic)"),
    "both": ("j = Add(magic, f)", "Add(j, minus_magic)"),
    "shifted": ("k = Add(f, third) l = Add(k, magic)", "Sub(l, magic)"),
    # Between these lie the digits that count.
    "scaled": ("m = Add(near, minus_million)", "Mul(m, thousand)"),
    "small": ("n = Mul(huge, tiny)", "Mul(n, tiny)"),
    # a*x*x + b*x*y + c*y*y in whole numbers, and with vectors.
    "whole": ("o = Mul(i, i) p = Mul(two, o) q = Mul(i, j32) r = Mul(five, q) s = Mul(j32, j32) "
              "t = Mul(three, s) u = Add(p, t)", "Add(u, r)"),
    "vectors": ("v = Mul(f, f) w = Mul(row, v) x = Mul(f, g1) y = Mul(row, x) z = Mul(g1, g1) "
                "aa = Add(w, z)", "Add(aa, y)"),
}
TYPES = {"unsigned": "float", "wide": "int64", "large": "int32", "whole": "int32"}
CONSTANTS = {
    "zero": np.float32(0), "low": np.float32(-3), "high": np.float32(200),
    "odd": np.int32(100000001), "magic": np.float32(1.5 * 2 ** 23),
    "minus_magic": np.float32(-1.5 * 2 ** 23), "third": np.float32(1 / 3),
    "minus_million": np.float32(-1e6), "thousand": np.float32(1e3), "tiny": np.float32(1e-20),
    "two": np.int32(2), "three": np.int32(3), "five": np.int32(5),
    "row": np.linspace(1, 3, 8, dtype=np.float32)}


def given() -> dict[str, np.ndarray]:
    random = np.random.default_rng(6)
    floats = 3 * random.standard_normal((2, 8, 8)).astype(np.float32)
    whole = random.integers(-9, 9, (3, 8, 8))
    return {"f": floats[0], "g1": floats[1], "near": 1e6 + floats[0].round(1),
            "huge": floats[1] * 1e30, "byte": whole[0].astype(np.int8),
            "i": whole[1].astype(np.int32), "j32": whole[2].astype(np.int32)}


def model() -> onnx.ModelProto:
    names = {np.dtype(np.float32): "float", np.dtype(np.int8): "int8", np.dtype(np.int32): "int32"}
    inputs = ", ".join(f"{names[a.dtype]}[8,8] {name}" for name, a in given().items())
    outputs = ", ".join(f"{TYPES.get(name, 'float')}[8,8] {name}" for name in NODES)
    nodes = "\n".join(f"{before} {name} = {last}" for name, (before, last) in NODES.items())
    return network(f"({inputs}) => ({outputs}) {{ {nodes} }}", CONSTANTS, 17)


def scaled_channels() -> onnx.ModelProto:
    """Normalisations before convolutions, with channels of 0 and next to it, as trained networks
    have them."""
    scales = np.float32([0.5, 0, 1e-39, 2]).reshape(1, 4, 1, 1)
    return network("""(float[1,4,5,5] x) => (float[1,3,3,3] y, float[1,3,3,3] z) {
        a = Mul(x, s)
        b = Add(a, shifts)
        y = Conv(b, w)
        r = Relu(b)
        z = Conv(r, v)
    }""", {"s": scales, **weights(7, shifts=(1, 4, 1, 1), w=(3, 4, 3, 3), v=(3, 4, 3, 3))})


CHANNELS = {"x": np.random.default_rng(8).standard_normal((1, 4, 5, 5)).astype(np.float32)}


@pytest.fixture(scope="module", params=["relay", pytest.param("relax", marks=pytest.mark.full)])
def outputs(tmp_path_factory: pytest.TempPathFactory,
            request: pytest.FixtureRequest) -> dict[str, list[list[np.ndarray]]]:
    folder = tmp_path_factory.mktemp("simplified")
    return compiled_outputs(folder, {"net": (model(), [given()]),
                                     "channels": (scaled_channels(), [CHANNELS])},
                            compiler=request.param)


def test_results_are_those_of_the_network(outputs):
    wanted = run_onnxruntime(model(), given())
    for name, want, have in zip(NODES, wanted, outputs["net"][0], strict=True):
        assert want.any()
        assert have.dtype == want.dtype
        np.testing.assert_allclose(have, want, rtol=1e-5, err_msg=name)


def test_factors_of_nothing_do_not_divide(outputs):
    wanted = run_onnxruntime(scaled_channels(), CHANNELS)
    for want, have in zip(wanted, outputs["channels"][0], strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
