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

# Patches by 4 along both axes, as PyTorch's older exporter divides whole numbers (Gemma 4 pools
# so): comparisons of what compares, of which TVM proves each for what it is made of.
POOLED = """
    (int64[1,16,2] given) => (float[1,16,4] weights) {
    above = Max(given, zero)
    cut = Div(above, four)
    negative = Less(above, zero)
    differs = Xor(negative, no)
    rest = Mod(above, four)
    whole = Equal(rest, zero)
    broken = Not(whole)
    lower = And(differs, broken)
    below = Sub(cut, one)
    down = Where(lower, below, cut)
    column = Gather<axis = 2>(down, zero)
    row = Gather<axis = 2>(down, one)
    begin = Mul(row, two)
    at = Add(column, begin)
    behind = Less(at, zero)
    counted = Add(at, four)
    place = Where(behind, counted, at)
    deep = Unsqueeze(place, last)
    same = Equal(deep, every)
    weights = Cast<to = 1>(same)
    }
"""


def pooled() -> onnx.ModelProto:
    numbers = {name: np.int64(n) for n, name in ((0, "zero"), (1, "one"), (2, "two"), (4, "four"))}
    return network(POOLED, {**numbers, "no": np.bool_(False), "last": np.array([-1]),
                            "every": np.arange(4)}, 17)


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
    networks["pooled"] = (pooled(), [{
        "given": np.random.default_rng(3).integers(-2, 8, (1, 16, 2))}])
    for name, [[have]] in compiled_outputs(tmp_path, networks, kernels="auto").items():
        tested, [inputs] = networks[name]
        [want] = run_onnxruntime(tested, inputs)
        np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6, err_msg=name)
