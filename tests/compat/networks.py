"""The small networks whose artifacts of every release are kept, with seeded weights and inputs.

Runs inside TVM 0.7 to 0.18, so it keeps to what all of them have.
"""

import zlib

import numpy as np
import tvm
from tvm import relay

#: The baseline of every x86-64 CPU (SSE2), and the level that compilers are asked for in practice.
PLAIN = "llvm"
V2 = "llvm -mcpu=x86-64-v2"


class Case:
    """A network and how it is compiled.

    inputs: name -> values.  exact: of each output, whether it takes nothing but IEEE arithmetic, so
    that the same code gives the same bits everywhere; expf and the like differ between C libraries.
    """

    def __init__(self, outputs, weights, inputs, exact, target=V2, quantize=False):
        self.inputs = inputs
        self.exact = exact
        self.target = target
        body = relay.Tuple(outputs) if isinstance(outputs, list) else outputs
        free = {v.name_hint: v for v in relay.analysis.free_vars(body)}
        order = [free[name] for name in inputs] + [free[n] for n in free if n not in inputs]
        self.module = tvm.IRModule.from_expr(relay.Function(order, body))
        self.params = {k: tvm.nd.array(v) for k, v in weights.items()}
        self.module = relay.transform.InferType()(self.module)
        if quantize:
            with relay.quantize.qconfig(global_scale=8.0, skip_conv_layers=[]):
                self.module = relay.quantize.quantize(self.module, self.params)
            self.params = {}


class Layers:
    """Layers with seeded weights of one type."""

    def __init__(self, name, dtype="float32"):
        self._random = np.random.RandomState(zlib.crc32(name.encode()) % 2**32)
        self.dtype = dtype
        self.weights = {}

    def weight(self, shape, scale):
        name = "w%d" % len(self.weights)
        self.weights[name] = (self._random.randn(*shape) * scale).astype(self.dtype)
        return relay.var(name, shape=shape, dtype=self.dtype)

    def values(self, *shape):
        return self._random.randn(*shape).astype(self.dtype)

    def integers(self, low, high, shape, dtype):
        return self._random.randint(low, high, shape).astype(dtype)

    def conv(self, x, channels_in, channels, kernel, stride=1, groups=1):
        """Convolution and bias."""
        per_group = channels_in // groups
        scale = (2.0 / (per_group * kernel * kernel)) ** 0.5
        y = relay.nn.conv2d(x, self.weight((channels, per_group, kernel, kernel), scale),
                            strides=(stride, stride), padding=(kernel // 2,) * 4, channels=channels,
                            kernel_size=(kernel, kernel), groups=groups)
        return relay.nn.bias_add(y, self.weight((channels,), 0.1))

    def norm(self, x, channels):
        """Batch normalisation with recorded statistics, and ReLU."""
        gamma, beta, mean = (self.weight((channels,), s) for s in (0.5, 0.2, 0.2))
        variance = self.weight((channels,), 0.3)
        name = variance.name_hint
        self.weights[name] = np.abs(self.weights[name]) + np.array(0.5, self.dtype)
        return relay.nn.relu(relay.nn.batch_norm(x, gamma, beta, mean, variance)[0])

    def dense(self, x, units_in, units):
        y = relay.nn.dense(x, self.weight((units, units_in), units_in ** -0.5))
        return relay.nn.bias_add(y, self.weight((units,), 0.1))


def _variable(name, values):
    return relay.var(name, shape=values.shape, dtype=str(values.dtype))


def _residual_body(n, x):
    """Convolutions with normalisation, a depthwise one, a residual addition and both poolings."""
    x = n.norm(n.conv(x, 3, 8, 3), 8)
    y = n.norm(n.conv(x, 8, 8, 3, groups=8), 8)
    y = n.norm(n.conv(y, 8, 8, 1), 8)
    x = relay.nn.max_pool2d(relay.add(x, y), pool_size=(2, 2), strides=(2, 2))
    x = relay.nn.relu(n.conv(x, 8, 16, 3, stride=2))
    return relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x))


def cnn(target=V2):
    """As the classifiers of the zoo are; its logits are an output too."""
    n = Layers("cnn")
    data = n.values(1, 3, 16, 16)
    logits = n.dense(_residual_body(n, _variable("data", data)), 16, 10)
    return Case([relay.nn.softmax(logits), logits], n.weights, {"data": data}, [False, True],
                target)


def squeezenet():
    """Fire modules: squeeze, two ways of expanding, concatenation."""
    n = Layers("squeezenet")
    data = n.values(1, 3, 24, 24)
    x = relay.nn.relu(n.conv(_variable("data", data), 3, 8, 3, stride=2))
    channels = 8
    for squeeze, expand in ((4, 8), (4, 8)):
        s = relay.nn.relu(n.conv(x, channels, squeeze, 1))
        a = relay.nn.relu(n.conv(s, squeeze, expand, 1))
        b = relay.nn.relu(n.conv(s, squeeze, expand, 3))
        x = relay.concatenate([a, b], axis=1)
        channels = 2 * expand
    x = relay.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2))
    x = relay.nn.relu(n.conv(x, channels, 10, 1))
    return Case(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x)), n.weights, {"data": data},
                [True], PLAIN)


