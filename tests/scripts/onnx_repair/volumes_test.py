"""Values over three axes, whose planes go on as pictures, held to ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from repaired_models import FLOAT, check, model_of, noise, repaired, run

SHAPE = (4, 7, 6, 5)
"""Channels, depth, height, width of what the networks begin with."""


class Volumes:
    """A network of volumes; each operator gives the name of its result."""

    def __init__(self, batch=1, channels=SHAPE[0]):
        self.nodes, self.fixed, self.batch = [], {}, batch
        self.start = self.conv("x", channels, pads=[1] * 6)

    def op(self, op, inputs, outputs=1, **attrs):
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attrs))
        return names if outputs > 1 else names[0]

    def fix(self, array):
        self.fixed[f"c{len(self.fixed)}"] = np.asarray(array)
        return f"c{len(self.fixed) - 1}"

    def conv(self, x, outputs=4, inputs=4, kernel=(3, 3, 3), **attrs):
        group = attrs.get("group", 1)
        weight = noise(outputs, inputs // group, *kernel) / np.sqrt(inputs * np.prod(kernel))
        return self.op("Conv", [x, self.fix(weight.astype(np.float32)), self.fix(noise(outputs))],
                       **attrs)

    def check(self, *ends, opset=18):
        """The operators of the repaired network, whose results are ONNX Runtime's."""
        shape = (self.batch, *SHAPE)
        model = model_of(self.nodes, {"x": (FLOAT, shape)}, dict.fromkeys(ends, FLOAT), opset,
                         self.fixed)
        for value in model.graph.output:
            value.type.Clear()
        made = check(model, {"x": noise(*shape)})
        return [node.op_type for node in made.graph.node]


def moved(operators):
    """How often numbers are moved to another order."""
    return operators.count("Transpose")


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("attrs", [
    {"pads": [1, 1, 0, 2, 1, 1], "strides": [2, 1, 2]}, {"dilations": [2, 1, 2]},
    {"auto_pad": "SAME_UPPER", "strides": [1, 2, 1]}, {"group": 4, "pads": [1] * 6},
    {"group": 2, "strides": [3, 2, 1]}, {"kernel": (3, 1, 1), "pads": [1, 0, 0, 1, 0, 0]},
    {"kernel": (1, 3, 3)}, {"kernel": (7, 1, 1), "pads": [6, 0, 0, 6, 0, 0], "strides": [7, 1, 1]}])
def test_convolutions(attrs, batch):
    n = Volumes(batch)
    assert moved(n.check(n.conv(n.start, **attrs))) == 2


def test_planes_of_padding_are_left_out():
    """Of a kernel that reaches over all planes there are at the ends."""
    n = Volumes()
    flat = n.conv(n.start, kernel=(7, 1, 1))
    operators = n.check(n.conv(flat, kernel=(3, 1, 1), pads=[1, 0, 0, 1, 0, 0]))
    assert operators.count("Concat") == 2 and operators.count("Pad") == 2


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kernel, attrs", [
    ((2, 2, 2), {"strides": [2, 2, 2]}), ((4, 4, 4), {"strides": [2, 2, 2], "pads": [1] * 6}),
    ((3, 3, 3), {"strides": [2, 2, 2], "pads": [1] * 6, "output_padding": [1] * 3}),
    ((2, 1, 3), {"strides": [3, 1, 2]}), ((3, 2, 2), {"dilations": [2, 1, 1]}),
    ((5, 1, 1), {"strides": [3, 1, 1], "pads": [4, 0, 0, 2, 0, 0]})])
def test_transposed_convolutions(kernel, attrs, batch):
    n = Volumes(batch)
    y = n.op("ConvTranspose", [n.start, n.fix(noise(4, 6, *kernel)), n.fix(noise(6))], **attrs)
    n.check(n.conv(y, inputs=6, kernel=(1, 1, 1)))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("op, attrs", [
    ("MaxPool", {"kernel_shape": [3, 3, 3], "strides": [2, 2, 2], "pads": [1] * 6}),
    ("MaxPool", {"kernel_shape": [2, 3, 2], "strides": [2, 1, 2], "ceil_mode": 1}),
    ("MaxPool", {"kernel_shape": [3, 1, 1], "dilations": [2, 1, 1]}),
    ("MaxPool", {"kernel_shape": [1, 2, 2], "strides": [1, 2, 2]}),
    ("AveragePool", {"kernel_shape": [3, 2, 2], "strides": [2, 2, 1]}),
    ("AveragePool", {"kernel_shape": [3, 3, 3], "pads": [1] * 6}),
    ("GlobalAveragePool", {}), ("GlobalMaxPool", {})])
