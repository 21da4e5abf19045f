"""Which networks are for rows of numbers, of which a batch is computed together."""

from __future__ import annotations

import numpy as np
import pytest

from run_model_tools.compiling.open_shapes import is_of_rows
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
