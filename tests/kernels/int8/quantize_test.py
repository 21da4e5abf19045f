"""A plan in 8 bits computes what it did in float32, but for the steps of bytes."""

from __future__ import annotations

import math

import numpy as np

import reference
from layer_runner import run_layers
from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.int8.from_float32 import quantize
from run_model_tools.kernels.int8.quantized import Quantization
from run_model_tools.kernels.isa import AVX2
from run_model_tools.kernels.pictures.elementwise import Gather
from run_model_tools.kernels.pictures.pooling import Pooling
from run_model_tools.kernels.plan import (
    ConvolutionStep,
    DenseStep,
    GatherStep,
    LayerStep,
    Plan,
    PoolingStep,
    RelayStep,
)
from run_model_tools.kernels.products.dense import Dense
from run_model_tools.kernels.tensors import Tensor

LANES = AVX2.lanes


def make_plan(rng: np.random.Generator, high: float = math.inf):
    """Picture -> 3x3 -> 1x1 with the first as residual -> global average -> fully connected, and
    the numbers that float64 gives for every tensor.  `high`: of the first layer's clamp."""
    def weights(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    picture, first, second = Tensor((1, 3, 9, 9)), Tensor((1, 2, 9, 9,
                                                           LANES)), Tensor((1, 2, 9, 9, LANES))
    average, vector, result = Tensor((1, 12, 1, 1)), Tensor((1, 12)), Tensor((1, 5))
    stem = Convolution(weights(12, 3, 3, 3), weights(12), (picture.shape,), (),
                       padding=(1, 1, 1, 1), low=0.0, high=high)
    block = Convolution(weights(12, 12, 1, 1), weights(12), (first.shape,), plain_lanes(12, LANES),
                        residual=True)
    pool = Pooling("average", (9, 9), (second.shape,), plain_lanes(12, LANES), planar=True)
    dense = Dense(weights(5, 12), weights(5))
    steps = [ConvolutionStep([picture], first, stem),
             ConvolutionStep([first, first], second, block), PoolingStep([second], average, pool),
             RelayStep([average], vector, lambda x: x.reshape(1, -1), "reshape"),
             DenseStep([vector], result, dense)]
    image = rng.standard_normal(picture.shape).astype(np.float32)
    a = blocked(reference.convolve(stem, [image], LANES))
    b = blocked(reference.convolve(block, [a, a], LANES))
    mean = reference.unblocked(b, 12).mean(axis=(1, 2))[None]
    numbers = {first: a, second: b, average: mean[:, :, None, None], vector: mean,
               result: mean @ dense.weight.T.astype(np.float64) + dense.bias}
    return Plan([], [picture], steps, [result]), image, numbers


def blocked(channels: np.ndarray) -> np.ndarray:
    """(channels, height, width) -> [1][blocks][height][width][lanes]."""
    padded = np.pad(channels, [(0, -len(channels) % LANES), (0, 0), (0, 0)])
    return np.moveaxis(padded.reshape(-1, LANES, *padded.shape[1:]), 1, 3)[None]


def run(plan: Plan, inputs: dict[Tensor, np.ndarray], folder) -> dict[Tensor, np.ndarray]:
    known = dict(inputs)
    for index, step in enumerate(plan.steps):
        inputs = [known[t] for t in step.inputs]
        if isinstance(step, LayerStep):
            inputs = [x.reshape(shape)
                      for x, (shape, _) in zip(inputs, step.layer.inputs, strict=True)]
            place = folder / str(index)
            place.mkdir()
            known[step.output] = run_layers([(step.layer, inputs)], place)[0]
        else:
            known[step.output] = step.build(*inputs)
    return known


def quantizations(numbers: dict, channels: bool) -> dict[Tensor, Quantization]:
    result = {}
    for tensor, values in numbers.items():
        whole = Quantization.of_range(values.min(), values.max())
        if channels and values.ndim == 5:
            sizes = np.abs(values[0]).max(axis=(1, 2)).reshape(-1)
            factors = np.maximum(sizes / sizes.max(), 1e-3) ** 0.5
            whole = Quantization(whole.scale, whole.zero_point, tuple(factors))
        result[tensor] = whole
    return result


def test_stays_near_float32_and_leaves_no_layer_out(tmp_path):
    # The last: a clamp that falls on differing bytes of channels with scales of their own.
    for channels, high in ((False, math.inf), (True, math.inf), (True, 0.7)):
        plan, image, numbers = make_plan(np.random.default_rng(3), high)
        picture = plan.parameter_tensors[0]
        known = quantize.Quantizations(
            quantizations(numbers, channels),
            {picture: tuple(Quantization.of_range(c.min(), c.max()) for c in image[0])})
        quantized, report = quantize.quantize(plan, AVX2, known)
        assert report == {"precision": "int8", "int8_layers": 4, "float32_layers": 0, "casts": 0}
        folder = tmp_path / f"{channels}_{high}"
        folder.mkdir()
        got = run(quantized, {picture: image}, folder)[quantized.outputs[0]]
        expected = numbers[plan.outputs[0]]
        # A few steps of the last bytes, which are averages over 81 of them.
        assert np.abs(got - expected).max() < 0.02 * np.abs(expected).max()


def test_sums_that_could_be_too_large_stay_float32():
    plan, image, numbers = make_plan(np.random.default_rng(5))
    many = 70_000
    wide = Dense(np.ones((5, many), np.float32), np.zeros(5, np.float32))
    vector = Tensor((1, many))
    plan.steps = [DenseStep([vector], plan.outputs[0], wide)]
    known = quantize.Quantizations({vector: Quantization(0.1, 3)}, {})
    plan.parameter_tensors = [vector]
    quantized, report = quantize.quantize(plan, AVX2, known)
    assert (report["int8_layers"], report["float32_layers"]) == (0, 1)
    assert quantized.steps[0].dense is wide


def test_casts_where_float32_begins():
    plan, image, numbers = make_plan(np.random.default_rng(4))
    first, second = plan.steps[0].output, plan.steps[1].output
    doubled = Tensor(second.shape)
    plan.steps = plan.steps[:2] + [RelayStep([first], doubled, lambda x: x + x, "add")]
    plan.outputs = [doubled, second]
    known = quantize.Quantizations(
        quantizations(numbers, False),
        {plan.parameter_tensors[0]: (Quantization(0.02, 128),) * 3})
    quantized, report = quantize.quantize(plan, AVX2, known)
    # The first layer's bytes serve the second; TVM's operator gets numbers made of them.
    assert (report["int8_layers"], report["casts"]) == (2, 1)
    assert [t.dtype for t in quantized.outputs] == ["float32", "float32"]
    kinds = [step.layer.kind for step in quantized.steps if isinstance(step, LayerStep)]
    assert kinds == ["conv2d_int8", "conv2d_int8", "dequantize"]


def test_layers_that_are_kept_compute_in_float32_of_numbers_that_were_never_bytes(tmp_path):
    plan, image, numbers = make_plan(np.random.default_rng(6))
    picture = plan.parameter_tensors[0]
    known = quantize.Quantizations(
        quantizations(numbers, True),
        {picture: tuple(Quantization.of_range(c.min(), c.max()) for c in image[0])})
    first, second = plan.steps[:2]
    quantized, report = quantize.quantize(plan, AVX2, known, {second})
    kinds = [step.layer.kind if isinstance(step, LayerStep) else type(step)
             for step in quantized.steps]
    # An average of what is float32 needs no bytes either.
    assert kinds == ["conv2d_int8", ConvolutionStep, PoolingStep, RelayStep, "dense_int8"]
    assert quantized.steps[0].layer.output_dtype == "float32"
    assert quantized.steps[1].convolution is second.convolution
    assert (report["int8_layers"], report["float32_layers"]) == (2, 2)


def test_a_mean_that_is_kept_reads_float32_of_a_layer_of_bytes():
    plan, image, numbers = make_plan(np.random.default_rng(8))
    known = quantize.Quantizations(
        quantizations(numbers, True), {plan.parameter_tensors[0]: (Quantization(0.02, 128),) * 3})
    quantized, report = quantize.quantize(plan, AVX2, known, {plan.steps[2]})
    kinds = [step.layer.kind if isinstance(step, LayerStep) else type(step)
             for step in quantized.steps]
    assert kinds == ["conv2d_int8", "conv2d_int8", PoolingStep, RelayStep, "dense_int8"]
    assert [step.layer.output_dtype for step in quantized.steps[:2]] == ["uint8", "float32"]
    assert (report["int8_layers"], report["casts"]) == (3, 0)


def gathered(zero_points: tuple[int, int], folder):
    """Two tensors' channels in turns become the residual of a layer that reads the first: kinds of
    the layers, and the result by that of float64."""
    rng = np.random.default_rng(9)
    plan, image, numbers = make_plan(rng)
    first, second = plan.steps[0].output, plan.steps[1].output
    mixed, last = Tensor(first.shape), Tensor(first.shape)
    sources = np.array([(i % 2, i) for i in range(12)])
    block = plan.steps[1].convolution
    plan.steps = [*plan.steps[:2],
                  GatherStep([first, second], mixed, Gather(
                      (first.shape, second.shape), sources, np.arange(12), mixed.shape[1])),
                  ConvolutionStep([first, mixed], last, block)]
    plan.outputs = [last]
    a, b = (reference.unblocked(numbers[t], 12) for t in (first, second))
    numbers[mixed] = blocked(np.stack([(a, b)[t][c] for t, c in sources]))
    expected = reference.convolve(block, [numbers[first], numbers[mixed]], LANES)
    known = quantizations(numbers, True)
    for tensor, zero in zip((first, second), zero_points):
        # Wide enough for the numbers on either side of zero.
        known[tensor] = Quantization(2 * known[tensor].scale, zero, known[tensor].channels)
    picture = plan.parameter_tensors[0]
    quantized, _ = quantize.quantize(plan, AVX2, quantize.Quantizations(
        known, {picture: tuple(Quantization.of_range(c.min(), c.max()) for c in image[0])}))
    kinds = [step.layer.kind if isinstance(step, LayerStep) else type(step)
             for step in quantized.steps]
    if GatherStep in kinds:
        return kinds, None
    got = run(quantized, {picture: image}, folder)[quantized.outputs[0]]
    return kinds, np.abs(reference.unblocked(got, 12) - expected).max() / np.abs(expected).max()


def test_bytes_are_brought_to_other_places_as_they_are(tmp_path):
    kinds, error = gathered((128, 128), tmp_path)
    assert kinds == ["conv2d_int8", "conv2d_int8", "gather_int8", "conv2d_int8"]
    assert error < 0.03
    # Bytes that mean different numbers go through float32.
    kinds, _ = gathered((120, 128), tmp_path)
    assert kinds == ["conv2d_int8", "conv2d_int8", "dequantize", GatherStep, "quantize",
                     "conv2d_int8"]


def test_layers_alone_are_the_layers_of_the_whole_network(tmp_path):
    plan, image, numbers = make_plan(np.random.default_rng(7))
    picture = plan.parameter_tensors[0]
    known = quantize.Quantizations(
        quantizations(numbers, False),
        {picture: tuple(Quantization.of_range(c.min(), c.max()) for c in image[0])})
    steps, alone = quantize.layers_alone(plan, AVX2, known)
    assert [type(step) for step in steps] == [ConvolutionStep, ConvolutionStep, PoolingStep,
                                              DenseStep]
    known_numbers = {picture: image} | {
        tensor: values.astype(np.float32) for tensor, values in numbers.items()}
    # Each reads what float64 has for its inputs, and loses a few bytes' steps of its own.
    got = run(alone, known_numbers, tmp_path)
    for step, output in zip(steps, alone.outputs):
        expected = numbers[step.output].reshape(got[output].shape)
        error = np.abs(got[output] - expected).max() / np.abs(expected).max()
        assert 0 < error < 0.02, step