def test_poolings(op, attrs, batch):
    n = Volumes(batch)
    n.check(n.conv(n.op(op, [n.start], **attrs), kernel=(1, 1, 1)))


@pytest.mark.parametrize("batch", [1, 2])
def test_what_goes_number_by_number_or_by_channels_stays_in_pictures(batch):
    n = Volumes(batch)
    x = n.op("PRelu", [n.start, n.fix(noise(4, 1, 1, 1))])
    y = n.op("Add", [n.op("Mul", [x, n.fix(noise(1, 4, 1, 1, 1))]), n.fix(np.float32(2))])
    y = n.op("Clip", [y, n.fix(np.float32(0)), n.fix(np.float32(3))])
    y = n.op("BatchNormalization", [y, *(n.fix(noise(4)) for _ in range(3)),
                                    n.fix(np.abs(noise(4)) + 1)])
    first, second = n.op("Split", [n.op("Concat", [x, y], axis=1), n.fix(np.array([3, 5]))], 2,
                         axis=-4)
    end = n.op("Concat", [n.conv(first, inputs=3), n.conv(second, inputs=5)], axis=1)
    assert moved(n.check(n.op("Sigmoid", [end]))) == 2


@pytest.mark.parametrize("batch, moves", [(1, 2), (2, None)])
def test_gates_of_channels(batch, moves):
    """Squeeze and excite: numbers of each volume's channels, for all of its planes."""
    n = Volumes(batch)
    gate = n.conv(n.op("GlobalAveragePool", [n.start]), kernel=(1, 1, 1))
    y = n.op("Mul", [n.op("Sigmoid", [gate]), n.start])
    operators = n.check(n.conv(y))
    assert moves is None or moved(operators) == moves


def test_gates_of_one_volume_for_several_others():
    n = Volumes()
    gate = n.conv(n.op("GlobalAveragePool", [n.start]), kernel=(1, 1, 1))
    n.check(n.conv(n.op("Mul", [gate, n.fix(noise(3, 4, 1, 6, 5))]), kernel=(1, 1, 1)))


def test_operands_that_are_spread_along_planes_see_volumes():
    n = Volumes()
    y = n.op("Add", [n.start, n.fix(noise(1, 1, SHAPE[1], 1, 1))])
    y = n.op("Mul", [y, n.fix(noise(*SHAPE[1:]))])
    n.check(n.conv(n.op("Concat", [y, "x"], axis=1), inputs=8), n.op("Softmax", [y], axis=2),
            n.op("Concat", [y, "x"], axis=2))


def test_normalisations_that_train_give_their_statistics():
    n = Volumes(2)
    given = [n.fix(np.abs(noise(4)) + 1) for _ in range(4)]
    y, mean, variance = n.op("BatchNormalization", [n.start, *given], 3, training_mode=1)
    n.check(n.conv(y), mean, variance)


