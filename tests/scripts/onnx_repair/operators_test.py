"""Rules for operators that TVM's importer takes wrongly or not at all, held to ONNX Runtime."""

from __future__ import annotations

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
from run_model_tools.onnx_repair import onnxruntime_process
from run_model_tools.onnx_repair.reference import reference_outputs
from run_model_tools.onnx_repair.walk import RELAX, RELAY

UINT8 = TensorProto.UINT8


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


@pytest.mark.parametrize("op, arrays, attrs", [
    ("Gelu", [noise(2, 5)], {}), ("FastGelu", [noise(2, 5), noise(5)], {}),
    ("BiasGelu", [noise(2, 5), noise(5)], {}), ("QuickGelu", [noise(2, 5)], {"alpha": 1.5}),
    ("FusedMatMul", [noise(2, 3, 4), noise(2, 5, 4)], {"transB": 1, "alpha": 0.5}),
    ("FusedConv", [noise(1, 2, 5, 5), noise(3, 2, 3, 3), noise(3)], {"activation": "Relu"}),
    ("SkipLayerNormalization", [noise(2, 3, 8), noise(2, 3, 8), noise(8), noise(8), noise(8)],
     {"epsilon": 1e-5})])
def test_onnx_runtimes_own_operators(op, arrays, attrs):
    model, inputs = one(op, arrays, domain="com.microsoft", **attrs)
    (want,), (have,) = run(model, inputs), run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_quantised_sums(op):
    random = np.random.default_rng(5)
    a, b = (random.integers(0, 256, (2, 9), np.uint8) for _ in "ab")
    scales = [np.array(s, np.float32) for s in (0.02, 0.03, 0.05)]
    zero = np.array(7, np.uint8)
    model, inputs = one(op, [a, scales[0], zero, b, scales[1], zero, scales[2], zero],
                        domain="com.microsoft", constants=(1, 2, 4, 5, 6, 7))
    (want,), (have,) = run(model, inputs), run(repaired(model, inputs), inputs)
    assert np.abs(want.astype(int) - have).max() <= 1


def whole(dtype, *shape):
    kind = np.iinfo(dtype)
    return np.random.default_rng(6).integers(kind.min, kind.max + 1, shape, dtype)


@pytest.mark.parametrize("channels, zeros, group", [
    (8, (), 1), (128, (), 1), (600, (16,), 1), (400, (), 2)])
def test_convolutions_of_bytes(channels, zeros, group):
    """Exactly, also where sums are larger than float32's whole numbers."""
    x, w = whole(np.uint8, 1, channels, 5, 4), whole(np.int8, 16, channels // group, 3, 3)
    w_zero = np.full(zeros, 3, np.int8)
    model, inputs = one("ConvInteger", [x, w, np.asarray(np.uint8(117)), w_zero],
                        constants=(1, 2, 3), group=group)
    (have,) = run(repaired(model, inputs), inputs)
    windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(int) - 117, (3, 3), (1, 2))
    want = np.concatenate([
        np.einsum("cyxij,ocij->oyx", part, weights.astype(int) - 3)
        for part, weights in zip(np.split(windows, group), np.split(w, group))])
    assert have.dtype == np.int32
    np.testing.assert_array_equal(have[0], want)


@pytest.mark.parametrize("weight", [127, -127])
def test_convolved_bytes_up_to_what_float32_has_as_whole_numbers(weight):
    """Odd sums below 2 ** 24, and all others on the way there, are rounded without a loss."""
    x = np.full((1, 513, 1, 560), 255, np.uint8)
    x[0, :, 0, :512] = np.tril(np.full((513, 512), 255, np.uint8), -1)
    x[0, 0, 0] = np.arange(560) % 256
    w = np.full((1, 513, 1, 1), weight, np.int8)
    model, inputs = one("ConvInteger", [x, w], constants=(1,))
    made = repaired(model, inputs)
    assert "Round" not in operators(made)
    (have,) = run(made, inputs)
    want = x[0, :, 0].astype(int).sum(0) * weight
    assert 2 ** 23 < abs(want).max() < 2 ** 24 and (want % 2).any() and abs(want).min() < 2 ** 22
    np.testing.assert_array_equal(have[0, 0, 0], want)


