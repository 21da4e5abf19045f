"""Operators on places, casts to bytes, and remainders of whole numbers, that TVM's own schedules
take wrongly without a word, compiled and run."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tvm_outputs import Inputs, compiled_outputs

from small_networks import network, run_onnxruntime

SHAPE = (4, 3, 5, 2)
GIVEN = {"given": np.random.default_rng(6).standard_normal(SHAPE).astype(np.float32)}
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

DIVISIONS = ((5, 3), (2, 7), (-7, 10), (2, -3))
"""What is added, and by what the sum is divided."""


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
                 "updates": np.random.default_rng(7).standard_normal(
                     (2, 3, 1, 1)).astype(np.float32)}
    types = ["int64"] * 4 + ["float"] * 4 + ["int64", "uint8", "int8", "float"]
    outputs = ", ".join(f"{kind}[] {name}" for kind, name in zip(types, OUTPUTS))
    extents = ",".join(map(str, SHAPE))
    return network(f"(float[{extents}] given) => ({outputs}) {{ {NODES} }}", constants, 17)


def remainders() -> tuple[onnx.ModelProto, list[Inputs]]:
    """Rounded down, of sums with constants that TVM sees where it makes code, as places in a ring
    of keys are: it added to them what int32 has no room for."""
    nodes = " ".join(f"s{i} = Add(x, a{i}) y{i} = Mod(s{i}, b{i})" for i in range(len(DIVISIONS)))
    constants = {name: np.int32(value) for i, pair in enumerate(DIVISIONS)
                 for name, value in zip((f"a{i}", f"b{i}"), pair)}
    outputs = ", ".join(f"int32 y{i}" for i in range(len(DIVISIONS)))
    return network(f"(int32 x) => ({outputs}) {{ {nodes} }}", constants), [
        {"x": np.array(x, np.int32)} for x in (-9, 0, 4, 1000)]


@pytest.fixture(scope="module", params=["relay", pytest.param("relax", marks=pytest.mark.full)])
def compiled(request: pytest.FixtureRequest,
             tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[np.ndarray]]]:
    return compiled_outputs(tmp_path_factory.mktemp("indexing"), {
        "places": (model(), [GIVEN]), "remainders": remainders()}, "auto", request.param)


def test_places(compiled):
    wanted = run_onnxruntime(model(), GIVEN)
    [found] = compiled["places"]
    for name, want, have in zip(OUTPUTS, wanted, found, strict=True):
        np.testing.assert_array_equal(have, want, err_msg=name)


def test_remainders_of_sums_with_constants(compiled):
    _, inputs = remainders()
    for given, outputs in zip(inputs, compiled["remainders"], strict=True):
        x = int(given["x"])
        assert [int(y) for y in outputs] == [(x + a) % b for a, b in DIVISIONS]
