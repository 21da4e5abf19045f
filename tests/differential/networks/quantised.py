"""Integer networks: relay.quantize's and QNN's."""

import numpy as np
import tvm
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


def _relay_quantized(rng: np.random.Generator, target: str) -> Network:
    n, data = Layers(rng), zeros(1, 3, 20, 20)
    x = relay.nn.relu(n.conv_norm(variable("data", data), 16, pad=1))
    y = relay.nn.relu(n.conv_norm(x, 16, pad=1))
    x = relay.nn.max_pool2d(x + y, pool_size=(2, 2), strides=(2, 2))
    net = n.network(n.dense(global_pool(x), 10), {"data": data}, target=target)
    params = {name: tvm.nd.array(value) for name, value in net.params.items()}
    with relay.quantize.qconfig(global_scale=8.0, skip_conv_layers=[]):
        net.module = relay.quantize.quantize(net.module, params)
    net.params = {}  # bound into the module by the quantiser
    return net


@network
def int8_relay_quantize(rng: np.random.Generator) -> Network:
    return _relay_quantized(rng, BASELINE_TARGET)


@network
def int8_relay_quantize_avx2(rng: np.random.Generator) -> Network:
    return _relay_quantized(rng, AVX2_TARGET)


@network
def int8_qnn(rng: np.random.Generator) -> Network:
    """What a quantised TFLite or ONNX model becomes: uint8 in, uint8 and float32 out."""
    data = zeros(1, 3, 16, 16, dtype="uint8")

    def weight(*shape: int) -> relay.Expr:
        return relay.const(rng.integers(-60, 61, shape, dtype=np.int8))

    def bias(units: int) -> relay.Expr:
        return relay.const(rng.integers(-500, 500, units, dtype=np.int32))

    def scale(value: float) -> relay.Expr:
        return relay.const(value, "float32")

    def zero(value: int) -> relay.Expr:
        return relay.const(value, "int32")

    def requantize(x: relay.Expr, from_scale: float, to_scale: float) -> relay.Expr:
        return relay.qnn.requantize(x, scale(from_scale), zero(0), scale(to_scale), zero(128),
                                    out_dtype="uint8")

    x = variable("image", data)
    a = relay.qnn.conv2d(x, weight(8, 3, 3, 3), zero(128), zero(0), scale(0.02), scale(0.01),
                         kernel_size=(3, 3), channels=8, padding=(1, 1))
    a = requantize(relay.nn.bias_add(a, bias(8)), 0.0002, 0.01)
    b = relay.qnn.conv2d(a, weight(8, 8, 1, 1), zero(128), zero(0), scale(0.01), scale(0.01),
                         kernel_size=(1, 1), channels=8)
    b = requantize(relay.nn.bias_add(b, bias(8)), 0.0001, 0.02)
    c = relay.qnn.add(a, b, scale(0.01), zero(128), scale(0.02), zero(128), scale(0.03), zero(128))
    c = relay.qnn.concatenate([c, a], [scale(0.03), scale(0.01)], [zero(128), zero(128)],
                              scale(0.03), zero(128), axis=1)
    d = relay.nn.avg_pool2d(relay.cast(c, "int32"), pool_size=(16, 16))
    d = relay.cast(relay.clip(relay.reshape(d, (1, 16)), 0, 255), "uint8")
    e = relay.qnn.dense(d, weight(10, 16), zero(128), zero(0), scale(0.03), scale(0.01), units=10)
    e = relay.qnn.dequantize(e, scale(0.0003), zero(0))
    return expression_network([relay.nn.softmax(e), c], {"image": data})
