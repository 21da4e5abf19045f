"""Operators of TensorFlow Lite that TVM's importer lacks or takes only in part, held to LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tflite_test import compile_many, litert_or_skip, outputs_of

from run_model_tools.errors import ToolError
from run_model_tools.tflite.model import read_tflite
from tflite_networks import TfliteNetwork

pytestmark = pytest.mark.full  # of a hundred operators; what networks have is in tflite_test.py


class Operators(TfliteNetwork):
    """One operator after the other on the same inputs."""

    def __init__(self) -> None:
        super().__init__(11)
        self.x = self.tensor((1, 6, 10), name="x")
        self.y = self.tensor((1, 6, 10), name="y")
        self.inputs = [self.x, self.y]

    def gives(self, code, inputs, shape, dtype="float32", options=None, **fields) -> int:
        result = self.add(code, inputs, [self.tensor(shape, dtype)], options, **fields)
        self.outputs.append(result)
        return result

    def whole(self, *values) -> int:
        return self.constant(np.array(values, np.int32))


def elementwise() -> Operators:
    n = Operators()
    zero, shape = n.constant(np.zeros((1, 1, 1), np.float32)), (1, 6, 10)
    n.gives("SIGN", [n.x], shape)
    n.gives("ATAN2", [n.x, n.y], shape)
    n.gives("ATAN2", [n.x, n.gives("RELU", [n.y], shape)], shape)
    n.gives("RELU_0_TO_1", [n.x], shape)
    positive = n.add("GREATER", [n.x, zero], [n.tensor(shape, "bool")])
    n.gives("SELECT_V2", [positive, n.y, zero], shape)
    rows = n.constant(np.array([True, False, True, True, False, False]))
    a, b = (n.gives("RESHAPE", [v, n.whole(6, 10)], (6, 10)) for v in (n.x, n.y))
    n.gives("SELECT", [rows, a, b], (6, 10))
    return n


def along_axes() -> Operators:
    n = Operators()
    for exclusive in (False, True):
        for reverse in (False, True):
            n.gives("CUMSUM", [n.x, n.constant(np.int32(1))], (1, 6, 10), options="CumsumOptions",
                    Exclusive=exclusive, Reverse=reverse)
    row = n.gives("SUM", [n.x, n.whole(1)], (1, 10), options="ReducerOptions", KeepDims=False)
    n.gives("BROADCAST_TO", [row, n.whole(3, 10)], (3, 10))
    largest = n.tensor((1, 6, 3)), n.tensor((1, 6, 3), "int32")
    # Of equal numbers, the first ones.
    n.add("TOPK_V2", [n.gives("RELU", [n.x], (1, 6, 10)), n.constant(np.int32(3))], largest)
    n.outputs += largest
    for code, dtype in (("ARG_MAX", "int64"), ("ARG_MIN", "int64"), ("ARG_MAX", "int32")):
        n.gives(code, [n.x, n.whole(-1)], (1, 6), dtype, f"ArgM{code[5:].lower()}Options",
                OutputType={"int32": 2, "int64": 4}[dtype])
    table = n.constant(n.random.standard_normal((7, 4)).astype(np.float32))
    n.gives("EMBEDDING_LOOKUP", [n.whole(3, 0, 6), table], (3, 4))
    places = n.whole(1, 3)
    n.gives("ONE_HOT", [places, n.constant(np.int32(5)), n.constant(np.float32(2)),
                        n.constant(np.float32(-1))], (2, 5), options="OneHotOptions", Axis=-1)
    return n


def long_numbers() -> Operators:
    """Of 64 bits, which 32 do not hold."""
    n = Operators()
    numbers = n.add("CAST", [n.x], [n.tensor((1, 6, 10), "int64")])
    factor = n.constant(np.array([3 << 40, -5], np.int64).repeat(5))
    n.gives("MUL", [numbers, factor], (1, 6, 10), "int64", "MulOptions")
    table = n.constant(np.array([[1 << 40, 7], [-(1 << 33), 9], [2, 5]], np.int64))
    n.gives("GATHER", [table, n.whole(2, 1, 0)], (3, 2), "int64", "GatherOptions", Axis=0)
    return n


def spectra() -> Operators:
    """Of lengths that cut and fill up, and of two axes."""
    n = Operators()
    for rows, columns in ((1, 8), (1, 16), (4, 16), (8, 8)):
        half = columns // 2 + 1
        x = n.gives("RESHAPE", [n.x, n.whole(1, 6, 1, 10)], (1, 6, 1, 10)) if rows == 1 else n.x
        shape = (1, 6, 1, half) if rows == 1 else (1, rows, half)
        found = n.add("RFFT2D", [x, n.whole(rows, columns)], [n.tensor(shape, "complex64")])
        flat = (1, 6 if rows == 1 else rows, half)
        moved = n.add("RESHAPE", [found, n.whole(*flat)], [n.tensor(flat, "complex64")])
        for code in ("REAL", "IMAG", "COMPLEX_ABS", "CAST"):
            n.gives(code, [moved], flat)
    return n


def split_into_nothing() -> Operators:
    """As tf.signal.frame takes the axes of a signal apart."""
    n = Operators()
    for lengths in ((4, 6, 0), (0, 3, -1), (-1, 0, 10)):
        extents = [10 - sum(length for length in lengths if length > 0) if length == -1 else length
                   for length in lengths]
        parts = [n.tensor((1, 6, extent)) for extent in extents]
        n.add("SPLIT_V", [n.x, n.whole(*lengths), n.constant(np.int32(2))], parts,
              "SplitVOptions", NumSplits=len(parts))
        n.outputs += [part for part, extent in zip(parts, extents) if extent]
        n.gives("CONCATENATION", parts[::-1], (1, 6, 10), options="ConcatenationOptions",
                Axis=2)
    return n


def convolutions() -> Operators:
    n = Operators()
    picture = n.gives("RESHAPE", [n.x, n.whole(1, 5, 4, 3)], (1, 5, 4, 3))
    weights = n.constant(n.random.standard_normal((2, 3, 3, 3)).astype(np.float32))
    bias = n.constant(np.array([0.5, -1], np.float32))
    for activation in (0, 1, 3):
        n.gives("TRANSPOSE_CONV", [n.whole(1, 7, 9, 2), weights, picture, bias], (1, 7, 9, 2),
                options="TransposeConvOptions", Padding=1, StrideH=1, StrideW=2,
                FusedActivationFunction=activation)
    # Zeros lie behind what the filters reach.
    for rows, columns, padding in ((12, 10, 1), (11, 10, 1), (9, 8, 0)):
        n.gives("TRANSPOSE_CONV", [n.whole(1, rows, columns, 2), weights, picture, bias],
                (1, rows, columns, 2), options="TransposeConvOptions", Padding=padding, StrideH=2,
                StrideW=2)
    cube = n.gives("RESHAPE", [n.y, n.whole(1, 3, 5, 2, 2)], (1, 3, 5, 2, 2))
    weights = n.constant(n.random.standard_normal((2, 3, 1, 2, 4)).astype(np.float32))
    bias = n.constant(n.random.standard_normal(4).astype(np.float32))
    n.gives("CONV_3D", [cube, weights, bias], (1, 2, 3, 2, 4), options="Conv3DOptions", Padding=0,
            StrideD=2, StrideH=2, StrideW=1, DilationDFactor=1, DilationHFactor=1,
            DilationWFactor=1, FusedActivationFunction=1)
    n.gives("CONV_3D", [cube, weights, -1], (1, 3, 5, 2, 4), options="Conv3DOptions", Padding=0,
            StrideD=1, StrideH=1, StrideW=1, DilationDFactor=1, DilationHFactor=1,
            DilationWFactor=1)
    return n


def options() -> Operators:
    """What TVM's importer does not look at."""
    n, shape = Operators(), (1, 6, 10)
    n.gives("SOFTMAX", [n.x], shape, options="SoftmaxOptions", Beta=0.5)
    for approximate in (False, True):
        n.gives("GELU", [n.x], shape, options="GeluOptions", Approximate=approximate)
    places = n.constant(np.array([[9], [0], [3], [3], [7], [1]], np.int32))
    rows = n.gives("RESHAPE", [n.x, n.whole(6, 10)], (6, 10))
    n.gives("GATHER", [rows, places], (6, 1), options="GatherOptions", Axis=1, BatchDims=1)
    flags = n.add("CAST", [n.add("CAST", [n.x], [n.tensor(shape, "int32")])],
                  [n.tensor(shape, "bool")])
    n.gives("SELECT_V2", [flags, n.x, n.y], shape)
    n.gives("SQUEEZE", [n.x], (6, 10), options="SqueezeOptions")
    corner = n.gives("SLICE", [n.y, n.whole(0, 2, 3), n.whole(1, 2, -1)], (1, 2, 7),
                     options="SliceOptions")
    first = n.gives("SLICE", [n.y, n.whole(0, 0, 0), n.whole(1, 1, 1)], (1, 1, 1),
                    options="SliceOptions")
    # A scalar's shape has no numbers, and so no bytes in the file.
    n.gives("MUL", [n.x, n.add("RESHAPE", [first, n.whole()], [n.tensor(())])], shape,
            options="MulOptions")
    for place in ((0, 1, 2), (0, 9, -4)):
        n.gives("DYNAMIC_UPDATE_SLICE", [n.x, corner, n.whole(*place)], shape)
    return n