def test_operands_that_begin_at_an_axis():
    """As before opset 7, which ONNX Runtime no longer runs: like others of the same numbers."""
    results = []
    for opset, first, second, attrs in ((6, (4,), (7, 6), {"broadcast": 1}),
                                        (18, (4, 1, 1, 1), (7, 6, 1), {})):
        n = Volumes()
        axes = ({"axis": 1}, {"axis": 2}) if attrs else ({}, {})
        y = n.op("Add", [n.start, n.fix(noise(*first))], **attrs, **axes[0])
        y = n.op("Mul", [y, n.fix(noise(*second))], **attrs, **axes[1])
        model = model_of(n.nodes, {"x": (FLOAT, (1, *SHAPE))}, {y: FLOAT}, opset, n.fixed)
        model.graph.output[0].type.Clear()
        given = {"x": noise(1, *SHAPE)}
        results += run(repaired(model, given) if attrs else model, given)
    np.testing.assert_allclose(*results, rtol=0, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("kind", ["instance", "groups", "groups as instances"])
def test_normalisations(kind, batch):
    n = Volumes(batch)
    if kind == "instance":
        y = n.op("InstanceNormalization", [n.start, n.fix(noise(4)), n.fix(noise(4))])
    elif kind == "groups":
        y = n.op("GroupNormalization", [n.start, n.fix(noise(4)), n.fix(noise(4))], num_groups=2,
                 epsilon=1e-3)
    else:
        flat = n.op("Reshape", [n.start, n.fix(np.array([0, 2, -1]))])
        flat = n.op("InstanceNormalization", [flat, n.fix(noise(2)), n.fix(noise(2))])
        y = n.op("Reshape", [flat, n.fix(np.array([batch, *SHAPE]))])
        y = n.op("Mul", [y, n.fix(noise(4, 1, 1, 1))])
    assert moved(n.check(n.conv(y), opset=21 if kind == "groups" else 18)) == 2


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("mode, scales, coordinates, moves", [
    ("linear", (2, 2, 2), "half_pixel", 2), ("linear", (3, 1, 2), "half_pixel", 2),
    ("linear", (2, 2, 1), "align_corners", 4), ("nearest", (2, 2, 2), "asymmetric", 2),
    ("nearest", (3, 1, 1), "asymmetric", 2), ("linear", (1, 2, 2), "half_pixel", 2),
    ("linear", (1.5, 1, 1), "half_pixel", 4)])
def test_resizing(mode, scales, coordinates, moves, batch):
    n = Volumes(batch)
    y = n.op("Resize", [n.start, "", n.fix(np.array([1, 1, *scales], np.float32))], mode=mode,
             coordinate_transformation_mode=coordinates, nearest_mode="floor")
    assert moved(n.check(n.conv(y))) == moves


@pytest.mark.parametrize("batch, moves", [(1, 2), (2, 4)])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_padding(mode, batch, moves):
    n = Volumes(batch)
    pads = np.array([0, 0, 1, 2, 0, 0, 0, 2, 1, 1])
    y = n.op("Pad", [n.start, n.fix(pads), n.fix(np.float32(3))], mode=mode)
    assert moved(n.check(n.conv(y))) == moves


@pytest.mark.parametrize("group, scales", [(1, 6), (4, 8), (1, 1)])
def test_quantised_weights_stay_so(group, scales):
    n = Volumes()
    grid = [n.fix(np.float32(0.05)), n.fix(np.uint8(128))]
    y = n.op("DequantizeLinear", [n.op("QuantizeLinear", [n.start, *grid]), *grid])
    outputs = 8 if group == 4 else 6
    weight = np.random.default_rng(5).integers(-127, 128, (outputs, 4 // group, 3, 3, 3), np.int8)
    by = [n.fix(np.full(scales, 0.01, np.float32) if scales > 1 else np.float32(0.01)),
          n.fix(np.zeros(scales, np.int8) if scales > 1 else np.int8(0))]
    w = n.op("DequantizeLinear", [n.fix(weight), *by], axis=0)
    operators = n.check(n.op("Conv", [y, w], group=group, pads=[1] * 6))
    assert moved(operators) == 2
    assert operators.count("DequantizeLinear") == 1 + (1 if group == 1 else 3)


def test_volumes_of_one_plane_are_pictures():
    n = Volumes()
    y = n.conv(n.start, kernel=(7, 1, 1))
    operators = n.check(n.op("Relu", [n.conv(y, kernel=(1, 3, 3))]))
    assert moved(operators) == 1


def test_half_precision():
    """Its statistics are of float32."""
    n = Volumes()
    n.nodes.insert(0, helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16))
    n.nodes[1].input[0] = "h"
    y = n.op("InstanceNormalization", [n.start, n.fix(noise(4)), n.fix(noise(4))])
    n.nodes.append(helper.make_node("Cast", [y], ["end"], to=FLOAT))
    fixed = {name: array.astype(np.float16) for name, array in n.fixed.items()}
    model = model_of(n.nodes, {"x": (FLOAT, (1, *SHAPE))}, {"end": FLOAT}, 18, fixed)
    model.graph.output[0].type.Clear()
    given = {"x": noise(1, *SHAPE)}
    (want,), (have,) = run(model, given), run(repaired(model, given), given)
    np.testing.assert_allclose(have, want, rtol=0, atol=2e-2)
