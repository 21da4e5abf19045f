"""What ONNX Runtime's tools write into diffusion models, which its releases for CPUs have not."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
from repaired_models import noise, one, repaired, run

from run_model_tools.errors import ToolError

MICROSOFT = "com.microsoft"
BATCH, SIZE, CHANNELS = 2, (3, 5), 8


def outputs(op, arrays, outputs=1, **attrs):
    model, inputs = one(op, arrays, outputs=outputs, domain=MICROSOFT, **attrs)
    return run(repaired(model, inputs), inputs)


def first(x):
    """Of pictures with their channels last, with these first."""
    return np.moveaxis(x, -1, 1)


@pytest.mark.parametrize("group", [1, 2])
def test_convolutions_with_channels_last(group):
    x, bias = noise(BATCH, 6, 7, CHANNELS), noise(4)
    weights = noise(4, 3, 3, CHANNELS // group)
    attrs = {"group": group, "pads": [1, 0, 1, 2], "strides": [2, 1]}
    (have,) = outputs("NhwcConv", [x, weights, bias], kernel_shape=[3, 3], **attrs)
    model, inputs = one("Conv", [np.ascontiguousarray(first(v)) for v in (x, weights)] + [bias],
                        **attrs)
    np.testing.assert_allclose(first(have), run(model, inputs)[0], rtol=1e-4, atol=1e-4)


def normalised(x, gamma, beta, groups, swish):
    """x [N, H, W, C]."""
    parts = x.astype(np.float64).reshape(*x.shape[:-1], groups, -1)
    mean, variance = (f(parts, axis=(1, 2, 4), keepdims=True) for f in (np.mean, np.var))
    y = ((parts - mean) / np.sqrt(variance + 1e-3)).reshape(x.shape) * gamma + beta
    return y / (1 + np.exp(-y)) if swish else y


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("swish", [0, 1])
@pytest.mark.parametrize("skip", [None, (BATCH, *SIZE, CHANNELS), (BATCH, 1, 1, CHANNELS),
                                  (BATCH, CHANNELS)])
def test_groups_of_channels(channels_last, swish, skip):
    x, gamma, beta, bias = noise(BATCH, *SIZE, CHANNELS), *(noise(CHANNELS) for _ in range(3))

    def laid(value):
        return value if channels_last or value.ndim < 4 else np.ascontiguousarray(first(value))

    attrs = {"groups": 4, "activation": swish, "epsilon": 1e-3, "channels_last": channels_last}
    if skip is None:
        total, have = x, outputs("GroupNorm", [laid(x), gamma, beta], **attrs)
    else:
        more = noise(*skip)
        total = x + more.reshape(BATCH, *(skip[1:-1] or (1, 1)), CHANNELS) + bias
        have = outputs("SkipGroupNorm", [laid(x), gamma, beta, laid(more), bias], outputs=2,
                       **attrs)
        np.testing.assert_allclose(have[1], laid(total), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(have[0], laid(normalised(total, gamma, beta, 4, swish)), rtol=1e-4,
                               atol=1e-4)


def test_groups_that_channels_do_not_make_are_refused():
    with pytest.raises(ToolError, match="no multiple of its 3 groups"):
        outputs("GroupNorm", [noise(1, 2, 2, 8), noise(8), noise(8)], groups=3)


def test_gates_and_sums_with_a_bias():
    x, bias, skip = noise(2, 5, 6), noise(6), noise(2, 5, 6)
    (have,) = outputs("BiasAdd", [x, bias, skip])
    np.testing.assert_allclose(have, x + bias + skip, rtol=1e-5, atol=1e-6)
    (have,) = outputs("BiasSplitGelu", [x, bias])
    through, gate = np.split(x + bias, 2, axis=-1)
    want = through * gate / 2 * (1 + np.vectorize(erf)(gate / np.sqrt(2)))
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)