def strided() -> Operators:
    """Parts by Python's rules: backwards, to the very end, with axes more or less."""
    n = Operators()
    x = n.gives("RESHAPE", [n.x, n.whole(6, 10)], (6, 10))
    for begin, end, strides, shape, masks in (
            ((0, 0), (0, 0), (-1, -2), (6, 5), dict(BeginMask=3, EndMask=3)),
            ((-2, 7), (-9, 2), (-2, -3), (3, 2), {}),
            ((4, -1), (0, 1), (-1, -1), (5, 8), dict(EndMask=1)),
            ((1, -4), (99, -1), (2, 1), (3, 3), {}),
            ((0, -2), (0, 0), (1, 1), (6,), dict(ShrinkAxisMask=2, BeginMask=1, EndMask=1)),
            ((0, 0, 3), (0, 0, 8), (1, 1, 2), (1, 6, 3), dict(NewAxisMask=1, EllipsisMask=2)),
            ((0, 8), (0, 1), (1, -3), (6, 3), dict(EllipsisMask=1))):
        n.gives("STRIDED_SLICE", [x, *(n.whole(*v) for v in (begin, end, strides))], shape,
                options="StridedSliceOptions", **masks)
    return n


def rows_of_batches() -> Operators:
    """Gathered behind the batches, with axes between them and the rows."""
    n = Operators()
    x = n.gives("RESHAPE", [n.x, n.whole(2, 3, 5, 2)], (2, 3, 5, 2))
    places = n.constant(np.array([[4, 0, 3], [1, 1, 2]], np.int32))
    n.gives("GATHER", [x, places], (2, 3, 3, 2), options="GatherOptions", Axis=2, BatchDims=1)
    n.gives("GATHER", [n.gives("RESHAPE", [n.y, n.whole(2, 3, 2, 5)], (2, 3, 2, 5)), places],
            (2, 3, 2, 3), options="GatherOptions", Axis=3, BatchDims=1)
    return n


