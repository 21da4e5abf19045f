"""Remainders of whole numbers that are rounded down, as TVM's schedules give them."""

from __future__ import annotations

import numpy as np
from tvm_outputs import compiled_outputs

from small_networks import network

PAIRS = ((5, 3), (2, 7), (-7, 10), (2, -3))


def test_of_sums_with_constants(tmp_path):
    """Of numbers without axes, whose constants TVM sees where it makes code, as places in a ring
    of keys are: it added to them what int32 has no room for."""
    nodes = "\n".join(f"s{i} = Add(x, a{i}) y{i} = Mod(s{i}, b{i})" for i in range(len(PAIRS)))
    constants = {name: np.int32(value) for i, pair in enumerate(PAIRS)
                 for name, value in zip((f"a{i}", f"b{i}"), pair)}
    outputs = ", ".join(f"int32 y{i}" for i in range(len(PAIRS)))
    net = network(f"(int32 x) => ({outputs}) {{ {nodes} }}", constants)
    xs = (-9, 0, 4, 1000)
    inputs = [{"x": np.array(x, np.int32)} for x in xs]
    made = compiled_outputs(tmp_path, {"sums": (net, inputs)}, kernels="auto")["sums"]
    for x, outputs_of_x in zip(xs, made):
        assert [int(y) for y in outputs_of_x] == [(x + a) % b for a, b in PAIRS]