@pytest.mark.parametrize("attrs, scales, bias, output", [
    ({}, (), None, (np.float32(0.4), np.uint8(90))),
    ({"transB": 1, "alpha": 0.5}, (5,), whole(np.int16, 5).astype(np.int32),
     (np.float32(0.4), np.uint8(90))),
    ({"transA": 1}, (5,), whole(np.int16, 5).astype(np.int32), ())])
def test_products_of_bytes_with_a_bias(attrs, scales, bias, output):
    a = whole(np.uint8, *((7, 3) if attrs.get("transA") else (3, 7)))
    b = whole(np.int8, *((5, 7) if attrs.get("transB") else (7, 5)))
    b_scale = np.abs(noise(*scales)) / 50 + np.float32(0.01)
    arrays = [a, np.float32(0.05), np.uint8(120), b, np.asarray(b_scale, np.float32),
              np.zeros(scales, np.int8), bias, *output]
    arrays = [x if x is None else np.asarray(x) for x in arrays]
    fixed = [i for i in range(1, len(arrays)) if arrays[i] is not None]
    model, inputs = one("QGemm", arrays, domain="com.microsoft", constants=fixed, **attrs)
    # Where its sums are exact on every CPU.
    (want,) = onnxruntime_process.run(model.SerializeToString(), inputs)
    (have,) = run(repaired(model, inputs), inputs)
    assert want.dtype == have.dtype and len(np.unique(want)) > 5
    if output:
        assert np.abs(want.astype(int) - have).max() <= 1
    else:
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("op, arrays, domain", [
    ("QGemm", [whole(np.uint8, 3, 4), np.float32(0.1), np.uint8(9), whole(np.int8, 4, 5),
               np.float32(0.1), np.int8(0), whole(np.uint8, 5), np.float32(0.1), np.uint8(9)],
     "com.microsoft"),
    ("QLinearConv", [whole(np.uint8, 1, 2, 4, 4), np.float32(0.1), np.uint8(9),
                     whole(np.int8, 5, 2, 1, 1), np.float32(0.1), np.int8(0), np.float32(0.1),
                     np.uint8(9), whole(np.uint8, 5)], "")])
def test_a_bias_of_bytes_is_refused(op, arrays, domain):
    """ONNX Runtime's quantizer writes it for a bias that is a layer's and something else as
    well."""
    model, inputs = one(op, [np.asarray(a) for a in arrays], domain=domain,
                        constants=range(1, 9))
    with pytest.raises(ToolError, match="its bias is uint8 where it has to be int32"):
        repaired(model, inputs)


@pytest.mark.parametrize("op, arrays, fixed", [
    ("MatMulIntegerToFloat", [whole(np.uint8, 2, 7), whole(np.int8, 7, 5), np.float32(0.02),
                              noise(5), np.uint8(90), np.int8(0), noise(5)], (1, 2, 3, 4, 5, 6)),
    ("DynamicQuantizeMatMul", [noise(2, 3, 7), whole(np.int8, 7, 5), np.float32(0.02),
                               np.int8(4), noise(5)], (1, 2, 3, 4))])
def test_products_of_bytes_in_float32(op, arrays, fixed):
    arrays = [x if x is None else np.asarray(x) for x in arrays]
    model, inputs = one(op, arrays, domain="com.microsoft", constants=fixed)
    (want,) = onnxruntime_process.run(model.SerializeToString(), inputs)
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("zeros", [False, True])
def test_products_with_weights_of_four_bits(zeros):
    """Two blocks and a part of a third; the reference is ONNX Runtime's kernel of float32."""
    depth, columns, block = 80, 6, 32
    arrays = [noise(3, depth), whole(np.uint8, columns, 3, block // 2),
              np.abs(noise(columns * 3)) + np.float32(0.1)]
    arrays += [whole(np.uint8, columns * 2)] if zeros else []
    model, inputs = one("MatMulNBits", arrays, domain="com.microsoft", bits=4, K=depth, N=columns,
                        block_size=block, constants=range(1, len(arrays)))
    (want,), (have,) = run(model, inputs), run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=2e-3)