def whole_numbers() -> Operators:
    """Rounded down, of sums with constants, and squares."""
    n, shape = Operators(), (1, 6, 10)
    scaled = n.gives("MUL", [n.x, n.constant(np.float32(9))], shape, options="MulOptions")
    numbers = n.gives("CAST", [scaled], shape, "int32", "CastOptions")
    for constant, divisor in ((-7, 3), (5, 3), (2, -7), (5, 8)):
        total = n.add("ADD", [numbers, n.constant(np.int32(constant))],
                      [n.tensor(shape, "int32")], "AddOptions")
        for code in ("DIV", "MOD"):
            n.gives(f"FLOOR_{code}", [total, n.constant(np.int32(divisor))], shape, "int32",
                    f"Floor{code.title()}Options")
    n.gives("SQUARED_DIFFERENCE", [numbers, n.constant(np.int32(4))], shape, "int32",
            "SquaredDifferenceOptions")
    n.gives("SQUARE", [n.x], shape, options="SquareOptions")
    return n


def boxes() -> Operators:
    """Those that no better one overlaps, fewer and more than are wanted."""
    n = Operators()
    flat = n.gives("RESHAPE", [n.x, n.whole(30, 2)], (30, 2))
    corners = n.gives("CONCATENATION", [flat, n.gives(
        "ADD", [flat, n.constant(np.array([1, -1.5], np.float32))], (30, 2),
        options="AddOptions")], (30, 4), options="ConcatenationOptions", Axis=1)
    scores = n.gives("SLICE", [n.gives("RESHAPE", [n.y, n.whole(60)], (60,)), n.whole(0),
                               n.whole(30)], (30,), options="SliceOptions")
    for most in (4, 40):
        limits = [n.constant(np.array(value)) for value in (
            np.int32(most), np.float32(0.3), np.float32(-0.2))]
        for version, sigma in ((4, []), (5, [n.constant(np.float32(0))])):
            made = [n.tensor((most,), "int32"), n.tensor((most,)), n.tensor((), "int32")]
            made = made if sigma else [made[0], made[2]]
            n.add(f"NON_MAX_SUPPRESSION_V{version}", [corners, scores, *limits, *sigma], made,
                  f"NonMaxSuppressionV{version}Options")
            n.outputs += made
    return n


