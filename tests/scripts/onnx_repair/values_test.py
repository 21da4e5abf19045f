"""Rules for what values decide: loops that may end early, branches, places that are computed."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from repaired_models import (
    BOOL,
    FLOAT,
    INT64,
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


def test_parameters_of_activations_skip_those_that_have_none():
    """ONNX lists one number for LeakyRelu and none for Sigmoid before it."""
    for direction, count in (("forward", 1), ("bidirectional", 2)):
        matches("GRU", [noise(4, 2, 3), noise(count, 15, 3), noise(count, 15, 5)], outputs=2,
                hidden_size=5, direction=direction, activations=["Sigmoid", "LeakyRelu"] * count,
                activation_alpha=[0.3, 0.6][:count])


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_signs_of_numbers_that_have_none(kind):
    model, inputs = one("Sign", [np.array([0, 1, 7, np.iinfo(kind).max], kind)])
    made = repaired(model, inputs)
    assert "Sign" not in operators(made)
    (signs,) = ReferenceEvaluator(made).run(None, inputs)
    np.testing.assert_array_equal(signs, np.array([0, 1, 1, 1], kind))


def value(name, kind, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def doubling_loop(times, collected=False):
    """Doubles until the sum is 9 or more."""
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "state"], ["next"]),
         helper.make_node("ReduceSum", ["next"], ["sum"], keepdims=0),
         helper.make_node("Less", ["sum", "nine"], ["go_on"])], "body",
        [value("iteration", INT64, []), value("going", BOOL, []), value("state", FLOAT, [2])],
        [value("go_on", BOOL, []), value("next", FLOAT, [2]),
         *([value("sum", FLOAT, [])] if collected else [])])
    outputs = ["y", "sums"] if collected else ["y"]
    return model_of([helper.make_node("Loop", ["times", "begin", "x"], outputs, "while",
                                      body=body)],
                    {"x": (FLOAT, [2])}, dict.fromkeys(outputs, FLOAT), 13,
                    {"times": np.array(times), "begin": np.array(True),
                     "nine": np.array(9, np.float32)})


@pytest.mark.parametrize("first", [0.1, 1.0, 2.0, 40.0, np.inf])
def test_loops_that_may_end_before_their_last_iteration(first):
    check(doubling_loop(6), {"x": np.array([first, 0.5], np.float32)})


def test_a_loop_that_collects_as_much_as_it_has_iterations_is_refused():
    with pytest.raises(ToolError, match="'while' .*whether the loop goes on"):
        repaired(doubling_loop(6, collected=True))


def branches(kind, op):
    """x if that has a positive element, else x op its largest one."""
    model = model_of(
        [helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
         helper.make_node("Greater", ["most", "zero"], ["positive"]),
         helper.make_node("If", ["positive"], ["y"], "choice",
                          then_branch=helper.make_graph(
                              [helper.make_node("Identity", ["x"], ["same"])], "then", [],
                              [value("same", kind)]),
                          else_branch=helper.make_graph(
                              [helper.make_node(op, ["x", "most"], ["quotient"])], "else", [],
                              [value("quotient", kind)]))],
        {"x": (kind, [3])}, {"y": kind}, 13)
    model.graph.initializer.append(helper.make_tensor("zero", kind, [], [0]))
    return model


@pytest.mark.parametrize("x", [[1, -2, 3], [-1, -2, -3], [0, -1, -2]])
def test_branches_that_divide_floats(x):
    with np.errstate(all="ignore"):
        check(branches(FLOAT, "Div"), {"x": np.array(x, np.float32)})


def test_branches_that_divide_whole_numbers_are_refused():
    with pytest.raises(ToolError, match="'choice' .*divides whole numbers"):
        repaired(branches(INT64, "Div"))


def unpooling(extent, shape):
    nodes = [helper.make_node("MaxPool", ["x"], ["p", "places"], kernel_shape=[2, 2],
                              strides=[2, 2]),
             helper.make_node("MaxUnpool", ["p", "places"] + (["shape"] if shape else []), ["y"],
                              "unpool", kernel_shape=[2, 2], strides=[2, 2])]
    return model_of(nodes, {"x": (FLOAT, [1, 2, extent, extent])}, {"y": FLOAT}, 12,
                    {"shape": np.array(shape)} if shape else None)


def test_unpooling_counts_where_the_pooling_did():
    check(unpooling(6, None), {"x": noise(1, 2, 6, 6)})
    # Seven become three and seven again: the places are of seven, and three by two are six.
    check(unpooling(7, [1, 2, 7, 7]), {"x": noise(1, 2, 7, 7)})
    with pytest.raises(ToolError, match=r"'unpool' .*\[1, 2, 7, 7\], and it makes \[1, 2, 6, 6\]"):
        repaired(unpooling(7, None))


def by_reference(model, inputs):
    """ONNX Runtime 1.20 has no kernel of these operators; ONNX's evaluator has."""
    made = repaired(model, inputs)
    want = ReferenceEvaluator(model).run(None, inputs)
    for a, b in zip(want, run(made, inputs), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


def test_deformable_convolution():
    by_reference(*one("DeformConv", [
        noise(2, 4, 7, 6), noise(6, 2, 3, 2), 2 * noise(2, 24, 4, 5), noise(6),
        noise(2, 12, 4, 5)], opset=19, constants=(1, 3), kernel_shape=[3, 2], pads=[1, 0, 2, 1],
        strides=[2, 1], dilations=[1, 2], group=2, offset_group=2))
    by_reference(*one("DeformConv", [noise(1, 2, 5, 5), noise(3, 2, 2, 2), noise(1, 8, 4, 4)],
                      opset=19, constants=(1,)))


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("batch, size", [(1, [4, 5]), (2, [1, 3]), (2, [3, 4, 2])])
def test_affine_grids(aligned, batch, size):
    """Also of one picture, where ONNX's own function squeezes the batch away."""
    axes = len(size)
    model, inputs = one("AffineGrid", [noise(batch, axes, axes + 1),
                                       np.array([batch, 3, *size])], opset=20, constants=(1,),
                        align_corners=aligned)
    if 1 in size and aligned:
        # ONNX divides by an extent less one there.
        assert repaired(model, inputs).graph.output
        return
    by_reference(model, inputs)


def test_a_parameter_that_is_computed_of_an_input_names_that_input():
    """As lengths of sequences do, whose longest is the extent of a mask."""
    model = model_of([helper.make_node("Abs", ["to"], ["positive"]),
                      helper.make_node("Reshape", ["x", "positive"], ["y"])],
                     {"x": (FLOAT, [6]), "to": (INT64, [2])}, {"y": FLOAT}, 13)
    x, to = noise(6), np.array([-2, 3])
    assert "it is computed of 'to': make that a constant with --freeze to=NUMBER,... (or" in \
        refusal(model, {"x": x, "to": to})
    assert repaired(model, {"x": x}, {"to": to}).graph.output[0].type.tensor_type.shape.dim[0] \
        .dim_value == 2
