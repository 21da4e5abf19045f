"""Indices beyond their tensor, and those that are a slice (onnx_repair/rules/indexing.py)."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from repaired_models import (
    FLOAT,
    check,
    matches,
    model_of,
    noise,
    one,
    operators,
    refusal,
    repaired,
    run,
)

from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import repair

PLACES = np.array([[0, -1, 9], [3, 1 << 40, -4], [-(1 << 40), 1, -5]])
NEAREST = np.array([[0, 3, 3], [3, 3, 0], [0, 1, 0]])


@pytest.mark.parametrize("op, extra", [
    ("GatherElements", []), ("ScatterElements", [noise(3, 3)]), ("GatherND", []),
    ("ScatterND", [noise(3)])])
def test_indices_beyond_become_the_nearest_if_they_are_inputs(op, extra):
    """TVM would read and write wherever they point; ONNX Runtime refuses them."""
    rank = 3 if op.endswith("ND") else 2
    x = noise(*[4] * rank)
    beyond, nearest = (one(op, [x, places, *extra]) for places in (PLACES, NEAREST))
    have, = run(repaired(*beyond), beyond[1])
    np.testing.assert_array_equal(have, run(*nearest)[0])
    constant = one(op, [x, PLACES, *extra], constants=[1])
    assert "index 9 lies beyond the 4 places" in refusal(*constant)


def test_lengths_beyond_are_those_of_the_longest():
    """ONNX Runtime refuses them."""
    x, extra = noise(4, 3), {"time_axis": 0, "batch_axis": 1}
    beyond, longest = (one("ReverseSequence", [x, np.array(lengths)], **extra)
                       for lengths in ([2, 1 << 40, 5], [2, 4, 4]))
    np.testing.assert_array_equal(run(repaired(*beyond), beyond[1])[0], run(*longest)[0])


def test_places_of_maxima_beyond_become_the_nearest():
    """ONNX Runtime writes wherever they point."""
    x = np.array([[[[3, 4]]]], np.float32)
    model, inputs = one("MaxUnpool", [x, np.array([[[[-9, 99]]]])], kernel_shape=[1, 2],
                        strides=[1, 2])
    np.testing.assert_array_equal(run(repaired(model, inputs), inputs)[0], [[[[3, 0, 0, 4]]]])


@pytest.mark.parametrize("largest, places", [(1, [1, 3, 4, 5, 0, 2]), (0, [2, 0, 1, 3, 4, 5])])
def test_the_best_beside_a_nan(largest, places):
    """It counts as infinity, of equal ones the first: ONNX Runtime's order is none."""
    x = np.array([2, np.nan, -1, np.nan, np.inf, np.nan], np.float32)
    model, inputs = one("TopK", [x, np.array([6])], outputs=2, constants=[1], largest=largest)
    values, found = run(repaired(model, inputs), inputs)
    np.testing.assert_array_equal(found, places)
    np.testing.assert_array_equal(values, x[places])


def grid(*places):
    """The indices of all combinations of these places of the first axes."""
    return np.stack(np.meshgrid(*places, indexing="ij"), -1)


@pytest.mark.parametrize("places, is_box", [
    (grid(range(4), range(5)), True), (grid([1, 2], range(5)), True), (grid([3]), True),
    (grid([1, 2], [-2, -1], [0, 1, 2]), True), (grid([1, 2], [2])[:, 0], True),
    (grid([0, 2], [1]), False), (grid([2, 1], [3]), False), (grid([1, 1], [3]), False),
    (grid([1, 2], [3, 4])[:, ::-1], False)])
def test_assignments_to_slices(places, is_box):
    """Exporters write them with the indices of all elements, or of the rows of the first axes."""
    x = noise(4, 5, 3)
    updates = noise(*places.shape[:-1], *x.shape[places.shape[-1]:])
    made = matches("ScatterND", [x, places, updates], constants=[1])
    assert ("ScatterND" in operators(made)) != is_box
    if places.size == 40:
        assert not {"Slice", "Concat"} & set(operators(made))