def products() -> Operators:
    """Of matrices with and without batches, of which either factor has more."""
    n = Operators()
    x, y = (n.gives("RESHAPE", [v, n.whole(60)], (60,)) for v in (n.x, n.y))

    def matrices(values, *shape):
        count = int(np.prod(shape))
        first = n.gives("SLICE", [values, n.whole(0), n.whole(count)], (count,),
                        options="SliceOptions")
        return n.gives("RESHAPE", [first, n.whole(*shape)], shape)

    for mine, others in (((2, 1), (1, 2)), ((), ()), ((), (2,)), ((1,), (2,)), ((2,), ()),
                         ((2, 1), (2,))):
        shape = np.broadcast_shapes(mine, others)
        n.gives("BATCH_MATMUL", [matrices(x, *mine, 5, 3), matrices(y, *others, 4, 3)],
                (*shape, 5, 4), options="BatchMatMulOptions", AdjY=True)
        n.gives("BATCH_MATMUL", [matrices(x, *mine, 3, 5), matrices(y, *others, 3, 4)],
                (*shape, 5, 4), options="BatchMatMulOptions", AdjX=True)
    return n


def segments() -> Operators:
    """One of which has no rows, and rows of none."""
    n = Operators()
    x = n.gives("RESHAPE", [n.x, n.whole(2, 3, 10)], (2, 3, 10))
    numbers = n.gives("CAST", [x], (2, 3, 10), "int32", "CastOptions")
    places = n.constant(np.array([[4, 0, 4], [-1, 1, 0]], np.int32))
    for code in ("SUM", "PROD", "MAX", "MIN"):
        for values, dtype in ((x, "float32"), (numbers, "int32")):
            n.gives(f"UNSORTED_SEGMENT_{code}", [values, places, n.constant(np.int32(5))],
                    (5, 10), dtype)
    n.gives("SEGMENT_SUM", [n.gives("RESHAPE", [n.x, n.whole(6, 10)], (6, 10)),
                            n.whole(0, 0, 1, 2, 2, 2)], (3, 10))
    for values, dtype in ((n.x, "float32"), (numbers, "int32")):
        n.gives("BUCKETIZE", [values], (1, 6, 10) if dtype == "float32" else (2, 3, 10), "int32",
                "BucketizeOptions", Boundaries=[-1.0, 0.0, 0.25, 1.0])
    n.gives("REVERSE_V2", [x, n.whole(0, 1)], (2, 3, 10))
    return n


