"""Operators of com.microsoft that are several of ONNX's in one, that ONNX did not have at the time,
or with their channels last."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from repaired_models import check, matches, model_of, noise, one, operators, repaired, run, whole

from run_model_tools.errors import ToolError

MICROSOFT = "com.microsoft"


@pytest.mark.parametrize("op, arrays, attrs", [
    ("Gelu", [noise(2, 5)], {}), ("FastGelu", [noise(2, 5), noise(5)], {}),
    ("BiasGelu", [noise(2, 5), noise(5)], {}), ("QuickGelu", [noise(2, 5)], {"alpha": 1.5}),
    ("FusedMatMul", [noise(2, 3, 4), noise(2, 5, 4)], {"transB": 1, "alpha": 0.5}),
    ("FusedConv", [noise(1, 2, 5, 5), noise(3, 2, 3, 3), noise(3)], {"activation": "Relu"}),
    ("SkipLayerNormalization", [noise(2, 3, 8), noise(2, 3, 8), noise(8), noise(8), noise(8)],
     {"epsilon": 1e-5})])
def test_onnx_runtimes_own_operators(op, arrays, attrs):
    model, inputs = one(op, arrays, domain=MICROSOFT, **attrs)
    (want,), (have,) = run(model, inputs), run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)


def test_outputs_that_nothing_reads_are_none_whatever_they_are_named():
    """As onnxscript's optimize_for_ort names the mean and the deviation of every node."""
    nodes = [helper.make_node(op, [x, *more], [f"{op}{i}" for i in range(4)][:outputs],
                              domain=domain, epsilon=1e-5) for op, x, more, outputs, domain in (
        ("SkipLayerNormalization", "i0", ["i1", "scale", "shift"], 4, MICROSOFT),
        ("LayerNormalization", "SkipLayerNormalization0", ["scale", "shift"], 3, ""))]
    nodes.append(helper.make_node(
        "Sub", ["LayerNormalization0", "SkipLayerNormalization3"], ["y"]))
    inputs = {"i0": noise(2, 3, 8), "i1": noise(2, 3, 8)}
    model = model_of(nodes, {name: (TensorProto.FLOAT, x.shape) for name, x in inputs.items()},
                     {"y": TensorProto.FLOAT}, 18, {"scale": noise(8), "shift": noise(8)},
                     imports=[helper.make_opsetid(MICROSOFT, 1)])
    assert operators(check(model, inputs)).count("LayerNormalization") == 2


@pytest.mark.parametrize("first, rows", [(0, 0), (1, 0), (1, 1)])
def test_products_of_operands_whose_rows_come_before_the_batch(first, rows):
    shape = {(0, 0): (2, 3, 5, 4), (1, 0): (5, 2, 3, 4), (1, 1): (4, 2, 3, 5)}[first, rows]
    matches("FusedMatMul", [noise(*shape), noise(4, 2, 3, 6)], domain=MICROSOFT,
            transBatchA=first, transA=rows, transBatchB=1, alpha=0.5)


@pytest.mark.parametrize("activation, given", [
    ("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Tanh", {}),
    ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4})])
def test_products_with_an_activation(activation, given):
    matches("FusedGemm", [noise(7, 3), noise(5, 7), noise(5)], domain=MICROSOFT, transA=1,
            transB=1, alpha=0.5, beta=2.0, activation=activation, **given)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_inverses(n):
    """Also of a matrix whose rows have to change their places, and of an almost singular one."""
    x = noise(2, 3, n, n)
    x[0, 0] = np.eye(n)[np.roll(np.arange(n), 1)] * 2
    x[0, 1] = np.diag([1e-4] * (n - 1) + [1e4])
    model, inputs = one("Inverse", [x], domain=MICROSOFT)
    (want,), (have,) = run(model, inputs), run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(have, np.linalg.inv(x.astype(float)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances(metric):
    matches("CDist", [noise(4, 3), noise(5, 4)[:, 1:].copy()], domain=MICROSOFT, metric=metric)


@pytest.mark.parametrize("op, arrays, attrs", [
    ("Trilu", [noise(2, 4, 5)], {"upper": 0}),
    ("Trilu", [noise(2, 4, 5), np.array(1)], {}),
    ("GatherND", [noise(3, 4), np.array([[0, 1], [2, 3]])], {}),
    ("Pad", [noise(2, 3), np.array([1, 0, 0, 2]), np.array([0.5], np.float32)], {}),
    ("GridSample", [noise(1, 2, 5, 6), noise(1, 3, 4, 2) * 0.6],
     {"mode": "bilinear", "padding_mode": "border", "align_corners": 1}),
    ("TransposeMatMul", [noise(2, 5, 4), noise(5, 6)], {"transA": 1, "alpha": 2.0})])
def test_operators_that_onnx_did_not_have(op, arrays, attrs):
    constants = () if op in ("GridSample", "TransposeMatMul") else range(1, len(arrays))
    matches(op, arrays, domain=MICROSOFT, constants=constants, **attrs)


def test_new_axes():
    """On which ONNX Runtime 1.20 crashes."""
    x = noise(3, 4)
    model, inputs = one("ExpandDims", [x, np.array(1, np.int32)], domain=MICROSOFT, constants=(1,))
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_array_equal(have, x[:, None])


def test_pooling_of_channels_at_the_end():
    x = np.random.default_rng(2).integers(0, 255, (1, 9, 7, 3)).astype(np.uint8)
    for attrs in ({"pads": [1, 0, 1, 1]}, {"auto_pad": "SAME_UPPER"}):
        matches("NhwcMaxPool", [x], domain=MICROSOFT, kernel_shape=[3, 2], strides=[2, 2], **attrs)


def test_maxima_with_their_channels_last():
    for sides in ((6, 5), (6, 5, 4)):
        matches("NhwcMaxPool", [whole(np.uint8, 1, *sides, 3)], domain=MICROSOFT,
                kernel_shape=[2] * len(sides), strides=[2] * len(sides))


def test_what_was_optimised_for_one_cpu_is_refused_with_what_to_do():
    model, inputs = one("Conv", [noise(1, 8, 5, 5), noise(8, 8, 3, 3)], domain=f"{MICROSOFT}.nchwc")
    with pytest.raises(ToolError, match="one kind of CPU.*ORT_ENABLE_EXTENDED"):
        repaired(model, inputs)
