"""Layers of rows and of matrices for GPUs (inside_tvm/devices/row_layers.py): which operators
become one kernel, right numbers on each kind of GPU, and what stays TVM's."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from gpu_networks import NETWORKS, compiled_fixture, limits_test, numbers_test

pytestmark = pytest.mark.full  # targets_of_gpus_test.py has a softmax

NORM = """m{0} = ReduceMean<axes=[-1]>({1}) d{0} = Sub({1}, m{0}) q{0} = Mul(d{0}, d{0})
    v{0} = ReduceMean<axes=[-1]>(q{0}) e{0} = Add(v{0}, eps) s{0} = Sqrt(e{0})
    n{0} = Div(d{0}, s{0}) t{0} = Mul(n{0}, w) {2} = Add(t{0}, b)"""
EPS = {"eps": np.array(1e-5, np.float32)}

NETWORKS.update({
    # Numbers of a row far apart, as channels of a picture are, and stored so again.
    "norm_of_channels": (f"""h = Transpose<perm=[0,2,3,1]>(x) {NORM.format(0, "h", "r")}
                             c = Transpose<perm=[0,3,1,2]>(r) y = Conv<pads=[1,1,1,1]>(c, f)""",
                         (2, 20, 7, 9), {**EPS, "w": (20,), "b": (20,), "f": (6, 20, 3, 3)}),
    # The layer before reads it in another order than the one after.
    "two_norms": (f"""{NORM.format(0, "x", "r")} p = MatMul(r, w1) g = Add(p, x)
                      {NORM.format(1, "g", "k")} l = MatMul(k, w2) y = Sigmoid(l)""",
                  (1, 33, 24), {**EPS, "w": (24,), "b": (24,), "w1": (24, 24), "w2": (24, 130)}),
    "rows_of_three": (NORM.format(0, "x", "y"), (7, 5, 3), {**EPS, "w": (3,), "b": (3,)}),
    "root_mean_square": ("""q = Mul(x, x) m = ReduceMean<axes=[-1]>(q) e = Add(m, eps) s = Sqrt(e)
                            n = Div(x, s) y = Mul(n, w)""", (2, 9, 300), {**EPS, "w": (300,)}),
    "softmax_down": ("a = Softmax<axis=1>(x) l = LogSoftmax<axis=1>(x) y = Sub(a, l)",
                     (3, 40, 21), {}),
    # A token at a time: products of few rows, with weights and without.
    "few_rows": ("""a = Softmax<axis=-1>(x) p = MatMul(a, w) c = Add(p, b) r = Relu(c)
                    t = Transpose<perm=[0,2,1]>(x) k = MatMul(r, t) z = MatMul(k, r)
                    y = Add(z, r)""", (2, 3, 96), {"w": (96, 96), "b": (96,)}),
    "not_a_number_rows": ("""a = Softmax<axis=-1>(x) p = MatMul(x, w) r = Relu(p)
                             m = ReduceMax<axes=[-1]>(r) c = Clip(r, low, high)
                             s = Mul(a, m) z = Add(s, c) n = IsNaN(z)
                             y = Where(n, seven, z)""", (6, 100),
                          {"w": (100, 100), "seven": np.array(7, np.float32),
                           "low": np.array(-0.5, np.float32), "high": np.array(0.5, np.float32)}),
    # All of a row alike, so that what is left of it has to be 0.
    "alike": ("""o = MatMul(x, w) m = ReduceMin<axes=[-1]>(o) k = Mul(o, c) l = Mul(m, c)
                 y = Sub(k, l)""", (20, 8),
              {"w": np.full((8, 700), 0.3, np.float32), "c": np.array(1.7, np.float32)}),
    "long_rows": ("y = Softmax<axis=-1>(x)", (3, 5000), {}),
    "beside_pictures": ("""c = Conv<pads=[1,1,1,1]>(x, f) r = Relu(c) g = ReduceMean<axes=[2,3]>(r)
                           s = Sigmoid(g) k = Mul(r, s) y = Add(k, x)""", (1, 6, 12, 12),
                        {"f": (6, 6, 3, 3)}),
})

QUICK = ("layer_norm", "attention", "norm_of_channels", "two_norms", "rows_of_three",
         "root_mean_square", "softmax_down", "few_rows", "not_a_number_rows", "alike", "long_rows",
         "beside_pictures")

KERNELS = {"layer_norm": {"rows": 1}, "norm_of_channels": {"rows": 1, "TVM's": 1},
           "two_norms": {"rows": 2, "product": 2}, "rows_of_three": {"rows": 1},
           "root_mean_square": {"rows": 1}, "long_rows": {"TVM's": 1},
           # Softmax, q, k, v, their two products, three products after these and a norm.
           "attention": {"rows": 2, "product": 8},
           "few_rows": {"rows": 1, "product": 3}, "beside_pictures": {"TVM's": 3}}

compiled = compiled_fixture(QUICK)
test_layers_keep_to_the_limits = limits_test(QUICK)
test_numbers = numbers_test(QUICK, ("attention", "not_a_number_rows"))


def kernels_of(folder: Path) -> Counter[str]:
    """What an artifact launches: ours by their kinds, and TVM's."""
    graph = json.loads((folder / "model.json").read_text())
    names = [node["attrs"]["func_name"] for node in graph["nodes"] if node["op"] == "tvm_op"]
    return Counter(name.split("run_model_")[1].split("_")[0] if "run_model_" in name else "TVM's"
                   for name in names if name != "__nop")


@pytest.mark.parametrize("name", KERNELS)
def test_what_becomes_one_kernel(compiled, name):
    assert kernels_of(compiled / "cuda-sm_80" / name) == KERNELS[name]