def volumes() -> Operators:
    """Transposed convolutions of them."""
    n = Operators()
    x = n.gives("RESHAPE", [n.x, n.whole(1, 2, 3, 5, 2)], (1, 2, 3, 5, 2))
    bias = n.constant(n.random.standard_normal(3).astype(np.float32))
    for kernel, stride, padding in ((3, 2, 0), (3, 2, 1), (2, 2, 0), (1, 2, 0), (3, 1, 0),
                                    (4, 1, 1)):
        weights = n.random.standard_normal((kernel, kernel, kernel, 3, 2)).astype(np.float32)
        shape = [1, *(extent * stride if not padding else (extent - 1) * stride + kernel
                      for extent in (2, 3, 5)), 3]
        n.gives("CONV_3D_TRANSPOSE", [n.whole(*shape), n.constant(weights), x, bias], shape,
                options="Conv3DOptions", Padding=padding, StrideD=stride, StrideH=stride,
                StrideW=stride, DilationDFactor=1, DilationHFactor=1, DilationWFactor=1)
    return n


NETWORKS = {"elementwise": elementwise, "along_axes": along_axes, "long_numbers": long_numbers,
            "spectra": spectra, "convolutions": convolutions, "options": options,
            "products": products, "segments": segments, "volumes": volumes, "strided": strided,
            "rows_of_batches": rows_of_batches, "whole_numbers": whole_numbers, "boxes": boxes,
            "split_into_nothing": split_into_nothing}


def gives_what_litert_gives(networks: dict[str, Operators], folder: Path) -> None:
    answers = compile_many(networks, folder)
    assert not {name: a["error"] for name, a in answers.items() if "error" in a}
    random = np.random.default_rng(2)
    inputs = {name: random.standard_normal((1, 6, 10)).astype(np.float32) for name in "xy"}
    for name in networks:
        model = litert_or_skip(folder / name / "net.tflite")
        for index, (ours, theirs) in enumerate(zip(outputs_of(folder / name, inputs),
                                                   model.run(inputs))):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (name, index)
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5,
                                       err_msg=f"{name} {index}")


def test_they_give_what_litert_gives(tmp_path):
    gives_what_litert_gives({name: make() for name, make in NETWORKS.items()}, tmp_path)


def test_numbers_of_no_numbers_are_refused(tmp_path):
    """What stands for a tensor without any must not be summed."""
    n = Operators()
    none, all_ = n.tensor((1, 6, 0)), n.tensor((1, 6, 10))
    n.add("SPLIT_V", [n.x, n.whole(0, 10), n.constant(np.int32(2))], [none, all_],
          "SplitVOptions", NumSplits=2)
    n.gives("SUM", [n.gives("RELU", [none], (1, 6, 0)), n.whole(2)], (1, 6),
            options="ReducerOptions")
    n.outputs = n.outputs[-1:]
    (answer,) = compile_many({"none": n}, tmp_path).values()
    assert "it computes (SUM)" in answer.get("error", "compiled")


def test_operators_are_known_by_the_later_field_alone(tmp_path):
    """As AI Edge Quantizer writes those that it adds; the earlier field says 0, which is ADD."""
    n = Operators()
    n.has_earlier_codes = False
    n.gives("MUL", [n.x, n.y], (1, 6, 10), options="MulOptions")
    n.gives("SIGN", [n.x], (1, 6, 10))
    assert "error" not in compile_many({"n": n}, tmp_path)["n"]
    inputs = {name: n.random.standard_normal((1, 6, 10)).astype(np.float32) for name in "xy"}
    for made in (outputs_of(tmp_path / "n", inputs),
                 litert_or_skip(tmp_path / "n" / "net.tflite").run(inputs)):
        np.testing.assert_array_equal(made[0], inputs["x"] * inputs["y"])
        np.testing.assert_array_equal(made[1], np.sign(inputs["x"]))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_constants_behind_the_tables(dtype, tmp_path):
    """Where AI Edge Quantizer puts them, weights of bytes beside floats too."""
    n = Operators()
    n.behind = []
    weights = n.random.integers(-127, 128, (4, 10)).astype(dtype)
    table = n.constant(weights, scale=None if dtype == "float32" else 0.01)
    n.gives("FULLY_CONNECTED", [n.gives("RESHAPE", [n.x, n.whole(6, 10)], (6, 10)), table, -1],
            (6, 4), options="FullyConnectedOptions")
    assert "error" not in compile_many({"n": n}, tmp_path)["n"]
    inputs = {name: n.random.standard_normal((1, 6, 10)).astype(np.float32) for name in "xy"}
    wanted = inputs["x"][0] @ weights.T * (1 if dtype == "float32" else 0.01)
    for made in (outputs_of(tmp_path / "n", inputs),
                 litert_or_skip(tmp_path / "n" / "net.tflite").run(inputs)):
        np.testing.assert_allclose(made[1], wanted, rtol=1e-4, atol=1e-4)


