"""Convolutions and pooling in the shapes that the zoo's networks use them in."""

import numpy as np
from tvm import relay

from .layers import Layers, global_pool, relu6
from .registry import AVX2_TARGET, Network, network, variable, zeros


@network
def conv_kernel_sizes(rng: np.random.Generator) -> Network:
    """1×1, 3×3, 5×5, 7×7 and 1×7/7×1 kernels, strides, uneven padding, dilation."""
    n, data = Layers(rng), zeros(1, 3, 31, 29)
    x = relay.nn.relu(n.conv(variable("data", data), 16, 7, stride=2, pad=3))
    x = relay.nn.relu(n.conv(x, 8, 1))
    x = relay.nn.relu(n.conv(x, 16, 5, pad=(2, 1, 2, 3)))
    x = relay.nn.relu(n.conv(x, 12, (1, 7), pad=(0, 3)))
    x = relay.nn.relu(n.conv(x, 12, (7, 1), pad=(3, 0)))
    x = n.conv(x, 8, 3, pad=2, dilation=2)
    return n.network(x, {"data": data}, record_nodes=True)


@network
def conv_grouped(rng: np.random.Generator) -> Network:
    n, data = Layers(rng), zeros(1, 12, 14, 14)
    x = relay.nn.relu(n.conv(variable("data", data), 24, 1, groups=3))
    x = relay.nn.relu(n.conv(x, 24, 3, pad=1, groups=4))
    x = n.conv(x, 12, 3, stride=2, pad=1, groups=2, bias=False)
    return n.network(x, {"data": data})


@network
def conv_depthwise(rng: np.random.Generator) -> Network:
    n, data = Layers(rng), zeros(1, 16, 28, 28)
    x = relu6(n.depthwise(variable("data", data)))
    x = relu6(n.depthwise(x, stride=2))
    x = relu6(n.depthwise(x, 5, pad=2, bias=True))
    x = n.depthwise(x, 5, stride=2, pad=(1, 1, 2, 2))
    return n.network(x, {"data": data})


@network
def conv_batch_of_three(rng: np.random.Generator) -> Network:
    n, data = Layers(rng), zeros(3, 3, 16, 16)
    x = relay.nn.relu(n.conv_norm(variable("data", data), 16, pad=1))
    return n.network(n.dense(global_pool(x), 10), {"data": data})


@network
def conv_nhwc(rng: np.random.Generator) -> Network:
    """Channels last, as TFLite models such as efficientnet-lite0 come."""
    n, data = Layers(rng), zeros(1, 15, 15, 4)
    x = relay.nn.conv2d(variable("data", data), n.parameter((3, 3, 4, 8), 0.2),
                        padding=(0, 0, 1, 1), strides=(2, 2), channels=8, kernel_size=(3, 3),
                        data_layout="NHWC", kernel_layout="HWIO")
    x = relu6(relay.nn.bias_add(x, n.parameter((8,), 0.1), axis=-1))
    x = relay.nn.conv2d(x, n.parameter((3, 3, 8, 1), 0.3), padding=(1, 1), channels=8, groups=8,
                        kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWOI")
    x = relay.nn.avg_pool2d(x, pool_size=(7, 7), layout="NHWC")
    return n.network(x, {"data": data})


@network
def conv_transpose(rng: np.random.Generator) -> Network:
    n, data = Layers(rng), zeros(1, 6, 7, 9)
    x = relay.nn.conv2d_transpose(variable("data", data), n.parameter((6, 4, 4, 4), 0.1),
                                  strides=(2, 2), padding=(1, 1), channels=4, kernel_size=(4, 4))
    x = relay.nn.upsampling(relay.nn.relu(x), scale_h=2, scale_w=2, method="bilinear")
    return n.network(x, {"data": data})


@network
def conv_layouts_avx2(rng: np.random.Generator) -> Network:
    """Long enough for the compiler to keep blocked NCHWc layouts between the layers."""
    n, data = Layers(rng), zeros(1, 3, 32, 32)
    x = relay.nn.relu(n.conv_norm(variable("data", data), 32, pad=1))
    for channels in (32, 64):
        x = relay.nn.relu(n.conv_norm(x, channels, pad=1, stride=channels // 32))
    return n.network(global_pool(x), {"data": data}, target=AVX2_TARGET)


@network
def pooling(rng: np.random.Generator) -> Network:
    """Max and average pooling with and without ceil_mode and count_include_pad; global pools."""
    data = zeros(1, 5, 18, 15)
    x = variable("data", data)
    window = {"pool_size": (3, 3), "strides": (2, 2)}
    outputs = [
        relay.nn.max_pool2d(x, padding=(1, 1), **window),
        relay.nn.max_pool2d(x, ceil_mode=True, **window),
        relay.nn.avg_pool2d(x, padding=(1, 1), count_include_pad=True, **window),
        relay.nn.avg_pool2d(x, padding=(1, 1), count_include_pad=False, **window),
        relay.nn.avg_pool2d(x, ceil_mode=True, **window),
        relay.nn.global_avg_pool2d(x),
        relay.nn.global_max_pool2d(x),
        relay.nn.adaptive_avg_pool2d(x, (3, 4)),
    ]
    return Layers(rng).network(outputs, {"data": data})