def _shuffle(x, channels, side, groups):
    x = relay.reshape(x, (1, groups, channels // groups, side, side))
    return relay.reshape(relay.transpose(x, (0, 2, 1, 3, 4)), (1, channels, side, side))


def shufflenet():
    """A grouped convolution, channels shuffled, a depthwise one; shuffle and split of version 2."""
    n = Layers("shufflenet")
    data = n.values(1, 6, 12, 12)
    x = relay.nn.relu(n.conv(_variable("data", data), 6, 12, 1, groups=3))
    x = _shuffle(x, 12, 12, groups=3)
    x = n.norm(n.conv(x, 12, 12, 3, stride=2, groups=12), 12)
    x = _shuffle(x, 12, 6, groups=2)
    left, right = relay.split(x, 2, axis=1)
    right = relay.nn.relu(n.conv(right, 6, 6, 1))
    x = relay.concatenate([left, right], axis=1)
    return Case(relay.mean(x, axis=(2, 3)), n.weights, {"data": data}, [True])


def mlp():
    """Two layers on a batch of two."""
    n = Layers("mlp")
    data = n.values(2, 1, 6, 6)
    x = relay.nn.batch_flatten(_variable("data", data))
    logits = n.dense(relay.nn.relu(n.dense(x, 36, 24)), 24, 8)
    return Case(relay.nn.log_softmax(logits), n.weights, {"data": data}, [False], PLAIN)


def _int8(target):
    n = Layers("int8")
    data = n.values(1, 3, 16, 16)
    logits = n.dense(_residual_body(n, _variable("data", data)), 16, 10)
    return Case(logits, n.weights, {"data": data}, [True], target, quantize=True)


def int8():
    """Quantised by relay.quantize: float32 in and out, int8 between."""
    return _int8(PLAIN)


def int8_v2():
    """The same for SSE4, where TVM takes other instructions, and other roundings, for int8."""
    return _int8(V2)


def float16():
    """Input and weights in half precision; softmax in single."""
    n = Layers("float16", "float16")
    data = n.values(1, 3, 12, 12)
    x = relay.nn.relu(n.conv(_variable("data", data), 3, 8, 3))
    x = relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))
    x = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(relay.nn.relu(n.conv(x, 8, 8, 1))))
    logits = n.dense(x, 8, 6)
    return Case([logits, relay.nn.softmax(relay.cast(logits, "float32"))], n.weights,
                {"data": data}, [True, False])


def several():
    """Inputs and outputs of several types and ranks, an input that is looked up in a table."""
    n = Layers("several")
    picture, scale = n.values(1, 4, 5, 5), n.values(4, 1, 1)
    tokens = n.integers(0, 12, (2, 3), "int64")
    bytes_in = n.integers(0, 256, (2, 7), "uint8")
    table = n.weight((12, 4), 1.0)
    p, s, t, b = (_variable(*named) for named in (
        ("picture", picture), ("scale", scale), ("tokens", tokens), ("bytes", bytes_in)))
    scaled = relay.multiply(p, s)
    outputs = [scaled, relay.sum(relay.take(table, t, axis=0), axis=1),
               relay.argmax(scaled, axis=1), relay.cast(b, "int32") * relay.const(-3, "int32"),
               relay.greater(scaled, relay.const(0.0))]
    return Case(outputs, n.weights,
                {"picture": picture, "scale": scale, "tokens": tokens, "bytes": bytes_in},
                [True] * len(outputs))


def lstm():
    """Three steps of an LSTM cell: split, sigmoid, tanh, concatenation, the state an output too."""
    n = Layers("lstm")
    steps, width = 3, 6
    sequence, state = n.values(1, steps, 5), n.values(1, width)
    w = n.weight((4 * width, 5 + width), 0.4)
    bias = n.weight((4 * width,), 0.1)
    x = relay.transpose(_variable("sequence", sequence), (1, 0, 2))
    h, c, hidden = _variable("state", state), relay.zeros((1, width), "float32"), []
    for step in relay.split(x, steps, axis=0):
        both = relay.concatenate([relay.reshape(step, (1, 5)), h], axis=1)
        gates = relay.split(relay.nn.bias_add(relay.nn.dense(both, w), bias), 4, axis=1)
        c = relay.sigmoid(gates[1]) * c + relay.sigmoid(gates[0]) * relay.tanh(gates[2])
        h = relay.sigmoid(gates[3]) * relay.tanh(c)
        hidden.append(h)
    return Case([relay.stack(hidden, axis=1), c], n.weights,
                {"sequence": sequence, "state": state}, [False, False])


CASES = {make.__name__: make for make in (
    cnn, squeezenet, shufflenet, mlp, int8, int8_v2, float16, several, lstm)}
