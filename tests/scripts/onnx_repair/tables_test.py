"""Large tables, of which rows are gathered, stay in the bits that their numbers need."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from repaired_models import FLOAT, INT64, model_of, noise, operators, repaired, run
from tvm_outputs import compiled_outputs

from run_model_tools.few_bits import FLOAT8, NORMAL_FLOAT4

WORDS, LENGTH = 1500, 190  # no multiple of a block
PLACES = np.array([[0, 3, 1499], [77, 3, 1023]])


def on_grid(bits: int, block: int, low: int) -> np.ndarray:
    random = np.random.default_rng(bits)
    numbers = random.integers(low, low + (1 << bits), (WORDS, LENGTH))
    steps = random.uniform(0.01, 1, (WORDS, -(-LENGTH // block))).astype(np.float32)
    return numbers.astype(np.float32) * steps[:, np.arange(LENGTH) // block]


def of_levels(levels: np.ndarray) -> np.ndarray:
    random = np.random.default_rng(4)
    steps = random.uniform(0.01, 1, (WORDS, 3)).astype(np.float32)
    return (levels[random.integers(0, len(levels), (WORDS, LENGTH))]
            * steps[:, np.arange(LENGTH) // 64])


def bfloat16() -> np.ndarray:
    bits = noise(WORDS, LENGTH).view(np.uint32) & np.uint32(0xffff0000)
    table = bits.view(np.float32)
    table[3, :8] = 0, -0.0, 2.0 ** -120, -2.0 ** -125, 1.9921875, -3e38, 2.0 ** -124, 1
    return (table.view(np.uint32) & np.uint32(0xffff0000)).view(np.float32)


def half() -> np.ndarray:
    table = noise(WORDS, LENGTH)
    table[3, :4] = 0, 2.0 ** -24, -65504, 2.0 ** -15
    return table.astype(np.float16).astype(np.float32)


TABLES = {"4 bits": (lambda: on_grid(4, 32, -8), 4), "no signs": (lambda: on_grid(4, 256, 0), 4),
          "8 bits": (lambda: on_grid(8, 16, -128), 8), "odd": (lambda: on_grid(8, 64, -100), 8),
          "levels": (lambda: of_levels(NORMAL_FLOAT4), 4), "float8": (lambda: of_levels(FLOAT8), 8),
          "bfloat16": (bfloat16, 16), "float16": (half, 16)}


def gathering(table: np.ndarray) -> onnx.ModelProto:
    return model_of([helper.make_node("Gather", ["table", "places"], ["y"])],
                    {"places": (INT64, PLACES.shape)}, {"y": FLOAT}, 17, {"table": table})


def constant_bytes(model: onnx.ModelProto) -> int:
    return sum(len(tensor.raw_data) for tensor in model.graph.initializer)


@pytest.mark.parametrize("name", TABLES)
def test_only_rows_become_float32(name):
    make, bits = TABLES[name]
    table = make()
    made = repaired(gathering(table), {"places": PLACES})
    steps = 5 * WORDS * -(-LENGTH // 16) + 8192
    assert constant_bytes(made) <= table.size * bits / 8 + (8192 if bits == 16 else steps)
    (have,) = run(made, {"places": PLACES})
    np.testing.assert_allclose(have, table[PLACES], rtol=0 if bits == 16 else 5e-7, atol=0)
    assert (np.signbit(have) == np.signbit(table[PLACES])).all() or bits != 16


@pytest.mark.parametrize("compiler", ["relay", "relax"])
def test_compiled(tmp_path, compiler):
    tables = {name.replace(" ", "_"): make() for name, (make, _) in TABLES.items()}
    found = compiled_outputs(tmp_path, {
        name: (repaired(gathering(table), {"places": PLACES}), [{"places": PLACES}])
        for name, table in tables.items()}, compiler=compiler)
    for name, table in tables.items():
        np.testing.assert_allclose(found[name][0][0], table[PLACES], rtol=5e-7, atol=0,
                                   err_msg=name)


@pytest.mark.parametrize("axis, of_each", [(0, "table"), (0, "row"), (1, "block")])
def test_tables_that_the_file_dequantises(axis, of_each):
    random = np.random.default_rng(8)
    numbers = random.integers(-128, 128, (WORDS, LENGTH)).astype(np.int8)
    shape = {"table": (), "row": WORDS, "block": (WORDS, -(-LENGTH // 32))}[of_each]
    model = model_of([
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["table"], axis=axis,
                         block_size=32 if of_each == "block" else 0),
        helper.make_node("Gather", ["table", "places"], ["y"])],
        {"places": (INT64, PLACES.shape)}, {"y": FLOAT}, 21,
        {"q": numbers, "scale": random.uniform(0.01, 1, shape).astype(np.float32),
         "zero": random.integers(-9, 9, shape).astype(np.int8)})
    made = repaired(model, {"places": PLACES})
    assert "DequantizeLinear" not in operators(made)
    assert max(t.dims[0] * t.dims[-1] for t in made.graph.initializer
               if t.data_type == FLOAT) < numbers.size / 16
    np.testing.assert_allclose(run(made, {"places": PLACES})[0], run(model, {"places": PLACES})[0],
                               rtol=5e-7, atol=0)


def with_one(number: float) -> np.ndarray:
    table = bfloat16()
    table[5, 5] = number
    return table


@pytest.mark.parametrize("table", [
    noise(WORDS, LENGTH), with_one(np.nan), with_one(2.0 ** -126), with_one(np.inf),
    with_one(1 + 2.0 ** -20), half()[:800]], ids=[
        "all_bits", "nan", "denormal", "infinity", "one_number", "small"])
def test_others_stay(table):
    places = PLACES % len(table)
    made = repaired(gathering(table), {"places": places})
    assert operators(made) == ["Gather"]
    assert constant_bytes(made) == table.nbytes


def test_of_a_network_in_float16():
    table = half().astype(np.float16)
    model = model_of([helper.make_node("Gather", ["table", "places"], ["y"])],
                     {"places": (INT64, PLACES.shape)}, {"y": TensorProto.FLOAT16}, 17,
                     {"table": table})
    made = repaired(model, {"places": PLACES})
    assert constant_bytes(made) <= table.nbytes + 8192
    np.testing.assert_array_equal(run(made, {"places": PLACES})[0], table[PLACES])


def test_rows_of_several_axes():
    table = on_grid(8, 256, -128).reshape(WORDS, 19, 10)
    model = gathering(table)
    made = repaired(model, {"places": PLACES})
    assert any(t.data_type == TensorProto.UINT8 for t in made.graph.initializer)
    np.testing.assert_allclose(run(made, {"places": PLACES})[0], table[PLACES], rtol=5e-7, atol=0)
