"""Rules for operators that TVM's importer takes wrongly or not at all, held to ONNX Runtime."""

from __future__ import annotations

import math

import numpy as np
import onnx
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
from run_model_tools.onnx_repair.reference import reference_outputs
from run_model_tools.onnx_repair.walk import RELAX, RELAY


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("extra", ["", "lengths", "clip", "activations"])
@pytest.mark.parametrize("op, gates", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_networks(op, gates, direction, extra):
    """The importer runs "reverse" forwards, and forgets lengths, clips and activations."""
    count, hidden, steps, batch = 1 + (direction == "bidirectional"), 4, 5, 3
    acts = {"RNN": ["LeakyRelu"], "GRU": ["HardSigmoid", "Softsign"],
            "LSTM": ["HardSigmoid", "Relu", "Elu"]}[op]
    attrs = {"clip": {"clip": 0.3}, "activations": {"activations": acts * count}}.get(extra, {})
    if extra == "activations" and op == "RNN":
        attrs["activation_alpha"] = [0.2] * count
    if op == "GRU":
        attrs["linear_before_reset"] = 1
    arrays = [noise(steps, batch, 2), noise(count, gates * hidden, 2),
              noise(count, gates * hidden, hidden), noise(count, 2 * gates * hidden),
              np.array([5, 2, 3], np.int32) if extra == "lengths" else None,
              noise(count, batch, hidden)]
    if op == "LSTM":
        arrays += [noise(count, batch, hidden), noise(count, 3 * hidden)]
    matches(op, arrays, outputs=3 if op == "LSTM" else 2, hidden_size=hidden,
            direction=direction, **attrs)


@pytest.mark.parametrize("name, at, shape", [
    ("X", 0, (5, 3)), ("W", 1, (1, 16, 3)), ("W", 1, (2, 16, 2)), ("R", 2, (16, 4)),
    ("R", 2, (1, 16, 5)), ("B", 3, (1, 16)), ("sequence_lens", 4, (2,)),
    ("initial_h", 5, (1, 1, 4)), ("initial_c", 6, (1, 3, 8)), ("P", 7, (1, 16))])
def test_recurrent_networks_whose_shapes_do_not_fit(name, at, shape):
    """As a projection after PyTorch's LSTM is exported; ONNX Runtime refuses or crashes."""
    shapes = [(5, 3, 2), (1, 16, 2), (1, 16, 4), (1, 32), (3,), (1, 3, 4), (1, 3, 4), (1, 12)]
    shapes[at] = shape
    arrays = [noise(*s) if i != 4 else np.full(s, 5, np.int32) for i, s in enumerate(shapes)]
    model, inputs = one("LSTM", arrays, outputs=3, hidden_size=4)
    assert f"its {name} has the shape {list(shape)}, and " in refusal(model, inputs)


@pytest.mark.parametrize("equation, shapes", [
    ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ii->i", [(4, 4)]), ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 2)]), ("ij->ji", [(2, 3)]),
    ("i,j->ij", [(3,), (4,)]), ("bij->b", [(2, 3, 4)])])
def test_einsums(equation, shapes):
    matches("Einsum", [noise(*shape) for shape in shapes], equation=equation)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grid_samples(mode, padding, corners):
    sampled = one("GridSample", [noise(2, 3, 6, 5), noise(2, 5, 4, 2) * 1.2], opset=20, mode=mode,
                  padding_mode=padding, align_corners=corners)
    for importer in (RELAY, RELAX):
        check(*sampled, importer=importer)


def test_boxes_are_sampled():
    boxes = np.array([[0.5, 1, 9, 7], [-3, 2, 4, 14], [2, 2, 2.5, 2.5]], np.float32)
    for mode in ("half_pixel", "output_half_pixel"):
        matches("RoiAlign", [noise(2, 3, 10, 12), boxes, np.array([0, 1, 1])],
                coordinate_transformation_mode=mode, output_height=3, output_width=2,
                sampling_ratio=2, spatial_scale=0.8)


@pytest.mark.parametrize("is_node", [False, True])
def test_what_is_quantized_of_float16_is_rounded(tmp_path, is_node):
    """ONNX Runtime 1.20 cuts off its fractions."""
    x, step = noise(3, 50).astype(np.float16), np.float16(0.03)
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])]
    constants = {"z": np.int8(3)}
    if is_node:
        nodes.insert(0, helper.make_node("Constant", [], ["s"],
                                         value=helper.make_tensor("s", 10, [], [step])))
    else:
        constants["s"] = step
    model = model_of(nodes, {"x": (TensorProto.FLOAT16, x.shape)}, {"y": TensorProto.INT8}, 19,
                     constants)
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path))
    (got,), who = reference_outputs(path, {"x": x})
    assert who == "onnxruntime"
    want = np.rint(x.astype(np.float32) / np.float32(step)) + 3
    np.testing.assert_array_equal(got, want.clip(-128, 127))