def test_levels_of_accuracy_are_the_least(tmp_path):
    """ONNX Runtime rounds the other operand to bytes where the level is 4; the reference does
    not."""
    depth, columns = 64, 16
    x, weights = noise(8, depth), whole(np.uint8, columns, 2, 16)
    scales = np.abs(noise(columns * 2)) + np.float32(0.1)
    model, inputs = one("MatMulNBits", [x, weights, scales], domain="com.microsoft", bits=4,
                        K=depth, N=columns, block_size=32, accuracy_level=4, constants=(1, 2))
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path))
    numbers = np.stack([weights & 15, weights >> 4], -1).reshape(columns, 2, 32).astype(float) - 8
    want = x @ (numbers * scales.reshape(columns, 2, 1)).reshape(columns, depth).T
    (got,), who = reference_outputs(path, inputs)
    assert who == "onnxruntime"
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_products_of_dequantized_weights_read_float32(tmp_path):
    """Of 4 bits in blocks, ONNX Runtime makes them MatMulNBits of level 4 by itself."""
    depth, columns = 64, 16
    x, numbers = noise(8, depth), np.arange(depth * columns).reshape(depth, columns) * 7 % 16 - 8
    scales = np.abs(noise(2, columns)) + np.float32(0.1)
    model = model_of(
        [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=32),
         helper.make_node("MatMul", ["x", "d"], ["y"])],
        {"x": (TensorProto.FLOAT, x.shape)}, {"y": FLOAT}, 21, {"s": scales})
    model.graph.initializer.append(
        helper.make_tensor("w", TensorProto.INT4, numbers.shape, numbers.ravel()))
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path))
    (got,), who = reference_outputs(path, {"x": x})
    assert who == "onnxruntime"
    np.testing.assert_allclose(got, x @ (numbers * scales.repeat(32, axis=0)), rtol=1e-4, atol=1e-4)


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


