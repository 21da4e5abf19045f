"""Steps that each read the one before them twice do not double what is compiled."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from run_model_tools import tvm_process
from small_networks import network

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


@pytest.mark.parametrize("first", ["Abs(given)", "MatMul(given, w)"])
def test_what_is_read_twice_in_each_step(first, tmp_path):
    x = np.random.default_rng(3).uniform(0, 1, (4, 16)).astype(np.float32)
    np.savez(tmp_path / "in.npz", given=x)
    requests, runs = [], []
    for number, body in enumerate((SEARCH, ITERATION, TANGENTS)):
        directory = tmp_path / str(number)
        directory.mkdir()
        onnx.save(model(body, first), str(directory / "model.onnx"))
        requests.append({"onnx": str(directory / "model.onnx"), "target": "llvm -mcpu=x86-64-v3",
                         "opt_level": 3, "shapes": {"given": x.shape}, "kernels": "auto",
                         "directory": str(directory)})
        runs.append({"directory": str(directory), "inputs": str(tmp_path / "in.npz"),
                     "outputs": str(directory / "0.npz")})
    made = tvm_process.call("compile_many", None, requests=requests)["results"]
    assert not [one["error"] for one in made if "error" in one]
    tvm_process.call("run_many", None, requests=runs)
    for one in runs:
        path = one["outputs"].replace("0.npz", "model.onnx")
        want = onnxruntime.InferenceSession(path).run(None, {"given": x})[0]
        with np.load(one["outputs"]) as file:
            np.testing.assert_allclose(file[file.files[0]], want, rtol=1e-6, atol=1e-6)
