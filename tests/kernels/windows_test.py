"""Layers that read some pictures of a batch where they lie, against the same on copies of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from layer_runner import NATIVE, SANITIZED, WIDEST, run_layers
from random_convolutions import random_conv
from run_model_tools.kernels import registry
from run_model_tools.kernels.convolutions.convolution import plain_lanes
from run_model_tools.kernels.isa import GENERIC
from run_model_tools.kernels.layer import Window, batched
from run_model_tools.kernels.pictures import pooling

ISAS = (WIDEST, GENERIC)


def copied(array: np.ndarray, window: Window, images: int) -> np.ndarray:
    """Picture by picture, as Window says it."""
    made = []
    for image in range(images):
        place = window.first + window.step * image
        if window.nearest:
            place = min(max(place, 0), window.count - 1)
        made.append(array[place] if 0 <= place < window.count else np.zeros_like(array[0]))
    return np.stack(made)


def layers(rng: np.random.Generator):
    """Of each kind of kernel, for one picture of three tensors or of one."""
    for isa in ISAS:
        channels = [2 * isa.lanes, isa.lanes, 3]
        for kernel in ((1, 1), (3, 3), (2, 3)):
            conv = random_conv(rng, isa.lanes, kernel=kernel, strides=(1, 1), dilation=(1, 1),
                               size=(9, 8), padding=(1, 0, 1, 1) if kernel != (1, 1) else (0,) * 4,
                               channels=channels, outputs=24, scattered=False)
            yield registry.make_convolution(conv, isa)
        depthwise = random_conv(rng, isa.lanes, kernel=(3, 3), strides=(1, 1), size=(7, 6),
                                channels=[2 * isa.lanes], depthwise=True)
        yield registry.make_convolution(depthwise, isa)
        pool = pooling.Pooling("max", (2, 2), ((1, 2, 7, 6, isa.lanes),),
                               plain_lanes(2 * isa.lanes, isa.lanes), (2, 2))
        yield registry.make_pooling(pool, isa)


@pytest.mark.parametrize("toolchain", [NATIVE, SANITIZED], ids=["native", "sanitized"])
def test_windows_are_read_where_they_lie(tmp_path, toolchain):
    rng = np.random.default_rng(8)
    windows = [Window(-1, 1, 4), Window(0, 2, 6, nearest=True), Window(1, 1, 5), Window(-3, 2, 3),
               Window(-2, 1, 2, nearest=True)]
    there, elsewhere = [], []
    for index, one in enumerate(layers(rng)):
        images = 4
        chosen = {i: windows[(index + i) % len(windows)] for i in range(len(one.inputs))
                  if (index + i) % 4}
        layer = batched(one, images, chosen)
        inputs = [rng.standard_normal(shape).astype(dtype) for shape, dtype in layer.inputs]
        there.append((layer, inputs))
        elsewhere.append((batched(one, images), [
            copied(x, chosen[i], images) if i in chosen else x for i, x in enumerate(inputs)]))
    for (layer, _), got, wanted in zip(there, run_layers(there, tmp_path, toolchain),
                                       run_layers(elsewhere, tmp_path, toolchain)):
        np.testing.assert_array_equal(got, wanted, err_msg=layer.kind)


def test_one_picture_of_several_is_read_there():
    """Also where the layer computes no batch: its input is one."""
    rng = np.random.default_rng(9)
    conv = random_conv(rng, WIDEST.lanes, kernel=(1, 1), strides=(1, 1), padding=(0, 0, 0, 0))
    one = registry.make_convolution(conv, WIDEST)
    layer = batched(one, 1, {0: Window(2, 1, 3)})
    assert layer.inputs[0][0][0] == 3 and layer.output_shape == one.output_shape
    assert layer.symbol(0) != one.symbol(0) and batched(one, 1) is one


def test_windows_of_windows_and_what_they_show():
    inner = Window(-1, 2, 5)
    assert inner.places(4).tolist() == [-1, 1, 3, -1]
    assert replace(inner, nearest=True).places(4).tolist() == [0, 1, 3, 4]
    outer = Window(1, 2, 4)
    assert outer.of(inner) == Window(1, 4, 5)
    assert outer.is_inside(2) and not outer.is_inside(3)


def test_a_batch_does_the_work_of_all_its_pictures():
    rng = np.random.default_rng(10)
    conv = random_conv(rng, WIDEST.lanes, kernel=(3, 3), strides=(1, 1))
    one = registry.make_convolution(conv, WIDEST)
    assert batched(one, 6).note["multiply_adds"] == 6 * conv.multiply_adds
    assert one.note["multiply_adds"] == conv.multiply_adds
