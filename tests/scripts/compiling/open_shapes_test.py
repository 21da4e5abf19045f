"""At which shapes a network with open extents is tried, and which ones are for rows of numbers, of
which a batch is computed together."""

from __future__ import annotations

import numpy as np
import pytest

from run_model_tools.compiling.open_shapes import is_of_rows, shapes_to_try
from run_model_tools.onnx_model import read_model
from small_networks import save_network, weights


@pytest.mark.parametrize("inputs, nodes, constants, of_rows", [
    ("float[n,6] x", "y = MatMul(x, w)", weights(1, w=(6, 3)), True),
    ("float[n] x", "y = Sin(x)", {}, True),
    # What a column of classes means is looked up, beside numbers.
    ("float[n,6] x, int64[n] i", "e = Gather(w, i) y = Add(x, e)", weights(1, w=(9, 6)), True),
    # Words of a text of fixed length.
    ("int64[n,6] x", "y = Gather(w, x)", weights(1, w=(9, 4)), False),
    ("float[n,5,6] x", "y = MatMul(x, w)", weights(1, w=(6, 3)), False),
    ("float[n,6] x", "s = Constant<value_ints=[0,1,6]>() r = Reshape(x, s) y = Conv(r, w)",
     weights(1, w=(2, 1, 3)), False)])
def test_rows_of_numbers(tmp_path, inputs, nodes, constants, of_rows):
    constants = {name: np.asarray(value) for name, value in constants.items()}
    path = save_network(tmp_path / "net.onnx", f"({inputs}) => (float[] y) {{ {nodes} }}",
                        constants, 17)
    assert is_of_rows(read_model(path)) == of_rows


def test_a_batch_that_only_looks_open_is_one(tmp_path):
    path = save_network(tmp_path / "state.onnx", """
    (float[batch,1,steps] x, float[1,1,4] state) => (float[] y) {
        c = Conv(x, w)
        y = Concat<axis=2>(state, c)
    }""", weights(1, w=(1, 1, 5)), 18)
    shapes = shapes_to_try(read_model(path), {})
    assert len(shapes) == 3
    assert all(s["x"][:2] == (1, 1) and s["x"][2] >= 5 for s in shapes)


def test_every_open_extent_has_other_sizes_where_it_is_compared(tmp_path):
    path = save_network(tmp_path / "free.onnx", """
    (float[batch,2,height,width] x) => (float[] y) {
        y = Relu(x)
    }""", {}, 18)
    shapes = [s["x"] for s in shapes_to_try(read_model(path), {"x": (2, 2, 6, 8)})]
    assert shapes[0] == (2, 2, 6, 8)
    assert all(len({shape[axis] for shape in shapes}) == 3 for axis in (0, 2, 3))