def packed(weights: np.ndarray, bits: int) -> np.ndarray:
    """Several in a byte, the first one in its lowest bits."""
    few = np.append(weights, np.zeros(-weights.size % (8 // bits), np.int8)).reshape(-1, 8 // bits)
    return ((few & 2 ** bits - 1) << np.arange(0, 8, bits)).sum(1).astype(np.uint8)


def test_weights_in_blocks(tmp_path):
    """With a scale each, as ai-edge-quantizer writes language models; the last block is short."""
    n = Operators()
    weights = n.random.integers(-8, 8, (3, 10)).astype(np.int8)
    scales = n.random.uniform(0.1, 1, (3, 3)).astype(np.float16)
    zeros = n.random.integers(-3, 4, (3, 3)).astype(np.int8)
    rows, each = n.gives("RESHAPE", [n.x, n.whole(6, 10)], (6, 10)), n.constant(scales)
    for given in (-1, n.constant(zeros)):
        table = n.tensor((3, 10), "int4", data=packed(weights, 4), blocks=(each, given, 4))
        n.gives("FULLY_CONNECTED", [rows, table, -1], (6, 3), options="FullyConnectedOptions")
    assert "error" not in compile_many({"n": n}, tmp_path)["n"]
    inputs = {name: n.random.standard_normal((1, 6, 10)).astype(np.float32) for name in "xy"}
    _, plain, shifted = outputs_of(tmp_path / "n", inputs)
    scales, zeros = (a.astype(np.float32).repeat(4, 1)[:, :10] for a in (scales, zeros))
    np.testing.assert_allclose(plain, inputs["x"][0] @ (weights * scales).T, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(shifted, inputs["x"][0] @ ((weights - zeros) * scales).T, rtol=1e-4,
                               atol=1e-4)
    n.tensors[each].update(data=np.ones((3, 2), np.float16), shape=(3, 2))
    with pytest.raises(ToolError, match="no scales or zero points that fit"):
        read_tflite(n.save(tmp_path / "net.tflite"))


@pytest.mark.parametrize("bits", [4, 2])
def test_weights_of_few_bits_beside_floats(tmp_path, bits):
    """Rounded to bytes, as LiteRT's own kernels do it, the inputs stay what they are."""
    n = Operators()
    weights = n.random.integers(-2 ** (bits - 1), 2 ** (bits - 1), (3, 10)).astype(np.int8)
    table = n.tensor((3, 10), f"int{bits}", 0.125, data=packed(weights, bits))
    n.gives("FULLY_CONNECTED", [n.gives("RESHAPE", [n.x, n.whole(6, 10)], (6, 10)), table, -1],
            (6, 3), options="FullyConnectedOptions")
    assert "error" not in compile_many({"n": n}, tmp_path)["n"]
    x = n.random.integers(-127, 128, (1, 6, 10)).astype(np.float32)
    x[:, :, 0] = 127
    inputs = {"x": x, "y": x}
    (_, ours), (_, theirs) = (made for made in (
        outputs_of(tmp_path / "n", inputs),
        litert_or_skip(tmp_path / "n" / "net.tflite").run(inputs)))
    np.testing.assert_allclose(ours, x[0] @ weights.T * 0.125, rtol=1e-5)
    np.testing.assert_allclose(theirs, ours, rtol=1e-5)


def test_what_is_not_there_is_named(tmp_path, command):
    n = Operators()
    n.gives("UNIQUE", [n.x], (1, 6, 10))
    n.gives("CUSTOM", [n.x], (1, 6, 10), custom_code="FlexErf")
    result = command("compile_model", n.save(tmp_path / "m.tflite"), "--out", tmp_path / "out",
                     code=4)
    assert "operators that are not supported: FlexErf, UNIQUE" in result.stderr
    assert "TFLITE_BUILTINS" in result.stderr


def between_zeros(dtype: str, scale: float | None, zero: int) -> TfliteNetwork:
    """What is written twice to one place, and a diagonal."""
    n = TfliteNetwork(14)
    x = n.tensor((4, 3), dtype, scale, zero, name="x")
    n.inputs = [x]
    places = n.constant(np.array([[1], [5], [2], [1]], np.int32))
    shape = n.constant(np.array([7, 3], np.int32))
    n.outputs = [
        n.add("SCATTER_ND", [places, x, shape], [n.tensor((7, 3), dtype, scale, zero)],
              "ScatterNdOptions"),
        n.add("MATRIX_DIAG", [x], [n.tensor((4, 3, 3), dtype, scale, zero)], "MatrixDiagOptions")]
    return n


def test_zeros_are_those_that_litert_stores(tmp_path):
    """Of quantized tensors, not those that stand for zero."""
    networks = {"floats": between_zeros("float32", None, 0),
                "ints": between_zeros("int32", None, 0), "bytes": between_zeros("int8", 0.05, 9)}
    answers = compile_many(networks, tmp_path)
    assert not {name: a["error"] for name, a in answers.items() if "error" in a}
    values = np.random.default_rng(6).integers(-50, 50, (4, 3))
    for name in networks:
        model = litert_or_skip(tmp_path / name / "net.tflite")
        given = {"x": values.astype(model.inputs[0].dtype)}
        for ours, theirs in zip(outputs_of(tmp_path / name, given), model.run(given)):
            assert theirs.min() < 0
            np.testing.assert_array_equal(ours, theirs, strict=True)


def test_reversed_bytes_stay_what_they_are(tmp_path):
    """Whatever the scales say that they stand for."""
    n = TfliteNetwork(15)
    x = n.tensor((2, 3, 4), "int8", 0.05, 9, name="x")
    n.inputs = [x]
    n.outputs = [n.add("REVERSE_V2", [x, n.constant(np.array([1], np.int32))],
                       [n.tensor((2, 3, 4), "int8", 0.11, -7)])]
    assert "error" not in compile_many({"r": n}, tmp_path)["r"]
    given = np.arange(-128, 128, 11, np.int64)[:24].astype(np.int8).reshape(2, 3, 4)
    for made in (outputs_of(tmp_path / "r", {"x": given}),
                 litert_or_skip(tmp_path / "r" / "net.tflite").run({"x": given})):
        np.testing.assert_array_equal(made[0], given[:, ::-1], strict=True)


def test_bytes_set_apart_stay_what_they_are(tmp_path):
    """As TensorFlow's converter writes it: zero with a scale of its own, which LiteRT passes over,
    and along another axis than the last."""
    n = TfliteNetwork(16)
    x = n.tensor((2, 3), "int32", name="x")
    n.inputs = [x]
    depth = n.constant(np.array(4, np.int32))
    for axis, shape, dtype, kept in ((-1, (2, 3, 4), "int8", ((0.25, -128), (4e-9, 0))),
                                     (1, (2, 4, 3), "uint8", ((0.1, 3), (0.2, 9)))):
        values = []
        for number, (scale, zero) in zip((100, 7), kept):
            values.append(n.tensor((), dtype, scale, zero))
            n.tensors[values[-1]]["data"] = np.array(number, dtype)
        n.outputs.append(n.add("ONE_HOT", [x, depth, *values], [n.tensor(shape, dtype, 0.5, 8)],
                               "OneHotOptions", Axis=axis))
    assert "error" not in compile_many({"o": n}, tmp_path)["o"]
    given = np.array([[0, 3, 1], [2, -1, 4]], np.int32)
    for made in (outputs_of(tmp_path / "o", {"x": given}),
                 litert_or_skip(tmp_path / "o" / "net.tflite").run({"x": given})):
        want = np.where(given[..., None] == np.arange(4), 100, 7)
        np.testing.assert_array_equal(made[0], want.astype(np.int8), strict=True)
        np.testing.assert_array_equal(made[1], want.swapaxes(1, 2).astype(np.uint8), strict=True)
