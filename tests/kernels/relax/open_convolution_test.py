"""Convolutions of open extents against their definition, in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from open_functions import Function

from run_model_tools.kernels.isa import AVX2, AVX512, GENERIC
from run_model_tools.kernels.relax.open_convolution import (
    OpenConvolution,
    just_the_product,
    kernel,
    packed_weights,
    source,
)

with open("/proc/cpuinfo") as info:
    FLAGS = set(info.read().split())
ISAS = {"generic": (GENERIC, ())}
if {"avx2", "fma"} <= FLAGS:
    ISAS["avx2"] = AVX2, ("-march=x86-64-v3",)
if "avx512vl" in FLAGS:
    ISAS["avx512"] = AVX512, ("-march=x86-64-v4",)


def definition(conv, x, after):
    """conv of x, in double precision; `after`: how many zeros follow the last row and column."""
    count, channels, height, width = conv.weights.shape
    padded = np.pad(np.float64(x), [(0, 0), (0, 0), *zip(conv.padding, after)])
    spans = [(n - 1) * d + 1 for n, d in zip((height, width), conv.dilation)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, spans, (2, 3))
    windows = windows[:, :, ::conv.strides[0], ::conv.strides[1],
                      ::conv.dilation[0], ::conv.dilation[1]]
    of_group = windows.reshape(len(x), conv.groups, channels, *windows.shape[2:])
    weights = conv.weights.reshape(conv.groups, count // conv.groups, channels, height, width)
    made = np.einsum("ngcyxij,gocij->ngoyx", of_group, np.float64(weights))
    return made.reshape(len(x), count, *made.shape[3:])


def with_operands():
    """A residual and a number a channel are added."""
    program = just_the_product()
    full = program.add("input", value=0)
    one = program.add("input", value=1)
    program.add("add", program.add("add", 0, full), one)
    return program


CASES = {
    # weights, strides, padding, dilation, groups, whether something is added, pictures (N, H, W)
    "3x3": ((20, 18, 3, 3), (1, 1), (1, 1), (1, 1), 1, False,
            [(1, 1, 1), (1, 4, 4), (2, 7, 9), (1, 33, 70), (3, 16, 5)]),
    "3x3 and more": ((37, 16, 3, 3), (1, 1), (1, 1), (1, 1), 1, True,
                     [(1, 5, 3), (2, 13, 22), (1, 8, 64), (1, 2, 301)]),
    "3x3 of many channels": ((16, 300, 3, 3), (1, 1), (1, 1), (1, 1), 1, False,
                             [(1, 2, 2), (1, 19, 23)]),
    "3x3 without pads": ((16, 16, 3, 3), (1, 1), (0, 0), (1, 1), 1, True, [(1, 3, 3), (1, 30, 31)]),
    "3x3 of groups": ((48, 16, 3, 3), (1, 1), (2, 1), (1, 1), 3, True, [(2, 6, 9)]),
    "stride 2": ((9, 5, 3, 3), (2, 2), (1, 1), (1, 1), 1, True, [(1, 1, 1), (2, 9, 20)]),
    "1x1": ((12, 10, 1, 1), (1, 1), (0, 0), (1, 1), 1, True, [(1, 1, 1), (2, 9, 13)]),
    "1x1 of groups": ((14, 700, 1, 1), (1, 1), (0, 0), (1, 1), 2, False, [(1, 4, 12), (2, 40, 5)]),
    "one place of stride 2": ((9, 7, 1, 1), (2, 2), (0, 0), (1, 1), 1, True, [(2, 9, 13)]),
    "depthwise": ((6, 1, 5, 3), (1, 2), (2, 1), (1, 1), 6, True, [(1, 1, 4), (2, 9, 40)]),
    "depthwise 3x3": ((5, 1, 3, 3), (1, 1), (1, 1), (1, 1), 5, False,
                      [(1, 1, 1), (1, 70, 75), (1, 5, 2000)]),
    "depthwise of stride 2": ((4, 1, 3, 3), (2, 2), (1, 1), (1, 1), 2, True, [(2, 113, 57)]),
    "depthwise, dilated": ((3, 1, 3, 3), (1, 1), (4, 2), (4, 2), 3, False, [(1, 21, 9)]),
    "depthwise of rows": ((4, 1, 1, 9), (1, 1), (0, 4), (1, 1), 4, True, [(2, 1, 77)]),
    "depthwise of columns": ((4, 1, 3, 1), (1, 2), (1, 0), (1, 1), 4, False, [(1, 9, 21)]),
    "depthwise of stride 3": ((4, 1, 2, 2), (3, 3), (0, 0), (1, 1), 4, False, [(2, 11, 26)]),
    "depthwise of far windows": ((3, 1, 31, 31), (1, 1), (15, 15), (1, 1), 3, False,
                                 [(1, 20, 33)]),
    "dilated": ((8, 600, 3, 3), (1, 1), (12, 12), (12, 12), 1, True, [(1, 20, 19), (1, 1, 1)]),
    "dilated with strides": ((8, 20, 3, 2), (2, 1), (3, 5), (2, 5), 1, True,
                             [(2, 20, 44), (1, 3, 1)]),
    "a channel of each group": ((3, 9, 1, 5), (5, 1), (0, 3), (1, 1), 3, False,
                                [(1, 65, width) for width in range(30, 46)]),
    "7x7 of many channels": ((6, 200, 7, 7), (2, 1), (3, 3), (1, 1), 1, False, [(1, 12, 40)]),
}


@pytest.mark.parametrize("isa", ISAS)
def test_equals_the_definition(tmp_path, isa):
    random = np.random.default_rng(7)
    isa, flags = ISAS[isa]
    kernels = {}
    for name, (shape, strides, padding, dilation, groups, more, pictures) in CASES.items():
        weights = random.standard_normal(shape).astype(np.float32)
        conv = OpenConvolution(weights, strides, padding, dilation, groups, *(
            (with_operands(), (True, False)) if more else ()))
        kernels.setdefault(kernel(conv), []).append(name)
        function = Function(tmp_path, source("function", conv, isa),
                            flags)
        for count, height, width in pictures:
            x = random.standard_normal((count, shape[1] * groups, height, width)).astype(np.float32)
            # As many zeros behind as before, and one column more where strides leave it out.
            want = definition(conv, x, (padding[0], padding[1] + strides[1] - 1))
            operands = []
            if more:
                operands = [random.standard_normal(want.shape).astype(np.float32),
                            random.standard_normal((1, len(weights), 1, 1)).astype(np.float32)]
                want += sum(map(np.float64, operands))
            result = np.full(want.shape, np.nan, np.float32)
            assert function(x, packed_weights(conv, isa), conv.numbers(), *operands, result)
            np.testing.assert_allclose(result, want, rtol=0, atol=3e-6 * np.sqrt(
                weights[0].size) * 4, err_msg=f"{name} {(count, height, width)}")
    assert kernels["winograd"] == [name for name in CASES if name.startswith("3x3")]
    assert kernels["pointwise"] == [name for name in CASES if name.startswith("1x1")]
    assert len(kernels["depthwise"]) == 7


BESIDE = {
    # weights, padding, dilation, picture (H, W), zeros behind
    "3x3": ((16, 300, 3, 3), (1, 1), (1, 1), (5, 10), (1, 290)),
    "3x3 of nothing": ((16, 16, 3, 3), (2, 2), (1, 1), (0, 10), (3, 1)),
    "dilated, of nothing": ((5, 7, 3, 3), (2, 2), (2, 2), (0, 10), (8, 2)),
}


@pytest.mark.parametrize("name", BESIDE)
def test_results_far_beside_the_picture(tmp_path, name):
    shape, padding, dilation, sides, after = BESIDE[name]
    random = np.random.default_rng(8)
    conv = OpenConvolution(random.standard_normal(shape).astype(np.float32), (1, 1), padding,
                           dilation, 1)
    function = Function(tmp_path, source("function", conv, GENERIC))
    x = random.standard_normal((1, shape[1], *sides)).astype(np.float32)
    want = definition(conv, x, after)
    result = np.full(want.shape, np.nan, np.float32)
    assert function(x, packed_weights(conv, GENERIC), conv.numbers(), result)
    np.testing.assert_allclose(result, want, rtol=0, atol=1e-3)


def test_other_extents_are_refused(tmp_path):
    weights = np.ones((16, 16, 3, 3), np.float32)
    for padding in ((1, 1), (0, 0)):
        conv = OpenConvolution(weights, (1, 1), padding, (1, 1), 1)
        function = Function(tmp_path, source("function", conv, GENERIC))
        packed, x = packed_weights(conv, GENERIC), np.ones((1, 16, 8, 8), np.float32)
        result = np.zeros((1, 16, 8, 8), np.float32)
        assert function(x, packed, conv.numbers(), result)
        assert not function(x, packed[1:], conv.numbers(), result)
        assert not function(x[:, 1:], packed, conv.numbers(), result)
        assert not function(x, packed, conv.numbers()[1:], result)
        assert not function(x, packed, conv.numbers(), np.zeros((2, 16, 8, 8), np.float32))
        other = OpenConvolution(weights, (2, 1), padding, (1, 1), 1)
        taken = function(x, packed, other.numbers(), result)
        assert not taken, "a kernel for stride 1"
