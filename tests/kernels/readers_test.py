"""What layers make of an activation's channels is known lane by lane."""

from __future__ import annotations

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution, Lanes, plain_lanes
from run_model_tools.kernels.int8.from_float32.readers import readers
from run_model_tools.kernels.pictures.pooling import Pooling
from run_model_tools.kernels.plan import ConvolutionStep, DenseStep, Plan, PoolingStep
from run_model_tools.kernels.products.dense import Dense
from run_model_tools.kernels.tensors import Tensor

LANES = 8


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def test_lanes_of_a_grouped_convolution_of_two_tensors():
    first, second, output = (Tensor((1, 1, 6, 6, LANES)) for _ in range(3))
    weight = numbers(4, 3, 2, 2)
    # Group 0 reads lanes 5 and 6 of the first tensor and 0 of the second; group 1 the next ones.
    places = (Lanes(0, 0, 5, 2), Lanes(1, 0, 0, 4))
    conv = Convolution(weight, np.zeros(4, np.float32), (first.shape, second.shape), places,
                       groups=2, residual=True)
    plan = Plan([], [first, second],
                [ConvolutionStep([first, second, first], output, conv)], [output])
    residual, reader = readers(plan, first)
    assert np.array_equal(residual.power, np.ones(LANES)) and residual.largest is None
    assert np.allclose(reader.power[[5, 6]], np.square(weight[:2, :2]).sum((0, 2, 3)))
    assert np.count_nonzero(reader.power) == 2 and reader.taps == 4
    assert np.allclose(reader.largest[:2, 6], np.abs(weight[:2, 1]).max((1, 2)))
    assert not reader.largest[2:].any()
    (reader,) = readers(plan, second)
    assert np.allclose(reader.power[:4], np.square(np.concatenate(
        [weight[:2, 2:], weight[2:].reshape(2, 3, 2, 2)], 1)).sum((0, 2, 3)))
    assert not reader.power[4:].any()


def test_a_maximum_hands_on_and_a_mean_reads_all_alike():
    before, pooled = Tensor((1, 2, 8, 8, LANES)), Tensor((1, 2, 4, 4, LANES))
    output, vector, result = Tensor((1, 1, 4, 4, LANES)), Tensor((1, 5)), Tensor((1, 3))
    lanes = plain_lanes(12, LANES)
    conv = Convolution(numbers(5, 12, 1, 1), np.zeros(5, np.float32), (pooled.shape,), lanes)
    maximum = Pooling("max", (2, 2), (before.shape,), lanes, strides=(2, 2))
    mean = Pooling("average", (4, 4), (output.shape,), plain_lanes(5, LANES), planar=True)
    dense = Dense(numbers(3, 5), np.zeros(3, np.float32))
    plan = Plan([], [before], [PoolingStep([before], pooled, maximum),
                               ConvolutionStep([pooled], output, conv),
                               PoolingStep([output], Tensor((1, 5, 1, 1)), mean),
                               DenseStep([vector], result, dense)], [result])
    (through,), (direct,) = readers(plan, before), readers(plan, pooled)
    assert np.array_equal(through.power, direct.power) and direct.power[11] > 0
    assert np.array_equal(through.largest, direct.largest)
    assert [np.ptp(one.power) for one in readers(plan, output)] == [0]
    (last,) = readers(plan, vector)
    assert np.allclose(last.power, np.square(dense.weight).sum(0))
