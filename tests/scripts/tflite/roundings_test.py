"""Quantised operators that LiteRT rounds its own way, to the number."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_test import compile_many, litert_or_skip, outputs_of

from tflite_networks import TfliteNetwork

pytestmark = pytest.mark.full


def test_means_are_rounded_as_litert_rounds_them(tmp_path):
    """Twice, so that one in four is not the nearest; sums of 0 stay 0 in steps of any size."""
    n = TfliteNetwork(17)
    kinds = (("int8", 0.0046, 8, 0.00056, -3), ("uint8", 0.02, 128, 0.0017, 100),
             ("int16", 6.2e-5, 0, 2.7e-6, 0), ("int8", 0.0278, 1, 4.7e-10, -31),
             ("int8", 0.001, 0, 0.3, 2))
    inputs, cases = {}, (((3, 96, 40), (2,)), ((3, 4, 16, 24), (3,)), ((1, 48, 30), (0, 2)))
    for number, (dtype, step, zero, scale, to) in enumerate(kinds):
        for place, (shape, axes) in enumerate(cases):
            x = n.tensor(shape, dtype, step, zero, name=f"x{number}_{place}")
            n.inputs.append(x)
            keep = place != 2
            made = tuple(1 if i in axes else d for i, d in enumerate(shape)
                         if keep or i not in axes)
            n.outputs.append(n.add("MEAN", [x, n.constant(np.array(axes, np.int32))],
                                   [n.tensor(made, dtype, scale, to)], "ReducerOptions",
                                   KeepDims=keep))
            limits = np.iinfo(dtype)
            values = n.random.integers(limits.min // 2, limits.max // 2 + 1, shape)
            values -= np.rint(values.mean(axes, keepdims=True)).astype(int) - zero
            values = values.clip(limits.min, limits.max)
            if scale < 1e-9:
                values = np.where(np.arange(shape[-1]) % 2, zero + 60, zero - 60) * np.ones(
                    shape, int)
            inputs[f"x{number}_{place}"] = values.astype(dtype)
    assert "error" not in compile_many({"n": n}, tmp_path)["n"]
    model = litert_or_skip(tmp_path / "n" / "net.tflite")
    for ours, theirs in zip(outputs_of(tmp_path / "n", inputs), model.run(inputs)):
        np.testing.assert_array_equal(ours, theirs)


def test_functions_of_16_bits_are_litert_s_tables(tmp_path):
    """The first part of RSQRT's is far from the function (32430 where that has 196402)."""
    n = TfliteNetwork(13)
    steps = (1.14e-5, 1e-3, 3e-4)
    n.inputs = [n.tensor((1, 32768), "int16", step, name=f"x{i}") for i, step in enumerate(steps)]
    n.outputs = [n.add(code, [x], [n.tensor((1, 32768), "int16", scale)]) for x, code, scale in (
        (n.inputs[0], "RSQRT", 0.0015), (n.inputs[1], "RSQRT", 0.002),
        (n.inputs[1], "LOG", 3e-4), (n.inputs[0], "LOG", 1e-3), (n.inputs[2], "EXP", 0.6))]
    assert "error" not in compile_many({"n": n}, tmp_path)["n"]
    model = litert_or_skip(tmp_path / "n" / "net.tflite")
    every = np.arange(32768, dtype=np.int16)[None]
    # LiteRT takes no root of what is not above zero.
    inputs = {"x0": every.clip(1), "x1": every.clip(1), "x2": every * 2 - 32767}
    for ours, theirs in zip(outputs_of(tmp_path / "n", inputs), model.run(inputs)):
        assert len(np.unique(theirs)) > 300
        np.testing.assert_array_equal(ours, theirs)


def softmax_of_16_bits() -> TfliteNetwork:
    """Of a thousand numbers, most of which are far behind the largest."""
    n = TfliteNetwork(13)
    x = n.tensor((2, 1000), "int16", 0.002, 0, name="x")
    n.inputs = [x]
    n.outputs = [n.add("SOFTMAX", [x], [n.tensor((2, 1000), "int16", 2.0 ** -15)],
                       "SoftmaxOptions", Beta=beta) for beta in (1.0, 0.25)]
    return n


def test_softmax_of_16_bits_ends_where_litert_ends_it(tmp_path):
    assert "error" not in compile_many({"s": softmax_of_16_bits()}, tmp_path)["s"]
    model = litert_or_skip(tmp_path / "s" / "net.tflite")
    x = np.random.default_rng(4).integers(-15000, 15000, (2, 1000)).astype(np.int16)
    x[0, 7] = 32000
    wanted = model.run({"x": x})
    assert wanted[0][0, 7] < 31000  # instead of 32767
    for ours, theirs in zip(outputs_of(tmp_path / "s", {"x": x}), wanted):
        assert np.abs(ours.astype(int) - theirs).max() <= 2
