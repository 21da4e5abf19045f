"""Remainders of whole numbers that are rounded down, as TVM's schedules give them."""

from __future__ import annotations

import numpy as np
from tflite_test import outputs_of

from run_model_tools import tvm_process
from small_networks import save_network

PAIRS = ((5, 3), (2, 7), (-7, 10), (2, -3))


def test_of_sums_with_constants(tmp_path):
    """Of numbers without axes, whose constants TVM sees where it makes code, as places in a ring
    of keys are: it added to them what int32 has no room for."""
    nodes = "\n".join(f"s{i} = Add(x, a{i}) y{i} = Mod(s{i}, b{i})" for i in range(len(PAIRS)))
    constants = {name: np.int32(value) for i, pair in enumerate(PAIRS)
                 for name, value in zip((f"a{i}", f"b{i}"), pair)}
    outputs = ", ".join(f"int32 y{i}" for i in range(len(PAIRS)))
    path = save_network(tmp_path / "net.onnx", f"(int32 x) => ({outputs}) {{ {nodes} }}",
                        constants)
    tvm_process.call("compile", None, onnx=str(path), target="native", shapes={"x": ()},
                     opt_level=3, kernels="auto", directory=str(tmp_path))
    for x in (-9, 0, 4, 1000):
        made = outputs_of(tmp_path, {"x": np.array(x, np.int32)})
        assert [int(y) for y in made] == [(x + a) % b for a, b in PAIRS]
