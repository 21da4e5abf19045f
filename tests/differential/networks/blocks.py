"""Small networks of branches that join, split and keep what came before, and a transformer block.

The other families of the zoo hold the same, and the zoo itself shows that they work.
"""

import numpy as np
from tvm import relay

from .layers import Layers, channel_shuffle, channels_of, global_pool, relu6, shape_of
from .registry import Network, network, variable, zeros

IMAGE = zeros(1, 3, 64, 64)


@network
def resnet(rng: np.random.Generator) -> Network:
    n = Layers(rng)

    def basic_block(x: relay.Expr, channels: int, stride: int) -> relay.Expr:
        y = relay.nn.relu(n.conv_norm(x, channels, stride=stride, pad=1))
        y = n.conv_norm(y, channels, pad=1)
        if stride != 1 or channels_of(x) != channels:
            x = n.conv_norm(x, channels, 1, stride=stride)
        return relay.nn.relu(y + x)

    x = relay.nn.relu(n.conv_norm(variable("input0", IMAGE), 16, 7, stride=2, pad=3))
    x = relay.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        x = basic_block(basic_block(x, channels, stride), channels, 1)
    return n.network(n.dense(global_pool(x), 20), {"input0": IMAGE}, record_nodes=True)


@network
def shufflenet_v2(rng: np.random.Generator) -> Network:
    n = Layers(rng)

    def branch(x: relay.Expr, channels: int, stride: int) -> relay.Expr:
        y = relay.nn.relu(n.conv_norm(x, channels, 1))
        y = n.batch_norm(n.depthwise(y, stride=stride))
        return relay.nn.relu(n.conv_norm(y, channels, 1))

    def basic(x: relay.Expr) -> relay.Expr:
        left, right = relay.split(x, 2, axis=1)
        return channel_shuffle(relay.concatenate(
            [left, branch(right, channels_of(left), 1)], axis=1), 2)

    def down(x: relay.Expr, channels: int) -> relay.Expr:
        left = n.batch_norm(n.depthwise(x, stride=2))
        left = relay.nn.relu(n.conv_norm(left, channels // 2, 1))
        return channel_shuffle(relay.concatenate([left, branch(x, channels // 2, 2)], axis=1), 2)

    x = relay.nn.relu(n.conv_norm(variable("input", IMAGE), 12, stride=2, pad=1))
    x = basic(basic(down(x, 32)))
    x = relay.mean(n.conv_norm(x, 48, 1), axis=[2, 3])
    return n.network(n.dense(x, 20), {"input": IMAGE}, record_nodes=True)


def inverted_residual(n: Layers, x: relay.Expr, channels: int, stride: int, kernel: int,
                      pad: int | tuple[int, ...]) -> relay.Expr:
    y = relu6(n.conv_norm(x, channels_of(x) * 4, 1))
    y = relu6(n.batch_norm(n.depthwise(y, kernel, stride=stride, pad=pad)))
    y = n.conv_norm(y, channels, 1)
    return x + y if stride == 1 and channels_of(x) == channels else y


@network
def efficientnet_lite(rng: np.random.Generator) -> Network:
    """As MobileNet v2 with 5×5 depthwise kernels and TFLite's uneven "same" padding."""
    n = Layers(rng)
    x = relu6(n.conv_norm(variable("images", IMAGE), 8, stride=2, pad=(0, 0, 1, 1)))
    x = inverted_residual(n, x, 12, 2, 5, (1, 1, 2, 2))
    x = inverted_residual(n, x, 12, 1, 5, 2)
    x = inverted_residual(n, x, 16, 2, 3, (0, 0, 1, 1))
    return n.network(relay.nn.softmax(n.dense(global_pool(x), 20)), {"images": IMAGE})


@network
def transformer(rng: np.random.Generator) -> Network:
    """Token and mask inputs of two types, batched products, layer norm, GELU."""
    length, width, heads = 12, 32, 4
    n = Layers(rng)
    inputs = {"tokens": zeros(1, length, dtype="int64"), "mask": zeros(1, length, dtype="int64")}

    def norm(x: relay.Expr) -> relay.Expr:
        return relay.nn.layer_norm(x, n.parameter((width,), 0.1, 1.0), n.parameter((width,), 0.1))

    def project(x: relay.Expr, units: int) -> relay.Expr:
        return n.dense(relay.reshape(x, (length, shape_of(x)[-1])), units)

    def split_heads(x: relay.Expr) -> relay.Expr:
        return relay.transpose(relay.reshape(x, (length, heads, width // heads)), (1, 0, 2))

    x = relay.take(n.parameter((50, width)), variable("tokens", inputs["tokens"]), axis=0,
                   mode="clip")
    query, key, value = (split_heads(project(norm(x), width)) for _ in range(3))
    scores = relay.nn.batch_matmul(query, key) * relay.const(0.35)
    hidden = relay.const(1.0) - relay.cast(variable("mask", inputs["mask"]), "float32")
    scores += relay.expand_dims(hidden, axis=1) * relay.const(-1e4)
    mixed = relay.nn.batch_matmul(relay.nn.softmax(scores, axis=-1),
                                  relay.transpose(value, (0, 2, 1)))
    mixed = relay.reshape(relay.transpose(mixed, (1, 0, 2)), (1, length, width))
    x += relay.reshape(project(mixed, width), (1, length, width))
    wide = project(norm(x), 4 * width)
    wide = relay.const(0.5) * wide * (relay.const(1.0) + relay.erf(wide * relay.const(0.70710678)))
    x += relay.reshape(project(wide, width), (1, length, width))

    def draw(values: np.random.Generator) -> dict[str, np.ndarray]:
        return {"tokens": values.integers(0, 50, (1, length)),
                "mask": (values.random((1, length)) < 0.8).astype("int64")}

    return n.network([x, relay.argmax(x, axis=-1)], inputs, draw=draw)
