"""Element types other than float32, at the edges of the graph and inside."""

import numpy as np
from tvm import relay

from .layers import Layers, global_pool
from .registry import (
    AVX2_TARGET,
    BASELINE_TARGET,
    Network,
    expression_network,
    network,
    variable,
    zeros,
)


@network
def int64_indices(rng: np.random.Generator) -> Network:
    n = Layers(rng)
    example = zeros(5, dtype="int64")
    indices = variable("indices", example)
    rows = relay.take(n.parameter((9, 6)), indices, axis=0, mode="clip")
    return n.network([rows, indices * relay.const(3, "int64")], {"indices": example},
                     draw=lambda values: {"indices": values.integers(0, 9, 5)})


@network
def bools(rng: np.random.Generator) -> Network:
    inputs = {"flag": zeros(4, 6, dtype="bool"), "x": zeros(4, 6)}
    flag, x = (variable(name, example) for name, example in inputs.items())
    positive = relay.greater(x, relay.const(0.0))
    return expression_network([relay.logical_and(flag, positive), relay.logical_not(flag),
                               relay.where(flag, x, relay.negative(x))], inputs)


@network
def uint8_image(rng: np.random.Generator) -> Network:
    """A network that takes raw pixels and normalises them itself."""
    n, data = Layers(rng), zeros(1, 3, 20, 20, dtype="uint8")
    image = variable("image", data)
    x = relay.cast(image, "float32") * relay.const(1 / 255)
    x = relay.nn.relu(n.conv(x - relay.const(0.5), 8, stride=2))
    bright = relay.right_shift(image, relay.const(1, "uint8"))
    return n.network([n.dense(global_pool(x), 5), bright], {"image": data})


@network
def casts(rng: np.random.Generator) -> Network:
    data = zeros(3, 7)
    x = variable("x", data)
    types = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
             "float64", "bool")
    return expression_network([relay.cast(relay.clip(x * relay.const(20.0), 0.0, 100.0), dtype)
                               for dtype in types], {"x": data})


@network
def wide_integers_and_doubles(rng: np.random.Generator) -> Network:
    inputs = {"a": zeros(8, dtype="int16"), "b": zeros(8, dtype="int32"),
              "c": zeros(8, dtype="float64"), "d": zeros(8, dtype="uint32")}
    a, b, c, d = (variable(name, example) for name, example in inputs.items())
    return expression_network([relay.cast(a, "int32") + b, relay.exp(c),
                               d * relay.const(7, "uint32")], inputs)


@network
def arg_and_top(rng: np.random.Generator) -> Network:
    """Outputs of two types from one reduction each."""
    data = zeros(4, 9)
    x = variable("x", data)
    return expression_network([relay.argmax(x, axis=1), relay.argmin(x, axis=0),
                               relay.cast(relay.max(x, axis=1), "float16")], {"x": data})


def _half_network(rng: np.random.Generator, target: str) -> Network:
    n, data = Layers(rng, "float16"), zeros(1, 3, 16, 16, dtype="float16")
    x = relay.nn.relu(n.conv_norm(variable("data", data), 16, pad=1))
    x = relay.nn.relu(n.depthwise(x, stride=2))
    x = relay.nn.max_pool2d(n.conv(x, 12, 1), pool_size=(2, 2), strides=(2, 2))
    x = n.dense(global_pool(x), 10)
    return n.network([x, relay.nn.softmax(relay.cast(x, "float32"))], {"data": data}, target=target)


@network
def float16_baseline(rng: np.random.Generator) -> Network:
    """No F16C at this level: the library converts through helper functions."""
    return _half_network(rng, BASELINE_TARGET)


@network
def float16_avx2(rng: np.random.Generator) -> Network:
    return _half_network(rng, AVX2_TARGET)


@network
def float16_weights(rng: np.random.Generator) -> Network:
    """Parameters in float16, arithmetic in float32."""
    n, data = Layers(rng, "float16"), zeros(2, 12)
    weight = relay.cast(n.parameter((7, 12), 0.3), "float32")
    return n.network(relay.nn.dense(variable("x", data), weight), {"x": data},
                     opt_level=1)  # from 2 on the compiler does the cast itself