def test_indices_of_many_elements_are_worked_out():
    """As torch.onnx.export(dynamo=False) writes x[100:] = y, for a slice of 400 x 500."""
    def places(axis, begin, size):
        return [helper.make_node("Expand", [f"p{axis}", "whole"], [f"e{axis}"]),
                helper.make_node("Unsqueeze", [f"e{axis}", "last"], [f"u{axis}"])], np.arange(
                    begin, begin + size).reshape(-1, *[1] * (1 - axis))
    (down, rows), (across, columns) = places(0, 100, 400), places(1, 0, 500)
    nodes = [*down, *across, helper.make_node("Concat", ["u0", "u1"], ["at"], axis=-1),
             helper.make_node("ScatterND", ["x", "at", "y"], ["z"])]
    inputs = {"x": noise(600, 500), "y": noise(400, 500)}
    model = model_of(nodes, {n: (FLOAT, a.shape) for n, a in inputs.items()}, {"z": FLOAT}, 18, {
        "p0": rows, "p1": columns, "whole": np.array([400, 500]), "last": np.array([-1])})
    made = check(model, inputs)
    assert set(operators(made)) == {"Slice", "Concat"}


def test_a_constant_index_beyond_is_refused():
    assert "index -5 lies beyond the 4 places" in refusal(
        *one("Gather", [noise(3, 4), np.array([3, -5])], constants=[1], axis=1))


@pytest.mark.parametrize("at", [0, 3, 5, -4])
@pytest.mark.parametrize("along", ["one", "both", "counted"])
def test_so_many_elements_from_a_place_that_is_an_input(along, at):
    """As jax.lax.dynamic_slice and torch.narrow are exported; ends are sums with starts."""
    if along == "one":
        nodes = [helper.make_node("Unsqueeze", ["i", "zero"], ["s"]),
                 helper.make_node("Add", ["i", "four"], ["j"]),
                 helper.make_node("Unsqueeze", ["j", "zero"], ["e"])]
    elif along == "counted":
        # As PyTorch's newer exporter writes it: an end of 0 that is none, and one that is known.
        nodes = [helper.make_node("Add", ["i", "four"], ["j"]),
                 helper.make_node("Equal", ["j", "none"], ["q"]),
                 helper.make_node("Where", ["q", "once", "none"], ["w"]),
                 helper.make_node("Mul", ["w", "nine"], ["m"]),
                 helper.make_node("Add", ["j", "m"], ["k"]),
                 helper.make_node("Unsqueeze", ["i", "zero"], ["u"]),
                 helper.make_node("Unsqueeze", ["k", "zero"], ["l"]),
                 helper.make_node("Concat", ["u", "last"], ["s"], axis=0),
                 helper.make_node("Concat", ["l", "end"], ["e"], axis=0)]
    else:
        nodes = [helper.make_node("Unsqueeze", ["i", "zero"], ["u"]),
                 helper.make_node("Concat", ["u", "zero"], ["s"], axis=0),
                 helper.make_node("Add", ["s", "lengths"], ["e"])]
    nodes.append(helper.make_node("Slice", ["x", "s", "e", "axes"], ["y"]))
    model = model_of(nodes, {"x": (FLOAT, [2, 9, 6]), "i": (TensorProto.INT64, [])}, {"y": FLOAT},
                     18, {"zero": np.array([0]), "four": np.array(4), "none": np.array(0),
                          "once": np.array(1), "nine": np.array(9), "last": np.array([-5]),
                          "end": np.array([(1 << 63) - 1]),
                          "lengths": np.array([4, 5]),
                          "axes": np.array([1] if along == "one" else [1, -1])})
    x = noise(2, 9, 6)
    if at < 0 and along != "counted":
        # What ends at the last place has 0 for its end, which ONNX counts from the begin.
        made = repair(model, {"x": x.shape, "i": ()})
        expected = x[:, 5:9] if along == "one" else x[:, 5:9, :5]
        np.testing.assert_array_equal(run(made, {"x": x, "i": np.array(at)})[0], expected)
        return
    check(model, {"x": x, "i": np.array(at)})


def test_so_many_that_are_more_than_there_are():
    model = model_of([helper.make_node("Add", ["i", "many"], ["e"]),
                      helper.make_node("Slice", ["x", "i", "e", "axis"], ["y"])],
                     {"x": (FLOAT, [2, 9]), "i": (TensorProto.INT64, [1])}, {"y": FLOAT}, 18,
                     {"many": np.array([10]), "axis": np.array([1])})
    with pytest.raises(ToolError, match="10 of 9 elements along axis 1"):
        repair(model, {"x": (2, 9), "i": (1,)})


@pytest.mark.parametrize("pads, axes", [
    ([1, 0, 2, 0, 3, 1], None), ([-1, 2, 0, 1, -2, 0], None), ([2, 0, 0, 1], [2, 0])])
def test_what_a_pad_writes_may_be_an_input(pads, axes):
    arrays = [noise(3, 4, 5), np.array(pads), np.array(-2.5, np.float32)]
    arrays += [np.array(axes)] if axes else []
    matches("Pad", arrays, opset=18, constants=(1, 3) if axes else (1,))