def test_what_a_pad_writes_may_be_a_quantised_constant():
    """As ONNX Runtime's quantizer writes it: how much is padded stays as it was."""
    nodes = [helper.make_node("DequantizeLinear", ["bytes", "scale", "zero"], ["value"]),
             helper.make_node("Pad", ["x", "pads", "value"], ["y"])]
    held = {"bytes": np.array(90, np.uint8), "scale": np.array(0.25, np.float32),
            "zero": np.array(30, np.uint8), "pads": np.array([0, 1, 2, 0])}
    x = noise(2, 3)
    model = model_of(nodes, {"x": (FLOAT, x.shape)}, {"y": FLOAT}, 17, held)
    assert run(check(model, {"x": x}), {"x": x})[0][0, 0] == 15


@pytest.mark.parametrize("op", ["Bernoulli", "RandomNormalLike", "RandomUniformLike"])
def test_random_numbers_are_refused_as_such(op):
    model, inputs = one(op, [noise(2, 3)])
    with pytest.raises(ToolError, match="its result is random.*make the noise an input"):
        repaired(model, inputs)


def test_a_grid_may_be_of_another_type():
    """As Mask2Former's deformable attention computes its places; ONNX Runtime wants one type."""
    x, grid = noise(1, 2, 5, 4), noise(1, 3, 3, 2)
    model, inputs = one("GridSample", [x, grid.astype(np.float64)])
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, run(one("GridSample", [x, grid])[0],
                                         {"i0": x, "i1": grid})[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op, other", [
    ("Add", noise(2, 3).astype(np.float64)), ("Add", noise(2, 4)), ("LessOrEqual", noise(4)),
    ("MatMul", noise(2, 3)), ("Expand", np.array([2, 4]))])
def test_what_does_not_fit_together_is_refused(op, other):
    model, inputs = one(op, [noise(2, 3), other], constants=[1] if op == "Expand" else [])
    with pytest.raises(ToolError, match=rf"{op}, opset 18\): its inputs do not fit together"):
        repaired(model, inputs)


def test_a_model_that_one_of_its_open_extents_makes_invalid():
    """As Hummingbird writes trees: where a batch of one is squeezed, too, two axes are missed."""
    model, inputs = one("Squeeze", [noise(3, 1)])
    model.graph.node[0].output[0] = "flat"
    model.graph.node.append(helper.make_node("Transpose", ["flat"], ["o0"], perm=[0]))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    name = model.graph.input[0].name
    with pytest.raises(ToolError, match=r"orders axes as \[0\], and its input has 0 of them.*"
                       rf"taken with '{name}' as \[1, 1\].*--shape {name}:D0"):
        repaired(model, {name: noise(1, 1)})
    have, = run(repaired(model, inputs), inputs)
    np.testing.assert_array_equal(have, inputs[name][:, 0])


def test_axes_that_a_transpose_has_not():
    """ONNX Runtime refuses them, too; counted from the other end they would be an order."""
    model, inputs = one("Transpose", [noise(2, 3)], perm=[0, 3])
    with pytest.raises(ToolError, match=r"orders axes as \[0, 3\], and its input has 2 of them"):
        repaired(model, inputs)


@pytest.mark.parametrize("kept, length", [(5, 8), (5, None), (4, 7), (7, 8), (3, 8)])
def test_real_signals_out_of_half_of_their_frequencies(kept, length):
    """ONNX Runtime 1.20 does not know that; of more frequencies than there are, the rest is left
    out, and less are filled with zeros."""
    x = noise(2, kept, 3, 2)
    model, inputs = one("DFT", [x, None if length is None else np.array(length), np.array(1)],
                        opset=20, constants=(1, 2) if length else (2,), inverse=1, onesided=1)
    (have,) = run(repaired(model, inputs), inputs)
    want = np.fft.irfft(x[..., 0] + 1j * x[..., 1], length, axis=1)[..., None]
    assert have.shape == want.shape
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [-1, 1])
def test_best_of_many(largest, axis):
    """With equal values, of which the first counts; no sorting function is needed."""
    x = np.random.default_rng(6).integers(0, 6, (2, 7, 9)).astype(np.float32)
    made = matches("TopK", [x, np.array([4])], outputs=2, constants=(1,), axis=axis,
                   largest=largest)
    assert "TopK" not in {node.op_type for node in made.graph.node}


