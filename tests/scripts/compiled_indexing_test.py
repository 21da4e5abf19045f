"""Operators on places, and casts to bytes, that TVM's own schedules take wrongly without a word,
compiled and run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from run_model_tools import tvm_process
from small_networks import network

RANDOM = np.random.default_rng(6)
SHAPE = (4, 3, 5, 2)
OUTPUTS = ("first", "last", "least", "bytes", "scattered", "summed", "gathered", "one", "expanded",
           "unsigned", "signed", "pooled")
NODES = """
    x = Identity(given)
    never = Less(x, x)
    nothing = Where(never, x, infinity)
    [first] first = ArgMax<axis=2, keepdims=0>(nothing)
    [last] last = ArgMax<axis=2, select_last_index=1>(nothing)
    much = Neg(nothing)
    [least] least = ArgMin<axis=0>(much)
    zeros = Cast<to=2>(never)
    [bytes] bytes = ArgMax<axis=1>(zeros)
    [scattered] scattered = ScatterElements<axis=1>(x, places, updates)
    [summed] summed = ScatterElements<axis=-2, reduction="add">(x, places, updates)
    [gathered] gathered = GatherElements<axis=2>(x, places)
    [one] one = GatherND(x, place)
    row = ReduceMax<axes=[0]>(x)
    rows_of_it = Expand(row, extents)
    some = Where(channels, rows_of_it, hundred)
    [expanded] expanded = ArgMin<axis=1>(some)
    large = Mul(x, hundred)
    rows = Reshape(large, of_eight)
    [unsigned] unsigned = Cast<to=2>(rows)
    [signed] signed = Cast<to=3>(rows)
    falses = Cast<to=1>(never)
    none = ReduceMax<keepdims=0>(falses)
    regions = Add(boxes, none)
    picture = Reshape(x, plane)
    [pooled] pooled = MaxRoiPool<pooled_shape=[7, 3]>(picture, regions)
"""


def model() -> onnx.ModelProto:
    """Whose indices reach less far than the data along other axes than their own."""
    constants = {"infinity": np.float32(-np.inf), "place": np.array([1, -1]),
                 "extents": np.array(SHAPE),
                 "channels": np.array([True, False, True]).reshape(1, 3, 1, 1),
                 "hundred": np.float32(100), "of_eight": np.array([-1, 8]),
                 # Of all heights and widths, whose bins end at rounded quotients.
                 "plane": np.array([1, 1, 15, 8]), "boxes": np.array(
                     [(0, 0, 0, k % 8, k) for k in range(15)], np.float32),
                 "places": np.array([2, 0, -1]).reshape(1, 3, 1, 1).repeat(2, 0),
                 "updates": RANDOM.standard_normal((2, 3, 1, 1)).astype(np.float32)}
    types = ["int64"] * 4 + ["float"] * 4 + ["int64", "uint8", "int8", "float"]
    outputs = ", ".join(f"{kind}[] {name}" for kind, name in zip(types, OUTPUTS))
    extents = ",".join(map(str, SHAPE))
    return network(f"(float[{extents}] given) => ({outputs}) {{ {NODES} }}", constants, 17)


@pytest.mark.parametrize("compiler", ["relay", pytest.param("relax", marks=pytest.mark.full)])
def test_places(compiler, tmp_path: Path):
    onnx.save(model(), str(tmp_path / "model.onnx"))
    x = RANDOM.standard_normal(SHAPE).astype(np.float32)
    wanted = onnxruntime.InferenceSession(str(tmp_path / "model.onnx")).run(None, {"given": x})
    ending = "" if compiler == "relay" else "_relax"
    made = tvm_process.call(f"compile_many{ending}", None, requests=[
        {"onnx": str(tmp_path / "model.onnx"), "target": "llvm -mcpu=x86-64-v3", "opt_level": 3,
         "shapes": {"given": SHAPE}, "kernels": "auto", "directory": str(tmp_path)}])
    assert "error" not in made["results"][0]
    if compiler == "relay":
        np.savez(tmp_path / "in.npz", given=x)
        run = {"directory": str(tmp_path), "inputs": str(tmp_path / "in.npz"),
               "outputs": str(tmp_path / "0.npz")}
    else:
        np.savez(tmp_path / "in.npz", x)
        run = {"library": str(tmp_path / "model.so"), "outputs": str(tmp_path),
               "inputs": [str(tmp_path / "in.npz")]}
    tvm_process.call(f"run_many{ending}", None, requests=[run])
    with np.load(tmp_path / "0.npz") as file:
        found = [file[name] for name in file.files]
    for name, want, have in zip(OUTPUTS, wanted, found, strict=True):
        np.testing.assert_array_equal(have, want, err_msg=name)
