"""Added channels change nothing that a model gives, and only layers that can do without a
difference.

Reference: ONNX Runtime on the model as it was.
"""

import collections

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.inside_tvm.pad_channels import pad_channels, padded_channels

RANDOM = np.random.default_rng(3)


def weight(name, *shape):
    values = RANDOM.standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(np.abs(values) + 0.5 if name.startswith("var") else values, name)


def model_of(nodes, weights, outputs, opset=13, channels=3):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, 9, 9])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs], weights)
    # Fills in the shapes of outputs and notes those of all other tensors, as exporters do.
    return onnx.shape_inference.infer_shapes(helper.make_model(
        graph, ir_version=7, opset_imports=[helper.make_opsetid("", opset)]))


def outputs_of(model):
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    shape = session.get_inputs()[0].shape
    values = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    return session.run(None, {session.get_inputs()[0].name: values})


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
    nodes, weights = [], []

    def layer(source, name, shape, group=1, relu=True):
        weights.append(weight(name + ".w", *shape))
        nodes.append(helper.make_node("Conv", [source, name + ".w"], [name], group=group,
                                      pads=[shape[2] // 2] * 4))
        parts = [f"{part}.{name}" for part in ("scale", "bias", "mean", "var")]
        weights.extend(weight(part, shape[0]) for part in parts)
        nodes.append(helper.make_node("BatchNormalization", [name, *parts], [name + ".n"]))
        if relu:
            nodes.append(helper.make_node("Relu", [name + ".n"], [name + ".r"]))
        return name + (".r" if relu else ".n")

    first = layer("x", "a", (58, 3, 1, 1))
    depthwise = layer(first, "b", (58, 1, 3, 3), group=58, relu=False)
    last = layer(depthwise, "c", (58, 58, 1, 1))
    nodes.append(helper.make_node("Concat", [last, first], ["y"], axis=1))
    return model_of(nodes, weights, ["y"], opset)


@pytest.mark.parametrize("opset", [9, 13])
def test_a_chain_is_padded_as_a_whole(opset):
    model, count = check(unit(opset))
    assert count == 3
    assert shapes(model) == [(64, 3, 1, 1), (64, 1, 3, 3), (64, 64, 1, 1)]
    # Of the two tensors that are concatenated; none in the chain.
    assert slices(model) == 2


def test_eight_lanes():
    assert check(unit(), lanes=8)[1] == 3
    model = model_of([helper.make_node("Conv", ["x", "w"], ["a"]),
                      helper.make_node("Relu", ["a"], ["y"])], [weight("w", 40, 3, 1, 1)], ["y"])
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
    weights = [weight("w", 58, 3, 1, 1), weight("v", 58, 58, 1, 1), weight("b", 58)]
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["r"]),
             helper.make_node("Conv", ["r", "v", "b"], ["y"])]
    model, count = check(model_of(nodes, weights, ["y"]))
    assert count == 1 and shapes(model) == [(64, 3, 1, 1), (58, 64, 1, 1)]
    # Here the Relu's result is one as well, so it gets the real channels only.
    model, count = check(model_of(nodes, weights, ["y", "r"]))
    assert count == 1 and slices(model) == 1


def test_values_that_depend_on_all_channels_see_the_real_ones():
    weights = [weight("w", 58, 3, 1, 1), weight("m", 58, 7)]
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]),
             helper.make_node("Relu", ["a"], ["r"]),
             helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2]),
             helper.make_node("GlobalAveragePool", ["p"], ["g"]),
             helper.make_node("Flatten", ["g"], ["f"]),
             helper.make_node("MatMul", ["f", "m"], ["l"]),
             helper.make_node("ReduceMean", ["r"], ["mean"], axes=[1]),
             helper.make_node("Softmax", ["r"], ["s"], axis=1)]
    model, count = check(model_of(nodes, weights, ["l", "mean", "s"]))
    assert count == 1
    # One for the pooled tensor, one that the mean and the softmax share.
    assert slices(model) == 2


def test_grouped_convolutions_see_the_real_channels():
    weights = [weight("w", 58, 3, 1, 1), weight("v", 60, 29, 1, 1), weight("u", 116, 1, 3, 3)]
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]),
             helper.make_node("Conv", ["a", "v"], ["y"], group=2),
             # A depthwise convolution with two results for each channel.
             helper.make_node("Conv", ["a", "u"], ["z"], group=58),
             helper.make_node("Relu", ["y"], ["y2"]), helper.make_node("Relu", ["z"], ["z2"])]
    model, count = check(model_of(nodes, weights, ["y2", "z2"]))
    assert count == 1 and slices(model) == 1
    assert collections.Counter(shapes(model))[(60, 29, 1, 1)] == 1


def test_shared_weights_stay_as_they_are():
    weights = [weight("w", 58, 3, 1, 1), weight("v", 58, 58, 1, 1)]
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]),
             helper.make_node("Conv", ["a", "v"], ["b"]), helper.make_node("Relu", ["b"], ["y"]),
             helper.make_node("Reshape", ["v", "shape"], ["flat"])]
    weights.append(numpy_helper.from_array(np.array([58, 58], np.int64), "shape"))
    model, count = check(model_of(nodes, weights, ["y", "flat"]))
    assert count == 2
    assert shapes(model) == [(64, 3, 1, 1), (64, 64, 1, 1)]


def test_weights_that_are_computed_are_left_alone():
    nodes = [helper.make_node("Relu", ["w"], ["w2"]), helper.make_node("Conv", ["x", "w2"], ["a"]),
             helper.make_node("Relu", ["a"], ["y"])]
    assert check(model_of(nodes, [weight("w", 58, 3, 1, 1)], ["y"]))[1] == 0
