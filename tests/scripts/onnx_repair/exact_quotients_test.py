"""The whole number below a quotient, where a product with the reciprocal lies below it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tvm_outputs import compiled_outputs

from run_model_tools.onnx_repair.repair import load, repair
from small_networks import save_network

NETWORK = """(float[1,4,1000] x) => (float[] cells, float[] rest, int64[] whole, bool[] is_there) {
    first = Add(x, one)
    quotient = Div(first, width)
    cells = Floor(quotient)
    taken = Mul(cells, width)
    rest = Sub(first, taken)
    other = Div(x, width)
    turned = Transpose<perm=[0,2,1]>(other)
    whole = Cast<to=7>(turned)
    last = Div(first, width)
    is_there = GreaterOrEqual(last, one)
}"""
NUMBERS = np.arange(4000, dtype=np.float32).reshape(1, 4, 1000)
WIDTHS = (41, 47)


@pytest.mark.parametrize("kernels, compiler", [
    ("stock", "relay"), ("auto", "relay"), ("ours", "relax")])
def test_cells_of_grids_begin_where_they_do(tmp_path, kernels, compiler):
    networks = {}
    for width in WIDTHS:
        path = save_network(tmp_path / f"{width}.onnx", NETWORK,
                            {"one": np.float32(1), "width": np.float32(width)}, 18)
        networks[str(width)] = (onnx.load(str(path)), [{"x": NUMBERS}])
    made = compiled_outputs(tmp_path, networks, kernels, compiler)
    for width in WIDTHS:
        first = NUMBERS + 1
        cells = first // width
        for have, want in zip(made[str(width)][0], (
                cells, first - cells * width, (NUMBERS // width).transpose(0, 2, 1),
                first >= width), strict=True):
            np.testing.assert_array_equal(have, want)


def test_other_divisors_stay_numbers(tmp_path):
    """Their quotients may be products: powers of two lose nothing, and what a Softmax reads is near
    to no step."""
    path = save_network(tmp_path / "net.onnx", """(float[4,6] x) => (float[] y, float[] z) {
        a = Div(x, eight)
        y = Floor(a)
        b = Div(x, seven)
        z = Softmax(b)
    }""", {"eight": np.float32(8), "seven": np.float32(7)}, 18)
    made = repair(load(path), {})
    assert {tuple(tensor.dims) for tensor in made.graph.initializer} == {()}