def of_few_bits(kind, data, zeros, axis, along):
    """A model that gathers from a table of 3 by 64 by 5 in blocks of 16."""
    scales = np.abs(noise(*(-(-extent // 16) if a == along else extent
                            for a, extent in enumerate((3, 64, 5))))) + np.float32(0.1)
    return model_of(
        [helper.make_node("GatherBlockQuantized", ["w", "i", "s", *(["z"] if zeros else [])],
                          ["y"], domain="com.microsoft", gather_axis=axis, quantize_axis=along,
                          block_size=16)],
        {"i": (TensorProto.INT64, [2, 2])}, {"y": FLOAT}, 21, {"s": scales},
        imports=[helper.make_opsetid("com.microsoft", 1)]), [helper.make_tensor(
            name, kind, shape, numbers) for name, shape, numbers in (
                ("w", (3, 64, 5), data), ("z", scales.shape, data[:scales.size]))]


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("axis, along", [(0, 1), (1, 1), (2, 1)])
@pytest.mark.parametrize("zeros", [False, True])
def test_rows_of_tables_of_four_bits(kind, axis, along, zeros):
    low = -8 if kind == TensorProto.INT4 else 0
    model, tensors = of_few_bits(kind, np.random.default_rng(4).integers(low, low + 16, 960),
                                 zeros, axis, along)
    model.graph.initializer.extend(tensors[:1 + zeros])
    check(model, {"i": np.array([[0, 2], [-1, 1]])})


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
def test_tables_of_four_bits_are_read_in_bytes(kind):
    """As ONNX Runtime's quantizer writes them: two numbers in each of `raw_data`."""
    low = -8 if kind == TensorProto.INT4 else 0
    model, tensors = of_few_bits(kind, np.random.default_rng(4).integers(low, low + 16, 960),
                                 True, 0, 1)
    for tensor in tensors:
        packed = np.array(tensor.int32_data).astype(np.uint8).tobytes()
        tensor.ClearField("int32_data")
        tensor.raw_data = packed
    model.graph.initializer.extend(tensors)
    check(model, {"i": np.array([[0, 2], [-1, 1]])})


@pytest.mark.parametrize("zeros", [False, True])
def test_rows_of_tables_of_packed_bytes(zeros):
    """ONNX Runtime 1.22 and later; a table without zero points has its 0 in the middle."""
    table, scales = whole(np.uint8, 7, 16), np.abs(noise(7, 2)) + np.float32(0.1)
    given = [table, np.array([[3, -1]]), scales, *([whole(np.uint8, 7, 1)] if zeros else [])]
    model, inputs = one("GatherBlockQuantized", given, domain="com.microsoft", bits=4,
                        block_size=16, constants=(0, 2, *range(3, len(given))))
    numbers = np.stack([table & 15, table >> 4], -1).reshape(7, 2, 16).astype(np.float32)
    at = np.stack([given[3] & 15, given[3] >> 4], -1).reshape(7, 2, 1) if zeros else 8
    (have,) = run(repaired(model, inputs), inputs)
    want = ((numbers - at) * scales[..., None]).astype(np.float32).reshape(7, 32)[[[3, 6]]]
    np.testing.assert_allclose(have, want, rtol=1e-6)


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("block", [0, 4])
def test_weights_of_four_bits_are_dequantised(kind, block):
    low = -8 if kind == TensorProto.INT4 else 0
    numbers = np.random.default_rng(4).integers(low, low + 16, (6, 8))
    scales = np.abs(noise(6, 2) if block else noise(6)) + np.float32(0.1)
    zeros = np.full(scales.shape, low + 7)
    tensors = [helper.make_tensor("w", kind, numbers.shape, numbers.ravel()),
               helper.make_tensor("z", kind, zeros.shape, zeros.ravel())]
    given = {"axis": 1, "block_size": block} if block else {"axis": 0}
    model = model_of([helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], **given),
                      helper.make_node("MatMul", ["x", "d"], ["y"])],
                     {"x": (FLOAT, [3, 6])}, {"y": FLOAT}, 21, {"s": scales})
    model.graph.initializer.extend(tensors)
    inputs = {"x": noise(3, 6)}
    (have,) = run(repaired(model, inputs), inputs)
    factors = scales.repeat(4, 1) if block else scales[:, None]
    np.testing.assert_allclose(have, inputs["x"] @ ((numbers - low - 7) * factors), rtol=1e-5,
                               atol=1e-5)


def test_what_a_pad_writes_may_be_a_quantised_constant():
    """As ONNX Runtime's quantizer writes it: how much is padded stays as it was."""
    nodes = [helper.make_node("DequantizeLinear", ["bytes", "scale", "zero"], ["value"]),
             helper.make_node("Pad", ["x", "pads", "value"], ["y"])]
    held = {"bytes": np.array(90, np.uint8), "scale": np.array(0.25, np.float32),
            "zero": np.array(30, np.uint8), "pads": np.array([0, 1, 2, 0])}
    x = noise(2, 3)
    model = model_of(nodes, {"x": (FLOAT, x.shape)}, {"y": FLOAT}, 17, held)
    assert run(check(model, {"x": x}), {"x": x})[0][0, 0] == 15


def test_a_choice_between_bytes():
    grids = [(np.float32(s), np.uint8(z)) for s, z in ((0.02, 7), (0.03, 90), (0.05, 30))]
    arrays = [whole(np.uint8, 4, 9) > 100, whole(np.uint8, 4, 9), *grids[0],
              whole(np.uint8, 4, 9).T.copy().reshape(4, 9), *grids[1], *grids[2]]
    model, inputs = one("QLinearWhere", [np.asarray(a) for a in arrays], domain="com.microsoft",
                        constants=(2, 3, 5, 6, 7, 8))
    (want,), (have,) = run(model, inputs), run(repaired(model, inputs), inputs)
    assert np.abs(want.astype(int) - have).max() <= 1


def test_rms_normalization_of_opset_23():
    x, scale = noise(2, 3, 8), noise(8)
    model, inputs = one("RMSNormalization", [x, scale], opset=23, epsilon=1e-5)
    want = x / np.sqrt(np.mean(np.square(x), -1, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(run(repaired(model, inputs), inputs)[0], want, rtol=1e-5,
                               atol=1e-6)


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
