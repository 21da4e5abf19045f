"""ScatterND, running sums and grouped transposed convolutions as TVM compiles them for CPUs,
against ONNX Runtime."""

from __future__ import annotations

import json
import shutil

import numpy as np
import onnx
import pytest
from tvm_outputs import Inputs, compiled_outputs

from small_networks import network, run_onnxruntime, save_network, weights

#: Scattered into single numbers, into rows, and into rows long enough to be shared by threads;
#: summed along the first, a middle and the last axis, of one and of many rows.
NODES = """
    a = ScatterND<reduction="none">(few, numbers, three)
    b = ScatterND<reduction="add">(few, rows, changes)
    c = ScatterND<reduction="mul">(wide, rows, long)
    d = ScatterND<reduction="max">(wide, rows, long)
    e = ScatterND<reduction="min">(wide, rows, long)
    f = ScatterND<reduction="add">(whole, rows, counts)
    g = CumSum(few, first)
    h = CumSum<exclusive=1>(deep, middle)
    i = CumSum<reverse=1>(deep, last)
    j = CumSum<exclusive=1,reverse=1>(wide, first)
    k = CumSum(wide, first)
    l = CumSum(whole, last_of_two)
"""
OUTPUTS = "float[] a, float[] b, float[] c, float[] d, float[] e, int64[] f, float[] g, " \
          "float[] h, float[] i, float[] j, float[] k, int64[] l"
INPUTS = {"few": (7, 5), "wide": (6, 30011), "deep": (3, 40, 700), "three": (3,),
          "changes": (4, 5), "long": (4, 30011)}


def scattered_and_summed() -> tuple[onnx.ModelProto, Inputs]:
    random = np.random.default_rng(8)
    inputs = {name: random.standard_normal(shape).astype(np.float32)
              for name, shape in INPUTS.items()}
    # Row 4 is changed twice, in the order of the indices.
    inputs |= {"numbers": np.array([[6, 4], [0, 0], [3, 2]]),
               "rows": np.array([[4], [0], [4], [2]]),
               "whole": random.integers(-9, 9, (6, 3)), "counts": random.integers(-9, 9, (4, 3))}
    header = ", ".join(f"{'int64' if array.dtype == np.int64 else 'float'}"
                       f"{list(array.shape)} {name}" for name, array in inputs.items())
    axes = {"first": np.array(0), "middle": np.array(1), "last": np.array(-1),
            "last_of_two": np.array(1)}
    return network(f"({header}) => ({OUTPUTS}) {{ {NODES} }}", axes, 18), inputs


X, Y = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([-5, -6], np.float32)
NEAREST = {(3, 0): (2, 0), (0, 4): (0, 3), (-4, 0): (0, 0), (2**40, 0): (2, 0)}
"""Places of X beyond it, also where the flat place would lie inside."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[np.ndarray]]]:
    model, inputs = scattered_and_summed()
    beyond = network("(float[3,4] x, int64[2,2] at, float[2] y) => (float[] z) "
                     "{ z = ScatterND(x, at, y) }", {}, 18)
    return compiled_outputs(tmp_path_factory.mktemp("scattered"), {
        "all": (model, [inputs]),
        "beyond": (beyond, [{"x": X, "at": np.array([place, [1, 1]]), "y": Y}
                            for place in NEAREST])})


def test_equals_onnxruntime(compiled):
    [have] = compiled["all"]
    want = run_onnxruntime(*scattered_and_summed())
    for name, one, other in zip("abcdefghijkl", have, want, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape, name
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4, err_msg=name)


def test_an_index_beyond_the_data_stays_inside(compiled):
    for place, (have,) in zip(NEAREST.values(), compiled["beyond"], strict=True):
        want = X.copy()
        want[place], want[1, 1] = Y
        np.testing.assert_array_equal(have, want)


@pytest.mark.skipif(shutil.which("aarch64-linux-gnu-g++") is None, reason="needs Arm's compiler")
def test_transposed_convolutions_with_groups_for_arm(command, tmp_path):
    """Compared with ONNX Runtime before they are written."""
    path = save_network(tmp_path / "net.onnx", """(float[2,4,5,6] x) => (float[] y, float[] z) {
        y = ConvTranspose<group=2, strides=[2,1], pads=[1,0,0,1]>(x, w)
        z = ConvTranspose<group=4, strides=[2,2]>(x, v)
    }""", weights(3, w=(4, 3, 3, 3), v=(4, 1, 2, 2)))
    made = command("compile_model", path, "--out", tmp_path, "--target", "raspi4_aarch64", "--json")
    assert json.loads(made.stdout)["verification"]["done"]