@pytest.mark.parametrize("op, arrays, attrs", [
    ("MatMul", [noise(2, 3, 0), noise(0, 4)], {}),
    ("Gemm", [noise(3, 0), noise(0, 4), noise(4)], {}),
    ("Hardmax", [noise(2, 0, 4)], {}),
    ("ScatterElements", [noise(2, 3), np.zeros((0, 3), np.int64), noise(0, 3)], {}),
    ("ScatterND", [noise(2, 3), np.zeros((0, 1), np.int64), noise(0, 3)], {})])
def test_operators_on_nothing(op, arrays, attrs):
    matches(op, arrays, **attrs,
            constants=[n for n, a in enumerate(arrays) if a.dtype == np.int64])


@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_whole_numbers_divided_by_a_constant_0_are_refused(op):
    model, inputs = one(op, [np.arange(4), np.array([3, 0, 1, 2])], constants=[1])
    assert f"({op}, opset 18): it divides whole numbers by 0; correct the constant" in (
        refusal(model, inputs))
    model, inputs = one("Div", [noise(4), np.zeros(4, np.float32)], constants=[1])
    assert "Div" in operators(repaired(model, inputs))


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8])
def test_determinants(n):
    """Also of a matrix whose rows have to change their places, and of a singular one."""
    x = noise(2, 3, n, n)
    x[0, 0] = np.eye(n)[np.roll(np.arange(n), 1)] * 2
    x[0, 1, :, 0] = 0
    model, inputs = one("Det", [x])
    (want,), (have,) = run(model, inputs), run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(have, np.linalg.det(x.astype(float)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("zero", [np.int16(-7), np.uint16(32768), np.uint16(0)])
def test_pairs_of_sixteen_bits_round_in_float32(zero):
    """Without the casts to whole numbers between, which take long to compile."""
    x = noise(3, 50) * 80
    pair = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    model = model_of(pair, {"x": (TensorProto.FLOAT, x.shape)}, {"y": FLOAT}, 21,
                     {"s": np.float32(0.003), "z": zero})
    ours = repaired(model, {})
    assert "Cast" not in operators(ours)
    (want,), (have,) = run(model, {"x": x}), run(ours, {"x": x})
    np.testing.assert_allclose(have, want, rtol=1e-6, atol=0)
    # What is cast on the way to fewer bits is not what was rounded.
    pair.insert(1, helper.make_node("Cast", ["q"], ["b"], to=TensorProto.INT8))
    pair.insert(2, helper.make_node("Cast", ["b"], ["w"], to=int(
        helper.np_dtype_to_tensor_dtype(zero.dtype))))
    pair[3].input[0] = "w"
    model = model_of(pair, {"x": (TensorProto.FLOAT, x.shape)}, {"y": FLOAT}, 21,
                     {"s": np.float32(0.003), "z": zero})
    (want,), (have,) = run(model, {"x": x}), run(repaired(model, {}), {"x": x})
    np.testing.assert_allclose(have, want, rtol=1e-6, atol=0)


def test_what_tensorflow_s_converter_leaves_as_it_is():
    """tf2onnx writes TensorFlow's Erfc for Keras' GELU, and nobody else knows it."""
    x = np.float32([-3, -0.5, 0, 0.7, 2])
    model, inputs = one("Erfc", [x])
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, [math.erfc(float(n)) for n in x], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("op, domain", [("Inverse", "com.microsoft"), ("Det", "")])
def test_large_matrices_are_refused(op, domain):
    for shape, said in (((1, 40, 40), "40x40 matrices, and 32x32"), ((2, 3), "are not square")):
        model, inputs = one(op, [noise(*shape)], domain=domain)
        with pytest.raises(ToolError, match=said):
            repaired(model, inputs)


@pytest.mark.parametrize("constants", [(), (0,), (1,), (2,)])
def test_truth_values_are_chosen_as_onnxruntime_can(constants):
    """It has no Where of them, as masks that are filled become."""
    condition = np.array([[True], [False], [True], [False]])
    x, y = noise(4, 5) > 0, noise(5) > 0
    model, inputs = one("Where", [condition, x, y], constants=constants)
    have, = run(repaired(model, inputs), inputs)
    assert have.dtype == bool
    np.testing.assert_array_equal(have, np.where(condition, x, y))


@pytest.mark.parametrize("sides", [(), (6, 7)])
def test_normalised_batches_of_open_sizes_are_products_and_sums(sides):
    """Which become part of what computes x."""
    given = [noise(2, 5, *sides), noise(5), noise(5) * 2, noise(5) + 1, np.abs(noise(5)) + 0.01]
    model, inputs = one("BatchNormalization", given, constants=(1, 2, 3, 4), epsilon=1e-3)
    assert operators(check(model, inputs, is_open=True)) == ["Mul", "Add"]
