"""Added channels change nothing that a model gives, and only layers that can do without a
difference.

Reference: ONNX Runtime on the model as it was.
"""

import collections

import numpy as np
import onnx
import pytest

from run_model_tools.inside_tvm.pad_channels import pad_channels, padded_channels
from small_networks import network, run_onnxruntime, weights

NORM = ("scale", "bias", "mean", "var")

def model_of(nodes, shapes, outputs, opset=13, **constants):
    found = weights(3, **shapes)
    found |= {name: np.abs(array) + 0.5 for name, array in found.items() if name.endswith("_var")}
    types = ", ".join(f"float[] {name}" for name in outputs)
    # Fills in the shapes of outputs and notes those of all other tensors, as exporters do.
    return onnx.shape_inference.infer_shapes(network(
        f"(float[1,3,9,9] x) => ({types}) {{ {nodes} }}", found | constants, opset, 7))


def outputs_of(model):
    return run_onnxruntime(model, weights(4, x=(1, 3, 9, 9)))


def check(model, lanes=16):
    """Pads a copy, compares its outputs, and gives the copy and how many convolutions grew."""
    padded = onnx.ModelProto()
    padded.CopyFrom(model)
    count = pad_channels(padded, lanes)
    onnx.checker.check_model(padded)
    for before, after in zip(outputs_of(model), outputs_of(padded), strict=True):
        assert before.shape == after.shape
        np.testing.assert_allclose(after, before, rtol=0, atol=2e-5 * np.abs(before).max())
    return padded, count


def shapes(model):
    tensors = {w.name: w for w in model.graph.initializer}
    return [tuple(tensors[n.input[1]].dims) for n in model.graph.node if n.op_type == "Conv"]


def slices(model):
    return sum(n.op_type == "Slice" for n in model.graph.node)


def unit(opset=13):
    """What ShuffleNet v2 repeats: 1x1, depthwise 3x3, 1x1, each normalised, and a concatenation."""
    shapes = {"a_w": (58, 3, 1, 1), "b_w": (58, 1, 3, 3), "c_w": (58, 58, 1, 1)}
    shapes |= {f"{layer}_{part}": (58,) for layer in "abc" for part in NORM}

    def norm(layer):
        return f"BatchNormalization({layer}, {', '.join(f'{layer}_{part}' for part in NORM)})"
    return model_of(f"""
        a = Conv(x, a_w)
        a_n = {norm("a")}
        a_r = Relu(a_n)
        b = Conv<group=58,pads=[1,1,1,1]>(a_r, b_w)
        b_n = {norm("b")}
        c = Conv(b_n, c_w)
        c_n = {norm("c")}
        c_r = Relu(c_n)
        y = Concat<axis=1>(c_r, a_r)""", shapes, ["y"], opset)


@pytest.mark.parametrize("opset", [9, 13])
def test_a_chain_is_padded_as_a_whole(opset):
    model, count = check(unit(opset))
    assert count == 3
    assert shapes(model) == [(64, 3, 1, 1), (64, 1, 3, 3), (64, 64, 1, 1)]
    # Of the two tensors that are concatenated; none in the chain.
    assert slices(model) == 2


def test_eight_lanes():
    assert check(unit(), lanes=8)[1] == 3
    model = model_of("a = Conv(x, w) y = Relu(a)", {"w": (40, 3, 1, 1)}, ["y"])
    assert check(model, lanes=8)[1] == 0
    assert check(model, lanes=16)[1] == 0, "48 for 40 would be a fifth more"


def test_which_numbers_of_channels_grow():
    assert [padded_channels(c, 16) for c in (16, 24, 31, 58, 60, 64, 72, 116, 232, 1000)] == [
        16, 24, 31, 64, 64, 64, 80, 128, 240, 1008]
    assert [padded_channels(c, 8) for c in (58, 116, 232, 1000)] == [64, 120, 232, 1000]


def test_without_lanes_nothing_changes():
    model = unit()
    before = model.SerializeToString()
    assert pad_channels(model, 0) == 0
    assert model.SerializeToString() == before


def test_outputs_of_the_model_keep_their_channels():
    nodes = "a = Conv(x, w) r = Relu(a) y = Conv(r, v, b)"
    shapes_of = {"w": (58, 3, 1, 1), "v": (58, 58, 1, 1), "b": (58,)}
    model, count = check(model_of(nodes, shapes_of, ["y"]))
    assert count == 1 and shapes(model) == [(64, 3, 1, 1), (58, 64, 1, 1)]
    # Here the Relu's result is one as well, so it gets the real channels only.
    model, count = check(model_of(nodes, shapes_of, ["y", "r"]))
    assert count == 1 and slices(model) == 1


def test_values_that_depend_on_all_channels_see_the_real_ones():
    model, count = check(model_of("""
        a = Conv(x, w)
        r = Relu(a)
        p = MaxPool<kernel_shape=[2,2]>(r)
        g = GlobalAveragePool(p)
        f = Flatten(g)
        l = MatMul(f, m)
        mean = ReduceMean<axes=[1]>(r)
        s = Softmax<axis=1>(r)""", {"w": (58, 3, 1, 1), "m": (58, 7)}, ["l", "mean", "s"]))
    assert count == 1
    # One for the pooled tensor, one that the mean and the softmax share.
    assert slices(model) == 2


def test_grouped_convolutions_see_the_real_channels():
    # The last one is depthwise with two results for each channel.
    model, count = check(model_of("""
        a = Conv(x, w)
        y = Conv<group=2>(a, v)
        y2 = Relu(y)
        z = Conv<group=58>(a, u)
        z2 = Relu(z)""", {"w": (58, 3, 1, 1), "v": (60, 29, 1, 1), "u": (116, 1, 3, 3)},
                                  ["y2", "z2"]))
    assert count == 1 and slices(model) == 1
    assert collections.Counter(shapes(model))[(60, 29, 1, 1)] == 1


def test_shared_weights_stay_as_they_are():
    model, count = check(model_of("""
        a = Conv(x, w)
        b = Conv(a, v)
        y = Relu(b)
        flat = Reshape(v, shape)""", {"w": (58, 3, 1, 1), "v": (58, 58, 1, 1)}, ["y", "flat"],
                                  shape=[58, 58]))
    assert count == 2
    assert shapes(model) == [(64, 3, 1, 1), (64, 64, 1, 1)]


def test_weights_that_are_computed_are_left_alone():
    model = model_of("w2 = Relu(w) a = Conv(x, w2) y = Relu(a)", {"w": (58, 3, 1, 1)}, ["y"])
    assert check(model)[1] == 0
