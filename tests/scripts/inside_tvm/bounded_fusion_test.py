"""Steps that each read the one before them twice do not double what is compiled."""

from __future__ import annotations

import numpy as np
import onnx
from tvm_outputs import compiled_outputs

from small_networks import network, run_onnxruntime

STEPS = 12
SEARCH = """
    above{k} = Less(middle{k}, x)
    low{n} = Where(above{k}, middle{k}, low{k})
    high{n} = Where(above{k}, high{k}, middle{k})
    sum{n} = Add(low{n}, high{n})
    middle{n} = Mul(sum{n}, half)
"""
ITERATION = """
    sine{k} = Sin(high{k})
    largest{k} = Max(sine{k}, x)
    sum{k} = Add(largest{k}, high{k})
    high{n} = Mul(sum{k}, half)
"""
# TVM's code for a hyperbolic tangent has its operand five times.
TANGENTS = """
    sine{k} = Sin(high{k})
    high{n} = Tanh(sine{k})
"""


def model(body: str, first: str) -> onnx.ModelProto:
    """The bounds of x among 0 to 1, cut in halves; or a sequence that x decides."""
    steps = "".join(body.format(k=k, n=k + 1) for k in range(STEPS))
    return network(f"(float[4,16] given) => (float[4,16] high{STEPS}) {{ x = {first} "
                   "low0 = Sub(x, x) high0 = Add(low0, one) middle0 = Mul(high0, half) "
                   f"{steps} }}",
                   {"one": np.float32(1), "half": np.float32(0.5),
                    "w": np.eye(16, dtype=np.float32)}, 17)


def test_what_is_read_twice_in_each_step(tmp_path):
    x = np.random.default_rng(3).uniform(0, 1, (4, 16)).astype(np.float32)
    networks = {f"{number}{first[:3]}": (model(body, first), [{"given": x}])
                for number, body in enumerate((SEARCH, ITERATION, TANGENTS))
                for first in ("Abs(given)", "MatMul(given, w)")}
    for name, [[have]] in compiled_outputs(tmp_path, networks, kernels="auto").items():
        [want] = run_onnxruntime(networks[name][0], {"given": x})
        np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6, err_msg=name)
